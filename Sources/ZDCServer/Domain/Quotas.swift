internal import ZDCProtocol

/// How much sealed content a user may have in his trees, whoever wrote it (PROTOCOL 3.12).
///
/// Everything stored counts: live contents, kept ones, uploads that are incomplete or attached to nothing. Kept ones
/// make room, the oldest first, before anything is refused. What adds no content is never refused.
struct Quotas: Sendable {
  /// Zero: unlimited.
  let limit: UInt64

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
