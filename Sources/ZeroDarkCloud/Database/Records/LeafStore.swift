internal import Foundation
internal import GRDB
internal import ZDCProtocol

/// The client's table of what a zone's verified log says; replay reads and changes it inside one transaction.
///
/// It notes what replay did, so that the caller knows which nodes to announce.
struct LeafStore: ZoneState {
  let db: Database
  let zone: Int64
  /// 1 for commits of others: their records have to be fetched. 0 for own ones: the rows already say what they say.
  let pending: Int64
  /// Top-most nodes that were removed, with everything that was below them.
  private(set) var removed: [Removal] = []
  /// Existing nodes that now hang on another parent: their leaves before the put.
  private(set) var moved: [NodeID: ZoneLeaf] = [:]

  struct Removal {
    var top: NodeID
    var all: [NodeID]
  }

  init(db: Database, zone: Int64, pending: Bool) {
    self.db = db
    self.zone = zone
    self.pending = pending ? 1 : 0
  }

  func leaf(_ node: NodeID) throws -> ZoneLeaf? {
    let statement = try db.cachedStatement(
      sql: """
        SELECT node, parent, record, putSeq, keyGen, parentKeyGen FROM zdc_leaf WHERE zone = ? AND node = ?
        """)
    return try Row.fetchOne(statement, arguments: [zone, node.data]).map(Self.decode)
  }

  func descendantCount(of node: NodeID) throws -> UInt64 {
    let statement = try db.cachedStatement(sql: "\(Self.below) SELECT COUNT(*) - 1 FROM below")
    return try Int64.fetchOne(statement, arguments: [node.data, zone]).map { UInt64(bitPattern: $0) } ?? 0
  }

  mutating func put(_ leaf: ZoneLeaf, replacing old: ZoneLeaf?) throws {
    let statement = try db.cachedStatement(
      sql: """
        INSERT INTO zdc_leaf (zone, node, parent, record, putSeq, keyGen, parentKeyGen, pending)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (zone, node) DO UPDATE SET parent = excluded.parent, record = excluded.record,
        putSeq = excluded.putSeq, keyGen = excluded.keyGen, parentKeyGen = excluded.parentKeyGen,
        pending = excluded.pending
        """)
    try statement.execute(arguments: [
      zone, leaf.node.data, leaf.parent.data, leaf.record.data, leaf.putSeq.stored, Int64(leaf.keyGen),
      Int64(leaf.parentKeyGen), pending,
    ])
    if let old, old.parent != leaf.parent, moved[leaf.node] == nil { moved[leaf.node] = old }
  }

  mutating func removeSubtree(_ node: NodeID) throws {
    let select = try db.cachedStatement(sql: "\(Self.below) SELECT node FROM below")
    var all: [NodeID] = []
    let cursor = try Row.fetchCursor(select, arguments: [node.data, zone])
    while let row = try cursor.next() { all.append(try NodeID(row, 0)) }
    let delete = try db.cachedStatement(sql: "DELETE FROM zdc_leaf WHERE zone = ? AND node = ?")
    for id in all { try delete.execute(arguments: [zone, id.data]) }
    removed.append(Removal(top: node, all: all))
  }

  func setApplied(_ node: NodeID) throws {
    let statement = try db.cachedStatement(sql: "UPDATE zdc_leaf SET pending = 0 WHERE zone = ? AND node = ?")
    try statement.execute(arguments: [zone, node.data])
  }

  func pendingCount() throws -> Int {
    let statement = try db.cachedStatement(sql: "SELECT COUNT(*) FROM zdc_leaf WHERE zone = ? AND pending = 1")
    return try Int.fetchOne(statement, arguments: [zone]) ?? 0
  }

  /// Parents from the node's own up to the zone's root.
  func ancestors(of node: NodeID) throws -> [NodeID] {
    let statement = try db.cachedStatement(
      sql: """
        WITH RECURSIVE above(parent) AS (
          SELECT parent FROM zdc_leaf WHERE node = ? AND zone = ?
          UNION ALL SELECT l.parent FROM zdc_leaf l JOIN above ON l.node = above.parent WHERE l.zone = ?
        ) SELECT parent FROM above
        """)
    var found: [NodeID] = []
    let cursor = try Row.fetchCursor(statement, arguments: [node.data, zone, zone])
    while let row = try cursor.next() { found.append(try NodeID(row, 0)) }
    return found.filter { $0 != .zero }
  }

  private static let below = """
    WITH RECURSIVE below(node, zone) AS (
      SELECT ?, ? UNION ALL
      SELECT l.node, l.zone FROM zdc_leaf l JOIN below ON l.zone = below.zone AND l.parent = below.node
    )
    """

  private static func decode(_ row: Row) throws -> ZoneLeaf {
    ZoneLeaf(
      node: try NodeID(row, 0), parent: try NodeID(row, 1), record: try RecordHash(row, 2),
      putSeq: row.unsigned(3) ?? 0, keyGen: UInt32(row[4] as Int64), parentKeyGen: UInt32(row[5] as Int64))
  }
}
