internal import ZDCProtocol
internal import ZDCServer

// Applying commits. Most statements only join the pipeline, which the end of the write sends.
extension PostgresTransaction {
  func apply(_ delta: CommitDelta) throws -> [ZoneStatus] {
    defer { known = CommitRows() }
    let statuses = try delta.zones.map(apply)
    try removeBlobs(delta.released.map(\.key), where: "replaced_ms IS NOT NULL")
    return statuses
  }

  private func apply(_ delta: ZoneDelta) throws -> ZoneStatus {
    let zone = try key(of: delta)
    if let top = delta.splitOff { db.enqueue("UPDATE nodes SET tag = NULL WHERE id = $1", .int(top.record)) }
    try NodeWriter(self, delta, zone: zone, tree: try tree(of: zone)).write()
    if delta.head.isClosed { close(zone, now: delta.receivedMs) }
    let list = try delta.list.map { try insert($0, of: delta, in: zone) }
    append(delta, list: list, to: zone)
    sums[zone.rawValue, default: ZoneSums()].add(delta.usage)
    return ZoneStatus(zone: delta.head.zone, seq: delta.head.seq, head: delta.head.hash)
  }

  private func close(_ zone: ZoneKey, now: UInt64) {
    db.enqueue("UPDATE zones SET closed_ms = $2 WHERE id = $1", .int(zone.rawValue), .ms(now))
    db.enqueue("INSERT INTO closing(zone) VALUES ($1)", .int(zone.rawValue))
  }

  private func key(of delta: ZoneDelta) throws -> ZoneKey {
    switch delta.target {
    case .existing(let zone): return zone
    case .new(let tree, let owner):
      db.enqueue(
        "INSERT INTO trees(tree_id, owner, trunk, app) SELECT $1, id, $2, $3 FROM users WHERE user_id = $4",
        .id(tree.tree), .int(Int64(tree.trunk.rawValue)), .text(tree.appTreeID), .id(owner))
      return try insertZone(delta.head.zone)
    case .newZone: return try insertZone(delta.head.zone)
    case .splitOff(_, let state, _):
      let zone = try insertZone(delta.head.zone)
      for (index, part) in state.parts.enumerated() {
        db.enqueue(
          "INSERT INTO states(zone, part, bytes) VALUES ($1, $2, $3)", .int(zone.rawValue), .int(Int64(index)),
          .bytes(part))
      }
      return zone
    }
  }

  private func insertZone(_ zone: ZoneID) throws -> ZoneKey {
    let row = try db.first(
      """
      INSERT INTO zones(tree, root, seq, head, changed, retired)
      SELECT id, $2, -1, '', pg_current_xact_id(), '' FROM trees WHERE tree_id = $1 RETURNING id, tree
      """, .id(zone.tree), .id(zone.root)
    ) { (zone: ZoneKey($0.int(0)), tree: $0.int(1)) }
    guard let row else { throw PostgresError.damaged }
    places[row.zone] = (row.tree, zone.root)
    db.enqueue("INSERT INTO sums VALUES ($1, 0, 0, 0, 0, 0, 0)", .int(row.zone.rawValue))
    return row.zone
  }
}

// Lists and logs
extension PostgresTransaction {
  private func insert(_ list: ZoneDelta.ListChange, of delta: ZoneDelta, in zone: ZoneKey) throws -> Int64 {
    let key = try db.first(
      "INSERT INTO acls(zone, bytes) VALUES ($1, $2) RETURNING id", .int(zone.rawValue), .bytes(list.acl.bytes)
    ) { $0.int(0) }
    guard let key else { throw PostgresError.damaged }
    try changeMembers(of: zone, to: list.acl.fields.entries, seq: delta.head.seq, at: delta.receivedMs)
    guard !list.grants.isEmpty else { return key }
    db.enqueue(
      """
      INSERT INTO grants(zone, user_id, hash, bytes)
      SELECT $1, * FROM unnest($2::bytea[], $3::bytea[], $4::bytea[]) ON CONFLICT DO NOTHING
      """, .int(zone.rawValue), .ids(list.grants.map(\.user)), .ids(list.grants.map(\.wrapHash)),
      .byteArrays(list.grants.map(\.bytes)))
    return key
  }

  private func append(_ delta: ZoneDelta, list: Int64?, to zone: ZoneKey) {
    let head = delta.head
    db.enqueue(
      "INSERT INTO commits(zone, seq, hash, received_ms, acl, bytes) VALUES ($1, $2, $3, $4, $5, $6)",
      .int(zone.rawValue), .ms(head.seq), .id(head.hash), .ms(delta.receivedMs), .int(list), .bytes(delta.commit))
    db.enqueue(
      """
      UPDATE zones SET seq = $2, head = $3, acl = coalesce($4, acl), retired = $5, changed = pg_current_xact_id()
      WHERE id = $1
      """, .int(zone.rawValue), .ms(head.seq), .id(head.hash), .int(list),
      .bytes(RetiredKeys.encoded(head.retiredBelow)))
  }
}

extension ZoneDelta {
  /// The zone that the branch was in with which this one begins.
  var origin: ZoneKey? { if case .splitOff(let parent, _, _) = target { parent } else { nil } }
}
