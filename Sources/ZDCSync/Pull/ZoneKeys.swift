internal import Foundation
internal import ZDCAccounts
internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol

/// Opens a zone's key from the user's own grant. A grant that is missing, or does not hold the key, stops neither the
/// log nor the pins. Everything that needs the key waits for another grant (PROTOCOL 3.7, class 2).
struct ZoneKeys {
  package let session: SyncSession
  package let transaction: ZDCReadWriteTransaction

  /// Updates the zone's key, because a new access list may contain a new one.
  package func take(_ acl: ZoneACL, _ grants: [GrantHash: Grant], row: inout ZoneRow) throws {
    guard let entry = acl.fields.entry(for: session.user) else { return }
    do {
      row.key = try open(acl, entry, grants, row)
      row.keyError = nil
      // Read the nodes that waited for this key.
      try LogNodeStore(db: transaction.database, zone: row.id).retry(row.zone.root)
    } catch let error as ZDCSecurityError {
      try keep(error.with(zone: row.zone, user: session.user), acl, &row)
    }
  }

  private func open(
    _ acl: ZoneACL, _ entry: ZoneACL.Entry, _ grants: [GrantHash: Grant], _ row: ZoneRow
  ) throws -> NodeKey {
    if let grant = grants[entry.wrapHash] { return try session.keys.open(grant, in: acl) }
    if let key = row.key, key.commitments == acl.fields.commitments { return key }
    let isReplaced = grants.values.contains { $0.zone == acl.fields.zone && $0.user == session.user }
    throw ZDCSecurityError(isReplaced ? .grantHashMismatch : .grantMissing)
  }

  /// Stores the error, and reports it once per list and reason. If the key is already known, no grant is needed.
  /// However, a listed grant that does not hold the key would lock out the user's next device.
  private func keep(_ error: ZDCSecurityError, _ acl: ZoneACL, _ row: inout ZoneRow) throws {
    let needsKey = row.key?.commitments != acl.fields.commitments
    let isKnown = needsKey ? row.keyError == error.code : error.code != .keyCommitmentMismatch
    row.keyError = needsKey ? error.code : nil
    guard !isKnown else { return }
    try transaction.record(error, localUser: session.localUser, zone: row.id, atMs: session.now())
    transaction.afterCommit { [events = session.events] in events.report(error) }
  }
}

/// Fetches the page with the current access list again while the user's grant is missing.
struct GrantRetry {
  package let session: SyncSession
  package let zone: Int64

  package func run(_ row: ZoneRow) async throws {
    guard row.unreadableReason != nil, let seq = row.listSeq, let list = row.head?.acl else { return }
    let page = try await session.api.commitPage(row.zone, after: seq == 0 ? nil : seq - 1, withRecords: false)
    let grants = try PageContents(page.body).grants
    try await session.database.asyncReadWrite { [session, zone] transaction in
      guard var row = try transaction.zones.zone(id: zone), row.head?.acl.hash == list.hash else { return }
      try ZoneKeys(session: session, transaction: transaction).take(list, grants, row: &row)
      try transaction.zones.update(row)
    }
  }
}
