internal import Foundation
internal import GRDB
internal import ZDCCrypto
package import ZDCProtocol
internal import ZDCSupport

/// A node of one zone that has, or gets, a copy in another one, because the app moved it there.
package struct MovedCopy: Sendable {
  package var id: Int64 = 0
  /// The old zone, and the node there.
  package var zone: Int64
  package var node: NodeID
  /// The version that was copied.
  package var record: RecordHash
  /// The node's row; nil if the app has deleted it since.
  package var row: Int64?
  package var copyZone: Int64
  package var copyID: NodeID
  /// Whether the row is in the old zone. Otherwise it is in the new one.
  package var isHeld: Bool
  /// The identity in the other one of the two zones.
  package var other: NodeIdentity

  package init(
    zone: Int64, node: NodeID, record: RecordHash, row: Int64?, copyZone: Int64, copyID: NodeID, isHeld: Bool,
    other: NodeIdentity
  ) {
    (self.zone, self.node, self.record, self.row) = (zone, node, record, row)
    (self.copyZone, self.copyID, self.isHeld, self.other) = (copyZone, copyID, isHeld, other)
  }
}

/// Moves to other zones that have not ended (zdc_crossing, zdc_moved), inside one transaction.
package final class MoveStore: TransactionCache {
  private let db: Database
  private let sealer: TableSealer
  private var isKnownEmpty: Bool?

  init(db: Database, sealer: ValueSealer) {
    self.db = db
    self.sealer = sealer.table("zdc_moved")
  }

  package func invalidate() { isKnownEmpty = nil }

  /// Whether no move is under way, which is nearly always so.
  package var isEmpty: Bool {
    get throws {
      if let isKnownEmpty { return isKnownEmpty }
      let isEmpty = try !db.hasRow("SELECT 1 FROM zdc_crossing UNION ALL SELECT 1 FROM zdc_moved", [])
      isKnownEmpty = isEmpty
      return isEmpty
    }
  }

  // MARK: Nodes that the app has moved

  package func setCrossing(_ node: Int64, _ isCrossing: Bool) throws {
    let sql =
      isCrossing
      ? "INSERT OR IGNORE INTO zdc_crossing (node) VALUES (?)" : "DELETE FROM zdc_crossing WHERE node = ?"
    try db.cachedStatement(sql: sql).execute(arguments: [node])
    isKnownEmpty = nil
  }

  package func isCrossing(_ node: Int64) throws -> Bool {
    if try isEmpty { return false }
    let statement = try db.cachedStatement(sql: "SELECT EXISTS (SELECT 1 FROM zdc_crossing WHERE node = ?)")
    return try Bool.fetchOne(statement, arguments: [node]) ?? false
  }

  /// Returns the rows of a zone that are to move to another one, the oldest first; those of all zones without one.
  package func crossings(from zone: Int64? = nil) throws -> [Int64] {
    if try isEmpty { return [] }
    let statement = try db.cachedStatement(
      sql: """
        SELECT c.node FROM zdc_crossing c CROSS JOIN zdc_node n ON n.id = c.node WHERE ?1 IS NULL OR n.zone = ?1
        ORDER BY c.node
        """)
    return try Int64.fetchAll(statement, arguments: [zone])
  }

  // MARK: Copies

  package func copy(zone: Int64, _ node: NodeID) throws -> MovedCopy? {
    try isEmpty ? nil : fetchAll("WHERE zone = ? AND nodeID = ?", [zone, node.data]).first
  }

  package func copy(row: Int64) throws -> MovedCopy? {
    try isEmpty ? nil : fetchAll("WHERE node = ?", [row]).first
  }

  /// Whether the node of the old zone has a copy, and its row is in the new zone.
  package func isMoved(zone: Int64, _ node: NodeID) throws -> Bool {
    if try isEmpty { return false }
    let statement = try db.cachedStatement(
      sql: "SELECT 1 FROM zdc_moved WHERE zone = ? AND nodeID = ? AND isHeld = 0")
    return try Int.fetchOne(statement, arguments: [zone, node.data]) != nil
  }

  /// Returns the copies of a zone's nodes.
  package func copies(from zone: Int64) throws -> [MovedCopy] {
    try isEmpty ? [] : fetchAll("WHERE zone = ? ORDER BY id", [zone])
  }

  /// Whether rows of a zone have copies that are not used yet.
  package func hasHeld(from zone: Int64) throws -> Bool {
    if try isEmpty { return false }
    let statement = try db.cachedStatement(sql: "SELECT 1 FROM zdc_moved WHERE zone = ? AND isHeld = 1 LIMIT 1")
    return try Int.fetchOne(statement, arguments: [zone]) != nil
  }

  /// Returns the zones with nodes that have copies elsewhere, or with copies of another zone's nodes.
  package func zones(with zone: Int64) throws -> Set<Int64> {
    if try isEmpty { return [] }
    let statement = try db.cachedStatement(
      sql: "SELECT DISTINCT zone FROM zdc_moved WHERE zone = ?1 OR copyZone = ?1")
    return Set(try Int64.fetchAll(statement, arguments: [zone]))
  }

  /// Whether the node of the new zone is the copy of a node whose row is in the old zone.
  package func isHeldCopy(zone: Int64, _ node: NodeID) throws -> Bool {
    if try isEmpty { return false }
    let statement = try db.cachedStatement(
      sql: "SELECT 1 FROM zdc_moved WHERE copyZone = ? AND copyID = ? AND isHeld = 1 AND node IS NOT NULL")
    return try Int.fetchOne(statement, arguments: [zone, node.data]) != nil
  }

  /// Whether the branch of the verified log has a node whose newest version is not in its new zone yet.
  package func isIncomplete(atOrBelow node: NodeID, zone: Int64) throws -> Bool {
    if try isEmpty { return false }
    let statement = try db.cachedStatement(
      sql: """
        \(LogNodeStore.below) SELECT EXISTS (
          SELECT 1 FROM below b
          CROSS JOIN zdc_moved m ON m.zone = ?2 AND m.nodeID = b.node
          CROSS JOIN zdc_leaf l ON l.zone = ?2 AND l.node = b.node
          LEFT JOIN zdc_node n ON n.id = m.node
          WHERE m.isHeld = 1 OR m.record <> l.record OR (n.id IS NOT NULL AND n.recordVersion = 0)
          OR EXISTS (SELECT 1 FROM zdc_operation o WHERE o.node = n.id AND o.kind IN (1, 2, 3)))
        """)
    return try Bool.fetchOne(statement, arguments: [node.data, zone]) ?? false
  }

  /// Whether the verified log has a node with a copy there.
  package func hasCopies(atOrBelow node: NodeID, zone: Int64) throws -> Bool {
    if try isEmpty { return false }
    let statement = try db.cachedStatement(
      sql: """
        \(LogNodeStore.below) SELECT EXISTS (
          SELECT 1 FROM below b CROSS JOIN zdc_moved m ON m.zone = ?2 AND m.nodeID = b.node)
        """)
    return try Bool.fetchOne(statement, arguments: [node.data, zone]) ?? false
  }

  package func insert(_ copy: MovedCopy) throws {
    let statement = try db.cachedStatement(
      sql: """
        INSERT OR REPLACE INTO zdc_moved (zone, nodeID, record, node, copyZone, copyID, isHeld, sealed)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)
        """)
    let sealed = Data(try sealer.seal(copy.other.bytes, row: copy.node.bytes))
    try statement.execute(arguments: [
      copy.zone, copy.node.data, copy.record.data, copy.row, copy.copyZone, copy.copyID.data, copy.isHeld, sealed,
    ])
    isKnownEmpty = false
  }

  package func remove(_ copy: MovedCopy) throws {
    try db.cachedStatement(sql: "DELETE FROM zdc_moved WHERE zone = ? AND nodeID = ?")
      .execute(arguments: [copy.zone, copy.node.data])
    isKnownEmpty = nil
  }

  private func fetchAll(_ condition: String, _ arguments: StatementArguments) throws -> [MovedCopy] {
    var copies: [MovedCopy] = []
    let query = "SELECT id, zone, nodeID, record, node, copyZone, copyID, isHeld, sealed FROM zdc_moved \(condition)"
    try db.forEachRow(query, arguments) { copies.append(try decode($0)) }
    return copies
  }

  private func decode(_ row: RawRow) throws -> MovedCopy {
    let (zone, copyZone): (Int64, Int64) = (row[1], row[5])
    let (node, copyID) = (try NodeID(row, 2), try NodeID(row, 6))
    let isHeld = row[7] as Int64 != 0
    let other = try NodeIdentity(
      try sealer.open(try row.requiredBytes(8), row: node.bytes), zone: isHeld ? copyZone : zone,
      nodeID: isHeld ? copyID : node)
    var copy = MovedCopy(
      zone: zone, node: node, record: try RecordHash(row, 3), row: row[4], copyZone: copyZone, copyID: copyID,
      isHeld: isHeld, other: other)
    copy.id = row[0]
    return copy
  }
}

extension ZDCReadTransaction {
  /// Returns the zone to which a node is about to move with the branch that it is in; nil if it stays in its zone.
  package func destination(of node: NodeRow) throws -> Int64? {
    if try moves.isEmpty { return nil }
    var next = node
    while let parent = try next.parent.flatMap({ try nodes.node(id: $0) }) {
      if parent.zone != node.zone { return parent.zone }
      next = parent
    }
    return nil
  }

  package var moves: MoveStore { cached { MoveStore(db: database, sealer: context.sealer) } }
}
