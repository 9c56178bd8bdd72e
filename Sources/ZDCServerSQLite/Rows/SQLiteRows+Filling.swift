internal import GRDB
internal import ZDCProtocol
internal import ZDCServer

extension SQLiteRows: StoredRowWriter {
  /// A table that exists while the database is being filled.
  static let mark = "filling"

  static func isBeingFilled(_ db: Database) throws -> Bool {
    try db.first("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = '\(mark)'") { _ in true } ?? false
  }

  func beginFilling(from source: [UInt8]) throws {
    if try Self.isBeingFilled(store.db) {
      let known = try store.db.first("SELECT source FROM \(Self.mark)") { $0.bytes(0) }
      guard known == source else { throw StoreNotEmpty() }
      return
    }
    for table in [StoredTable.users, .invites, .zones, .blobs] {
      guard try lastKey(of: table) == nil else { throw StoreNotEmpty() }
    }
    try store.db.run("CREATE TABLE \(Self.mark)(source BLOB NOT NULL)")
    try store.db.run("INSERT INTO \(Self.mark) VALUES (?)", .bytes(source))
  }

  func insert(_ rows: [StoredRow], into table: StoredTable) throws -> [StoredDamage] {
    if table == .nodes { return try NodeFiller(store).insert(rows) }
    let computed = Self.computed(table)
    let columns = table.columns.map(\.name) + computed.map(\.column)
    let values = table.columns.map { $0.name == "app" ? "CAST(? AS TEXT)" : "?" } + computed.map(\.value)
    let insert = try store.db.prepared(
      """
      INSERT INTO \(table.rawValue)(\(columns.joined(separator: ", "))) VALUES (\(values.joined(separator: ", ")))
      """)
    var damage: [StoredDamage] = []
    for row in rows {
      do { try insert.run(row.values.map(SQLValue.init)) } catch StoreError.constraint {
        damage.append(StoredDamage(table, "a row contradicts another one"))
      }
    }
    return damage
  }

  /// Columns that no row has, and how their values are computed.
  private static func computed(_ table: StoredTable) -> [(column: String, value: String)] {
    switch table {
    case .invites: [("user", "0")]
    case .zones: [("feed_position", "0")]
    // In the order of the zones. Positions of the source are not known here, so that only the order within a zone counts.
    case .commits: [("feed_position", "(SELECT coalesce(max(feed_position), 0) + 1 FROM commits)")]
    case .memberships:
      [
        ("changed", "(SELECT coalesce(max(changed), 0) + 1 FROM memberships m WHERE m.user = ?1)"),
        ("mark", "abs(random() / 2)"),
      ]
    default: []
    }
  }

  func finishFilling(lastEnvelope: Int64) throws {
    try NodeFiller(store).insertNames()
    let db = store.db
    for statement in Self.lastStatements { try db.run(statement) }
    try db.run("DELETE FROM era")
    try db.run("INSERT INTO era(id, mark) VALUES (1, ?)", .ms(MembershipMark.randomMark()))
    try db.run("DELETE FROM sqlite_sequence WHERE name = 'envelopes'")
    try db.run("INSERT INTO sqlite_sequence(name, seq) VALUES ('envelopes', ?)", .int(lastEnvelope))
    try db.run("DROP TABLE \(Self.mark)")
  }

  private static let lastStatements = [
    """
    UPDATE zones SET feed_position = coalesce(
      (SELECT c.feed_position FROM commits c WHERE c.zone = zones.id AND c.seq = zones.seq), 0)
    """,
    """
    UPDATE users SET upload_bytes = coalesce((SELECT sum(length) FROM blobs WHERE state < 2 AND owner = users.id), 0)
    """,
    // As for the nodes that a commit created itself: many others between them would have to be read with them.
    """
    CREATE TEMP TABLE created AS SELECT commit_key, min(id) AS first, max(id) AS last FROM nodes
      GROUP BY commit_key HAVING max(id) - min(id) < 2 * count(*)
    """,
    "CREATE UNIQUE INDEX temp.created_by_commit ON created(commit_key)",
    """
    UPDATE commits SET first_node = (SELECT first FROM created WHERE commit_key = feed_position),
      last_node = (SELECT last FROM created WHERE commit_key = feed_position)
      WHERE feed_position IN (SELECT commit_key FROM created)
    """,
    "DROP TABLE temp.created",
  ]
}

/// Inserts live nodes, each of which must be as the commit that it names put it.
private struct NodeFiller {
  private let store: SQLiteTransaction
  private let insertNode: SQLStatement
  private let insertID: SQLStatement
  private let insertContent: SQLStatement
  private let commitKey: SQLStatement

  init(_ store: SQLiteTransaction) throws {
    self.store = store
    let db = store.db
    insertNode = try db.prepared(
      "INSERT INTO nodes(id, commit_key, put, data_received_ms, blob, record) VALUES (?, ?, ?, ?, ?, ?)")
    insertID = try db.prepared("INSERT INTO node_ids(tree, node, key) VALUES (?, ?, ?)")
    insertContent = try db.prepared("INSERT INTO contents(node, bytes) VALUES (?, ?)")
    commitKey = try db.prepared("SELECT feed_position FROM commits WHERE zone = ? AND seq = ?")
  }

  func insert(_ rows: [StoredRow]) throws -> [StoredDamage] {
    try rows.compactMap { row in
      guard let node = Node(row) else { return StoredDamage(.nodes, "a row does not have its form") }
      do { return try insert(node).map { StoredDamage(.nodes, node: node.put.node, $0) } } catch StoreError.constraint {
        return StoredDamage(.nodes, node: node.put.node, "the row contradicts another one")
      } catch is ZDCSecurityError {
        return StoredDamage(.nodes, node: node.put.node, "the record cannot be read")
      }
    }
  }

  /// - Returns: why the node was left out.
  private func insert(_ node: Node) throws -> String? {
    guard let key = try commitKey.first(.int(node.zone), .int(node.seq), row: { $0.int(0) }) else {
      return "the commit of the node is missing"
    }
    let commit = try store.puts(ofCommit: key)
    guard 0..<commit.count ~= node.index, try commit.put(node.index) == node.put else {
      return "the node is not as its commit put it"
    }
    let record = CompactRecord(node.record, context: try commit.context(node.index))
    guard node.tag == (node.put.parent == .zero ? nil : try record.nameTag()) else {
      return "the name is not that of the record"
    }
    guard commit.receivedMs == node.receivedMs else { return "the time is not that of the commit" }
    if node.blob == 0 {
      guard let content = node.content, try record.content()?.blobID == node.contentID else {
        return "the content is not that of the record"
      }
      try insertContent.run(.int(node.key), .bytes(content))
    }
    try insertNode.run(
      .int(node.key), .int(key), .int(Int64(node.index)),
      node.dataReceivedMs == commit.receivedMs ? .null : .ms(node.dataReceivedMs), .optional(node.blob),
      .bytes(record.bytes))
    try insertID.run(.int(node.tree), .id(node.put.node), .int(node.key))
    return nil
  }

  /// A node may have come before its parent, so that names are inserted when all nodes are there.
  func insertNames() throws {
    let insert = try store.db.prepared(
      "INSERT INTO node_names(parent, tag, key) SELECT key, ?, ? FROM node_ids WHERE tree = ? AND node = ?")
    try store.eachLiveNode { node in
      let parent = try node.put().parent
      guard parent != .zero else { return true }
      // Two nodes of one name: the check finds the one without.
      do {
        try insert.run(
          .id(try node.record.nameTag()), .int(node.key), .int(try store.tree(of: node.commit.zone)), .id(parent))
      } catch StoreError.constraint {}
      return true
    }
  }

  private struct Node {
    var key, tree, zone, seq: Int64
    var index: Int
    var put: ZoneOperation.Put
    var tag: NameTag?
    var receivedMs, dataReceivedMs: UInt64
    var record: [UInt8]
    var blob: Int64?
    var contentID: BlobID?
    var content: [UInt8]?

    init?(_ row: StoredRow) {
      let values = row.values
      guard values.count == 17 else { return nil }
      let numbers = [0, 1, 5, 6, 7, 8, 9, 11, 12].compactMap { values[$0].int }
      guard numbers.count == 9, let node = values[2].bytes.flatMap({ NodeID($0) }),
        let parent = values[3].bytes.flatMap({ NodeID($0) }), let hash = values[10].bytes.flatMap({ RecordHash($0) }),
        let record = values[13].bytes
      else { return nil }
      (key, tree, zone, seq, index) = (numbers[0], numbers[1], numbers[2], numbers[3], Int(numbers[4]))
      put = ZoneOperation.Put(
        node: node, parent: parent, record: hash, keyGen: UInt32(clamping: numbers[5]),
        parentKeyGen: UInt32(clamping: numbers[6]))
      (receivedMs, dataReceivedMs) = (UInt64(clamping: numbers[7]), UInt64(clamping: numbers[8]))
      tag = values[4].bytes.flatMap { NameTag($0) }
      self.record = record
      (blob, contentID, content) = (values[14].int, values[15].bytes.flatMap { BlobID($0) }, values[16].bytes)
    }
  }
}
