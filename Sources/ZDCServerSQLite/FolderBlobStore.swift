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

  package var buffersParts: Bool { false }

  private func content(_ blob: BlobID) -> String { "\(folder)/\(blob.text).content" }
  private func leaves(_ blob: BlobID) -> String { "\(folder)/\(blob.text).leaves" }

  private func blocking<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
    try await queue.blocking(body)
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

  package func open(_ blob: BlobID, range: Range<UInt64>) async throws -> any BlobReader {
    let path = content(blob)
    let queue = queue
    return try await stored {
      let file = try OpenFile(path, .read)
      guard try file.size() >= range.upperBound else { throw BlobLost() }
      return FileReader(file: file, range: range, queue: queue)
    }
  }

  /// Reports a file that is missing or too short as lost.
  private func stored<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
    do { return try await blocking(body) } catch let failure as OpenFile.Failure where failure.isMissing {
      throw BlobLost()
    } catch StoreError.damaged { throw BlobLost() }
  }

  package func leafHashes(_ blob: BlobID, first: UInt64, count: Int) async throws -> [UInt8] {
    let path = leaves(blob)
    return try await stored { try OpenFile(path, .read).read(at: first * 32, count: count * 32) }
  }

  package func remove(_ blobs: [BlobID]) async throws {
    for blob in blobs { names.forget(blob) }
    let paths = blobs.flatMap { [content($0), leaves($0)] }
    try await blocking {
      // A file that cannot be removed does not keep the others.
      let outcomes = paths.map { path in Result { try OpenFile.remove(path) } }
      for outcome in outcomes { try outcome.get() }
    }
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

  package func forEachBatch(_ body: @Sendable ([BlobID]) async throws -> Void) async throws {
    let folder = folder
    let all = try await blocking {
      // A server that was killed between creating the two files leaves only one of them.
      let names = try FileManager.default.contentsOfDirectory(atPath: folder)
      return Array(Set(names.compactMap { $0.split(separator: ".").first.flatMap { BlobID(text: $0) } }))
    }
    try await body(all)
  }
}

/// Reads a range of a file in slices.
private final class FileReader: BlobReader {
  private static let slice = 256 << 10
  private let file: OpenFile
  private let queue: DispatchQueue
  private let rest: Mutex<Range<UInt64>>

  init(file: OpenFile, range: Range<UInt64>, queue: DispatchQueue) {
    self.file = file
    self.queue = queue
    rest = Mutex(range)
  }

  func next() async throws -> [UInt8]? {
    let slice = rest.withLock { rest in
      let slice = rest.prefix(Self.slice)
      rest = slice.upperBound..<rest.upperBound
      return slice
    }
    guard !slice.isEmpty else { return nil }
    return try await queue.blocking { try self.file.read(at: slice.lowerBound, count: slice.count) }
  }
}

/// Writes a part in place and hashes its leaves as they arrive.
private final class PartWriter: BlobPartWriter {
  private struct State {
    var position: UInt64
    var hasher: PartHasher
  }

  private let content: OpenFile
  private let leaves: OpenFile
  private let firstLeaf: UInt64
  private let queue: DispatchQueue
  private let state: Mutex<State>

  init(content: OpenFile, leaves: OpenFile, index: Int, cipherLength: UInt64, queue: DispatchQueue) {
    self.content = content
    self.leaves = leaves
    self.queue = queue
    firstLeaf = UInt64(index) * ContentGeometry.leavesPerPart(cipherLength: cipherLength)
    let start = ContentGeometry.partRange(index, cipherLength: cipherLength).lowerBound
    state = Mutex(State(position: start, hasher: PartHasher(index: index, cipherLength: cipherLength)))
  }

  func write(_ bytes: [UInt8]) async throws {
    try await queue.blocking {
      try self.state.withLock { state in
        try self.content.write(bytes, at: state.position)
        state.hasher.update(bytes)
        state.position += UInt64(bytes.count)
      }
    }
  }

  func finish() async throws -> [UInt8] {
    try await queue.blocking {
      let hashes = self.state.withLock { $0.hasher.leafHashes }
      try self.leaves.write(hashes, at: self.firstLeaf * 32)
      try self.content.synchronize()
      try self.leaves.synchronize()
      return MerkleTree.partHash(leafHashes: hashes)
    }
  }

  func abandon() async {}
}

extension DispatchQueue {
  /// Runs a call that blocks on this queue.
  fileprivate func blocking<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
    try await withCheckedThrowingContinuation { continuation in
      async { continuation.resume(with: Result { try body() }) }
    }
  }
}
