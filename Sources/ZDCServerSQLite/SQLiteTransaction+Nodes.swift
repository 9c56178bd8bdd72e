internal import GRDB
internal import ZDCProtocol
internal import ZDCServer

// Nodes. Every statement here runs once or more per put: no joins beyond a key, nothing fetched that is not needed.
extension SQLiteTransaction {
  /// Zones of one tree share its nodes' keys; the tree of a zone never changes.
  private func tree(of zone: ZoneKey) throws -> Int64 {
    if let known = treeOfZone, known.zone == zone { return known.tree }
    guard let tree = try db.first("SELECT tree FROM zones WHERE id = ?", .int(zone.rawValue), row: { $0.int(0) }) else {
      throw StoreError.damaged
    }
    treeOfZone = (zone, tree)
    return tree
  }

  func key(of tree: TreeID) throws -> Int64? {
    if let known = keyOfTree, known.tree == tree { return known.key }
    guard let key = try db.first("SELECT id FROM trees WHERE tree_id = ?", .id(tree), row: { $0.int(0) }) else {
      return nil
    }
    keyOfTree = (tree, key)
    return key
  }

  func node(_ id: NodeID, in zone: ZoneKey) throws -> NodeRow? {
    try db.first(
      """
      SELECT n.parent, r.hash, n.put_seq, n.key_gen, n.parent_key_gen, n.tag, n.record, n.blob
      FROM nodes n JOIN records r ON r.id = n.record WHERE n.tree = ? AND n.node = ? AND n.zone = ?
      """, .int(try tree(of: zone)), .id(id), .int(zone.rawValue)
    ) { row in
      let leaf = ZoneLeaf(
        node: id, parent: try row.id(0), record: try row.id(1), putSeq: row.unsigned(2),
        keyGen: UInt32(clamping: row.int(3)), parentKeyGen: UInt32(clamping: row.int(4)))
      return NodeRow(leaf: leaf, tag: try row.isNull(5) ? nil : row.id(5), record: row.int(6), blob: row.optionalInt(7))
    }
  }

  func putNode(_ node: NodeRow, in zone: ZoneKey) throws -> Bool {
    let leaf = node.leaf
    do {
      try db.run(
        """
        INSERT INTO nodes(tree, node, zone, parent, tag, record, blob, put_seq, key_gen, parent_key_gen)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT(tree, node) DO UPDATE SET zone = excluded.zone, parent = excluded.parent, tag = excluded.tag,
          record = excluded.record, blob = excluded.blob, put_seq = excluded.put_seq, key_gen = excluded.key_gen,
          parent_key_gen = excluded.parent_key_gen
        """, .int(try tree(of: zone)), .id(leaf.node), .int(zone.rawValue), .id(leaf.parent),
        node.tag.map { .id($0) } ?? .null, .int(node.record), .optional(node.blob), .ms(leaf.putSeq),
        .int(Int64(leaf.keyGen)), .int(Int64(leaf.parentKeyGen)))
      return true
    } catch StoreError.constraint { return false }
  }

  func setTag(_ tag: NameTag, of node: NodeID, in zone: ZoneKey) throws -> Bool {
    do {
      try db.run(
        "UPDATE nodes SET tag = ? WHERE tree = ? AND node = ?", .id(tag), .int(try tree(of: zone)), .id(node))
      return true
    } catch StoreError.constraint { return false }
  }

  private static let subtree = """
    WITH RECURSIVE below(node) AS (
      VALUES (?2) UNION ALL SELECT n.node FROM nodes n JOIN below b ON n.tree = ?1 AND n.parent = b.node)
    """

  func branch(below node: NodeID, in zone: ZoneKey, levels: Int, nodes: Int) throws -> (levels: Int, nodes: Int) {
    let tree = try tree(of: zone)
    var found = (levels: 0, nodes: 0)
    var level = [node]
    while found.levels <= levels, found.nodes <= nodes {
      level = try children(of: level, tree: tree, upTo: nodes - found.nodes + 1)
      guard !level.isEmpty else { break }
      found.levels += 1
      found.nodes += level.count
    }
    return found
  }

  /// NB: a recursive query reads all children of a node before it hands the first one out, whatever its LIMIT.
  private func children(of parents: [NodeID], tree: Int64, upTo limit: Int) throws -> [NodeID] {
    var all: [NodeID] = []
    for parent in parents where all.count < limit {
      all += try db.all(
        "SELECT node FROM nodes WHERE tree = ? AND parent = ? LIMIT ?", .int(tree), .id(parent),
        .int(Int64(limit - all.count))
      ) { try $0.id(0) }
    }
    return all
  }

  func removeSubtree(_ node: NodeID, in zone: ZoneKey, now: UInt64) throws -> Int {
    let tree = try tree(of: zone)
    let doomed = try db.all(
      """
      \(Self.subtree) SELECT n.node, n.record, n.blob FROM below b JOIN nodes n ON n.tree = ?1 AND n.node = b.node
      """, .int(tree), .id(node)
    ) { (node: $0.bytes(0), record: $0.int(1), blob: $0.optionalInt(2)) }
    for row in doomed {
      try markReplaced(record: row.record, now: now)
      if let blob = row.blob { try markReplaced(blob: blob, now: now) }
      try db.run("DELETE FROM nodes WHERE tree = ? AND node = ?", .int(tree), .bytes(row.node))
    }
    return doomed.count
  }
}

// Records
extension SQLiteTransaction {
  func insertRecord(_ record: StoredRecord, hash: RecordHash, in zone: ZoneKey) throws -> Int64 {
    try db.run(
      "INSERT INTO records(zone, hash, received_ms, data_received_ms, bytes) VALUES (?, ?, ?, ?, ?)",
      .int(zone.rawValue), .id(hash), .ms(record.recordReceivedMs), .ms(record.dataReceivedMs), .bytes(record.bytes))
    return db.lastInsertedRowID
  }

  func markReplaced(record: Int64, now: UInt64) throws {
    try db.run("UPDATE records SET replaced_ms = ? WHERE id = ?", .ms(now), .int(record))
  }

  func record(_ key: Int64) throws -> StoredRecord? {
    try db.first("SELECT bytes, received_ms, data_received_ms FROM records WHERE id = ?", .int(key), row: storedRecord)
  }

  func record(hash: RecordHash, in zone: ZoneKey) throws -> StoredRecord? {
    try db.first(
      """
      SELECT bytes, received_ms, data_received_ms FROM records
      WHERE substr(hash, 1, 8) = ? AND hash = ? AND zone = ?
      """, .slice(hash.bytes[..<8]), .id(hash), .int(zone.rawValue), row: storedRecord)
  }

  func liveRecords(_ keys: ClosedRange<Int64>, _ body: (StoredRecord) throws -> Bool) throws {
    let sql = """
      SELECT bytes, received_ms, data_received_ms FROM records
      WHERE id BETWEEN ? AND ? AND replaced_ms IS NULL ORDER BY id
      """
    try db.each(sql, [.int(keys.lowerBound), .int(keys.upperBound)]) { try body(storedRecord($0)) }
  }

  private func storedRecord(_ row: SQLRow) -> StoredRecord {
    StoredRecord(bytes: row.bytes(0), recordReceivedMs: row.unsigned(1), dataReceivedMs: row.unsigned(2))
  }
}
