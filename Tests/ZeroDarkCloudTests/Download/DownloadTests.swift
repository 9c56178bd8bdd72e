import Foundation
import Testing
import ZDCProtocol
import ZDCTreesystem

@testable import ZDCClientAPI
@testable import ZDCTransfers
@testable import ZeroDarkCloud

@Suite struct DownloadTests {
  /// Plaintext lengths around the borders of chunk, inline content and leaf.
  static let sizes = [
    0, 1, 16_384 - 64, 16_384 - 63, 64 << 10, (64 << 10) - 64, 65_536 - 56 - 64 - 80, 65_536 - 56 - 64 - 79,
    (64 << 10) + 1, 200_000, 1 << 20,
  ]

  @Test func contentsOfAllSizesComeBackAsTheyWere() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let publisher = try await Publisher(device)
      let items = Self.sizes.map { Publisher.Item(data: pattern($0, seed: UInt64($0)), metadata: [1, 2, 3]) }
      for (node, item) in zip(try await publisher.publish(items), items) {
        let (info, file) = try await device.downloads.downloadNodeData(node)
        #expect(info.dataSize == UInt64(item.data.count))
        #expect(info.lastModified == Date(timeIntervalSince1970: 5))
        #expect(file.cleartextFileSize == info.dataSize)
        #expect(try [UInt8](ZDCFileConversion.decryptCryptoFile(intoMemory: file)) == item.data)
        #expect(try [UInt8](ZDCFileConversion.decryptMetadata(of: file)) == item.metadata)
        try FileManager.default.removeItem(at: file.fileURL)
      }
    }
  }

  @Test func aLargeContentComesInOneRequest_andItsHashesInAnother_throughFilesOfBothKinds() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let publisher = try await Publisher(device)
      let data = pattern(20 << 20)
      let node = try await publisher.publish([.init(data: data, metadata: [9])])[0]
      let file = try await device.downloads.downloadNodeData(node).cryptoFile
      #expect(device.transport.requests.count { $0.hasPrefix("GET /v1/trees/") } == 2)
      let cleartext = world.folder.appendingPathComponent("cleartext")
      try ZDCFileConversion.decryptCryptoFile(file, to: cleartext)
      #expect(try [UInt8](Data(contentsOf: cleartext)) == data)
      let memory = OutputStream.toMemory()
      try ZDCFileConversion.decryptCryptoFile(file, to: memory)
      #expect(memory.property(forKey: .dataWrittenToMemoryStreamKey) as? Data == Data(data))
      let direct = world.folder.appendingPathComponent("direct")
      try Data("old".utf8).write(to: direct)
      let metadata = try await device.downloads.downloadNodeData(node, toFile: direct).metadata
      #expect(metadata == Data([9]))
      #expect(try [UInt8](Data(contentsOf: direct)) == data)
    }
  }

  // MARK: Damaged content

  enum Damage: String, CaseIterable {
    case firstByte, middleByte, lastByte, shorter, longer
  }

  @Test(arguments: Damage.allCases, [300, 300_000, 2_300_000])
  func alteredBytesAreNeverHandedOut(damage: Damage, size: Int) async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let publisher = try await Publisher(device)
      let node = try await publisher.publish([.init(data: pattern(size))])[0]
      device.transport.set(
        .init(after: { request, response in
          let isContent = request.path.contains("/blobs/") && !request.path.contains("/leaves")
          guard request.path.hasSuffix("/contents") || isContent else { return response }
          return try await Self.damage(response, damage, isBundle: request.path.hasSuffix("/contents"))
        }))
      let error = await #expect(throws: ZDCSecurityError.self) { try await device.downloads.downloadNodeData(node) }
      let expected: ZDCSecurityError.Code =
        switch damage {
        case .shorter: .contentTruncated
        case .longer: .contentTrailingData
        default: .contentHashMismatch
        }
      #expect(error?.code == expected)
      #expect(try device.leftovers(in: world) == [])
      let target = world.folder.appendingPathComponent("cleartext")
      await #expect(throws: ZDCSecurityError.self) {
        try await device.downloads.downloadNodeData(node, toFile: target)
      }
      #expect(!FileManager.default.fileExists(atPath: target.path))
    }
  }

  /// Damages bytes of the content, whether it arrives alone or in a bundle.
  private static func damage(
    _ response: TransportResponse, _ damage: Damage, isBundle: Bool
  ) async throws -> TransportResponse {
    var bytes = try await response.body.collect(upTo: 4 << 20)
    var content = bytes
    var blob: BlobID?
    if isBundle {
      var reader = Bundle.Reader(bytes)
      guard case .content(let id, let slice) = try reader.next() else { return response }
      blob = id
      content = Array(slice)
    }
    switch damage {
    case .firstByte: content[0] ^= 1
    case .middleByte: content[content.count / 2] ^= 0x80
    case .lastByte: content[content.count - 1] ^= 1
    case .shorter: content.removeLast()
    case .longer: content.append(0)
    }
    bytes = content
    if let blob {
      var writer = Bundle.Writer()
      writer.append(content: content, blob: blob)
      bytes = writer.bytes
    }
    // The announced length stays the same; the record exposes a server that announces a false one.
    return TransportResponse(status: response.status, headers: response.headers, body: TransportBody(bytes: bytes))
  }

  @Test func aLengthThatTheRecordDoesNotName_isRefusedBeforeTheBody() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let node = try await Publisher(device).publish([.init(data: pattern(300_000))])[0]
      for (length, code) in [("5", ZDCSecurityError.Code.contentTruncated), ("99999999", .contentTrailingData)] {
        device.transport.set(
          .init(after: { request, response in
            var changed = response
            if request.path.contains("/blobs/") { changed.headers["content-length"] = length }
            return changed
          }))
        let error = await #expect(throws: ZDCSecurityError.self) {
          try await device.downloads.downloadNodeData(node)
        }
        #expect(error?.code == code)
      }
    }
  }

  @Test func aConnectionThatBreaksOff_isContinuedWhereItStopped() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let data = pattern(2 << 20)
      let node = try await Publisher(device).publish([.init(data: data)])[0]
      let ranges = Log()
      device.transport.set(
        .init(after: { request, response in
          guard request.path.contains("/blobs/") else { return response }
          await ranges.append(request.headers["range"] ?? "all")
          return await ranges.count < 4 ? Self.cut(response, after: 500_000) : response
        }))
      let file = try await device.downloads.downloadNodeData(node).cryptoFile
      #expect(try [UInt8](ZDCFileConversion.decryptCryptoFile(intoMemory: file)) == data)
      let asked = await ranges.lines
      #expect(asked.count == 4)
      #expect(asked[0] == "all")
      #expect(asked[1...].allSatisfy { $0.hasPrefix("bytes=") && $0 != "bytes=0-" })
    }
  }

  @Test func aConnectionThatBringsNothing_isNotTriedForEver() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let node = try await Publisher(device).publish([.init(data: pattern(2 << 20))])[0]
      device.transport.set(
        .init(after: { request, response in
          request.path.contains("/blobs/") ? Self.cut(response, after: 0) : response
        }))
      await #expect(throws: TransportError(.cut)) { try await device.downloads.downloadNodeData(node) }
      // The first attempt and eight retries.
      #expect(device.transport.requests.count { $0.hasPrefix("GET /v1/trees/") } == 9)
    }
  }

  /// Returns the response with a body that breaks off after about `limit` bytes.
  private static func cut(_ response: TransportResponse, after limit: Int) -> TransportResponse {
    let left = Counter(limit)
    let body = response.body
    var cut = response
    cut.body = TransportBody {
      guard await left.value > 0, let slice = try await body.next() else { throw TransportError(.cut) }
      await left.subtract(slice.count)
      return slice
    }
    return cut
  }

  @Test func nodesWithoutContentSayWhy() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let publisher = try await Publisher(device)
      let unknown = ZDCNode(
        uuid: "unknown", localUserID: publisher.user.uuid, treeID: publisher.user.treeID, nodeID: .random())
      let missing = await #expect(throws: ZDCError.self) { try await device.downloads.downloadNodeData(unknown) }
      #expect(missing?.code == .nodeNotFound)
      let zone = try await device.zones(of: publisher.user)[0]
      let root = try #require(try await device.connection.asyncRead { try $0.nodes.root(zone: zone.id) })
      let trunk = ZDCNode(
        uuid: root.uuid, localUserID: publisher.user.uuid, treeID: publisher.user.treeID, nodeID: root.nodeID)
      let empty = await #expect(throws: ZDCError.self) { try await device.downloads.downloadNodeData(trunk) }
      #expect(empty?.code == .noContent)
    }
  }

  // MARK: Parts

  @Test func metadataAndThumbnailComeWithoutTheData() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let item = Publisher.Item(data: pattern(5 << 20), metadata: pattern(700), thumbnail: pattern(90_000, seed: 3))
      let node = try await Publisher(device).publish([item])[0]
      let received = Counter(0)
      device.transport.set(
        .init(after: { _, response in
          var counted = response
          let body = response.body
          counted.body = TransportBody {
            let slice = try await body.next()
            await received.subtract(-(slice?.count ?? 0))
            return slice
          }
          return counted
        }))
      let before = device.transport.requests.count
      let (info, metadata, thumbnail) = try await device.downloads.downloadNodeMeta(node, components: .all)
      #expect(metadata.map { [UInt8]($0) } == item.metadata)
      #expect(thumbnail.map { [UInt8]($0) } == item.thumbnail)
      #expect(info.thumbnailSize == 90_000)
      #expect(device.transport.requests.count - before == 2)
      #expect(await received.value < 200 << 10)
      let only = try await device.downloads.downloadNodeMeta(node, components: [.metadata])
      #expect(only.thumbnail == nil)
      #expect(only.metadata?.count == 700)
    }
  }
}

actor Log {
  private(set) var lines: [String] = []
  var count: Int { lines.count }
  func append(_ line: String) { lines.append(line) }
}

actor Counter {
  private(set) var value: Int
  init(_ value: Int) { self.value = value }
  func subtract(_ count: Int) { value -= count }
}

extension NetworkDevice {
  /// Returns the files that downloads left behind.
  func leftovers(in world: NetworkWorld) throws -> [String] {
    guard FileManager.default.fileExists(atPath: downloads.folder.url.path) else { return [] }
    return try FileManager.default.contentsOfDirectory(atPath: downloads.folder.url.path)
  }
}
