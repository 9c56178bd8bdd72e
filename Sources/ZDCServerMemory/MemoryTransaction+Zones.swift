internal import ZDCProtocol
internal import ZDCServer

// Zones
extension MemoryTransaction {
  func zone(_ id: ZoneID) -> ZoneRow? { tables.zoneKeys[id].flatMap { tables.zones[$0]?.row } }

  func zone(ofNode node: NodeID, tree: TreeID) -> ZoneRow? {
    (tables.nodes[tree]?.all[node]?.zone).flatMap { tables.zones[$0]?.row }
  }

  func zone(of tree: TreeID, where user: UserID, holds permission: ZoneACL.Permissions) -> ZoneRow? {
    tables.zones.values.filter { zone in
      zone.row.zone.tree == tree && !(zone.members.rows[user]?.permissions ?? []).isDisjoint(with: permission)
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
    for commit in (tables.zones[zone]?.log ?? []).dropFirst(start) {
      var row = commit.row
      if withRecords {
        let records = commit.records.compactMap { tables.records[$0] }
        row.records = records.filter { $0.replacedMs == nil }.map(\.stored)
      }
      guard try body(row) else { return }
    }
  }

  func grant(zone: ZoneKey, user: UserID, hash: GrantHash) -> [UInt8]? {
    tables.zones[zone]?.grants[MemoryTables.GrantKey(user: user, hash: hash)]
  }

  func record(_ name: RecordName, in zone: ZoneKey) -> StoredRecord? {
    let record = (tables.recordKeys[name] ?? []).lazy.compactMap { self.tables.records[$0] }.first { $0.zone == zone }
    guard let record else { return nil }
    var stored = record.stored
    stored.replacedMs = record.replacedMs
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
    var asked: Set<NodeID> = []
    var found: [NodeRow] = []
    for id in ids {
      var next = id
      while asked.insert(next).inserted, let node = tree.all[next] {
        guard node.zone == zone else { throw ZDCSecurityError(.recordBindingMismatch, node: next) }
        found.append(node.row)
        next = node.row.leaf.parent
      }
    }
    return found
  }

  func children(of parents: [NodeID], in zone: ZoneKey, limit: Int) -> [NodeRow] {
    let tree = tree(of: zone)
    return parents.lazy.flatMap { tree.children[$0] ?? [] }.prefix(limit).compactMap { tree.all[$0]?.row }
  }

  func holders(of names: [NodeName], in zone: ZoneKey) -> [NodeName: NodeID] {
    let tree = tree(of: zone)
    return names.reduce(into: [:]) { $0[$1] = tree.names[$1] }
  }
}
