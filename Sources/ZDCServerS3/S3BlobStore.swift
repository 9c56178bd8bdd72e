internal import NIOCore
package import ZDCProtocol
package import ZDCServer

/// A blob store in a bucket of an S3 object store (``S3Keys`` has the names of the objects).
///
/// A blob of one part is one object. A larger one is a multipart upload with the parts of the protocol: about 8 MiB,
/// which is more than the 5 MiB that stores require. A part is acknowledged when the store has acknowledged it and its
/// leaf hashes.
package final class S3BlobStore: BlobStore {
  let client: S3Client
  let keys: S3Keys
  let uploads: S3Uploads
  /// The hashes of larger content are sent in parts of this size.
  let hashPartBytes: Int

  init(client: S3Client, hashPartBytes: Int = 8 << 20) {
    self.client = client
    self.hashPartBytes = hashPartBytes
    keys = S3Keys(prefix: client.address.prefix)
    uploads = S3Uploads(client: client, keys: keys)
  }

  package var buffersParts: Bool { true }

  package func begin(_ blob: BlobID, cipherLength: UInt64) async throws {
    guard ContentGeometry.partCount(cipherLength: cipherLength) > 1 else { return }
    _ = try await Self.translating { try await self.uploads.id(of: blob) }
  }

  package func openPart(_ blob: BlobID, index: Int, cipherLength: UInt64) async throws -> any BlobPartWriter {
    let isWhole = ContentGeometry.partCount(cipherLength: cipherLength) == 1
    return S3PartWriter(index: index, cipherLength: cipherLength) { bytes, hashes in
      try await Self.translating {
        if isWhole {
          try await self.putWhole(blob, bytes, hashes)
        } else {
          try await self.putPart(index, of: blob, bytes, hashes)
        }
      }
    }
  }

  private func putWhole(_ blob: BlobID, _ bytes: ByteBuffer, _ hashes: [UInt8]) async throws {
    async let leaves: Void = client.put(keys.leaves(blob), ByteBuffer(bytes: hashes))
    try await client.put(keys.content(blob), bytes)
    try await leaves
  }

  private func putPart(_ index: Int, of blob: BlobID, _ bytes: ByteBuffer, _ hashes: [UInt8]) async throws {
    async let leaves: Void = client.put(keys.part(index, blob), ByteBuffer(bytes: hashes))
    do {
      try await client.putPart(index + 1, of: try await uploads.id(of: blob), keys.content(blob), bytes)
    } catch let failure as S3Failure where failure.isMissingUpload {
      await uploads.forget([blob])
      throw failure
    }
    try await leaves
  }

  package func open(_ blob: BlobID, range: Range<UInt64>) async throws -> any BlobReader {
    try await Self.translating { try await S3BlobReader(self.client, key: self.keys.content(blob), range: range) }
  }

  package func leafHashes(_ blob: BlobID, first: UInt64, count: Int) async throws -> [UInt8] {
    try await Self.translating {
      try await self.client.get(
        self.keys.leaves(blob), range: first * 32..<(first + UInt64(count)) * 32, upTo: count * 32)
    }
  }

  package func proof(_ blob: BlobID, of subtrees: [Range<UInt64>], leafCount: UInt64) async throws -> [UInt8] {
    let stored = HashFile(leafCount: leafCount).bytes
    let ranges = try ContentProof.ranges(of: subtrees, leafCount: leafCount, storedBytes: stored)
    let runs = ByteRuns(joining: ranges, gap: Self.proofGap)
    let pieces = try await Self.translating {
      try await concurrently(runs.ranges, limit: Self.requests) {
        try await self.client.get(self.keys.leaves(blob), range: $0, upTo: $0.count)
      }
    }
    let proof = ContentProof(leafCount: leafCount, storedBytes: stored) {
      try runs.bytes(at: $0, count: $1, in: pieces)
    }
    return try proof.bytes(of: subtrees)
  }

  /// Reading this many bytes that are not needed takes no longer than another request.
  private static let proofGap: UInt64 = 128 << 10
  /// Maximum number of requests that one call sends at the same time.
  static let requests = 16

  package func probeFreeSpace() async throws {
    try await Self.translating {
      try await self.client.put(self.keys.room, ByteBuffer(repeating: 1, count: 65_536))
      try await self.client.delete([self.keys.room])
    }
  }

  /// Runs requests and turns their failures into those of the contract.
  static func translating<T>(_ body: () async throws -> sending T) async throws -> sending T {
    do { return try await body() } catch let failure as S3Failure {
      if failure.isMissing || failure.status == 416 { throw BlobLost() }
      if failure.isFull { throw StorageFull() }
      throw Self.failure(failure.description)
    }
  }

  static func failure(_ description: String) -> BlobStoreFailure { BlobStoreFailure(description) }
}
