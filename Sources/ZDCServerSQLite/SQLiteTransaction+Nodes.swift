internal import GRDB
internal import ZDCProtocol
internal import ZDCServer

// Nodes. Statements here run once per node that a commit names: no joins beyond a key, no unneeded columns, and each is
// prepared once.
extension SQLiteTransaction {
  /// Returns the key of the zone's tree, which its nodes are stored under. A zone's tree never changes, so the last one
  /// is cached.
  func tree(of zone: ZoneKey) throws -> Int64 {
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

  private static let nodeQuery = """
    SELECT n.node, n.parent, r.hash, n.put_seq, n.key_gen, n.parent_key_gen, n.tag, n.record, n.blob
    FROM nodes n JOIN records r ON r.id = n.record
    """

  private func nodeRow(_ row: SQLRow) throws -> NodeRow {
    let leaf = LogNode(
      node: try row.id(0), parent: try row.id(1), record: try row.id(2), putSeq: row.unsigned(3),
      keyGen: UInt32(clamping: row.int(4)), parentKeyGen: UInt32(clamping: row.int(5)))
    return NodeRow(leaf: leaf, tag: try row.isNull(6) ? nil : row.id(6), record: row.int(7), blob: row.optionalInt(8))
  }

  func nodes(_ ids: [NodeID], in zone: ZoneKey) throws -> [NodeRow] {
    let tree = try tree(of: zone)
    let query = try db.prepared("\(Self.nodeQuery) WHERE n.tree = ? AND n.node = ? AND n.zone = ?")
    var asked: Set<NodeID> = []
    var found: [NodeRow] = []
    for id in ids {
      var next = id
      while asked.insert(next).inserted,
        let row = try query.first(.int(tree), .id(next), .int(zone.rawValue), row: nodeRow)
      {
        found.append(row)
        next = row.leaf.parent
      }
    }
    return found
  }

  /// NB: a recursive query would read all children of a node before it returns the first one, regardless of its LIMIT.
  func children(of parents: [NodeID], in zone: ZoneKey, limit: Int) throws -> [NodeRow] {
    let tree = try tree(of: zone)
    var all: [NodeRow] = []
    for parent in parents where all.count < limit {
      all += try db.all(
        "\(Self.nodeQuery) WHERE n.tree = ? AND n.parent = ? LIMIT ?", .int(tree), .id(parent),
        .int(Int64(limit - all.count)), row: nodeRow)
    }
    return all
  }

  func holders(of names: [NodeName], in zone: ZoneKey) throws -> [NodeName: NodeID] {
    let tree = try tree(of: zone)
    let query = try db.prepared("SELECT node FROM nodes WHERE tree = ? AND parent = ? AND tag = ?")
    var holders: [NodeName: NodeID] = [:]
    for name in names {
      holders[name] = try query.first(.int(tree), .id(name.parent), .id(name.tag)) { try $0.id(0) }
    }
    return holders
  }
}

// Records
extension SQLiteTransaction {
  func records(_ keys: [Int64]) throws -> [Int64: StoredRecord] {
    let query = try db.prepared("SELECT bytes, received_ms, data_received_ms FROM records WHERE id = ?")
    var records: [Int64: StoredRecord] = [:]
    for key in keys { records[key] = try query.first(.int(key), row: storedRecord) }
    return records
  }

  func record(_ name: RecordName, in zone: ZoneKey) throws -> StoredRecord? {
    // A record holds its node's id behind the preamble, the flags and the tree's id.
    try db.first(
      """
      SELECT bytes, received_ms, data_received_ms FROM records
      WHERE substr(hash, 1, 8) = ? AND hash = ? AND zone = ? AND substr(bytes, 41, 16) = ?
      """, .slice(name.hash.bytes[..<8]), .id(name.hash), .int(zone.rawValue), .id(name.node), row: storedRecord)
  }

  func liveRecords(from first: Int64, through last: Int64) throws -> [StoredRecord] {
    try db.all(
      """
      SELECT bytes, received_ms, data_received_ms FROM records
      WHERE id BETWEEN ? AND ? AND replaced_ms IS NULL ORDER BY id
      """, .int(first), .int(last), row: storedRecord)
  }

  private func storedRecord(_ row: SQLRow) -> StoredRecord {
    StoredRecord(bytes: row.bytes(0), recordReceivedMs: row.unsigned(1), dataReceivedMs: row.unsigned(2))
  }
}
