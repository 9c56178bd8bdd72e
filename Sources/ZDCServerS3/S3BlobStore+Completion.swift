internal import NIOCore
package import ZDCProtocol
internal import ZDCServer

// The end of an upload.
extension S3BlobStore {
  /// Joins the parts and returns the content's root. A repeated call, after any failure, continues or finds the result.
  package func contentRoot(_ blob: BlobID, cipherLength: UInt64) async throws -> ContentRoot {
    try await Self.translating {
      let parts = ContentGeometry.partCount(cipherLength: cipherLength)
      let running = parts > 1 ? try await self.client.uploads(of: self.keys.content(blob)) : []
      let joined = try await self.joinOnce(of: running, blob, parts: parts, cipherLength: cipherLength)
      guard try await self.client.length(self.keys.content(blob)) == cipherLength else { throw BlobLost() }
      let root = try await self.storedRoot(blob, cipherLength: cipherLength)
      if parts > 1 { try await self.removeParts(of: blob) }
      // Two processes may have begun one each. The store would keep what is left for ever.
      for upload in running where upload != joined { try await self.client.abort(upload) }
      await self.uploads.forget([blob])
      return root
    }
  }

  /// Another request may join the same parts: a client repeats a completion whose answer takes too long. It then removes the
  /// upload and the hashes of single parts, after the content is there.
  private func joinOnce(
    of uploads: [S3Upload], _ blob: BlobID, parts: Int, cipherLength: UInt64
  ) async throws -> S3Upload? {
    do {
      return try await joinWhole(of: uploads, blob, parts: parts, cipherLength: cipherLength)
    } catch let failure as S3Failure where failure.isMissing || failure.isMissingUpload {
      guard try await client.length(keys.content(blob)) == cipherLength else { throw failure }
      return nil
    }
  }

  /// Joins the parts of the upload that has all of them, and returns it. There may be none: a completion whose answer was
  /// lost has ended it.
  private func joinWhole(
    of uploads: [S3Upload], _ blob: BlobID, parts count: Int, cipherLength: UInt64
  ) async throws -> S3Upload? {
    for upload in uploads {
      let parts = try await client.parts(of: upload.id, upload.key)
      let isWhole =
        parts.map(\.number) == Array(1...count)
        && parts.allSatisfy { $0.length == ContentGeometry.partRange($0.number - 1, cipherLength: cipherLength).count }
      guard isWhole else { continue }
      try await join(blob, upload, parts, cipherLength: cipherLength)
      return upload
    }
    return nil
  }

  private func join(_ blob: BlobID, _ upload: S3Upload, _ parts: [S3Part], cipherLength: UInt64) async throws {
    // Before the content, so that content that exists can be proven.
    try await putLeaves(of: blob, parts: parts.count, cipherLength: cipherLength)
    do { try await client.complete(upload.id, upload.key, parts) } catch let failure as S3Failure {
      // The answer to an attempt that succeeded may have been lost.
      guard try await client.length(upload.key) == cipherLength else { throw failure }
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
