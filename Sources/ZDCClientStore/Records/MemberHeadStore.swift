internal import GRDB
package import ZDCProtocol

/// The head of a zone that a member has named in a message.
package struct MemberHead: Sendable, Hashable {
  package var member: UserID
  package var seq: UInt64
  package var hash: CommitHash
  /// Whether a pull has ended before this head and the user was notified.
  package var isReported = false

  package init(member: UserID, seq: UInt64, hash: CommitHash, isReported: Bool = false) {
    (self.member, self.seq, self.hash, self.isReported) = (member, seq, hash, isReported)
  }
}

/// The heads that members have named and that a zone's log does not contain yet, inside one transaction
/// (zdc_member_head). At most one for each zone and member.
package struct MemberHeadStore {
  private let db: Database
  private let zone: Int64

  package init(_ transaction: ZDCReadTransaction, zone: Int64) { (db, self.zone) = (transaction.database, zone) }

  package func heads() throws -> [MemberHead] {
    var found: [MemberHead] = []
    let query = "SELECT seq, hash, isReported, userID FROM zdc_member_head WHERE zone = ? ORDER BY userID"
    try db.forEachRow(query, [zone]) { row in
      found.append(
        MemberHead(
          member: try UserID(row, 3), seq: row.unsigned(0) ?? 0, hash: try CommitHash(row, 1),
          isReported: (row[2] as Int64) != 0))
    }
    return found
  }

  /// Stores a head in place of the member's earlier one.
  package func set(_ head: MemberHead) throws {
    let statement = try db.cachedStatement(
      sql: "INSERT OR REPLACE INTO zdc_member_head (zone, userID, seq, hash, isReported) VALUES (?, ?, ?, ?, ?)")
    try statement.execute(arguments: [
      zone, head.member.data, head.seq.stored, head.hash.data, head.isReported,
    ])
  }

  package func remove(of member: UserID) throws {
    try db.execute(sql: "DELETE FROM zdc_member_head WHERE zone = ? AND userID = ?", arguments: [zone, member.data])
  }

  package func removeAll() throws {
    try db.execute(sql: "DELETE FROM zdc_member_head WHERE zone = ?", arguments: [zone])
  }
}

extension MemberHeadStore {
  /// Returns whether a zone's log has not been compared with the server since a member named a head beyond it.
  package static func isPullDue(zone: Int64, _ transaction: ZDCReadTransaction) throws -> Bool {
    let query = "SELECT 1 FROM zdc_member_head WHERE zone = ? AND isReported = 0 LIMIT 1"
    return try transaction.database.firstRow(query, [zone]) { _ in true } ?? false
  }

  /// Returns the zones of ``isPullDue(zone:_:)`` that are not frozen.
  package static func zonesToPull(
    localUser: Int64, tree: String, _ transaction: ZDCReadTransaction
  ) throws -> [Int64] {
    let query = """
      SELECT z.id FROM zdc_zone z WHERE z.localUser = ? AND z.appTreeID = ? AND z.frozen IS NULL
      AND EXISTS (SELECT 1 FROM zdc_member_head WHERE zone = z.id AND isReported = 0) ORDER BY z.id
      """
    var zones: [Int64] = []
    try transaction.database.forEachRow(query, [localUser, tree]) { zones.append($0[0]) }
    return zones
  }

  /// Removes what a user has said about any zone, because this device's user has blocked or declined them.
  ///
  /// - Parameter localUser: The account whose zones are meant; nil for all accounts.
  package static func removeAll(of user: UserID, localUser: Int64? = nil, _ transaction: ZDCReadTransaction) throws {
    try transaction.database.execute(
      sql: """
        DELETE FROM zdc_member_head WHERE userID = ?1
        AND (?2 IS NULL OR zone IN (SELECT id FROM zdc_zone WHERE localUser = ?2))
        """, arguments: [user.data, localUser])
  }
}

/// The heads that this device has last named to each user, inside one transaction (zdc_named_head).
package struct NamedHeadStore {
  package struct Named: Sendable, Hashable {
    package var hash: CommitHash
    /// The number of the message to the user.
    package var messageSeq: UInt64

    package init(hash: CommitHash, messageSeq: UInt64) { (self.hash, self.messageSeq) = (hash, messageSeq) }
  }

  private let db: Database

  package init(_ transaction: ZDCReadTransaction) { db = transaction.database }

  /// Returns the heads by zone.
  package func heads(namedTo user: UserID) throws -> [Int64: Named] {
    var found: [Int64: Named] = [:]
    let query = "SELECT zone, hash, messageSeq FROM zdc_named_head WHERE userID = ?"
    try db.forEachRow(query, [user.data]) { row in
      found[row[0]] = Named(hash: try CommitHash(row, 1), messageSeq: row.unsigned(2) ?? 0)
    }
    return found
  }

  package func set(_ named: Named, zone: Int64, to user: UserID) throws {
    let statement = try db.cachedStatement(
      sql: "INSERT OR REPLACE INTO zdc_named_head (zone, userID, hash, messageSeq) VALUES (?, ?, ?, ?)")
    try statement.execute(arguments: [zone, user.data, named.hash.data, named.messageSeq.stored])
  }

  /// Forgets what a message has named that its recipient does not get.
  package func remove(namedTo user: UserID, messageSeq: UInt64, localUser: Int64, tree: String) throws {
    try db.execute(
      sql: """
        DELETE FROM zdc_named_head WHERE userID = ? AND messageSeq = ?
        AND zone IN (SELECT id FROM zdc_zone WHERE localUser = ? AND appTreeID = ?)
        """, arguments: [user.data, messageSeq.stored, localUser, tree])
  }
}
