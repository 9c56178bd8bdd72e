internal import GRDB
internal import ZDCProtocol
internal import ZDCServer

/// The step of the schema that leaves out of a live node's record what its commit says, and keeps small content with
/// its node.
///
/// Each record is compared with the hash that the commit names, and with the one rebuilt from its compact form; one
/// that differs is stored whole.
enum CompactNodes {
  static func migrate(_ db: Database) throws {
    try db.execute(sql: tables)
    try moveNodes(db)
    try db.execute(sql: rest)
    let (ids, names) = try counts(db)
    guard ids, names else { throw StoreError.damaged }
    try db.execute(sql: "DROP TABLE old_nodes; DROP TABLE old_records")
  }

  private static let tables = """
    ALTER TABLE nodes RENAME TO old_nodes;
    ALTER TABLE records RENAME TO old_records;
    DROP INDEX records_by_hash;
    DROP INDEX replaced_records;

    -- The live nodes in the order of their first puts, each with its compact record: `put` is the number of its put in
    -- its commit. Content: 0 is in `contents`, another number is that of a file in `blobs`.
    CREATE TABLE nodes(
      id INTEGER PRIMARY KEY, commit_key INTEGER NOT NULL, put INTEGER NOT NULL, data_received_ms INTEGER, blob INTEGER,
      record BLOB NOT NULL);
    CREATE TABLE node_ids(
      tree INTEGER NOT NULL, node BLOB NOT NULL, key INTEGER NOT NULL, PRIMARY KEY(tree, node)) WITHOUT ROWID;
    CREATE TABLE node_names(
      parent INTEGER NOT NULL, tag BLOB NOT NULL, key INTEGER NOT NULL, PRIMARY KEY(parent, tag)) WITHOUT ROWID;
    CREATE TABLE contents(node INTEGER PRIMARY KEY, bytes BLOB NOT NULL);

    -- Replaced and deleted records, whole.
    CREATE TABLE records(
      id INTEGER PRIMARY KEY, zone INTEGER NOT NULL, node BLOB NOT NULL, hash BLOB NOT NULL, received_ms INTEGER NOT NULL,
      data_received_ms INTEGER NOT NULL, replaced_ms INTEGER NOT NULL, bytes BLOB NOT NULL);
    -- The counts do not change.
    DROP TRIGGER content_deleted;
    """

  private static let rest = """
    DELETE FROM blobs WHERE content IS NOT NULL AND replaced_ms IS NULL
      AND id IN (SELECT o.blob FROM old_nodes o JOIN contents c ON c.node = o.id);
    CREATE TRIGGER content_deleted AFTER DELETE ON blobs WHEN OLD.state = 2 BEGIN
      UPDATE zones SET content_bytes = content_bytes - OLD.length, contents = contents - 1 WHERE id = OLD.zone; END;
    INSERT INTO node_ids SELECT tree, node, id FROM old_nodes ORDER BY tree, node;
    INSERT INTO node_names
      SELECT p.id, n.tag, n.id FROM old_nodes n JOIN old_nodes p ON p.tree = n.tree AND p.node = n.parent
      WHERE n.tag IS NOT NULL ORDER BY p.id, n.tag;
    -- A record that is neither live nor replaced is kept as if it were replaced now.
    INSERT INTO records(id, zone, node, hash, received_ms, data_received_ms, replaced_ms, bytes)
      SELECT r.id, r.zone, substr(r.bytes, 41, 16), r.hash, r.received_ms, r.data_received_ms,
        coalesce(r.replaced_ms, CAST(strftime('%s', 'now') AS INTEGER) * 1000), r.bytes
      FROM old_records r WHERE r.id NOT IN (SELECT record FROM old_nodes) ORDER BY r.id;
    CREATE INDEX records_by_hash ON records(substr(hash, 1, 8));
    CREATE INDEX replaced_records ON records(replaced_ms);

    -- The keys of the nodes that a commit created; many others between them would have to be read with them.
    ALTER TABLE commits RENAME COLUMN first_record TO first_node;
    ALTER TABLE commits RENAME COLUMN last_record TO last_node;
    CREATE TEMP TABLE created AS SELECT commit_key, min(id) AS first, max(id) AS last FROM nodes
      GROUP BY commit_key HAVING max(id) - min(id) < 2 * count(*);
    CREATE UNIQUE INDEX temp.created_by_commit ON created(commit_key);
    UPDATE commits SET first_node = (SELECT first FROM created WHERE commit_key = feed_position),
      last_node = (SELECT last FROM created WHERE commit_key = feed_position);
    DROP TABLE created;
    """

  private static func moveNodes(_ db: Database) throws {
    let store = SQLiteTransaction(db)
    let insertNode = try db.prepared(
      "INSERT INTO nodes(id, commit_key, put, data_received_ms, blob, record) VALUES (?, ?, ?, ?, ?, ?)")
    let insertContent = try db.prepared("INSERT INTO contents(node, bytes) VALUES (?, ?)")
    let sql = """
      SELECT n.id, n.node, n.blob, c.feed_position, r.id - c.first_record, r.hash, r.data_received_ms, r.bytes,
        b.blob_id, b.content
      FROM old_nodes n JOIN old_records r ON r.id = n.record JOIN commits c ON c.zone = n.zone AND c.seq = n.put_seq
      LEFT JOIN blobs b ON b.id = n.blob AND b.content IS NOT NULL ORDER BY n.id
      """
    try db.each(sql, []) { row in
      let commit = try store.puts(ofCommit: row.int(3))
      let node = try OldNode(row, commit: commit)
      let content = row.isNull(9) ? nil : row.bytes(9)
      let isOwn = try content != nil && (try? node.record.content())??.blobID == row.id(8)
      try insertNode.run(
        .int(node.key), .int(row.int(3)), .int(Int64(node.index)),
        row.unsigned(6) == commit.receivedMs ? .null : .ms(row.unsigned(6)),
        isOwn ? .int(0) : .optional(row.optionalInt(2)), .bytes(node.record.bytes))
      if isOwn, let content { try insertContent.run(.int(node.key), .bytes(content)) }
      return true
    }
  }

  private struct OldNode {
    let key: Int64
    let index: Int
    let record: CompactRecord

    init(_ row: SQLRow, commit: CommitPuts) throws {
      key = row.int(0)
      let id: NodeID = try row.id(1)
      let guess = Int(row.int(4))
      let isGuess = try 0..<commit.count ~= guess && commit.put(guess).node == id
      guard let index = isGuess ? guess : try (0..<commit.count).first(where: { try commit.put($0).node == id }) else {
        throw StoreError.damaged
      }
      self.index = index
      let bytes = row.bytes(7)
      let (context, hash): (RecordContext, RecordHash) = (try commit.context(index), try row.id(5))
      let isSound = RecordHash(labelledHash: "record", bytes) == hash && context.put.record == hash
      record = isSound ? CompactRecord(bytes, context: context) : CompactRecord(whole: bytes)
    }
  }

  /// Returns whether all nodes have arrived with their ids, and all names.
  private static func counts(_ db: Database) throws -> (ids: Bool, names: Bool) {
    let counts = try db.first(
      """
      SELECT (SELECT count(*) FROM old_nodes), (SELECT count(*) FROM nodes), (SELECT count(*) FROM node_ids),
        (SELECT count(*) FROM old_nodes WHERE tag IS NOT NULL), (SELECT count(*) FROM node_names)
      """
    ) { row in (row.int(0) == row.int(1) && row.int(0) == row.int(2), row.int(3) == row.int(4)) }
    return counts ?? (false, false)
  }
}
