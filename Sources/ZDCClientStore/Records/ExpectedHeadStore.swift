internal import GRDB
package import ZDCProtocol

/// Heads that another device of the account has verified, until this device's log contains them (zdc_expected_head). They
/// are kept by zone, because this device may not know the zone yet.
///
/// A server could otherwise show a new device an older log than the one that the account's devices know.
package struct ExpectedHeadStore {
  private let db: Database
  private let localUser: Int64

  package init(_ transaction: ZDCReadTransaction, localUser: Int64) {
    (db, self.localUser) = (transaction.database, localUser)
  }

  /// Stores a head of a zone that was never pulled.
  package func insert(_ seq: UInt64, _ hash: CommitHash, of zone: ZoneID) throws {
    let statement = try db.cachedStatement(
      sql: "INSERT OR REPLACE INTO zdc_expected_head (localUser, treeID, zoneRoot, seq, hash) VALUES (?, ?, ?, ?, ?)")
    try statement.execute(arguments: [localUser, zone.tree.data, zone.root.data, seq.stored, hash.data])
  }

  package func head(of zone: ZoneID) throws -> (seq: UInt64, hash: CommitHash)? {
    try db.firstRow(
      "SELECT seq, hash FROM zdc_expected_head WHERE localUser = ? AND treeID = ? AND zoneRoot = ?",
      [localUser, zone.tree.data, zone.root.data]
    ) { ($0.unsigned(0) ?? 0, try CommitHash($0, 1)) }
  }

  /// Removes the expected head, because the verified log has a commit with its number.
  ///
  /// - Throws: `zoneForkDetected` if it is another commit.
  package func fulfil(_ commit: ZoneCommit) throws {
    let zone = commit.fields.zone
    guard try head(of: zone)?.hash == commit.hash else { throw ZDCSecurityError(.zoneForkDetected, zone: zone) }
    try remove(zone)
  }

  /// Removes the expected head, because the user accepts the server's log.
  package func remove(_ zone: ZoneID) throws {
    try db.execute(
      sql: "DELETE FROM zdc_expected_head WHERE localUser = ? AND treeID = ? AND zoneRoot = ?",
      arguments: [localUser, zone.tree.data, zone.root.data])
  }
}
