internal import GRDB
package import ZDCProtocol

/// Heads that another device of the account has verified, until this device's log contains them (zdc_expected_head).
///
/// A server could otherwise show a new device an older log than the one that the account's devices know.
package struct ExpectedHeadStore {
  private let db: Database

  package init(_ transaction: ZDCReadTransaction) { db = transaction.database }

  /// Stores a head for a zone that was never pulled.
  package func insert(_ seq: UInt64, _ hash: CommitHash, zone: Int64) throws {
    let statement = try db.cachedStatement(
      sql: "INSERT OR REPLACE INTO zdc_expected_head (zone, seq, hash) VALUES (?, ?, ?)")
    try statement.execute(arguments: [zone, seq.stored, hash.data])
  }

  package func head(zone: Int64) throws -> (seq: UInt64, hash: CommitHash)? {
    try db.firstRow("SELECT seq, hash FROM zdc_expected_head WHERE zone = ?", [zone]) {
      ($0.unsigned(0) ?? 0, try CommitHash($0, 1))
    }
  }

  /// Removes the expected head, because the verified log has a commit with its number.
  ///
  /// - Throws: `zoneForkDetected` if it is another commit.
  package func fulfil(_ commit: ZoneCommit, zone: Int64) throws {
    guard try head(zone: zone)?.hash == commit.hash else {
      throw ZDCSecurityError(.zoneForkDetected, zone: commit.fields.zone)
    }
    try db.execute(sql: "DELETE FROM zdc_expected_head WHERE zone = ?", arguments: [zone])
  }
}
