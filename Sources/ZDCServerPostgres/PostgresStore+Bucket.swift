internal import ZDCProtocol

// The bucket that all processes over one database use.
extension PostgresStore {
  private static let ownerName = "bucket-owner"

  /// The ID under which this server owns a bucket; nil if its large content is in a data folder.
  package func bucketOwner() async throws -> String? { try await perform(Self.owner) }

  /// Stores the ID, unless another process has stored one.
  ///
  /// - Returns: the ID that is stored, and whether it is new.
  package func claimBucket(_ owner: String) async throws -> (owner: String, isNew: Bool) {
    try await perform { db in
      let count = try db.run(
        "INSERT INTO settings(name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING", .text(Self.ownerName),
        .bytes(Array(owner.utf8)))
      return (try Self.owner(db) ?? owner, count == 1)
    }
  }

  /// Removes an ID under which nothing was stored.
  package func removeBucketOwner(_ owner: String) async throws {
    _ = try await perform { db in
      try db.run(
        "DELETE FROM settings WHERE name = $1 AND value = $2", .text(Self.ownerName), .bytes(Array(owner.utf8)))
    }
  }

  /// Whether there is content that is not stored with its row.
  package func hasLargeContent() async throws -> Bool {
    try await perform { db in
      try db.first("SELECT 1 FROM blobs WHERE content IS NULL AND state = 2 LIMIT 1") { _ in true } ?? false
    }
  }

  private static func owner(_ db: PostgresConnection) throws -> String? {
    try db.first("SELECT value FROM settings WHERE name = $1", .text(ownerName)) {
      String(decoding: $0.bytes(0), as: UTF8.self)
    }
  }
}
