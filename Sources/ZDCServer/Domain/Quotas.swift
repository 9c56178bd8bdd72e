internal import ZDCProtocol

/// How much a user may have in their trees, whoever wrote it (PROTOCOL 3.12): sealed content, and everything else.
///
/// All stored content counts: live, kept, and uploads that are incomplete or attached to nothing. Kept content makes
/// room, the oldest first, before anything is refused. Records, commits, access lists and grants have a bound of their own.
struct Quotas: Sendable {
  /// Bytes of content; zero: unlimited.
  let limit: UInt64
  /// Bytes of everything else; zero: unlimited.
  let recordLimit: UInt64

  private static let leastRecordLimit: UInt64 = 64 << 20

  /// - Parameter recordLimit: nil: a quarter of `limit`, 64 MiB at least.
  init(limit: UInt64, recordLimit: UInt64? = nil) {
    self.limit = limit
    self.recordLimit = recordLimit ?? (limit == 0 ? 0 : max(limit / 4, Self.leastRecordLimit))
  }

  /// Called when the commit is stored; refusing undoes the transaction.
  ///
  /// - Parameter added: what this request added to it.
  func checkRecords(in zone: ZoneKey, added: UInt64 = 0, _ tx: any MetadataTransaction) throws {
    guard recordLimit > 0 else { return }
    let used = try tx.recordBytes(ofOwnerOf: zone)
    guard used > recordLimit else { return }
    throw ServerError(
      .quotaExceeded, "the account has too many records, versions and commits", retryable: true, retryAfterMs: 60_000,
      quota: ServerError.Quota(used: used - min(added, used), limit: recordLimit, needed: added))
  }

  /// Called when the content is stored; refusing undoes the transaction.
  ///
  /// - Returns: released contents whose files may go once the transaction is durable.
  func makeRoom(for added: UInt64, in zone: ZoneKey, _ tx: any MetadataTransaction) throws -> [BlobID] {
    guard limit > 0, added > 0 else { return [] }
    let before = try tx.contentBytes(ofOwnerOf: zone)
    guard before > limit else { return [] }
    let released = try tx.releaseReplaced(ofOwnerOf: zone, bytes: before - limit)
    let after = try tx.contentBytes(ofOwnerOf: zone)
    guard after <= limit else {
      throw ServerError(
        .quotaExceeded, "the account is full", retryable: true, retryAfterMs: 60_000,
        quota: ServerError.Quota(used: after - min(added, after), limit: limit, needed: added))
    }
    return released
  }
}
