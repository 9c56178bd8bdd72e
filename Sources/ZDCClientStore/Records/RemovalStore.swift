internal import GRDB
package import ZDCProtocol

/// The members who lost access to a zone, inside one transaction (zdc_removal).
package struct RemovalStore {
  private let db: Database
  private let zone: Int64

  package init(_ transaction: ZDCReadTransaction, zone: Int64) { (db, self.zone) = (transaction.database, zone) }

  package struct Removal: Sendable, Hashable {
    package var member: UserID
    package var seq: UInt64
    package var commit: CommitHash
    /// The member who signed the list.
    package var writer: UserID
    package var receivedMs: UInt64
    /// The newest generation of the zone's key that the removed member has.
    package var keyGen: UInt32

    package init(
      member: UserID, seq: UInt64, commit: CommitHash, writer: UserID, receivedMs: UInt64, keyGen: UInt32
    ) {
      (self.member, self.seq, self.commit) = (member, seq, commit)
      (self.writer, self.receivedMs, self.keyGen) = (writer, receivedMs, keyGen)
    }
  }

  package func insert(_ removal: Removal) throws {
    let statement = try db.cachedStatement(
      sql: """
        INSERT OR IGNORE INTO zdc_removal (zone, seq, member, commitHash, writer, receivedMs, keyGen)
        VALUES (?, ?, ?, ?, ?, ?, ?)
        """)
    try statement.execute(arguments: [
      zone, removal.seq.stored, removal.member.data, removal.commit.data, removal.writer.data,
      removal.receivedMs.stored, Int64(removal.keyGen),
    ])
  }

  /// Forgets the removals of a user who was added again.
  package func forget(_ member: UserID) throws {
    let statement = try db.cachedStatement(sql: "DELETE FROM zdc_removal WHERE zone = ? AND member = ?")
    try statement.execute(arguments: [zone, member.data])
  }

  /// The removals in the order of the log.
  package func removals() throws -> [Removal] {
    var found: [Removal] = []
    let query = """
      SELECT seq, member, commitHash, writer, receivedMs, keyGen FROM zdc_removal WHERE zone = ? ORDER BY seq, member
      """
    try db.forEachRow(query, [zone]) { row in
      found.append(
        Removal(
          member: try UserID(row, 1), seq: row.unsigned(0) ?? 0, commit: try CommitHash(row, 2),
          writer: try UserID(row, 3), receivedMs: row.unsigned(4) ?? 0,
          keyGen: UInt32(truncatingIfNeeded: row[5] as Int64)))
    }
    return found
  }
}
