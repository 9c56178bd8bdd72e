internal import ZDCProtocol
internal import ZDCServer

// Applying commits
extension MemoryTransaction {
  func apply(_ delta: CommitDelta) throws -> [ZoneStatus] {
    let statuses = try delta.zones.map(apply)
    try removeBlobs(delta.released)
    return statuses
  }

  private func apply(_ delta: ZoneDelta) throws -> ZoneStatus {
    let key = try key(of: delta)
    let tree = delta.head.zone.tree
    var keeper = Keeper(zone: key, now: delta.receivedMs)
    if case .splitOff(let parent, let state, _) = delta.target {
      keeper.zone = parent
      tables.zones[key]?.state = state.parts
    }
    if let top = delta.splitOff { tables.nodes[tree]?.unlink(top) }
    for node in delta.removed { remove(node, from: tree, keeper) }
    for put in delta.puts where put.isLive { put.replaced.map { tables.nodes[tree]?.unlink($0) } }
    let records = try delta.puts.map { try put($0, tree: tree, zone: key, keeper) }
    if let list = delta.list { change(list, of: delta, in: key) }
    return append(delta, records: records, to: key)
  }

  private func key(of delta: ZoneDelta) throws -> ZoneKey {
    switch delta.target {
    case .existing:
      try check(.zone(delta.head.zone))
      return tables.zoneKeys[delta.head.zone] ?? ZoneKey(0)
    case .new(let tree, let owner):
      try check(.account(owner))
      tables.trees[tree.tree] = MemoryTables.Tree(row: tree, owner: owner)
      return insert(delta.head.zone, owner: owner)
    case .newZone(let owner), .splitOff(_, _, let owner):
      try check(.zone(delta.head.zone))
      return insert(delta.head.zone, owner: owner)
    }
  }

  private func insert(_ zone: ZoneID, owner: UserID) -> ZoneKey {
    let key = ZoneKey(tables.newKey())
    let row = ZoneRow(key: key, zone: zone, seq: 0, head: .zero, acl: [], retiredBelow: [:])
    tables.zones[key] = MemoryTables.Zone(row: row, owner: owner)
    tables.zoneKeys[zone] = key
    return key
  }

  func removeClosedNodes(limit: Int) throws -> Bool {
    try check(.upkeep)
    guard let key = tables.closing.first else { return false }
    guard let zone = tables.zones[key]?.row, let closedMs = zone.closedMs else {
      tables.closing.removeFirst()
      return true
    }
    let tree = zone.zone.tree
    let keeper = Keeper(zone: key, now: closedMs)
    var (stack, rest) = ([zone.zone.root], limit)
    while let node = stack.last, rest > 0 {
      let below = tables.nodes[tree]?.children[node] ?? []
      stack += below
      guard below.isEmpty else { continue }
      stack.removeLast()
      guard let row = tables.nodes[tree]?.all[node]?.row else { continue }
      remove(row, from: tree, keeper)
      tables.trees[tree]?.usage.nodes -= 1
      rest -= 1
    }
    if stack.isEmpty { tables.closing.removeFirst() }
    return !tables.closing.isEmpty
  }

  /// Where and when a commit replaces records and content.
  private struct Keeper {
    var zone: ZoneKey
    var now: UInt64
  }

  private func keep(record: Int64, _ keeper: Keeper) {
    tables.records[record]?.replacedMs = keeper.now
    tables.records[record]?.zone = keeper.zone
  }

  private func keep(blob: Int64?, _ keeper: Keeper) {
    guard let blob else { return }
    tables.blobs[blob]?.row.replacedMs = keeper.now
    tables.blobs[blob]?.row.zone = keeper.zone
  }

  private func remove(_ node: NodeRow, from tree: TreeID, _ keeper: Keeper) {
    keep(record: node.record, keeper)
    keep(blob: node.blob, keeper)
    tables.nodes[tree]?.unlink(node)
    tables.nodes[tree]?.all[node.leaf.node] = nil
  }

  /// - Returns: the record's key.
  private func put(_ put: NodePut, tree: TreeID, zone: ZoneKey, _ keeper: Keeper) throws -> Int64 {
    let replacedMs = put.isLive ? nil : keeper.now
    let record = tables.newKey()
    let name = RecordName(node: put.leaf.node, hash: put.leaf.record)
    tables.records[record] = MemoryTables.Record(stored: put.record, name: name, zone: zone, replacedMs: replacedMs)
    tables.recordKeys[name, default: []].append(record)
    let blob = try content(of: put, zone: zone, now: keeper.now)
    guard put.isLive else { return record }
    if let old = put.replaced { keep(record: old.record, keeper) }
    keep(blob: put.replacedBlob, keeper)
    let row = NodeRow(leaf: put.leaf, tag: put.tag, record: record, blob: blob)
    try tables.nodes[tree, default: MemoryTables.Nodes()].link(MemoryTables.Node(row: row, zone: zone))
    return record
  }

  private func content(of put: NodePut, zone: ZoneKey, now: UInt64) throws -> Int64? {
    let replacedMs = put.isLive ? nil : now
    switch put.content {
    case .none: return nil
    case .unchanged(let key): return key
    case .attached(let blob):
      if blob.state != .attached { try check(.upload(blob.id)) }
      update(blob.attached(in: zone, replacedMs: replacedMs))
      return blob.key
    case .reference(let source):
      let row = source.reference(for: put.leaf.node, in: zone, now: now, replacedMs: replacedMs)
      return insert(row, content: tables.blobs[source.key]?.content)
    case .inline(let id, let bytes):
      let row = BlobRow(
        id: id, zone: zone, node: put.leaf.node, cipherLength: UInt64(bytes.count), state: .attached, isInline: true,
        owner: nil, contentRoot: nil, touchedMs: now, replacedMs: replacedMs)
      return insert(row, content: Array(bytes))
    }
  }

  private func change(_ list: ZoneDelta.ListChange, of delta: ZoneDelta, in zone: ZoneKey) {
    tables.zones[zone]?.row.acl = list.acl.bytes
    changeMembers(of: zone, to: list.acl.fields.entries, seq: delta.head.seq, at: delta.receivedMs)
    for grant in list.grants {
      tables.zones[zone]?.grants[MemoryTables.GrantKey(user: grant.user, hash: grant.wrapHash)] = grant.bytes
    }
  }

  private func append(_ delta: ZoneDelta, records: [Int64], to key: ZoneKey) -> ZoneStatus {
    let head = delta.head
    tables.lastFeedPosition += 1
    let position = tables.lastFeedPosition
    let row = CommitRow(
      seq: head.seq, receivedMs: delta.receivedMs, bytes: delta.commit, acl: delta.list?.acl.bytes)
    tables.zones[key]?.log.append(
      MemoryTables.Commit(row: row, hash: head.hash, feedPosition: position, records: records))
    tables.zones[key]?.row.seq = head.seq
    tables.zones[key]?.row.head = head.hash
    tables.zones[key]?.row.retiredBelow = head.retiredBelow
    if head.isClosed {
      tables.zones[key]?.row.closedMs = delta.receivedMs
      tables.closing.append(key)
    }
    tables.trees[head.zone.tree]?.usage.add(delta.usage)
    return ZoneStatus(zone: head.zone, seq: head.seq, head: head.hash)
  }
}

extension MemoryTables.Nodes {
  /// Removes a node from its parent and frees its name.
  mutating func unlink(_ node: NodeRow) {
    children[node.leaf.parent]?.remove(node.leaf.node)
    if let name = node.name, names[name] == node.leaf.node { names[name] = nil }
  }

  /// - Throws: ``NameTaken``.
  mutating func link(_ node: MemoryTables.Node) throws {
    all[node.row.leaf.node] = node
    children[node.row.leaf.parent, default: []].insert(node.row.leaf.node)
    guard let name = node.row.name else { return }
    guard names.updateValue(node.row.leaf.node, forKey: name) == nil else { throw NameTaken() }
  }
}

/// Two live nodes below one parent have the same name: the decision about a commit was wrong.
struct NameTaken: Error {}

extension NodeRow {
  fileprivate var name: NodeName? { tag.map { NodeName(parent: leaf.parent, tag: $0) } }
}
