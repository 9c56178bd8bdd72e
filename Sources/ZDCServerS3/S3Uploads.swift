internal import ZDCProtocol

/// The multipart uploads of unfinished blobs.
///
/// The store itself is asked for them, so that a restarted server finds them again. The request that gets a ticket begins
/// the upload, before any part can come. If it did not, two processes may begin one each: then all use the oldest, which
/// the store's times, in seconds, may not tell apart. An upload whose parts are spread is lost, and sent again.
actor S3Uploads {
  private let client: S3Client
  private let keys: S3Keys
  private var known: [BlobID: Task<String, any Error>] = [:]

  init(client: S3Client, keys: S3Keys) {
    self.client = client
    self.keys = keys
  }

  /// Returns the ID of a blob's upload, which is started if there is none.
  func id(of blob: BlobID) async throws -> String {
    if let known = known[blob] { return try await known.value }
    let key = keys.content(blob)
    // A separate task: parts that wait for it must not fail because the first one was cancelled.
    let task = Task { [client] in
      if let oldest = try await client.uploads(of: key).first { return oldest.id }
      let own = try await client.startUpload(key)
      return try await client.uploads(of: key).first?.id ?? own
    }
    known[blob] = task
    do { return try await task.value } catch {
      if known[blob] == task { known[blob] = nil }
      throw error
    }
  }

  func forget(_ blobs: [BlobID]) { for blob in blobs { known[blob] = nil } }
}
