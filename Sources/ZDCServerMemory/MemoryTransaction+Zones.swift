internal import ZDCProtocol
internal import ZDCServer

// Zones
extension MemoryTransaction {
  func zone(_ id: ZoneID) -> ZoneRow? { tables.zoneKeys[id].flatMap { tables.zones[$0]?.row } }

  func zone(ofNode node: NodeID, tree: TreeID) -> ZoneRow? {
    zoneKey(ofNode: node, tree: tree).flatMap { tables.zones[$0]?.row }
  }

  /// Returns the zone of the nearest root, from the node upwards.
  func zoneKey(ofNode node: NodeID, tree: TreeID) -> ZoneKey? {
    var next = node
    while let found = tables.nodes[tree]?.all[next] {
      guard found.row.leaf.parent != .zero else { return tables.zoneKeys[ZoneID(tree: tree, root: next)] }
      next = found.row.leaf.parent
    }
    return nil
  }

  func zone(of tree: TreeID, where user: UserID, holds permission: ZoneACL.Permissions) -> ZoneRow? {
    tables.zones.values.filter { zone in
      zone.row.zone.tree == tree && !zone.row.isClosed
        && !(zone.members.rows[user]?.permissions ?? []).isDisjoint(with: permission)
    }
    .min { $0.row.key.rawValue < $1.row.key.rawValue }?.row
  }

  func genesisCommits(owner: UserID, appTreeID: String) -> [CommitHash] {
    trees(of: owner).filter { $0.appTreeID == appTreeID }.compactMap { tree in
      tables.zoneKeys[ZoneID(trunkOf: tree.tree)].flatMap { tables.zones[$0]?.log.first?.hash }
    }
  }

  func trees(of owner: UserID) -> [TreeRow] {
    tables.trees.values.filter { $0.owner == owner }.map(\.row)
      .sorted { ($0.appTreeID, $0.trunk.rawValue) < ($1.appTreeID, $1.trunk.rawValue) }
  }

  func zoneCount(of owner: UserID, limit: Int) -> Int { min(limit, tables.zones.values.count { $0.owner == owner }) }
  func treeID(of zone: ZoneKey) -> TreeID? { tables.zones[zone]?.row.zone.tree }
  func lastReceivedMs() -> UInt64? {
    let newest = tables.zones.values.compactMap(\.log.last).max { $0.feedPosition < $1.feedPosition }
    return newest?.row.receivedMs
  }
}

// Logs
extension MemoryTransaction {
  func commit(_ seq: UInt64, of zone: ZoneKey) -> StoredCommit? {
    guard let zone = tables.zones[zone], seq <= zone.row.seq else { return nil }
    let commit = zone.log[Int(seq)]
    return StoredCommit(hash: commit.hash, receivedMs: commit.row.receivedMs)
  }

  func commits(
    of zone: ZoneKey, after: UInt64?, withRecords: Bool, _ body: (CommitRow) throws -> Bool
  ) throws {
    let start = after.map { $0 == .max ? Int.max : Int(clamping: $0 + 1) } ?? 0
    let isOpen = tables.zones[zone]?.row.isClosed == false
    for commit in (tables.zones[zone]?.log ?? []).dropFirst(start) {
      var row = commit.row
      if withRecords, isOpen {
        let records = commit.records.compactMap { tables.records[$0] }
        row.records = records.filter { $0.replacedMs == nil && self.zone(of: $0) == zone }.map(\.stored)
      }
      guard try body(row) else { return }
    }
  }

  func grant(zone: ZoneKey, user: UserID, hash: GrantHash) -> [UInt8]? {
    tables.zones[zone]?.grants[MemoryTables.GrantKey(user: user, hash: hash)]
  }

  func list(before seq: UInt64, of zone: ZoneKey) -> [UInt8]? {
    tables.zones[zone]?.log.prefix(Int(clamping: seq)).last { $0.row.acl != nil }?.row.acl
  }

  func stateBytes(of zone: ZoneKey) -> UInt64? {
    let parts = tables.zones[zone]?.state ?? []
    return parts.isEmpty ? nil : UInt64(parts.reduce(0) { $0 + $1.count })
  }

  func statePart(_ index: Int, of zone: ZoneKey) -> [UInt8]? {
    let parts = tables.zones[zone]?.state ?? []
    return parts.indices.contains(index) ? parts[index] : nil
  }

  /// Returns the zone whose members may read a record: for that of a live node the zone that the node is in now.
  private func zone(of record: MemoryTables.Record) -> ZoneKey? {
    guard record.replacedMs == nil, let tree = treeID(of: record.zone) else { return record.zone }
    return zoneKey(ofNode: record.name.node, tree: tree)
  }

  func records(_ names: [RecordName], in zone: ZoneKey) -> [RecordName: Result<StoredRecord, RecordDamaged>] {
    names.reduce(into: [:]) { records, name in
      records[name] = record(name, in: zone).map { .success($0) }
    }
  }

  private func record(_ name: RecordName, in zone: ZoneKey) -> StoredRecord? {
    let record = (tables.recordKeys[name] ?? []).lazy.compactMap { self.tables.records[$0] }
      .first { self.zone(of: $0) == zone }
    guard let record else { return nil }
    var stored = record.stored
    stored.replacedMs = record.replacedMs ?? tables.zones[zone]?.row.closedMs
    return stored
  }

  func records(_ keys: [Int64]) -> [Int64: StoredRecord] {
    keys.reduce(into: [:]) { $0[$1] = tables.records[$1]?.stored }
  }
}

// Nodes
extension MemoryTransaction {
  private func tree(of zone: ZoneKey) -> MemoryTables.Nodes {
    treeID(of: zone).flatMap { tables.nodes[$0] } ?? MemoryTables.Nodes()
  }

  func nodes(_ ids: [NodeID], in zone: ZoneKey) throws -> [NodeRow] {
    let tree = tree(of: zone)
    let root = tables.zones[zone]?.row.zone.root
    var asked: Set<NodeID> = []
    var found: [NodeRow] = []
    for id in ids {
      var next = id
      while asked.insert(next).inserted, let node = tree.all[next] {
        found.append(node.row(in: zone))
        next = node.row.leaf.parent
        guard next != .zero || node.row.leaf.node == root else { throw foreign(id, in: treeID(of: zone)) }
      }
    }
    return found
  }

  private func foreign(_ node: NodeID, in tree: TreeID?) -> any Error {
    let isClosed = tree.flatMap { zone(ofNode: node, tree: $0)?.isClosed } ?? false
    return isClosed ? ServerError.nodeIsLeaving : ZDCSecurityError(.recordBindingMismatch, node: node)
  }

  func children(of parents: [NodeID], in zone: ZoneKey, limit: Int) -> [NodeRow] {
    let tree = tree(of: zone)
    return parents.lazy.flatMap { tree.children[$0] ?? [] }.prefix(limit).compactMap { tree.all[$0]?.row(in: zone) }
  }

  func holders(of names: [NodeName], in zone: ZoneKey) -> [NodeName: NodeID] {
    let tree = tree(of: zone)
    return names.reduce(into: [:]) { $0[$1] = tree.names[$1] }
  }
}

extension MemoryTables.Node {
  /// Returns the row as the node's zone has it.
  func row(in zone: ZoneKey) -> NodeRow {
    var row = row
    if zone != self.zone { row.leaf.putSeq = 0 }
    return row
  }
}
