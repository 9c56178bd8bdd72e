internal import Foundation
internal import GRDB
package import ZDCProtocol

/// A version of a node that a commit of the verified log has replaced or deleted.
package struct FormerVersion: Sendable {
  /// The row's number. Later ones are larger.
  package var id: Int64
  package var zone: Int64
  /// What the log said about the version.
  package var expected: LogNodeStore.Expected
  /// The commit that replaced or deleted it.
  package var endSeq: UInt64
  /// The time that the commit's writer stated.
  package var endMs: UInt64
  package var endWriter: UserID
  /// The node whose deletion removed it; nil for a version that was replaced.
  package var top: NodeID?

  package var node: NodeID { expected.leaf.node }
  package var record: RecordHash { expected.leaf.record }
}

/// Notes the versions that one commit replaces and deletes, while it is replayed.
struct FormerNotes {
  private let db: Database
  private let zone: Int64
  private let commit: ZoneCommit.Fields

  /// The number of versions that are remembered, of all zones together. Older ones are forgotten.
  static let limit: Int64 = 200_000

  init(db: Database, zone: Int64, commit: ZoneCommit.Fields) {
    (self.db, self.zone, self.commit) = (db, zone, commit)
  }

  func note(replaced node: NodeID) throws {
    let statement = try db.cachedStatement(
      sql: "\(Self.insert) SELECT \(Self.values), ?3, ?4, ?5, NULL FROM zdc_leaf l WHERE l.zone = ?2 AND l.node = ?1")
    try statement.execute(arguments: arguments(node))
    if db.lastInsertedRowID % 256 == 0 { try forgetOldest() }
  }

  func note(deleted top: NodeID) throws {
    let statement = try db.cachedStatement(
      sql: """
        \(LogNodeStore.below) \(Self.insert) SELECT \(Self.values), ?3, ?4, ?5, ?1
        FROM below b CROSS JOIN zdc_leaf l ON l.zone = ?2 AND l.node = b.node
        """)
    try statement.execute(arguments: arguments(top))
    try forgetOldest()
  }

  private func arguments(_ node: NodeID) -> StatementArguments {
    [node.data, zone, commit.seq.stored, commit.timeMs.stored, commit.writer.data]
  }

  /// Numbers of rows ascend, so the oldest ones have the smallest.
  private func forgetOldest() throws {
    try db.cachedStatement(
      sql: "DELETE FROM zdc_former WHERE id <= (SELECT MAX(id) FROM zdc_former) - \(Self.limit)"
    ).execute()
  }

  private static let insert = """
    INSERT INTO zdc_former (zone, node, parent, record, prev, putSeq, keyGen, parentKeyGen, writer, writerGen,
    endSeq, endMs, endWriter, top)
    """

  private static let values =
    "l.zone, l.node, l.parent, l.record, l.prev, l.putSeq, l.keyGen, l.parentKeyGen, l.writer, l.writerGen"
}

/// The versions that the verified logs have replaced or deleted, inside one transaction.
package struct FormerStore {
  private let db: Database

  package init(_ transaction: ZDCReadTransaction) { db = transaction.database }

  /// The replaced versions of a node, newest first.
  package func versions(of node: NodeID, zone: Int64, limit: Int) throws -> [FormerVersion] {
    try all("zone = ? AND node = ? AND top IS NULL ORDER BY id DESC LIMIT ?", [zone, node.data, limit])
  }

  /// The newest deletions of nodes in the logs of these zones, without the nodes below them, newest first.
  ///
  /// - Parameter before: The number of the last one of the page before.
  package func deletedTops(zones: [Int64], before: Int64, limit: Int) throws -> [FormerVersion] {
    let found = try zones.flatMap { zone in
      try all(
        """
        zone = ? AND top = node AND id < ? AND NOT EXISTS (
          SELECT 1 FROM zdc_former l WHERE l.zone = zdc_former.zone AND l.node = zdc_former.node AND l.id > zdc_former.id
        ) ORDER BY id DESC LIMIT ?
        """, [zone, before, limit])
    }
    return Array(found.sorted { $0.id > $1.id }.prefix(limit))
  }

  /// The versions that a deletion removed: the one of the node itself, and those of all nodes below it.
  package func branch(of top: FormerVersion) throws -> [FormerVersion] {
    try all("zone = ? AND top = ? AND endSeq = ? ORDER BY id", [top.zone, top.node.data, top.endSeq.stored])
  }

  /// How many nodes were deleted with that one, itself included.
  package func branchCount(of top: FormerVersion) throws -> Int {
    let statement = try db.cachedStatement(
      sql: "SELECT COUNT(*) FROM zdc_former WHERE zone = ? AND top = ? AND endSeq = ?")
    return try Int.fetchOne(statement, arguments: [top.zone, top.node.data, top.endSeq.stored]) ?? 0
  }

  /// The version that a node had at a commit; nil if it is live or not known. A node that was deleted and put again has
  /// other keys since then, under the same generations.
  package func version(of node: NodeID, at seq: UInt64, zone: Int64) throws -> FormerVersion? {
    try all(
      "zone = ? AND node = ? AND putSeq <= ? AND endSeq > ? ORDER BY id LIMIT 1",
      [zone, node.data, seq.stored, seq.stored]
    ).first
  }

  private func all(_ condition: String, _ arguments: StatementArguments) throws -> [FormerVersion] {
    var found: [FormerVersion] = []
    try db.forEachRow("SELECT \(Self.columns) FROM zdc_former WHERE \(condition)", arguments) { row in
      found.append(try Self.decode(row))
    }
    return found
  }

  private static let columns = """
    node, parent, record, putSeq, keyGen, parentKeyGen, prev, writer, writerGen, id, zone, endSeq, endMs, endWriter, top
    """

  private static func decode(_ row: RawRow) throws -> FormerVersion {
    FormerVersion(
      id: row[9], zone: row[10],
      expected: LogNodeStore.Expected(
        leaf: try LogNodeStore.decode(row), prev: try RecordHash(row, 6), writer: try UserID(row, 7),
        writerGen: UInt32(row[8] as Int64)),
      endSeq: row.unsigned(11) ?? 0, endMs: row.unsigned(12) ?? 0, endWriter: try UserID(row, 13),
      top: try row.optional16(14, NodeRole.self))
  }
}
