internal import ZDCProtocol
internal import ZDCServer

// Garbage collection
extension PostgresTransaction {
  func collect(replacedBefore: UInt64, abandonedBefore: UInt64, limit: Int) throws -> Collected {
    let records = try removeRecords(replacedBefore: replacedBefore, limit: limit)
    let doomed = try db.all(
      """
      (SELECT id FROM blobs WHERE replaced_ms < $1 ORDER BY replaced_ms LIMIT $3)
      UNION ALL (SELECT id FROM blobs WHERE state < 2 AND touched_ms < $2 LIMIT $3)
      """, .ms(replacedBefore), .ms(abandonedBefore), .int(Int64(limit))
    ) { $0.int(0) }
    let gone = try removeBlobs(
      doomed, where: "replaced_ms < $2 OR (state < 2 AND touched_ms < $3)", .ms(replacedBefore), .ms(abandonedBefore))
    return Collected(gone, isMore: max(records, doomed.count) >= limit)
  }

  private func removeRecords(replacedBefore: UInt64, limit: Int) throws -> Int {
    let gone = try db.all(
      """
      WITH gone AS (
        DELETE FROM records WHERE id IN (
          SELECT id FROM records WHERE replaced_ms < $1 ORDER BY replaced_ms, id LIMIT $2)
        RETURNING zone, length(bytes) AS length)
      SELECT zone, count(*), sum(length)::int8 FROM gone GROUP BY zone
      """, .ms(replacedBefore), .int(Int64(limit))
    ) { (zone: $0.int(0), count: $0.int(1), bytes: $0.int(2)) }
    for zone in gone { sums[zone.zone, default: ZoneSums()].remove(records: zone.count, bytes: zone.bytes) }
    return Int(gone.reduce(0) { $0 + $1.count })
  }
}

// Nodes of closed zones
extension PostgresTransaction {
  func removeClosedNodes(limit: Int) throws -> Bool {
    let row = try db.first(
      "SELECT z.id, z.tree, z.root, z.closed_ms FROM closing c JOIN zones z ON z.id = c.zone ORDER BY z.id LIMIT 1"
    ) { (zone: ZoneKey($0.int(0)), tree: $0.int(1), root: try $0.id(2) as NodeID, closedMs: $0.unsigned(3)) }
    guard let row else { return false }
    let keeper = ContentKeeper(store: self, zone: row.zone, now: row.closedMs)
    if try removeNodes(below: row.root, tree: row.tree, limit: limit, keeper) {
      db.enqueue("DELETE FROM closing WHERE zone = $1", .int(row.zone.rawValue))
    }
    return try db.first("SELECT 1 FROM closing LIMIT 1") { _ in true } ?? false
  }

  /// Removes children before their parents, so that those that are left are always found from the root.
  ///
  /// - Returns: whether no node is left.
  private func removeNodes(below root: NodeID, tree: Int64, limit: Int, _ keeper: ContentKeeper) throws -> Bool {
    var (levels, rest) = ([[root]], limit)
    while let level = levels.last, rest > 0 {
      let below = try children(of: level, tree: tree, limit: rest)
      guard below.isEmpty else {
        levels.append(below)
        continue
      }
      let removed = Array(level.prefix(rest))
      try remove(removed, tree: tree, keeper)
      rest -= removed.count
      levels.removeLast()
      if removed.count < level.count { levels.append(Array(level.dropFirst(removed.count))) }
    }
    sums[keeper.zone.rawValue, default: ZoneSums()].add(ZoneUsage(nodes: Int64(rest - limit)))
    return levels.isEmpty
  }

  private func children(of parents: [NodeID], tree: Int64, limit: Int) throws -> [NodeID] {
    try db.all(
      """
      SELECT n.node FROM unnest($2::bytea[]) AS w(parent)
      CROSS JOIN LATERAL (SELECT c.node FROM nodes c WHERE c.tree = $1 AND c.parent = w.parent LIMIT $3) n LIMIT $3
      """, .int(tree), .ids(parents), .int(Int64(limit))
    ) { try $0.id(0) }
  }

  private func remove(_ nodes: [NodeID], tree: Int64, _ keeper: ContentKeeper) throws {
    let rows = try db.all(
      "SELECT id, node, blob FROM nodes WHERE tree = $1 AND node = ANY($2)", .int(tree), .ids(nodes)
    ) { (key: $0.int(0), node: try $0.id(1) as NodeID, blob: $0.optionalInt(2)) }
    keeper.keepRecords(of: rows.map(\.key))
    try keeper.keepContents(rows.compactMap { row in row.blob.map { (row.node, $0 == 0 ? -row.key : $0) } })
    db.enqueue("DELETE FROM nodes WHERE id = ANY($1)", .ints(rows.map(\.key)))
  }
}

// Data of closed accounts
extension PostgresTransaction {
  func removeClosedAccounts(closedBefore: UInt64, limit: Int) throws -> Collected {
    // An account without a keyring was removed before; its chain stays.
    // In the order of the index over closed accounts: by id, every account would be read.
    let query = "SELECT id FROM users WHERE closed_ms < $1 AND keyring IS NOT NULL ORDER BY closed_ms, id LIMIT 1"
    guard let user = try db.first(query, .ms(closedBefore), row: { $0.int(0) }) else {
      return Collected(files: [], isMore: false)
    }
    removeLogin(of: user)
    // First the entries of members, so that no reader sees a part of the data.
    let entries = try removeEntries(of: user, limit: limit)
    guard entries < limit else { return Collected(files: [], isMore: true) }
    let blobs = try removeBlobs(of: user, limit: limit)
    let rows = try removeRows(of: user, limit: limit)
    if !blobs.isMore, rows < limit { try removeTrees(of: user, limit: limit) }
    return Collected(blobs.gone, isMore: true)
  }

  private static let zones = "SELECT z.id FROM trees t JOIN zones z ON z.tree = t.id WHERE t.owner = $1"

  private func removeLogin(of user: Int64) {
    for table in ["devices", "sessions", "handles"] {
      db.enqueue("DELETE FROM \(table) WHERE user_key = $1", .int(user))
    }
    // No words have a random lookup ID. The column must be unique and not null.
    db.enqueue(
      "UPDATE users SET lookup_id = $2, login_key = '' WHERE id = $1 AND login_key <> ''", .int(user),
      .id(LookupID.random()))
  }

  /// Removes at most `limit` rows from each of these tables.
  ///
  /// - Parameter tables: with the columns that identify a row, and a condition for `$1`, the user.
  /// - Returns: the largest number.
  private func remove(
    _ tables: [(name: String, key: String, condition: String)], of user: Int64, limit: Int
  ) throws
    -> Int
  {
    var most = 0
    for table in tables {
      let removed = try db.run(
        """
        DELETE FROM \(table.name) WHERE (\(table.key)) IN (
          SELECT \(table.key) FROM \(table.name) WHERE \(table.condition) LIMIT $2)
        """, .int(user), .int(Int64(limit)))
      most = max(most, removed)
    }
    return most
  }

  private func removeEntries(of user: Int64, limit: Int) throws -> Int {
    let ofZones = "zone IN (\(Self.zones))"
    // Each membership of others in the user's zones has a row in `members`, so it is removed before.
    return try remove(
      [
        ("memberships", "user_key, zone", ofZones), ("memberships", "user_key, zone", "user_key = $1"),
        ("members", "user_id, zone", ofZones), ("envelopes", "id", "inbox IN (\(Self.zones))"),
        ("senders", "inbox, user_id", "inbox IN (\(Self.zones))"),
      ], of: user, limit: limit)
  }

  /// - Returns: also whether there may be more. Another write may have removed some of those that were found, so the number
  ///   of removed rows does not show it.
  private func removeBlobs(of user: Int64, limit: Int) throws -> (gone: [RemovedBlob], isMore: Bool) {
    // UNION would read all rows of the account in each step.
    let doomed = try db.all(
      """
      (SELECT id FROM blobs WHERE zone IN (\(Self.zones)) LIMIT $2)
      UNION ALL (SELECT id FROM blobs WHERE state < 2 AND owner = $1 LIMIT $2)
      """, .int(user), .int(Int64(limit))
    ) { $0.int(0) }
    return (try removeBlobs(doomed), doomed.count >= limit)
  }

  private func removeRows(of user: Int64, limit: Int) throws -> Int {
    let ofZones = "zone IN (\(Self.zones))"
    return try remove(
      [
        ("nodes", "id", ofZones), ("records", "id", ofZones),
        ("grants", "zone, user_id, hash", ofZones), ("acls", "id", ofZones), ("states", "zone, part", ofZones),
        ("commits", "zone, seq", ofZones),
      ], of: user, limit: limit)
  }

  /// Removes empty zones, at most `limit`, and after the last one the trees and the keyring, which ends the removal.
  private func removeTrees(of user: Int64, limit: Int) throws {
    let zones = try db.all("\(Self.zones) ORDER BY z.id LIMIT $2", .int(user), .int(Int64(limit))) { $0.int(0) }
    try flush()
    for table in ["closing", "sums"] { db.enqueue("DELETE FROM \(table) WHERE zone = ANY($1)", .ints(zones)) }
    db.enqueue("DELETE FROM zones WHERE id = ANY($1)", .ints(zones))
    guard zones.count < limit else { return }
    db.enqueue("DELETE FROM trees WHERE owner = $1", .int(user))
    db.enqueue("UPDATE users SET keyring = NULL WHERE id = $1", .int(user))
  }
}

extension Collected {
  fileprivate init(_ gone: [PostgresTransaction.RemovedBlob], isMore: Bool) {
    let (uploads, files) = (gone.filter(\.isUpload), gone.filter { $0.isFile && !$0.isUpload })
    self.init(files: files.map(\.id), uploads: uploads.map(\.id), isMore: isMore)
  }
}

extension PostgresTransaction.RemovedBlob {
  fileprivate var isUpload: Bool { state != BlobRow.State.attached.rawValue }
}
