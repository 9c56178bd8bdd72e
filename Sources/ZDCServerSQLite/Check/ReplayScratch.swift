internal import GRDB
internal import ZDCProtocol

/// The intermediate state of a check: the live nodes of one zone while its log is replayed, and the usage of all trees. It is
/// in a dedicated, unnamed database that exists as long as the check. Memory holds a fixed number of its pages, however
/// many nodes and trees there are.
struct ReplayScratch {
  private static let cacheKibibytes = 16 << 10
  private let db: Database

  /// Opens the database for the duration of `body`.
  static func with<T>(_ body: (ReplayScratch) throws -> T) throws -> T {
    var configuration = GRDB.Configuration()
    configuration.label = "zdc.server.check.scratch"
    configuration.prepareDatabase { db in
      try db.execute(sql: "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -\(cacheKibibytes)")
    }
    // Without a name, SQLite creates a hidden file that is deleted when it is closed.
    let queue = try DatabaseQueue(path: "", configuration: configuration)
    return try queue.inDatabase { db in
      try db.execute(
        sql: """
          CREATE TABLE leaf(
            node BLOB PRIMARY KEY, parent BLOB NOT NULL, record BLOB NOT NULL, put_seq INTEGER NOT NULL,
            key_gen INTEGER NOT NULL, parent_key_gen INTEGER NOT NULL) WITHOUT ROWID;
          CREATE INDEX leaf_by_parent ON leaf(parent);
          CREATE TABLE usage(
            tree INTEGER PRIMARY KEY, content_bytes INTEGER NOT NULL, contents INTEGER NOT NULL, nodes INTEGER NOT NULL,
            records INTEGER NOT NULL, record_bytes INTEGER NOT NULL);
          """)
      return try body(ReplayScratch(db: db))
    }
  }

  /// Adds the five sums of a table's rows to those of a tree.
  func addUsage(of tree: Int64, _ sums: [Int64]) throws {
    let sql = """
      INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT(tree) DO UPDATE SET
        content_bytes = content_bytes + excluded.content_bytes, contents = contents + excluded.contents,
        nodes = nodes + excluded.nodes, records = records + excluded.records,
        record_bytes = record_bytes + excluded.record_bytes
      """
    try db.prepared(sql).run([SQLValue.int(tree)] + sums.map(SQLValue.int))
  }

  func usage(of tree: Int64) throws -> [Int64] {
    let sql = "SELECT content_bytes, contents, nodes, records, record_bytes FROM usage WHERE tree = ?"
    return try db.first(sql, .int(tree)) { row in (0..<5).map { row.int($0) } } ?? [0, 0, 0, 0, 0]
  }

  func removeAll() throws { try db.run("DELETE FROM leaf") }

  /// Calls `body` with the nodes in the order of their ids.
  func each(_ body: (LogNode) throws -> Void) throws {
    try db.each("SELECT parent, record, put_seq, key_gen, parent_key_gen, node FROM leaf ORDER BY node", []) { row in
      try body(Self.leaf(try row.id(5), row))
      return true
    }
  }

  func leaf(_ node: NodeID) throws -> LogNode? {
    try db.first("SELECT parent, record, put_seq, key_gen, parent_key_gen FROM leaf WHERE node = ?", .id(node)) { row in
      try Self.leaf(node, row)
    }
  }

  private static func leaf(_ node: NodeID, _ row: SQLRow) throws -> LogNode {
    LogNode(
      node: node, parent: try row.id(0), record: try row.id(1), putSeq: row.unsigned(2),
      keyGen: UInt32(clamping: row.int(3)), parentKeyGen: UInt32(clamping: row.int(4)))
  }

  private static let subtree = """
    WITH RECURSIVE below(node, level) AS (
      VALUES (?1, 0) UNION ALL SELECT n.node, b.level + 1 FROM leaf n JOIN below b ON n.parent = b.node)
    """

  func descendantCount(of node: NodeID, upTo limit: UInt64) throws -> UInt64 {
    let rows = limit < UInt64(Int64.max - 1) ? Int64(limit) + 2 : -1
    let sql = "\(Self.subtree) SELECT count(*) - 1 FROM (SELECT node FROM below LIMIT ?2)"
    return try db.first(sql, .id(node), .int(rows)) { $0.unsigned(0) } ?? 0
  }

  func height(of node: NodeID, upTo _: Int) throws -> Int {
    Int(try db.first("\(Self.subtree) SELECT max(level) FROM below", .id(node)) { $0.int(0) } ?? 0)
  }

  func put(_ leaf: LogNode, replacing old: LogNode?) throws {
    try db.run(
      "INSERT OR REPLACE INTO leaf VALUES (?, ?, ?, ?, ?, ?)", .id(leaf.node), .id(leaf.parent), .id(leaf.record),
      .ms(leaf.putSeq), .int(Int64(leaf.keyGen)), .int(Int64(leaf.parentKeyGen)))
  }

  func branch(_ node: NodeID, upTo limit: UInt64) throws -> [LogNode] {
    try db.all(
      """
      \(Self.subtree)
      SELECT l.parent, l.record, l.put_seq, l.key_gen, l.parent_key_gen, l.node FROM below b JOIN leaf l ON l.node = b.node
      LIMIT ?2
      """, .id(node), .int(Int64(clamping: limit) + 1)
    ) { row in try Self.leaf(try row.id(5), row) }
  }

  func removeSubtree(_ node: NodeID) throws {
    try db.run("\(Self.subtree) DELETE FROM leaf WHERE node IN (SELECT node FROM below)", .id(node))
  }
}
