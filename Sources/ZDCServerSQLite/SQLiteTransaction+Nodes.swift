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

  func nodes(_ ids: [NodeID], in zone: ZoneKey) throws -> [NodeRow] {
    let tree = try tree(of: zone)
    // For each node, one of those that were asked for: itself, or one below it.
    var asked = Dictionary(ids.map { ($0, $0) }) { first, _ in first }
    var found: [NodeRow] = []
    var level = Array(asked.keys)
    while !level.isEmpty {
      let rows = try nodeKeys(level, tree: tree).map { try liveNode($0).row(in: zone) }
      found += rows
      level = []
      for leaf in rows.map(\.leaf) {
        if leaf.parent == .zero {
          try checkRoot(leaf.node, of: zone, tree: tree, asked: asked[leaf.node] ?? leaf.node)
        } else if asked[leaf.parent] == nil {
          asked[leaf.parent] = asked[leaf.node]
          level.append(leaf.parent)
        }
      }
    }
    return found
  }

  private func checkRoot(_ root: NodeID, of zone: ZoneKey, tree: Int64, asked node: NodeID) throws {
    let found = try zoneKey(ofRoot: root, tree: tree)
    guard found == zone else { throw try foreign(node, of: found) }
  }

  private func foreign(_ node: NodeID, of zone: ZoneKey?) throws -> any Error {
    let isClosed = try zone.flatMap(closedMs) != nil
    return isClosed ? ServerError.nodeIsLeaving : ZDCSecurityError(.recordBindingMismatch, node: node)
  }

  /// NB: a recursive query would read all children of a node before it returns the first one, regardless of its LIMIT.
  func children(of parents: [NodeID], in zone: ZoneKey, limit: Int) throws -> [NodeRow] {
    let tree = try tree(of: zone)
    var keys: [NodeKey] = []
    for parent in parents where keys.count < limit {
      keys += try childKeys(of: parent, tree: tree, limit: limit - keys.count)
    }
    return try keys.sorted().map { try liveNode($0).row(in: zone) }
  }

  /// Follows the nodes' keys, and reads no record and no name: a branch may have a million nodes.
  func leaves(below top: NodeID, in zone: ZoneKey, limit: Int) throws -> [LogNode] {
    let tree = try tree(of: zone)
    let sql = "SELECT key FROM node_ids WHERE tree = ? AND node = ?"
    guard let key = try db.first(sql, .int(tree), .id(top), row: { $0.int(0) }) else { return [] }
    return try placesOfPuts(try keysOfNodes(below: key, limit: limit)).map { place in
      try puts(ofCommit: place.commit).leaf(place.index, in: zone)
    }
  }

  func holders(of names: [NodeName], in zone: ZoneKey) throws -> [NodeName: NodeID] {
    let tree = try tree(of: zone)
    var holders: [NodeName: NodeID] = [:]
    for name in names {
      holders[name] = try holder(of: name, tree: tree)?.put().node
    }
    return holders
  }
}

// Records
extension SQLiteTransaction {
  func records(_ keys: [Int64]) throws -> [Int64: StoredRecord] {
    var records: [Int64: StoredRecord] = [:]
    for key in try nodeKeys(keys) { records[key.node] = try liveNode(key).storedRecord() }
    return records
  }

  func records(
    _ names: [RecordName], in zone: ZoneKey
  ) throws -> [RecordName: Result<StoredRecord, RecordDamaged>] {
    let tree = try tree(of: zone)
    return try inOrderOfCommits(names, of: \.node, tree: tree).reduce(into: [:]) { records, name in
      do {
        records[name] = try record(name, in: zone, tree: tree).map { .success($0) }
      } catch let damage as RecordDamaged {
        records[name] = .failure(damage)
      }
    }
  }

  private func record(_ name: RecordName, in zone: ZoneKey, tree: Int64) throws -> StoredRecord? {
    if let node = try liveNode(name.node, tree: tree), try node.put().record == name.hash,
      try zoneKey(of: node, tree: tree) == zone
    {
      var record = try node.storedRecord()
      record.replacedMs = try closedMs(of: zone)
      return record
    }
    return try replacedRecord(name, in: zone)
  }

  private func replacedRecord(_ name: RecordName, in zone: ZoneKey) throws -> StoredRecord? {
    let record = try db.first(
      """
      SELECT bytes, received_ms, data_received_ms, replaced_ms FROM records
      WHERE substr(hash, 1, 8) = ? AND hash = ? AND zone = ? AND node = ?
      """, .slice(name.hash.bytes[..<8]), .id(name.hash), .int(zone.rawValue), .id(name.node)
    ) { row in
      StoredRecord(
        bytes: row.bytes(0), recordReceivedMs: row.unsigned(1), dataReceivedMs: row.unsigned(2),
        replacedMs: row.unsigned(3))
    }
    guard let record else { return nil }
    guard RecordHash(labelledHash: "record", record.bytes) == name.hash else { throw RecordDamaged(name) }
    return record
  }
}
