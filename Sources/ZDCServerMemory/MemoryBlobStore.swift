internal import Synchronization
package import ZDCProtocol
package import ZDCServer

/// A blob store in memory, for tests.
package final class MemoryBlobStore: BlobStore {
  fileprivate struct Blob {
    var parts: [Int: Part] = [:]

    var count: Int { parts.values.reduce(0) { $0 + $1.bytes.count } }

    /// Returns the stored bytes of a range; copies only from the parts that overlap it.
    func bytes(in range: Range<Int>) -> [UInt8] {
      var start = 0
      var found: [UInt8] = []
      for (_, part) in parts.sorted(by: { $0.key < $1.key }) {
        let wanted = range.clamped(to: start..<start + part.bytes.count)
        found += part.bytes[wanted.lowerBound - start..<wanted.upperBound - start]
        start += part.bytes.count
      }
      return found
    }

    var hashes: [UInt8] { parts.sorted { $0.key < $1.key }.flatMap(\.value.hashes) }
  }

  fileprivate struct Part {
    var bytes: [UInt8]
    /// The part's leaf hashes.
    var hashes: [UInt8]
  }

  private let blobs = Mutex<[BlobID: Blob]>([:])

  package init() {}

  package var buffersParts: Bool { false }

  package func openPart(_ blob: BlobID, index: Int, cipherLength: UInt64) async throws -> any BlobPartWriter {
    blobs.withLock { $0[blob] = $0[blob] ?? Blob() }
    return PartWriter(index: index, cipherLength: cipherLength) { part in
      self.blobs.withLock { $0[blob, default: Blob()].parts[index] = part }
    }
  }

  package func contentRoot(_ blob: BlobID, cipherLength: UInt64) async throws -> ContentRoot {
    let hashes = try stored(blob).hashes
    guard hashes.count == Int(ContentGeometry.leafCount(cipherLength: cipherLength)) * 32 else { throw BlobLost() }
    var reader = ByteReader(hashes)
    var builder = MerkleTree.Builder()
    while reader.remaining > 0 { builder.append(leafHash: try reader.read32()) }
    return ContentRoot(reinterpreting: builder.root)
  }

  package func open(_ blob: BlobID, range: Range<UInt64>) async throws -> any BlobReader {
    let stored = try stored(blob)
    guard stored.count >= range.upperBound else { throw BlobLost() }
    return Reader(stored, Int(range.lowerBound)..<Int(range.upperBound))
  }

  package func leafHashes(_ blob: BlobID, first: UInt64, count: Int) async throws -> [UInt8] {
    try Self.slice(try stored(blob).hashes, Int(first) * 32..<(Int(first) + count) * 32)
  }

  package func proof(_ blob: BlobID, of subtrees: [Range<UInt64>], leafCount: UInt64) async throws -> [UInt8] {
    let hashes = try stored(blob).hashes
    let proof = ContentProof(leafCount: leafCount, storedBytes: UInt64(hashes.count)) { offset, count in
      try Self.slice(hashes, Int(offset)..<Int(offset) + count)
    }
    return try proof.bytes(of: subtrees)
  }

  package func remove(_ gone: [BlobID]) async throws {
    blobs.withLock { blobs in for blob in gone { blobs[blob] = nil } }
  }

  package func probeFreeSpace() async throws {}

  package func forEachBatch(_ body: @Sendable ([BlobID]) async throws -> Void) async throws {
    try await body(blobs.withLock { Array($0.keys) })
  }

  private func stored(_ blob: BlobID) throws -> Blob {
    guard let stored = blobs.withLock({ $0[blob] }) else { throw BlobLost() }
    return stored
  }

  private static func slice(_ bytes: [UInt8], _ range: Range<Int>) throws -> [UInt8] {
    guard range.upperBound <= bytes.count else { throw BlobLost() }
    return Array(bytes[range])
  }
}

private final class Reader: BlobReader {
  private static let slice = 256 << 10
  private let blob: MemoryBlobStore.Blob
  private let rest: Mutex<Range<Int>>

  init(_ blob: MemoryBlobStore.Blob, _ range: Range<Int>) {
    self.blob = blob
    rest = Mutex(range)
  }

  func next() async throws -> [UInt8]? {
    let slice = rest.withLock { rest in
      let slice = rest.prefix(Self.slice)
      rest = slice.upperBound..<rest.upperBound
      return slice
    }
    return slice.isEmpty ? nil : blob.bytes(in: slice)
  }
}

private final class PartWriter: BlobPartWriter {
  private let bytes = Mutex<[UInt8]>([])
  private let index: Int
  private let cipherLength: UInt64
  private let store: @Sendable (MemoryBlobStore.Part) -> Void

  init(index: Int, cipherLength: UInt64, store: @escaping @Sendable (MemoryBlobStore.Part) -> Void) {
    self.index = index
    self.cipherLength = cipherLength
    self.store = store
  }

  func write(_ bytes: [UInt8]) async throws { self.bytes.withLock { $0 += bytes } }

  func finish() async throws -> [UInt8] {
    let bytes = bytes.withLock { $0 }
    let hashes = MerkleTree.leafHashes(bytes, part: index, cipherLength: cipherLength)
    store(MemoryBlobStore.Part(bytes: bytes, hashes: hashes))
    return MerkleTree.partHash(leafHashes: hashes)
  }

  func abandon() async {}
}
