import Foundation
import Synchronization
import Testing
import ZDCCrypto
import ZDCProtocol
import ZDCTreesystem

@testable import ZDCClientAPI
@testable import ZDCTransfers
@testable import ZeroDarkCloud

/// Which requests share a transfer, which run first, and which are retried.
@Suite struct DownloadCoalescingTests {
  private static let film = Publisher.Item(
    data: pattern(300_000), metadata: pattern(700), thumbnail: pattern(9_000, seed: 3))

  /// Holds every request for content until the returned gate is opened.
  private static func hold(_ device: NetworkDevice) -> Gate {
    let gate = Gate()
    device.transport.set(
      .init(before: { request in
        if request.path.contains("/blobs/") || request.path.hasSuffix("/contents") { try await gate.wait() }
      }))
    return gate
  }

  private static func key(_ node: ZDCNode, _ device: NetworkDevice) async throws -> TransferKey {
    try await device.connection.asyncRead { try $0.contentTarget(nodeUUID: node.uuid).key }
  }

  // MARK: Metadata and thumbnails

  @Test func aThousandRequestsForOneThumbnail_makeOneTransfer() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let node = try await Publisher(device).publish([Self.film])[0]
      let key = try await Self.key(node, device)
      let gate = Self.hold(device)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<1_000 {
          group.addTask {
            let thumbnail = try await device.downloads.downloadNodeMeta(node, components: [.thumbnail]).thumbnail
            #expect(thumbnail == Data(Self.film.thumbnail))
          }
        }
        while await device.downloads.metaTransfers.waiterCount(key) < 1_000 { await Task.yield() }
        #expect(await device.downloads.metaTransfers.count == 1)
        await gate.open()
        try await group.waitForAll()
      }
      // One request for the sections, and one for the proof that they belong to the node.
      #expect(device.transport.requests.count { $0.hasPrefix("GET /v1/trees/") } == 2)
      #expect(await device.downloads.metaTransfers.count == 0)
    }
  }

  @Test func aNarrowerRequestJoinsAWiderTransfer_andNotTheOtherWayRound() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let node = try await Publisher(device).publish([Self.film])[0]
      let key = try await Self.key(node, device)
      let (downloads, gate) = (device.downloads, Self.hold(device))
      let narrow = Task { try await downloads.downloadNodeMeta(node, components: [.metadata]) }
      while await downloads.metaTransfers.waiterCount(key) < 1 { await Task.yield() }
      let wide = Task { try await downloads.downloadNodeMeta(node, components: .all) }
      while await downloads.metaTransfers.waiterCount(key) < 2 { await Task.yield() }
      #expect(await downloads.metaTransfers.count == 2)
      let parts: [ZDCNodeMetaComponents] = [[.thumbnail], [.header, .thumbnail], [.header, .metadata]]
      let joined = parts.map { components in
        Task { try await downloads.downloadNodeMeta(node, components: components) }
      }
      while await downloads.metaTransfers.waiterCount(key) < 5 { await Task.yield() }
      #expect(await downloads.metaTransfers.count == 2)
      await gate.open()
      #expect(try await narrow.value.metadata == Data(Self.film.metadata))
      #expect(try await wide.value.thumbnail == Data(Self.film.thumbnail))
      let answers = try await [joined[0].value, joined[1].value, joined[2].value]
      #expect(answers.map { $0.metadata?.count } == [nil, nil, 700])
      #expect(answers.map { $0.thumbnail?.count } == [9_000, 9_000, nil])
      #expect(device.transport.requests.count { $0.hasPrefix("GET /v1/trees/") } == 4)
    }
  }

  @Test func theHeaderCostsNoRequest_andSmallThumbnailsTravelTogether() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let items = (0..<40).map { Publisher.Item(data: pattern(500), thumbnail: pattern(200, seed: UInt64($0))) }
      let nodes = try await Publisher(device).publish(items)
      let before = device.transport.requests.count
      #expect(
        try await device.downloads.downloadNodeMeta(nodes[0], components: [.header]).cloudDataInfo.dataSize == 500)
      #expect(device.transport.requests.count == before)
      let gate = Self.hold(device)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for (index, (node, item)) in zip(nodes, items).enumerated() {
          group.addTask {
            let thumbnail = try await device.downloads.downloadNodeMeta(node, components: [.thumbnail]).thumbnail
            #expect(thumbnail == Data(item.thumbnail))
          }
          while index == 0, device.transport.requests.count == before { await Task.yield() }
        }
        let batchers = device.downloads.batchers.withLock { Array($0.values) }
        while try await #require(batchers.first).waitingCount < 39 { await Task.yield() }
        await gate.open()
        try await group.waitForAll()
      }
      // The thumbnails requested while the first request was held share the second one.
      #expect(device.transport.requests.count - before == 2)
    }
  }

  // MARK: Priority

  /// With one slot, a download without a waiting caller makes room for one with a caller, and resumes where it stopped.
  @Test func aDownloadWithoutACallerPauses_andResumesAfterwards() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let items = [1, 2].map { Publisher.Item(data: pattern(10_000_000, seed: $0)) }
      let nodes = try await Publisher(device).publish(items)
      let keys = [try await Self.key(nodes[0], device), try await Self.key(nodes[1], device)]
      let (transfers, slots) = (device.downloads.transfers, device.downloads.slots)
      let (isHalfway, mayContinue, order) = (Gate(), Gate(), Log())
      let received = Counter(0)
      device.transport.set(
        .init(after: { request, response in
          guard request.path.contains("/blobs/"), !request.path.contains("/leaves") else { return response }
          let number = request.path.contains(keys[0].blob.text) ? 1 : 2
          let isContinued = request.headers["range"] != nil
          await order.append(isContinued ? "\(number) continued" : "\(number) from the start")
          var watched = response
          let body = response.body
          watched.body = TransportBody {
            let slice = try await body.next()
            await received.subtract(-(slice?.count ?? 0))
            if await received.value > 4_000_000 {
              await isHalfway.open()
              try await mayContinue.wait()
            }
            return slice
          }
          return watched
        }))
      let ticket = device.downloads.downloadNodeData(nodes[0], completionQueue: .global()) { _, _, _ in
        Issue.record("no caller is left")
      }
      try await isHalfway.wait()
      ticket.ignore()
      while await transfers.isWanted(keys[0]) { await Task.yield() }
      let second = Task { try await device.downloads.downloadNodeData(nodes[1]).cryptoFile }
      while slots.waitingCount == 0 { await Task.yield() }
      await mayContinue.open()
      #expect(try [UInt8](ZDCFileConversion.decryptCryptoFile(intoMemory: try await second.value)) == items[1].data)
      while await transfers.count > 0 { await Task.yield() }
      #expect(await order.lines == ["1 from the start", "2 from the start", "1 continued"])
      // Each byte arrived once, except for the leaf that was cut off and the batch that was read ahead.
      #expect(await received.value < 2 * 10_300_000 + (2 << 20))
    }
  }

  // MARK: Retries

  @Test(arguments: [8, 9]) func aNetworkThatFails_isTriedAgainEightTimes_withPausesThatGrow(failures: Int) async throws
  {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let node = try await Publisher(device).publish([Self.film])[0]
      let left = Counter(failures)
      device.transport.set(
        .init(before: { request in
          guard request.path.contains("/blobs/"), await left.value > 0 else { return }
          await left.subtract(1)
          throw TransportError(.cut)
        }))
      if failures == 8 {
        _ = try await device.downloads.downloadNodeData(node)
      } else {
        await #expect(throws: TransportError(.cut)) { try await device.downloads.downloadNodeData(node) }
      }
      #expect(device.pauses.all.count == 8)
      for (index, pause) in device.pauses.all.enumerated() { #expect(pause <= .milliseconds(250 << index)) }
      #expect(Set(device.pauses.all).count > 4)
    }
  }

  /// A list download gives up after few retries. A caller that wants only this content retries longer, whichever asked
  /// first.
  @Test(arguments: [true, false]) func joiningAListsDownload_keepsTheLongRetries(isAlone: Bool) async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let node = try await Publisher(device).publish([Self.film])[0]
      let (key, transfers) = (try await Self.key(node, device), device.downloads.transfers)
      let (left, first) = (Counter(6), Once())
      device.transport.set(
        .init(before: { request in
          guard request.path.contains("/blobs/") else { return }
          // Holds the first request until all callers wait for it.
          if first.take() {
            while await transfers.waiterCount(key) < (isAlone ? 1 : 2) { await Task.yield() }
          }
          guard await left.value > 0 else { return }
          await left.subtract(1)
          throw TransportError(.cut)
        }))
      let list = Task {
        var count = 0
        for try await download in device.downloads.downloadContents(of: [node]) {
          if case .file(let file) = try download.content.get() {
            DownloadFolder.remove(file.fileURL)
            count += 1
          }
        }
        return count
      }
      if isAlone {
        await #expect(throws: TransportError(.cut)) { try await list.value }
        #expect(device.pauses.all.count == 2)
      } else {
        while await transfers.waiterCount(key) < 1 { await Task.yield() }
        _ = try await device.downloads.downloadNodeData(node)
        #expect(try await list.value == 1)
        #expect(device.pauses.all.count == 6)
      }
    }
  }

  @Test func aBusyServerIsWaitedFor_asLongAsItSays() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let node = try await Publisher(device).publish([Self.film])[0]
      let once = Once()
      device.transport.set(
        .init(before: { request in
          guard request.path.contains("/blobs/"), once.take() else { return }
          throw ServerError(.shuttingDown, "by script", retryable: true, retryAfterMs: 7_000)
        }))
      _ = try await device.downloads.downloadNodeData(node)
      #expect(device.pauses.all == [.milliseconds(7_000)])
    }
  }

  @Test(arguments: [ServerError.Code.unauthorized, .forbidden, .notFound, .blobGone])
  func aRefusalOfTheServer_failsImmediately(code: ServerError.Code) async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let node = try await Publisher(device).publish([Self.film])[0]
      device.transport.set(
        .init(before: { request in
          if request.path.contains("/blobs/") { throw ServerError(code, "by script") }
        }))
      await #expect(throws: (any Error).self) { try await device.downloads.downloadNodeData(node) }
      await #expect(throws: (any Error).self) { try await device.downloads.downloadNodeMeta(node, components: .all) }
      #expect(device.pauses.all == [])
    }
  }
}
