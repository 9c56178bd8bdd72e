import Foundation
import Testing
import ZDCProtocol
import ZDCTreesystem

@testable import ZDCClientAPI
@testable import ZDCTransfers
@testable import ZeroDarkCloud

/// Large downloads that are cut off resume at the last verified leaf, also in another process.
@Suite struct ResumedDownloadTests {
  private static let size = 10_000_000

  /// Returns the download manager of a later process, with the device's database and partial downloads.
  private static func laterProcess(_ device: NetworkDevice, _ world: NetworkWorld) throws -> ZDCDownloadManager {
    let folder = world.folder.appendingPathComponent("later", isDirectory: true)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    return ZDCDownloadManager(
      database: device.connection, users: device.users, primaryTreeID: NetworkWorld.treeID,
      folder: DownloadFolder(below: folder), partials: device.downloads.partials.url)
  }

  /// Lets about `limit` bytes of content through, counts them, and then breaks the connection.
  private static func limit(_ device: NetworkDevice, to limit: Int) -> Counter {
    let received = Counter(0)
    device.transport.set(
      .init(after: { request, response in
        guard request.path.contains("/blobs/"), !request.path.contains("/leaves") else { return response }
        var cut = response
        let body = response.body
        cut.body = TransportBody {
          guard await received.value < limit, let slice = try await body.next() else { throw TransportError(.cut) }
          await received.subtract(-slice.count)
          return slice
        }
        return cut
      }))
    return received
  }

  private static func count(_ device: NetworkDevice) -> Counter {
    let received = Counter(0)
    device.transport.set(
      .init(after: { request, response in
        guard request.path.contains("/blobs/"), !request.path.contains("/leaves") else { return response }
        var counted = response
        let body = response.body
        counted.body = TransportBody {
          let slice = try await body.next()
          await received.subtract(-(slice?.count ?? 0))
          return slice
        }
        return counted
      }))
    return received
  }

  private static func damage(_ file: URL, at offset: UInt64) throws {
    let handle = try FileHandle(forUpdating: file)
    try handle.seek(toOffset: offset)
    try handle.write(contentsOf: Data([0x55, 0xAA, 0x55]))
    try handle.close()
  }

  private enum Kind: CaseIterable { case sealed, clear }

  /// Downloads the node, as cleartext into a file in `folder`, and returns the data.
  private static func fetch(
    _ kind: Kind, _ node: ZDCNode, _ manager: ZDCDownloadManager, _ folder: URL
  ) async throws
    -> [UInt8]
  {
    switch kind {
    case .sealed:
      let file = try await manager.downloadNodeData(node).cryptoFile
      return [UInt8](try ZDCFileConversion.decryptCryptoFile(intoMemory: file))
    case .clear:
      let url = folder.appendingPathComponent("clear")
      #expect(try await manager.downloadNodeData(node, toFile: url).metadata == Data(pattern(700)))
      return [UInt8](try Data(contentsOf: url))
    }
  }

  private static func partial(_ kind: Kind, _ device: NetworkDevice, _ folder: URL) throws -> URL {
    let place = kind == .sealed ? device.downloads.partials.url : folder
    let names = try FileManager.default.contentsOfDirectory(atPath: place.path)
    #expect(names.count == 1)
    return place.appendingPathComponent(try #require(names.first))
  }

  @Test(arguments: Kind.allCases, [nil, 3_000_000] as [UInt64?])
  private func interruptedDownload_resumesInALaterProcess_fromVerifiedBytes(kind: Kind, damaged: UInt64?) async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let item = Publisher.Item(data: pattern(Self.size), metadata: pattern(700))
      let node = try await Publisher(device).publish([item])[0]
      let folder = world.folder.appendingPathComponent("target", isDirectory: true)
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      _ = Self.limit(device, to: 6_000_000)
      await #expect(throws: TransportError(.cut)) { _ = try await Self.fetch(kind, node, device.downloads, folder) }
      let partial = try Self.partial(kind, device, folder)
      let length = try Data(contentsOf: partial).count
      #expect(length > 5_800_000)
      if let damaged { try Self.damage(partial, at: damaged) }
      let received = Self.count(device)
      let data = try await Self.fetch(kind, node, try Self.laterProcess(device, world), folder)
      #expect(data == item.data)
      // The tolerance covers one more leaf for the salt and one at the border.
      let kept = damaged.map(Int.init) ?? length
      #expect(await received.value <= Self.size - kept + 4 * ContentGeometry.leafBytes)
      #expect(await received.value > Self.size - kept - 4 * ContentGeometry.leafBytes)
      #expect(!FileManager.default.fileExists(atPath: partial.path))
    }
  }

  @Test func alteredLeaf_endsTheDownloadThere_andWhatCameBeforeIsKept() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let node = try await Publisher(device).publish([.init(data: pattern(Self.size))])[0]
      let received = Counter(0)
      device.transport.set(
        .init(after: { request, response in
          guard request.path.contains("/blobs/"), !request.path.contains("/leaves") else { return response }
          var changed = response
          let body = response.body
          changed.body = TransportBody {
            guard var slice = try await body.next() else { return nil }
            await received.subtract(-slice.count)
            if await received.value > 2_000_000 { slice[0] ^= 1 }
            return slice
          }
          return changed
        }))
      let error = await #expect(throws: ZDCSecurityError.self) { try await device.downloads.downloadNodeData(node) }
      #expect(error?.code == .contentHashMismatch)
      #expect(error?.node == node.nodeID)
      #expect(await received.value < 3_000_000)
      #expect(try device.leftovers(in: world) == [])
      let rest = Self.count(device)
      _ = try await device.downloads.downloadNodeData(node)
      #expect(await rest.value < Self.size - 1_500_000)
    }
  }

  /// An endless body, whatever length was announced.
  @Test(arguments: [300_000, 10_000_000])
  func endlessBody_isStopped(size: Int) async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let node = try await Publisher(device).publish([.init(data: pattern(size))])[0]
      let given = Counter(0)
      device.transport.set(
        .init(after: { request, response in
          guard request.path.contains("/blobs/"), !request.path.contains("/leaves") else { return response }
          var endless = response
          let body = response.body
          endless.body = TransportBody {
            let slice = try await body.next() ?? [UInt8](repeating: 0, count: 100_000)
            await given.subtract(-slice.count)
            return slice
          }
          return endless
        }))
      let error = await #expect(throws: ZDCSecurityError.self) { try await device.downloads.downloadNodeData(node) }
      #expect(error?.code == .contentTrailingData)
      #expect(await given.value < size + 300_000)
    }
  }

  // MARK: Proofs

  enum Lie: String, CaseIterable {
    case flippedHash, hashLess, hashMore, halfAHash, none, flippedLeaf
  }

  @Test(arguments: Lie.allCases)
  func falseProofs_handNothingOut(lie: Lie) async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let item = Publisher.Item(data: pattern(2_000_000), metadata: pattern(700), thumbnail: pattern(9_000, seed: 3))
      let node = try await Publisher(device).publish([item])[0]
      device.transport.set(
        .init(after: { request, response in
          let isProof = request.path.contains("/proof")
          guard request.path.contains("/blobs/"), isProof != (lie == .flippedLeaf) else { return response }
          var bytes = try await response.body.collect(upTo: 1 << 20)
          switch lie {
          case .flippedHash, .flippedLeaf: bytes[bytes.count / 2] ^= 4
          case .hashLess: bytes.removeLast(32)
          case .hashMore: bytes += bytes.prefix(32)
          case .halfAHash: bytes.removeLast(16)
          case .none: bytes = []
          }
          return TransportResponse(
            status: response.status, headers: response.headers, body: TransportBody(bytes: bytes))
        }))
      let error = await #expect(throws: ZDCSecurityError.self) {
        try await device.downloads.downloadNodeMeta(node, components: .all)
      }
      #expect(error?.code == .contentHashMismatch)
    }
  }

  @Test func aProofWithoutEnd_isRefused() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let item = Publisher.Item(data: pattern(2_000_000), metadata: pattern(700))
      let node = try await Publisher(device).publish([item])[0]
      device.transport.set(
        .init(after: { request, response in
          guard request.path.contains("/proof") else { return response }
          var endless = response
          endless.body = TransportBody { [UInt8](repeating: 0, count: 1_024) }
          return endless
        }))
      let error = await #expect(throws: ZDCSecurityError.self) {
        try await device.downloads.downloadNodeMeta(node, components: .all)
      }
      #expect(error?.code == .limitExceeded)
    }
  }
}

extension ResumedDownloadTests {
  /// Bytes of the rest that another download fetched, valid or not, are adopted and verified.
  @Test(arguments: [true, false]) func bytesFetchedByTheSystem_areUsed_asFarAsTheyVerify(isTrue: Bool) async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let item = Publisher.Item(data: pattern(10_000_000))
      let node = try await Publisher(device).publish([item])[0]
      let target = try await device.connection.asyncRead { try $0.contentTarget(nodeUUID: node.uuid) }
      let whole = try [UInt8](Data(contentsOf: try await device.downloads.downloadNodeData(node).cryptoFile.fileURL))
      let partials = device.downloads.partials
      do {
        let begin = try #require(try partials.open(target.blob))
        try begin.file.write(whole[..<3_000_000])
      }
      #expect(try partials.size(target.blob) == 3_000_000)
      let more = world.folder.appendingPathComponent("more")
      try Data(isTrue ? Array(whole[2_000_000...]) : pattern(8_000_000, seed: 9)).write(to: more)
      try partials.leave(more, of: target.blob, from: 2_000_000)
      let before = device.transport.requests.count { $0.hasPrefix("GET /v1/trees/") }
      let file = try await device.downloads.downloadNodeData(node).cryptoFile
      #expect(try [UInt8](ZDCFileConversion.decryptCryptoFile(intoMemory: file)) == item.data)
      // One request for the hashes, and one for the content unless all of it was already there.
      let requests = device.transport.requests.count { $0.hasPrefix("GET /v1/trees/") } - before
      #expect(requests == (isTrue ? 1 : 2))
    }
  }
}
