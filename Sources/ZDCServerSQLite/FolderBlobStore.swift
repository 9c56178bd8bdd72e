internal import Dispatch
internal import Synchronization
package import ZDCProtocol
package import ZDCServer

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// A blob store that keeps large content as files in one folder. `<blob>.content` has the ciphertext. `<blob>.leaves`
/// has 32 bytes per leaf and, once the blob is complete, the hashes of groups of leaves (``HashFile``).
package final class FolderBlobStore: BlobStore {
  private let folder: String
  /// Blocking calls run here, never on a thread that serves connections.
  private let queue = DispatchQueue(label: "zdc.server.blobs", qos: .userInitiated, attributes: .concurrent)
  private let names: DurableNames

  package convenience init(folder: String) throws {
    try self.init(folder: folder, names: DurableNames { try OpenFile(folder, .folder).synchronize() })
  }

  init(folder: String, names: DurableNames) throws {
    self.folder = folder
    self.names = names
    do {
      try FileManager.default.createDirectory(
        atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch { throw StoreOpenError(.cannotCreate, path: folder) }
  }

  private func content(_ blob: BlobID) -> String { "\(folder)/\(blob.text).content" }
  private func leaves(_ blob: BlobID) -> String { "\(folder)/\(blob.text).leaves" }

  private func blocking<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
    try await withCheckedThrowingContinuation { continuation in
      queue.async { continuation.resume(with: Result { try body() }) }
    }
  }

  package func openPart(_ blob: BlobID, index: Int, cipherLength: UInt64) async throws -> any BlobPartWriter {
    let content = content(blob)
    let leaves = leaves(blob)
    let queue = queue
    let names = names
    return try await blocking {
      let files = try (content: OpenFile(content, .create), leaves: OpenFile(leaves, .create))
      try names.makeDurable(blob)
      return PartWriter(
        content: files.content, leaves: files.leaves, index: index, cipherLength: cipherLength, queue: queue)
    }
  }

  package func contentRoot(_ blob: BlobID, cipherLength: UInt64) async throws -> ContentRoot {
    let leaves = leaves(blob)
    names.forget(blob)
    return try await blocking {
      // Does not create the file: an upload that was aborted in the meantime no longer has one.
      let file = try OpenFile(leaves, .write)
      let count = ContentGeometry.leafCount(cipherLength: cipherLength)
      var builder = MerkleTree.Builder()
      var groups = GroupHashes()
      var next: UInt64 = 0
      while next < count {
        let batch = min(8_192, count - next)
        var reader = ByteReader(try file.read(at: next * 32, count: Int(batch) * 32))
        while reader.remaining > 0 {
          let hash: MerkleHash = try reader.read32()
          builder.append(leafHash: hash)
          groups.append(leafHash: hash)
        }
        next += batch
      }
      try Self.write(groups, to: file, leafCount: count)
      return ContentRoot(reinterpreting: builder.root)
    }
  }

  /// Writes the group hashes after the leaf hashes, so that a proof does not need to hash all leaves again.
  private static func write(_ groups: GroupHashes, to file: OpenFile, leafCount: UInt64) throws {
    guard !groups.levels[0].isEmpty else { return }
    let bytes = groups.levels.flatMap { $0 }
    try file.write(bytes, at: HashFile(leafCount: leafCount).leafBytes)
    try file.synchronize()
  }

  package func proof(
    _ blob: BlobID, of subtrees: [Range<UInt64>], leafCount: UInt64
  ) async throws -> [UInt8] {
    let path = leaves(blob)
    return try await stored {
      let file = try OpenFile(path, .read)
      let proof = ContentProof(leafCount: leafCount, storedBytes: try file.size()) { offset, count in
        try file.read(at: offset, count: count)
      }
      return try proof.bytes(of: subtrees)
    }
  }

  package func storedBytes(_ blob: BlobID) async throws -> UInt64 {
    let path = content(blob)
    return try await stored { try OpenFile(path, .read).size() }
  }

  /// Reports a file that is missing or too short as lost.
  private func stored<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
    do { return try await blocking(body) } catch let failure as OpenFile.Failure where failure.isMissing {
      throw BlobLost()
    } catch StoreError.damaged { throw BlobLost() }
  }

  package func read(_ blob: BlobID, range: Range<UInt64>) async throws -> [UInt8] {
    let path = content(blob)
    return try await blocking { try OpenFile(path, .read).read(at: range.lowerBound, count: range.count) }
  }

  package func leafHashes(_ blob: BlobID, first: UInt64, count: Int) async throws -> [UInt8] {
    let path = leaves(blob)
    return try await stored { try OpenFile(path, .read).read(at: first * 32, count: count * 32) }
  }

  package func remove(_ blob: BlobID) async throws {
    names.forget(blob)
    let paths = [content(blob), leaves(blob)]
    try await blocking { for path in paths { try OpenFile.remove(path) } }
  }

  /// The file that ``probeFreeSpace()`` writes to find out whether there is room, and removes immediately.
  static let roomFile = "room"

  package func probeFreeSpace() async throws {
    let path = "\(folder)/\(Self.roomFile)"
    try await blocking {
      defer { try? OpenFile.remove(path) }
      let file = try OpenFile(path, .create)
      try file.write([UInt8](repeating: 1, count: 65_536), at: 0)
      try file.synchronize()
    }
  }

  package func all() async throws -> [BlobID] {
    let folder = folder
    return try await blocking {
      // A server that was killed between creating the two files leaves only one of them.
      let names = try FileManager.default.contentsOfDirectory(atPath: folder)
      return Array(Set(names.compactMap { $0.split(separator: ".").first.flatMap { BlobID(text: $0) } }))
    }
  }
}

/// Writes a part in place and hashes its leaves as they arrive.
private final class PartWriter: BlobPartWriter {
  private struct State {
    var position: UInt64
    var leaf: UInt64
    var leafHasher = MerkleTree.LeafHasher()
    var leafHashes: [UInt8] = []
  }

  private let content: OpenFile
  private let leaves: OpenFile
  private let cipherLength: UInt64
  private let firstLeaf: UInt64
  private let queue: DispatchQueue
  private let state: Mutex<State>

  init(content: OpenFile, leaves: OpenFile, index: Int, cipherLength: UInt64, queue: DispatchQueue) {
    self.content = content
    self.leaves = leaves
    self.cipherLength = cipherLength
    self.queue = queue
    firstLeaf = UInt64(index) * ContentGeometry.leavesPerPart(cipherLength: cipherLength)
    let start = ContentGeometry.partRange(index, cipherLength: cipherLength).lowerBound
    state = Mutex(State(position: start, leaf: firstLeaf))
  }

  func write(_ bytes: [UInt8]) async throws {
    try await blocking { try self.state.withLock { try self.append(bytes, to: &$0) } }
  }

  private func append(_ bytes: [UInt8], to state: inout State) throws {
    try content.write(bytes, at: state.position)
    var rest = bytes[...]
    while !rest.isEmpty {
      let end = ContentGeometry.leafRange(state.leaf, cipherLength: cipherLength).upperBound
      let piece = rest.prefix(Int(end - state.position))
      state.leafHasher.update(piece)
      state.position += UInt64(piece.count)
      rest = rest.dropFirst(piece.count)
      if state.position == end { closeLeaf(&state) }
    }
  }

  private func closeLeaf(_ state: inout State) {
    state.leafHashes += state.leafHasher.finalize().bytes
    state.leafHasher = MerkleTree.LeafHasher()
    state.leaf += 1
  }

  func finish() async throws -> [UInt8] {
    try await blocking {
      let hashes = self.state.withLock { $0.leafHashes }
      try self.leaves.write(hashes, at: self.firstLeaf * 32)
      try self.content.synchronize()
      try self.leaves.synchronize()
      return MerkleTree.partHash(leafHashes: hashes)
    }
  }

  func abandon() async {}

  private func blocking<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
    try await withCheckedThrowingContinuation { continuation in
      queue.async { continuation.resume(with: Result { try body() }) }
    }
  }
}
