package import ZDCProtocol
internal import ZDCServer

// Removal, and the search for blobs that no row knows.
extension S3BlobStore {
  package func remove(_ blobs: [BlobID]) async throws {
    await uploads.forget(blobs)
    try await Self.translating {
      _ = try await concurrently(blobs, limit: Self.requests) { blob in
        for key in [self.keys.content(blob), self.keys.leaves(blob)] {
          for upload in try await self.client.uploads(of: key) { try await self.client.abort(upload) }
        }
        try await self.removeParts(of: blob)
      }
      // Content last: as long as it exists, a collection that begins again finds the blob.
      let keys = blobs.map(self.keys.leaves) + blobs.map(self.keys.content)
      for start in stride(from: 0, to: keys.count, by: Self.batch) {
        try await self.client.delete(Array(keys[start..<min(start + Self.batch, keys.count)]))
      }
    }
  }

  /// The most that one request deletes.
  private static let batch = 1_000

  /// Removes the leaf hashes of single parts.
  func removeParts(of blob: BlobID) async throws {
    var isMore = true
    while isMore {
      let (found, next) = try await client.list(keys.parts(blob))
      try await client.delete(found)
      isMore = next != nil
    }
  }

  package func forEachBatch(_ body: @Sendable ([BlobID]) async throws -> Void) async throws {
    for folder in [keys.contents, keys.allLeaves, keys.allParts] {
      var token: String?
      repeat {
        let (found, next) = try await Self.translating { [token] in try await self.client.list(folder, after: token) }
        try await body(Array(Set(found.compactMap(keys.blob))))
        token = next
      } while token != nil
    }
    for folder in [keys.contents, keys.allLeaves] {
      try await Self.translating {
        try await self.client.forEachUpload(folder) { uploads in
          try await body(Array(Set(uploads.compactMap { self.keys.blob(of: $0.key) })))
        }
      }
    }
  }
}
