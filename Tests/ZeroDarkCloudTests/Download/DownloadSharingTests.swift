import Foundation
import GRDB
import Synchronization
import Testing
import ZDCCrypto
import ZDCProtocol
import ZDCTreesystem

@testable import ZDCClientAPI
@testable import ZDCClientStore
@testable import ZDCTransfers
@testable import ZeroDarkCloud

@Suite struct DownloadSharingTests {
  @Test func requestsForOneNodeJoinOneTransfer_andEachHasItsOwnFile() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let data = pattern(300_000)
      let node = try await Publisher(device).publish([.init(data: data)])[0]
      let key = try await device.connection.asyncRead { try $0.contentTarget(nodeUUID: node.uuid).key }
      // Holds the answer until all ten callers wait for it.
      device.transport.set(
        .init(before: { [device] request in
          guard request.path.contains("/blobs/") else { return }
          while await device.downloads.transfers.waiterCount(key) < 10 { await Task.yield() }
        }))
      let urls = try await withThrowingTaskGroup(of: URL.self) { group in
        for _ in 0..<10 {
          group.addTask {
            let file = try await device.downloads.downloadNodeData(node).cryptoFile
            #expect(try [UInt8](ZDCFileConversion.decryptCryptoFile(intoMemory: file)) == data)
            try FileManager.default.removeItem(at: file.fileURL)
            return file.fileURL
          }
        }
        return try await group.reduce(into: Set<URL>()) { $0.insert($1) }
      }
      #expect(urls.count == 10)
      #expect(device.transport.requests.count { $0.hasPrefix("GET /v1/trees/") } == 1)
      #expect(await device.downloads.transfers.count == 0)
      device.transport.set(.init())
    }
  }

  @Test func oneCancels_theOtherGetsItsFile_bothCancel_theTransferEnds() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let node = try await Publisher(device).publish([.init(data: pattern(300_000))])[0]
      let key = try await device.connection.asyncRead { try $0.contentTarget(nodeUUID: node.uuid).key }
      let transfers = device.downloads.transfers
      let gate = Gate()
      device.transport.set(
        .init(before: { request in
          if request.path.contains("/blobs/") { try await gate.wait() }
        }))
      let first = Task { try await device.downloads.downloadNodeData(node) }
      let second = Task { try await device.downloads.downloadNodeData(node) }
      while await transfers.waiterCount(key) < 2 { await Task.yield() }
      first.cancel()
      await #expect(throws: CancellationError.self) { try await first.value }
      await gate.open()
      let file = try await second.value.cryptoFile
      #expect(FileManager.default.fileExists(atPath: file.fileURL.path))
      await gate.close()
      let third = Task { try await device.downloads.downloadNodeData(node) }
      while await transfers.waiterCount(key) < 1 { await Task.yield() }
      third.cancel()
      await #expect(throws: CancellationError.self) { try await third.value }
      #expect(await transfers.count == 0)
      await gate.open()
    }
  }

  // MARK: Completion blocks

  @Test func theBlockIsCalledOnceOnItsQueue_andTheTicketKnowsHowFar() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let data = pattern(300_000)
      let node = try await Publisher(device).publish([.init(data: data)])[0]
      let queue = DispatchQueue(label: "test")
      let key = DispatchSpecificKey<Bool>()
      queue.setSpecific(key: key, value: true)
      let ticket = Mutex<ZDCDownloadTicket?>(nil)
      let result: (ZDCCloudDataInfo?, ZDCCryptoFile?, (any Error)?, Bool) = await withCheckedContinuation {
        continuation in
        let made = device.downloads.downloadNodeData(node, options: ZDCDownloadOptions(), completionQueue: queue) {
          (cloudDataInfo: ZDCCloudDataInfo?, cryptoFile: ZDCCryptoFile?, error: (any Error)?) in
          let isThere = DispatchQueue.getSpecific(key: key) == true
          continuation.resume(returning: (cloudDataInfo, cryptoFile, error, isThere))
        }
        ticket.withLock { $0 = made }
      }
      #expect(result.3)
      #expect(result.2 == nil)
      #expect(result.0?.dataSize == 300_000)
      let file = try #require(result.1)
      #expect(try [UInt8](ZDCFileConversion.decryptCryptoFile(intoMemory: file)) == data)
      let progress = try #require(ticket.withLock { $0 }).progress
      #expect(progress.completedUnitCount == Int64(file.encryptedFileSize))
      #expect(progress.totalUnitCount == progress.completedUnitCount)
    }
  }

  @Test func aCancelledTicketsBlockGetsTheCancellation_anIgnoredOnesIsNotCalled() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let node = try await Publisher(device).publish([.init(data: pattern(300_000))])[0]
      let gate = Gate()
      device.transport.set(
        .init(before: { request in
          if request.path.contains("/blobs/") { try await gate.wait() }
        }))
      let calls = Log()
      let ignored = device.downloads.downloadNodeData(node, completionQueue: .global()) { _, _, _ in
        Task { await calls.append("ignored") }
      }
      let error: (any Error)? = await withCheckedContinuation { continuation in
        let ticket = device.downloads.downloadNodeData(node, completionQueue: .global()) { _, _, error in
          continuation.resume(returning: error)
        }
        ignored.ignore()
        ticket.cancel()
      }
      #expect(error is CancellationError)
      await gate.open()
      let file = try await device.downloads.downloadNodeData(node).cryptoFile
      #expect(file.encryptedFileSize > 300_000)
      #expect(await calls.lines == [])
    }
  }

  /// The first caller under a tag withdraws, so the next caller's completion runs.
  @Test(arguments: [true, false])
  func underOneTag_theNextCallerCompletesWhenTheFirstWithdraws(isIgnored: Bool) async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let node = try await Publisher(device).publish([.init(data: pattern(300_000))])[0]
      let gate = Gate()
      device.transport.set(
        .init(before: { request in
          if request.path.contains("/blobs/") { try await gate.wait() }
        }))
      let options = ZDCDownloadOptions()
      options.completionConsolidationTag = "cell"
      let calls = Mutex<[String]>([])
      await withCheckedContinuation { continuation in
        let first = device.downloads.downloadNodeData(node, options: options, completionQueue: .global()) {
          _, _, error in
          calls.withLock { $0.append("first \(error is CancellationError)") }
        }
        device.downloads.downloadNodeData(node, options: options, completionQueue: .global()) { _, file, _ in
          calls.withLock { $0.append("second \(file != nil)") }
          continuation.resume()
        }
        device.downloads.downloadNodeData(node, options: options, completionQueue: .global()) { _, _, _ in
          calls.withLock { $0.append("third") }
        }
        if isIgnored { first.ignore() } else { first.cancel() }
        Task { await gate.open() }
      }
      _ = try await device.downloads.downloadNodeData(node)
      while calls.withLock({ $0.count }) < (isIgnored ? 1 : 2) { await Task.yield() }
      #expect(calls.withLock { $0.sorted() } == (isIgnored ? [] : ["first true"]) + ["second true"])
    }
  }

  @Test func underOneTag_onlyTheFirstBlockIsCalled() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let node = try await Publisher(device).publish([.init(data: pattern(300_000))])[0]
      let gate = Gate()
      device.transport.set(
        .init(before: { request in
          if request.path.contains("/blobs/") { try await gate.wait() }
        }))
      let options = ZDCDownloadOptions()
      options.completionTag = "cell"
      let calls = Mutex<[String]>([])
      let finished: [String] = await withCheckedContinuation { continuation in
        device.downloads.downloadNodeData(node, options: options, completionQueue: .global()) { _, _, _ in
          calls.withLock { $0.append("first") }
        }
        device.downloads.downloadNodeData(node, options: options, completionQueue: .global()) { _, _, _ in
          calls.withLock { $0.append("second") }
        }
        device.downloads.downloadNodeData(node, completionQueue: .global()) { _, _, _ in
          continuation.resume(returning: [])
        }
        Task { await gate.open() }
      }
      #expect(finished == [])
      _ = try await device.downloads.downloadNodeData(node)
      while calls.withLock({ $0.isEmpty }) { await Task.yield() }
      #expect(calls.withLock { $0 } == ["first"])
    }
  }

  // MARK: Many small downloads

  @Test func smallContentsAskedForTogether_travelTogether() async throws {
    let requests = Mutex<[Int]>([])
    let gate = Gate()
    let batcher = SmallContentBatcher(wait: { try? await gate.wait() }) { items in
      requests.withLock { $0.append(items.count) }
      var answer = Bundle.Writer()
      for (_, blob) in items.dropLast() { answer.append(content: blob.bytes, blob: blob) }
      return answer.bytes
    }
    let targets = try (0..<2_500).map { _ in try Self.target() }
    let answers = try await withThrowingTaskGroup(of: Bool.self) { group in
      for target in targets {
        group.addTask { try await batcher.content(target) == target.blob.bytes }
      }
      while await batcher.waitingCount < targets.count { await Task.yield() }
      await gate.open()
      return try await group.reduce(into: [Bool: Int]()) { $0[$1, default: 0] += 1 }
    }
    #expect(requests.withLock { $0 } == [1_000, 1_000, 500])
    // The server left out the last item of each request.
    #expect(answers == [true: 2_497, false: 3])
  }

  @Test func aFailedRequestFailsItsDownloads_andTheNextOneContinues() async throws {
    let once = Once()
    let batcher = SmallContentBatcher(wait: {}) { items in
      if once.take() { throw TransportError(.cut) }
      var answer = Bundle.Writer()
      for (_, blob) in items { answer.append(content: [7], blob: blob) }
      return answer.bytes
    }
    let target = try Self.target()
    await #expect(throws: TransportError(.cut)) { try await batcher.content(target) }
    #expect(try await batcher.content(target) == [7])
  }

  @Test func aBatchStaysBelowTheAnswersLimit() {
    #expect(SmallContentBatcher.batchSize([65_536, 1]) == 2)
    #expect(SmallContentBatcher.batchSize([Int](repeating: 65_536, count: 500)) == 63)
    #expect(SmallContentBatcher.batchSize([Int](repeating: 100, count: 5_000)) == 1_000)
    #expect(SmallContentBatcher.batchSize([]) == 0)
  }

  private static func target() throws -> ContentTarget {
    let sealed = try ContentSealer.sealSmall(data: [1])
    return ContentTarget(
      user: .zero, zone: ZoneID(tree: .zero, root: .zero), node: .random(),
      reference: try ContentReference(content: sealed.content(dataVersion: 1), secrets: sealed.secrets),
      receivedMs: 0)
  }

  @Test func aBulkDownloadBringsEverything_inFewRequests() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let publisher = try await Publisher(device)
      var items = (0..<900).map { Publisher.Item(data: pattern(300, seed: UInt64($0))) }
      items[100].data = pattern(400_000)
      items[200].metadata = [1, 2]
      let nodes = try await publisher.publish(items)
      let unknown = ZDCNode(
        uuid: "unknown", localUserID: publisher.user.uuid, treeID: publisher.user.treeID, nodeID: .random())
      let before = device.transport.requests.count
      var found: [String: [UInt8]] = [:]
      var failed: [String] = []
      for try await download in device.downloads.downloadContents(of: nodes + [unknown]) {
        switch download.content {
        case .success(.memory(let data, let metadata, _)):
          found[download.node.uuid] = [UInt8](data)
          if download.node == nodes[200] { #expect(metadata == Data([1, 2])) }
        case .success(.file(let file)):
          found[download.node.uuid] = [UInt8](try ZDCFileConversion.decryptCryptoFile(intoMemory: file))
        case .failure: failed.append(download.node.uuid)
        }
      }
      #expect(failed == ["unknown"])
      #expect(found.count == items.count)
      for (node, item) in zip(nodes, items) { #expect(found[node.uuid] == item.data) }
      #expect(device.transport.requests.count - before == 2)
    }
  }

  /// - the answer with the content of many nodes is invalid
  /// => each node's content is downloaded in another way, and the evidence, recorded once, blames no node
  @Test func anAnswerThatIsGarbledAsAWhole_accusesNoNode() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let items = (0..<3).map { Publisher.Item(data: pattern(300, seed: UInt64($0))) }
      let nodes = try await Publisher(device).publish(items)
      device.transport.set(
        .init(after: { request, response in
          guard request.path.hasSuffix("/contents") else { return response }
          let isFirst = Locked(true)
          var garbled = response
          garbled.body = TransportBody {
            isFirst.withLock { isFirst in
              defer { isFirst = false }
              return isFirst ? [0xFF, 1, 2, 3] : nil
            }
          }
          return garbled
        }))
      var count = 0
      for try await download in device.downloads.downloadContents(of: nodes) {
        if case .success(.file(let file)) = download.content {
          DownloadFolder.remove(file.fileURL)
          count += 1
        }
      }
      #expect(count == 3)
      let kept = try await device.connection.asyncRead { transaction in
        try String.fetchAll(
          transaction.database, sql: "SELECT (zone > 0) || ' ' || (nodeID IS NULL) FROM zdc_security_event")
      }
      #expect(kept == ["1 1"])
    }
  }

  /// - a node is deleted while content before it is downloaded
  /// => blobs are looked up for a thousand nodes at a time, not for the whole list
  @Test func aBulkDownload_looksUpWhatIsNext() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let nodes = try await Publisher(device).publish([.init(data: [1]), .init(data: [2])])
      var isThere: [Bool] = []
      let list = [ZDCNode](repeating: nodes[0], count: 5_000) + [nodes[1]]
      for try await download in device.downloads.downloadContents(of: list) {
        if isThere.isEmpty {
          try await device.connection.asyncReadWrite { [nodes] transaction in
            try transaction.database.execute(sql: "DELETE FROM zdc_node WHERE uuid = ?", arguments: [nodes[1].uuid])
          }
        }
        if case .success = download.content { isThere.append(true) } else { isThere.append(false) }
      }
      #expect(isThere.count == 5_001)
      #expect(isThere.count { !$0 } == 1)
    }
  }
}

@Suite struct StreamVerifierTests {
  @Test(arguments: [0, 1, 16_320, 65_416, 65_417, 65_480, 131_000, 300_000])
  func howeverTheBytesAreCut_theRootIsTheSame(size: Int) throws {
    let sealed = try ContentSealer.sealSmall(data: pattern(size), padding: .none)
    let reference = try ContentReference(content: sealed.content(dataVersion: 1), secrets: sealed.secrets)
    for step in [1_000, 65_600, 65_656, 1 << 20] {
      var verifier = StreamVerifier(reference)
      for start in stride(from: 0, to: sealed.bytes.count, by: step) {
        try verifier.push(sealed.bytes[start..<min(start + step, sealed.bytes.count)])
      }
      #expect(UInt64(try verifier.finish().hashes.count) == reference.layout.leafCount)
      #expect(throws: ZDCSecurityError(.contentTrailingData)) { try verifier.push([0]) }
    }
    var short = StreamVerifier(reference)
    try short.push(sealed.bytes.dropLast())
    #expect(throws: ZDCSecurityError(.contentTruncated)) { try short.finish() }
  }
}

/// Blocks all callers until it is opened.
actor Gate {
  private var isOpen = false
  private var waiting: [Int: CheckedContinuation<Void, any Error>] = [:]
  private var next = 0

  func wait() async throws {
    if isOpen { return }
    let id = next
    next += 1
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
        if Task.isCancelled { return continuation.resume(throwing: CancellationError()) }
        waiting[id] = continuation
      }
    } onCancel: {
      Task { await self.cancel(id) }
    }
  }

  func open() {
    isOpen = true
    for continuation in waiting.values { continuation.resume() }
    waiting = [:]
  }

  func close() { isOpen = false }

  private func cancel(_ id: Int) {
    waiting.removeValue(forKey: id)?.resume(throwing: CancellationError())
  }
}
