internal import GRDB
internal import ZDCProtocol
internal import ZDCServer

// Applying commits. Statements here run once per node that a commit names.
extension SQLiteTransaction {
  func apply(_ delta: CommitDelta) throws -> [ZoneStatus] {
    let statuses = try delta.zones.map(apply)
    try removeBlobs(delta.released)
    return statuses
  }

  private func apply(_ delta: ZoneDelta) throws -> ZoneStatus {
    let zone = try key(of: delta)
    try remove(delta.removed, tree: try tree(of: zone), now: delta.receivedMs)
    try clearNames(of: delta.puts, tree: try tree(of: zone))
    let records = try put(delta, in: zone)
    let list = try delta.list.map { try insert($0, in: zone) }
    try append(delta, list: list, records: records, to: zone)
    return ZoneStatus(zone: delta.head.zone, seq: delta.head.seq, head: delta.head.hash)
  }

  private func key(of delta: ZoneDelta) throws -> ZoneKey {
    switch delta.target {
    case .existing(let zone): zone
    case .new(let tree, let owner): try insert(tree, root: delta.head.zone.root, owner: owner)
    }
  }

  private func insert(_ tree: TreeRow, root: NodeID, owner: UserID) throws -> ZoneKey {
    try db.run(
      "INSERT INTO trees(tree_id, owner, trunk, app) SELECT ?, id, ?, ? FROM users WHERE user_id = ?", .id(tree.tree),
      .int(Int64(tree.trunk.rawValue)), .text(tree.appTreeID), .id(owner))
    let key = db.lastInsertedRowID
    try db.run(
      "INSERT INTO zones(tree, root, seq, head, feed_position, acl, retired) VALUES (?, ?, -1, x'', 0, 0, x'')",
      .int(key), .id(root))
    return ZoneKey(db.lastInsertedRowID)
  }
}

// Nodes
extension SQLiteTransaction {
  private func remove(_ nodes: [NodeRow], tree: Int64, now: UInt64) throws {
    for node in nodes {
      try markReplaced(record: node.record, now: now)
      if let blob = node.blob { try markReplaced(blob: blob, now: now) }
      try db.run("DELETE FROM nodes WHERE tree = ? AND node = ?", .int(tree), .id(node.leaf.node))
    }
  }

  /// Two nodes may swap their names: whichever was written first would have the name of the other for a moment, which the
  /// unique index refuses.
  private func clearNames(of puts: [NodePut], tree: Int64) throws {
    for put in puts where put.isLive && put.replaced?.tag != nil && !put.keepsName {
      try db.run("UPDATE nodes SET tag = NULL WHERE tree = ? AND node = ?", .int(tree), .id(put.leaf.node))
    }
  }

  /// - Returns: the keys of the records: they are neighbours.
  private func put(_ delta: ZoneDelta, in zone: ZoneKey) throws -> ClosedRange<Int64>? {
    var keys: ClosedRange<Int64>?
    var (contents, bytes): (Int64, Int64) = (0, 0)
    for put in delta.puts {
      let record = try insert(put, in: zone, now: delta.receivedMs)
      keys = (keys?.lowerBound ?? record)...record
      let blob = try content(of: put, in: zone, now: delta.receivedMs)
      if case .inline(_, let content) = put.content { (contents, bytes) = (contents + 1, bytes + Int64(content.count)) }
      guard put.isLive else { continue }
      if let old = put.replaced { try markReplaced(record: old.record, now: delta.receivedMs) }
      if let old = put.replacedBlob { try markReplaced(blob: old, now: delta.receivedMs) }
      try putNode(put, record: record, blob: blob, in: zone)
    }
    if contents > 0 { try count(contents: contents, bytes: bytes, in: zone) }
    return keys
  }

  private func insert(_ put: NodePut, in zone: ZoneKey, now: UInt64) throws -> Int64 {
    try db.run(
      """
      INSERT INTO records(zone, hash, received_ms, data_received_ms, replaced_ms, bytes) VALUES (?, ?, ?, ?, ?, ?)
      """, .int(zone.rawValue), .id(put.leaf.record), .ms(put.record.recordReceivedMs),
      .ms(put.record.dataReceivedMs), put.isLive ? .null : .ms(now), .bytes(put.record.bytes))
    return db.lastInsertedRowID
  }

  private func content(of put: NodePut, in zone: ZoneKey, now: UInt64) throws -> Int64? {
    let replacedMs = put.isLive ? nil : now
    switch put.content {
    case .none: return nil
    case .unchanged(let key): return key
    case .attached(let blob):
      try update(blob.attached(replacedMs: replacedMs))
      return blob.key
    case .inline(let id, let bytes):
      let blob = BlobRow(
        id: id, zone: zone, node: put.leaf.node, cipherLength: UInt64(bytes.count), state: .attached, isInline: true,
        owner: nil, contentRoot: nil, touchedMs: now, replacedMs: replacedMs)
      return try insert(blob, content: bytes)
    }
  }

  private func putNode(_ put: NodePut, record: Int64, blob: Int64?, in zone: ZoneKey) throws {
    let leaf = put.leaf
    try db.run(
      """
      INSERT INTO nodes(tree, node, zone, parent, tag, record, blob, put_seq, key_gen, parent_key_gen)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT(tree, node) DO UPDATE SET zone = excluded.zone, parent = excluded.parent, tag = excluded.tag,
        record = excluded.record, blob = excluded.blob, put_seq = excluded.put_seq, key_gen = excluded.key_gen,
        parent_key_gen = excluded.parent_key_gen
      """, .int(try tree(of: zone)), .id(leaf.node), .int(zone.rawValue), .id(leaf.parent),
      put.tag.map { .id($0) } ?? .null, .int(record), .optional(blob), .ms(leaf.putSeq), .int(Int64(leaf.keyGen)),
      .int(Int64(leaf.parentKeyGen)))
  }

  private func markReplaced(record: Int64, now: UInt64) throws {
    try db.run("UPDATE records SET replaced_ms = ? WHERE id = ?", .ms(now), .int(record))
  }

  private func markReplaced(blob: Int64, now: UInt64) throws {
    try db.run("UPDATE blobs SET replaced_ms = ? WHERE id = ?", .ms(now), .int(blob))
  }
}

// Lists and logs
extension SQLiteTransaction {
  private func insert(_ list: ZoneDelta.ListChange, in zone: ZoneKey) throws -> Int64 {
    try db.run("INSERT INTO acls(zone, bytes) VALUES (?, ?)", .int(zone.rawValue), .bytes(list.acl.bytes))
    let key = db.lastInsertedRowID
    try db.run("DELETE FROM members WHERE zone = ?", .int(zone.rawValue))
    for entry in list.acl.fields.entries {
      try db.run(
        "INSERT INTO members(user_id, zone, permissions) VALUES (?, ?, ?)", .id(entry.user), .int(zone.rawValue),
        .int(Int64(entry.permissions.rawValue)))
    }
    for grant in list.grants {
      try db.run(
        "INSERT OR IGNORE INTO grants(zone, user_id, hash, bytes) VALUES (?, ?, ?, ?)", .int(zone.rawValue),
        .id(grant.user), .id(grant.wrapHash), .bytes(grant.bytes))
    }
    return key
  }

  private func append(
    _ delta: ZoneDelta, list: Int64?, records: ClosedRange<Int64>?, to zone: ZoneKey
  ) throws {
    let head = delta.head
    try db.run(
      """
      INSERT INTO commits(zone, seq, hash, received_ms, acl, first_record, last_record, bytes)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?)
      """, .int(zone.rawValue), .ms(head.seq), .id(head.hash), .ms(delta.receivedMs), .optional(list),
      .optional(records?.lowerBound), .optional(records?.upperBound), .bytes(delta.commit))
    let feedPosition = db.lastInsertedRowID
    let usage = delta.usage
    try db.run(
      """
      UPDATE zones SET seq = ?, head = ?, feed_position = ?, acl = coalesce(?, acl), retired = ?,
        live_nodes = live_nodes + ?, records = records + ?, record_bytes = record_bytes + ?, log_bytes = log_bytes + ?
      WHERE id = ?
      """, .ms(head.seq), .id(head.hash), .int(feedPosition), .optional(list), .bytes(bytes(head.retiredBelow)),
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
