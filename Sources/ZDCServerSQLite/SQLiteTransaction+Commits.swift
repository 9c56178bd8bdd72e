internal import GRDB
internal import ZDCProtocol
internal import ZDCServer

// Applying commits.
extension SQLiteTransaction {
  func apply(_ delta: CommitDelta) throws -> [ZoneStatus] {
    let statuses = try delta.zones.map(apply)
    try removeBlobs(delta.released)
    return statuses
  }

  private func apply(_ delta: ZoneDelta) throws -> ZoneStatus {
    let zone = try key(of: delta)
    zoneCache = ZoneCache()
    let key = try lastPosition() + 1
    let puts = try CommitPuts(zone: zone, receivedMs: delta.receivedMs, bytes: delta.commit)
    commitCache.insert(puts, key: key)
    var writer = try NodeWriter(self, commit: puts, key: key, replacedIn: delta.origin)
    try writer.write(delta.puts, removing: delta.removed, splitOff: delta.splitOff)
    if delta.head.isClosed { try close(zone, now: delta.receivedMs) }
    let list = try delta.list.map { try insert($0, of: delta, in: zone) }
    try append(delta, key: key, list: list, nodes: writer.created, to: zone)
    return ZoneStatus(zone: delta.head.zone, seq: delta.head.seq, head: delta.head.hash)
  }

  private func close(_ zone: ZoneKey, now: UInt64) throws {
    try db.run("UPDATE zones SET closed_ms = ? WHERE id = ?", .ms(now), .int(zone.rawValue))
    try db.run("INSERT INTO closing(zone) VALUES (?)", .int(zone.rawValue))
  }

  private func key(of delta: ZoneDelta) throws -> ZoneKey {
    switch delta.target {
    case .existing(let zone): zone
    case .new(let tree, let owner): try insert(tree, root: delta.head.zone.root, owner: owner)
    case .newZone: try insertZone(delta.head.zone)
    case .splitOff(_, let state, _): try insertZone(delta.head.zone, beginningWith: state)
    }
  }

  private func insertZone(_ zone: ZoneID, beginningWith state: StoredState) throws -> ZoneKey {
    let key = try insertZone(zone)
    for (index, part) in state.parts.enumerated() {
      try db.run(
        "INSERT INTO states(zone, part, bytes) VALUES (?, ?, ?)", .int(key.rawValue), .int(Int64(index)), .bytes(part))
    }
    return key
  }

  private func insertZone(_ zone: ZoneID) throws -> ZoneKey {
    guard let tree = try key(of: zone.tree) else { throw StoreError.damaged }
    return try insertZone(tree, root: zone.root)
  }

  private func insertZone(_ tree: Int64, root: NodeID) throws -> ZoneKey {
    try db.run(
      "INSERT INTO zones(tree, root, seq, head, feed_position, acl, retired) VALUES (?, ?, -1, x'', 0, 0, x'')",
      .int(tree), .id(root))
    return ZoneKey(db.lastInsertedRowID)
  }

  private func insert(_ tree: TreeRow, root: NodeID, owner: UserID) throws -> ZoneKey {
    try db.run(
      "INSERT INTO trees(tree_id, owner, trunk, app) SELECT ?, id, ?, ? FROM users WHERE user_id = ?", .id(tree.tree),
      .int(Int64(tree.trunk.rawValue)), .text(tree.appTreeID), .id(owner))
    return try insertZone(db.lastInsertedRowID, root: root)
  }
}

// Lists and logs
extension SQLiteTransaction {
  private func insert(_ list: ZoneDelta.ListChange, of delta: ZoneDelta, in zone: ZoneKey) throws -> Int64 {
    try db.run("INSERT INTO acls(zone, bytes) VALUES (?, ?)", .int(zone.rawValue), .bytes(list.acl.bytes))
    let key = db.lastInsertedRowID
    try changeMembers(of: zone, to: list.acl.fields.entries, seq: delta.head.seq, at: delta.receivedMs)
    for grant in list.grants {
      try db.run(
        "INSERT OR IGNORE INTO grants(zone, user_id, hash, bytes) VALUES (?, ?, ?, ?)", .int(zone.rawValue),
        .id(grant.user), .id(grant.wrapHash), .bytes(grant.bytes))
    }
    return key
  }

  private func append(
    _ delta: ZoneDelta, key: Int64, list: Int64?, nodes: ClosedRange<Int64>?, to zone: ZoneKey
  ) throws {
    let head = delta.head
    try db.run(
      """
      INSERT INTO commits(feed_position, zone, seq, hash, received_ms, acl, first_node, last_node, bytes)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
      """, .int(key), .int(zone.rawValue), .ms(head.seq), .id(head.hash), .ms(delta.receivedMs), .optional(list),
      .optional(nodes?.lowerBound), .optional(nodes?.upperBound), .bytes(delta.commit))
    let usage = delta.usage
    try db.run(
      """
      UPDATE zones SET seq = ?, head = ?, feed_position = ?, acl = coalesce(?, acl), retired = ?,
        live_nodes = live_nodes + ?, records = records + ?, record_bytes = record_bytes + ?, log_bytes = log_bytes + ?
      WHERE id = ?
      """, .ms(head.seq), .id(head.hash), .int(key), .optional(list), .bytes(bytes(head.retiredBelow)),
      .int(usage.nodes), .ms(usage.records), .ms(usage.recordBytes), .ms(usage.logBytes), .int(zone.rawValue))
  }

  private func bytes(_ retired: [UserID: UInt32]) -> [UInt8] {
    var writer = ByteWriter()
    for (user, generation) in retired.sorted(by: { $0.key < $1.key }) {
      writer.append(user)
      writer.append(generation)
    }
    return writer.bytes
  }
}

extension ZoneDelta {
  /// The zone that the branch was in with which this one begins.
  fileprivate var origin: ZoneKey? { if case .splitOff(let parent, _, _) = target { parent } else { nil } }
}
