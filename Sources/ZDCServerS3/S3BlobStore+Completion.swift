internal import NIOCore
package import ZDCProtocol
internal import ZDCServer

// The end of an upload.
extension S3BlobStore {
  /// Joins the parts and returns the content's root. A repeated call, after any failure, continues or finds the result.
  package func contentRoot(_ blob: BlobID, cipherLength: UInt64) async throws -> ContentRoot {
    try await Self.translating {
      let parts = ContentGeometry.partCount(cipherLength: cipherLength)
      if parts > 1, let upload = try await self.uploads.existing(blob) {
        try await self.join(blob, upload, parts: parts, cipherLength: cipherLength)
      }
      guard try await self.client.length(self.keys.content(blob)) == cipherLength else { throw BlobLost() }
      let root = try await self.storedRoot(blob, cipherLength: cipherLength)
      if parts > 1 { try await self.removeParts(of: blob) }
      await self.uploads.forget([blob])
      return root
    }
  }

  private func join(_ blob: BlobID, _ upload: String, parts count: Int, cipherLength: UInt64) async throws {
    let key = keys.content(blob)
    let parts = try await client.parts(of: upload, key)
    let isWhole =
      parts.map(\.number) == Array(1...count)
      && parts.allSatisfy { $0.length == ContentGeometry.partRange($0.number - 1, cipherLength: cipherLength).count }
    guard isWhole else { throw BlobLost() }
    // Before the content, so that content that exists can be proven.
    try await putLeaves(of: blob, parts: count, cipherLength: cipherLength)
    do { try await client.complete(upload, key, parts) } catch let failure as S3Failure {
      // The answer to an attempt that succeeded may have been lost.
      guard try await client.length(key) == cipherLength else { throw failure }
    }
  }

  private func putLeaves(of blob: BlobID, parts: Int, cipherLength: UInt64) async throws {
    let perPart = Int(ContentGeometry.leavesPerPart(cipherLength: cipherLength)) * 32
    var writer = S3HashWriter(client, key: keys.leaves(blob), partBytes: hashPartBytes)
    var groups = GroupHashes()
    var count: UInt64 = 0
    for first in stride(from: 0, to: parts, by: Self.requests) {
      let hashes = try await concurrently(Array(first..<min(first + Self.requests, parts)), limit: Self.requests) {
        try await self.client.get(self.keys.part($0, blob), upTo: perPart)
      }
      for part in hashes {
        var reader = ByteReader(part)
        while reader.remaining > 0 { groups.append(leafHash: try reader.read32()) }
        count += UInt64(part.count / 32)
        try await writer.append(part)
      }
    }
    guard count == ContentGeometry.leafCount(cipherLength: cipherLength) else { throw BlobLost() }
    try await writer.append(groups.levels.flatMap { $0 })
    try await writer.finish()
  }

  private func storedRoot(_ blob: BlobID, cipherLength: UInt64) async throws -> ContentRoot {
    let count = ContentGeometry.leafCount(cipherLength: cipherLength)
    var builder = MerkleTree.Builder()
    for first in stride(from: 0, to: count, by: Self.hashBatch) {
      let range = first * 32..<min(first + UInt64(Self.hashBatch), count) * 32
      var reader = ByteReader(try await client.get(keys.leaves(blob), range: range, upTo: range.count))
      while reader.remaining > 0 { builder.append(leafHash: try reader.read32()) }
    }
    return ContentRoot(reinterpreting: builder.root)
  }

  /// The hashes of 2 GiB of content, in 1 MiB.
  private static let hashBatch = 32_768
}
