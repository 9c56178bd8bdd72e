internal import Foundation
package import GRDB
package import ZDCProtocol

/// The client's table of what a zone's verified log says; replay reads and changes it inside one transaction.
///
/// It notes what replay did, so that the caller knows which nodes to announce.
package struct LogNodeStore: ZoneState {
  package let db: Database
  package let zone: Int64
  /// 1 for commits of others: their records have to be fetched. 0 for own ones: the rows already say what they say.
  package let pending: Int64
  /// The signer of the replayed commit; a record that it puts must name the same user.
  let author: (user: UserID, gen: UInt32)?
  /// Whether the signer puts records without content only (right `R`).
  private let isRecordsOnly: Bool
  /// Top-most nodes that were removed, with everything that was below them.
  package internal(set) var removed: [Removal] = []
  /// Existing nodes that now hang on another parent: their leaves before the put.
  package private(set) var moved: [NodeID: LogNode] = [:]
  /// An existing node got another key.
  package private(set) var raisesKeys = false
  /// The top of the branch that the commit split off, as it was before, and the branch's nodes.
  package internal(set) var departed: (top: LogNode, all: [NodeID])?
  /// The zone that takes over a branch that is split off; nil if this device does not follow it.
  package let branchZone: Int64?
  /// The branch that the commit splits off, if this device computed it at the same head.
  let knownSplit: ZoneSplit?
  /// The branch that the commit split off, as replay computed it.
  package var split: ZoneSplit?
  /// Notes the versions that the commit replaces and deletes; nil for looking up.
  private let former: FormerNotes?

  package struct Removal {
    package var top: NodeID
    package var all: [NodeID]

    package init(top: NodeID, all: [NodeID]) {
      self.top = top
      self.all = all
    }
  }

  /// For looking up.
  package init(db: Database, zone: Int64) {
    self.db = db
    self.zone = zone
    pending = 0
    author = nil
    isRecordsOnly = false
    branchZone = nil
    knownSplit = nil
    former = nil
  }

  /// For replaying a commit.
  ///
  /// - Parameters:
  ///   - list: The access list in force before the commit; nil for a genesis.
  ///   - branchZone: The zone that takes over a branch that the commit splits off.
  ///   - knownSplit: That branch, if it need not be read.
  package init(
    db: Database, zone: Int64, commit: ZoneCommit, after list: ZoneACL.Fields? = nil, pending: Bool,
    branchZone: Int64? = nil, knownSplit: ZoneSplit? = nil
  ) {
    self.db = db
    self.branchZone = branchZone
    self.knownSplit = knownSplit
    self.zone = zone
    self.pending = pending ? 1 : 0
    author = (commit.fields.writer, commit.fields.writerGen)
    isRecordsOnly = list?.entry(for: commit.fields.writer)?.permissions.contains(.recordsOnly) ?? false
    former = FormerNotes(db: db, zone: zone, commit: commit.fields)
  }

  package func leaf(_ node: NodeID) throws -> LogNode? {
    try db.firstRow(
      "SELECT node, parent, record, putSeq, keyGen, parentKeyGen FROM zdc_leaf WHERE zone = ? AND node = ?",
      [zone, node.data], Self.decode)
  }

  package func descendantCount(of node: NodeID, upTo limit: UInt64) throws -> UInt64 {
    let rows = limit < UInt64(Int64.max - 1) ? Int64(limit) + 2 : -1
    let statement = try db.cachedStatement(
      sql: "\(Self.below) SELECT COUNT(*) - 1 FROM (SELECT node FROM below LIMIT ?)")
    return try Int64.fetchOne(statement, arguments: [node.data, zone, rows]).map { UInt64(bitPattern: $0) } ?? 0
  }

  package func height(of node: NodeID, upTo limit: Int) throws -> Int {
    let statement = try db.cachedStatement(
      sql: """
        WITH RECURSIVE below(node, zone, level) AS (
          SELECT ?, ?, 0 UNION ALL SELECT l.node, l.zone, below.level + 1 FROM below
          JOIN zdc_leaf l INDEXED BY zdc_leaf_parent ON l.zone = below.zone AND l.parent = below.node
          WHERE below.level <= ?
        ) SELECT MAX(level) FROM below
        """)
    return try Int.fetchOne(statement, arguments: [node.data, zone, limit]) ?? 0
  }

  package mutating func put(_ leaf: LogNode, replacing old: LogNode?) throws {
    if old != nil { try former?.note(replaced: leaf.node) }
    let statement = try db.cachedStatement(
      sql: """
        INSERT INTO zdc_leaf
        (zone, node, parent, record, prev, putSeq, keyGen, parentKeyGen, writer, writerGen, pending, isRecordsOnly)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (zone, node) DO UPDATE SET parent = excluded.parent, record = excluded.record,
        prev = excluded.prev, putSeq = excluded.putSeq, keyGen = excluded.keyGen, parentKeyGen = excluded.parentKeyGen,
        writer = excluded.writer, writerGen = excluded.writerGen, pending = excluded.pending,
        isRecordsOnly = excluded.isRecordsOnly
        """)
    try statement.execute(arguments: [
      zone, leaf.node.data, leaf.parent.data, leaf.record.data, (old?.record ?? .zero).data, leaf.putSeq.stored,
      Int64(leaf.keyGen), Int64(leaf.parentKeyGen), author?.user.data, author.map { Int64($0.gen) }, pending,
      isRecordsOnly,
    ])
    if let old, old.keyGen != leaf.keyGen { raisesKeys = true }
    if let old, old.parent != leaf.parent, moved[leaf.node] == nil { moved[leaf.node] = old }
  }

  /// Returns who signed the newest put of a live node.
  package func writer(of leaf: LogNode) throws -> UserID? {
    try db.firstRow("SELECT writer FROM zdc_leaf WHERE zone = ? AND node = ?", [zone, leaf.node.data]) { row in
      try UserID(row, 0)
    }
  }

  /// Shows `body` the tree as it will be when these nodes have these parents. Nothing of it is kept, nor of what `body`
  /// writes.
  package func preview(_ parents: [NodeID: NodeID], _ body: () throws -> Void) throws {
    try db.inSavepoint {
      let statement = try db.cachedStatement(
        sql: "UPDATE zdc_leaf SET parent = ?1 WHERE zone = ?2 AND node = ?3 AND parent <> ?1")
      for (node, parent) in parents { try statement.execute(arguments: [parent.data, zone, node.data]) }
      try body()
      return .rollback
    }
  }

  package mutating func removeSubtree(_ node: NodeID) throws {
    try former?.note(deleted: node)
    let select = try db.cachedStatement(sql: "\(Self.below) SELECT node FROM below")
    var all: [NodeID] = []
    let cursor = try Row.fetchCursor(select, arguments: [node.data, zone])
    while let row = try cursor.next() { all.append(try NodeID(row, 0)) }
    let delete = try db.cachedStatement(sql: "DELETE FROM zdc_leaf WHERE zone = ? AND node = ?")
    for id in all { try delete.execute(arguments: [zone, id.data]) }
    removed.append(Removal(top: node, all: all))
  }

  package enum Progress: Int64 {
    case applied = 0
    case pending = 1
    case quarantined = 2
    /// Not shown: a pointer to a zone that has ended.
    case hidden = 3
  }

  package func set(_ progress: Progress, _ node: NodeID) throws {
    let statement = try db.cachedStatement(sql: "UPDATE zdc_leaf SET pending = ? WHERE zone = ? AND node = ?")
    try statement.execute(arguments: [progress.rawValue, zone, node.data])
  }

  /// Marks the live nodes of a branch that have no row here as pending.
  package func requeueLost(below top: NodeID) throws {
    let statement = try db.cachedStatement(
      sql: """
        \(Self.below) UPDATE zdc_leaf SET pending = 1 WHERE zone = ?2 AND pending = 0
        AND node IN (SELECT node FROM below)
        AND NOT EXISTS (SELECT 1 FROM zdc_node n WHERE n.zone = zdc_leaf.zone AND n.nodeID = zdc_leaf.node)
        """)
    try statement.execute(arguments: [top.data, zone])
  }

  /// The log's entry for a record that is still to be fetched.
  package struct Expected {
    package var leaf: LogNode
    /// The record that the put replaced.
    package var prev: RecordHash
    /// The signer of the put.
    package var writer: UserID
    package var writerGen: UInt32
    /// Whether the signer's rights before the put had `R`.
    package var isRecordsOnly = false

    /// Whether the owner vouches for the record, because the node came with a split. Its put is not in this zone's log.
    package var isVouched: Bool { writerGen == 0 }
  }

  /// Returns nil once the record is applied.
  package func pendingLeaf(_ node: NodeID) throws -> Expected? {
    try db.firstRow(
      """
      SELECT node, parent, record, putSeq, keyGen, parentKeyGen, prev, writer, writerGen, isRecordsOnly
      FROM zdc_leaf WHERE zone = ? AND node = ? AND pending = 1
      """, [zone, node.data]
    ) { row in
      Expected(
        leaf: try Self.decode(row), prev: try RecordHash(row, 6), writer: try UserID(row, 7),
        writerGen: UInt32(row[8] as Int64), isRecordsOnly: (row[9] as Int64) == 1)
    }
  }

  // Indexes are named: without statistics SQLite takes the primary key, and reads the whole zone for each row.

  /// A leaf and its place in the tree.
  package struct Placed {
    package var node: NodeID
    package var parent: NodeID
    package var depth: UInt32
    package var putSeq: UInt64
    /// Its record is still to be fetched.
    package var isPending: Bool
  }

  /// Calls `body` for each leaf from the zone's root down, the shallow ones first.
  package func forEachByDepth(root: NodeID, _ body: (Placed) -> Void) throws {
    let statement = try db.makeStatement(
      sql: """
        WITH RECURSIVE tree(node, parent, putSeq, pending, depth) AS (
          SELECT node, parent, putSeq, pending, 0 FROM zdc_leaf WHERE zone = ? AND node = ?
          UNION ALL
          SELECT l.node, l.parent, l.putSeq, l.pending, tree.depth + 1
          FROM tree JOIN zdc_leaf l INDEXED BY zdc_leaf_parent ON l.zone = ? AND l.parent = tree.node
        ) SELECT node, parent, putSeq, pending, depth FROM tree
        """)
    let cursor = try RawRow.fetchCursor(statement, arguments: [zone, root.data, zone])
    while let row = try cursor.next() {
      body(
        Placed(
          node: try NodeID(row, 0), parent: try NodeID(row, 1), depth: UInt32(row[4] as Int64),
          putSeq: row.unsigned(2) ?? 0, isPending: (row[3] as Int64) == 1))
    }
  }

  /// The pending leaves, in no order; nil if there are more than `limit`.
  package func pendingLeaves(limit: Int) throws -> [(node: NodeID, putSeq: UInt64)]? {
    let statement = try db.cachedStatement(
      sql: "SELECT node, putSeq FROM zdc_leaf INDEXED BY zdc_leaf_pending WHERE zone = ? AND pending = 1 LIMIT ?")
    let rows = try Row.fetchAll(statement, arguments: [zone, limit + 1])
    guard rows.count <= limit else { return nil }
    return try rows.map { (try NodeID($0, 0), $0.unsigned(1) ?? 0) }
  }

  /// Whether the cloud has `node` at `top` or below it. Queued operations do not count.
  package func isNode(_ node: NodeID, atOrBelow top: NodeID) throws -> Bool {
    if node == top { return true }
    return try ancestors(of: node).contains(top)
  }

  /// The generations of a node's key on which live children hang.
  package func parentKeyGens(below node: NodeID) throws -> Set<UInt32> {
    let statement = try db.cachedStatement(
      sql: "SELECT DISTINCT parentKeyGen FROM zdc_leaf INDEXED BY zdc_leaf_parent WHERE zone = ? AND parent = ?")
    return Set(try Int64.fetchAll(statement, arguments: [zone, node.data]).map { UInt32(truncatingIfNeeded: $0) })
  }

  /// Marks a record that could not be read as pending, so that the next pull fetches it again.
  package func retry(_ node: NodeID) throws {
    let statement = try db.cachedStatement(
      sql: "UPDATE zdc_leaf SET pending = 1 WHERE zone = ? AND node = ? AND pending = 2")
    try statement.execute(arguments: [zone, node.data])
  }

  package func pendingCount() throws -> Int {
    let query = "SELECT COUNT(*) FROM zdc_leaf INDEXED BY zdc_leaf_pending WHERE zone = ? AND pending = 1"
    return try db.firstRow(query, [zone]) { $0[0] } ?? 0
  }

  /// Whether a record of the branch is still to be fetched.
  package func hasPending(atOrBelow node: NodeID) throws -> Bool {
    let statement = try db.cachedStatement(
      sql: """
        \(Self.below) SELECT EXISTS (
          SELECT 1 FROM below b CROSS JOIN zdc_leaf l ON l.zone = ?2 AND l.node = b.node AND l.pending = 1)
        """)
    return try Bool.fetchOne(statement, arguments: [node.data, zone]) ?? false
  }

  /// The nodes of the branch whose records are still to be fetched.
  package func pendingNodes(atOrBelow node: NodeID) throws -> [NodeID] {
    let statement = try db.cachedStatement(
      sql: """
        \(Self.below) SELECT b.node FROM below b
        CROSS JOIN zdc_leaf l ON l.zone = ?2 AND l.node = b.node AND l.pending = 1
        """)
    var found: [NodeID] = []
    let cursor = try Row.fetchCursor(statement, arguments: [node.data, zone])
    while let row = try cursor.next() { found.append(try NodeID(row, 0)) }
    return found
  }

  /// Up to `limit` live children.
  package func children(of node: NodeID, limit: Int = .max) throws -> [LogNode] {
    let statement = try db.cachedStatement(
      sql: """
        SELECT node, parent, record, putSeq, keyGen, parentKeyGen FROM zdc_leaf INDEXED BY zdc_leaf_parent
        WHERE zone = ? AND parent = ? LIMIT ?
        """)
    var found: [LogNode] = []
    let cursor = try RawRow.fetchCursor(statement, arguments: [zone, node.data, limit])
    while let row = try cursor.next() { found.append(try Self.decode(row)) }
    return found
  }

  /// Parents from the node's own up to the zone's root.
  package func ancestors(of node: NodeID) throws -> [NodeID] {
    let statement = try db.cachedStatement(
      sql: """
        WITH RECURSIVE above(parent) AS (
          SELECT parent FROM zdc_leaf WHERE node = ? AND zone = ?
          UNION ALL SELECT l.parent FROM zdc_leaf l JOIN above ON l.node = above.parent WHERE l.zone = ?
        ) SELECT parent FROM above LIMIT \(Limits.depthAfterMoves + 1)
        """)
    var found: [NodeID] = []
    let cursor = try Row.fetchCursor(statement, arguments: [node.data, zone, zone])
    while let row = try cursor.next() { found.append(try NodeID(row, 0)) }
    return found.filter { $0 != .zero }
  }

  /// Whether `node` will be `top` or below it when these nodes have these parents.
  ///
  /// - Parameter parents: the parents that the puts of a commit give their nodes.
  package func isNode(_ node: NodeID, atOrBelow top: NodeID, after parents: [NodeID: NodeID]) throws -> Bool {
    var next = node
    while next != .zero, next != top { next = try parents[next] ?? leaf(next)?.parent ?? .zero }
    return next == top
  }

  static let below = """
    WITH RECURSIVE below(node, zone) AS (
      SELECT ?1, ?2 UNION ALL
      SELECT l.node, l.zone FROM below
      JOIN zdc_leaf l INDEXED BY zdc_leaf_parent ON l.zone = below.zone AND l.parent = below.node
    )
    """

  static func decode(_ row: RawRow) throws -> LogNode {
    LogNode(
      node: try NodeID(row, 0), parent: try NodeID(row, 1), record: try RecordHash(row, 2),
      putSeq: row.unsigned(3) ?? 0, keyGen: UInt32(row[4] as Int64), parentKeyGen: UInt32(row[5] as Int64))
  }
}
