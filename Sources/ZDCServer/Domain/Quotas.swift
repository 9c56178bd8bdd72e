internal import ZDCProtocol

/// The limits on the data in a user's trees, regardless of its writer (PROTOCOL 3.12): sealed content, and everything
/// else.
///
/// All stored content counts: live and retained content for the tree's owner, uploads for the user who began them until
/// they are attached. Before the server refuses content, it removes retained content, oldest first. Records, commits,
/// access lists and grants have a separate limit.
struct Quotas: Sendable {
  /// Bytes of content; zero means unlimited.
  let limit: UInt64
  /// Bytes of everything else; zero means unlimited.
  let recordLimit: UInt64

  private static let leastRecordLimit: UInt64 = 64 << 20

  /// - Parameter recordLimit: nil means a quarter of `limit`, but at least 64 MiB.
  init(limit: UInt64, recordLimit: UInt64? = nil) {
    self.limit = limit
    self.recordLimit = recordLimit ?? (limit == 0 ? 0 : max(limit / 4, Self.leastRecordLimit))
  }

  /// - Parameters:
  ///   - user: the sender of the request.
  ///   - added: the bytes that the request adds.
  func checkRecords(of owner: UserID, by user: UserID, added: UInt64, _ reader: any MetadataReader) throws {
    guard recordLimit > 0 else { return }
    let limit = try forAccount(owner, reader).recordLimit
    let used = try reader.recordBytes(of: owner)
    guard limit > 0, used + added > limit else { return }
    throw Self.refusal(
      "the account has too many records, versions and commits", of: owner, for: user,
      ServerError.Quota(used: used, limit: limit, needed: added))
  }

  /// Returns the limits of an account, which the operator may have set.
  func forAccount(_ user: UserID, _ reader: any MetadataReader) throws -> Quotas {
    try reader.user(user)?.quotaBytes.map { Quotas(limit: $0) } ?? self
  }

  /// Only the owner is shown the figures: how much they store is no concern of a member.
  private static func refusal(
    _ message: String, of owner: UserID, for user: UserID, _ quota: ServerError.Quota
  ) -> ServerError {
    guard owner == user else {
      return ServerError(.quotaExceeded, "the tree's owner has no room", retryable: true, retryAfterMs: 60_000)
    }
    return ServerError(.quotaExceeded, message, retryable: true, retryAfterMs: 60_000, quota: quota)
  }

  /// Finds room for content that is not stored yet.
  ///
  /// - Parameter user: the sender of the request.
  /// - Returns: retained blobs to remove; their files may be removed once the transaction is durable.
  func room(for change: ContentChange, by user: UserID, _ reader: any MetadataReader) throws -> [BlobRow] {
    guard self.limit > 0, change.addedBytes > 0 else { return [] }
    let limit = try forAccount(change.owner, reader).limit
    let used = try reader.contentBytes(of: change.owner)
    guard limit > 0, used + change.addedBytes > limit else { return [] }
    let missing = used + change.addedBytes - limit
    var released: [BlobRow] = []
    var free: UInt64 = 0
    for blob in try candidates(for: change, missing: missing, reader) where free < missing {
      released.append(blob)
      free += blob.cipherLength
    }
    guard free >= missing else {
      throw Self.refusal(
        "the account is full", of: change.owner, for: user,
        ServerError.Quota(used: used - min(free, used), limit: limit, needed: change.addedBytes))
    }
    return released
  }

  /// Returns blobs that were replaced before, oldest first, followed by those that this request replaces.
  private func candidates(
    for change: ContentChange, missing: UInt64, _ reader: any MetadataReader
  ) throws -> [BlobRow] {
    let inUse = Set(change.attached.map(\.key))
    let least = missing + change.attached.reduce(0) { $0 + $1.cipherLength }
    let before = try reader.replacedContents(of: change.owner, bytes: least)
    // A node that is deleted with its folder and put again may keep its content.
    return try (before + reader.blobs(change.replaced)).filter { !inUse.contains($0.key) }
  }
}

/// The effect of a request on the blobs that count for one user.
struct ContentChange {
  var owner: UserID
  var addedBytes: UInt64 = 0
  /// Blobs that were stored before the request and are live after it.
  var attached: [BlobRow] = []
  /// Blobs that are no longer live, by the store's internal number.
  var replaced: [Int64] = []

  mutating func count(_ delta: ZoneDelta) {
    for put in delta.puts {
      switch put.content {
      case .inline(_, let bytes): addedBytes += UInt64(bytes.count)
      // Counts as if it were stored twice: this owner need not know whether the other node stays.
      case .reference(let blob): addedBytes += blob.cipherLength
      case .attached(let blob):
        attached.append(blob)
        // Until now, another member's upload counted for that member.
        if let uploader = blob.owner, uploader != owner { addedBytes += blob.cipherLength }
      case .none, .unchanged: break
      }
    }
    replaced += delta.replacedBlobs
  }
}
