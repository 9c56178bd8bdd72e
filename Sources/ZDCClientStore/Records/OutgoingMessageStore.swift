internal import GRDB
internal import ZDCProtocol

/// Messages of the outbox that another device of the user has not sent to all recipients, inside one transaction.
package struct OutgoingMessageStore {
  private let db: Database

  package init(_ transaction: ZDCReadTransaction) { db = transaction.database }

  /// When this device may take messages over, and in which zone.
  package struct Due: Sendable, Hashable {
    package var zone: Int64
    package var dueMs: UInt64
  }

  package func set(_ node: Int64, zone: Int64, dueMs: UInt64) throws {
    let statement = try db.cachedStatement(
      sql: "INSERT OR REPLACE INTO zdc_outgoing (node, zone, dueMs) VALUES (?, ?, ?)")
    try statement.execute(arguments: [node, zone, dueMs.stored])
  }

  package func remove(_ node: Int64) throws {
    try db.cachedStatement(sql: "DELETE FROM zdc_outgoing WHERE node = ?").execute(arguments: [node])
  }

  /// Returns the nodes that may be taken over now, the oldest first.
  package func due(zone: Int64, nowMs: UInt64, limit: Int) throws -> [Int64] {
    let statement = try db.cachedStatement(
      sql: "SELECT node FROM zdc_outgoing WHERE zone = ? AND dueMs <= ? ORDER BY dueMs, node LIMIT ?")
    return try Int64.fetchAll(statement, arguments: [zone, nowMs.stored, limit])
  }

  /// Returns the earliest time at which a message of the tree may be taken over.
  package func next(localUser: Int64, tree: String) throws -> Due? {
    let query = """
      SELECT o.zone, o.dueMs FROM zdc_outgoing o JOIN zdc_zone z ON z.id = o.zone
      WHERE z.localUser = ? AND z.appTreeID = ? AND z.frozen IS NULL ORDER BY o.dueMs LIMIT 1
      """
    return try db.firstRow(query, [localUser, tree]) { Due(zone: $0[0], dueMs: $0.unsigned(1) ?? 0) }
  }
}
