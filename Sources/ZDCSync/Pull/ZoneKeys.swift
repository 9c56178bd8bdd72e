internal import Foundation
internal import ZDCAccounts
internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol

/// Takes a zone's key out of the user's own grant. One that is missing, or that does not hold the key, stops neither the
/// log nor the pins: what needs the key waits for another grant (PROTOCOL 3.7, class 2).
struct ZoneKeys {
  package let session: SyncSession
  package let transaction: ZDCReadWriteTransaction

  /// A new access list may bring a new key for the zone.
  package func take(_ acl: ZoneACL, _ grants: [GrantHash: Grant], row: inout ZoneRow) throws {
    guard let entry = acl.fields.entry(for: session.user) else { return }
    do {
      row.key = try open(acl, entry, grants, row)
      row.keyError = nil
      // What waited for this key is read now.
      try LeafStore(db: transaction.database, zone: row.id).retry(row.zone.root)
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

  /// Told once for each list and reason. A key that is known already needs no grant, but one that the list names and that
  /// does not hold it would lock the user's next device out.
  private func keep(_ error: ZDCSecurityError, _ acl: ZoneACL, _ row: inout ZoneRow) throws {
    let needsKey = row.key?.commitments != acl.fields.commitments
    let isKnown = needsKey ? row.keyError == error.code : error.code != .keyCommitmentMismatch
    row.keyError = needsKey ? error.code : nil
    guard !isKnown else { return }
    try transaction.record(error, localUser: session.localUser, zone: row.id, atMs: session.now())
    transaction.afterCommit { [events = session.events] in events.report(error) }
  }
}

/// Asks again for the page with the access list in force, as long as the user's grant is not there.
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
