internal import ZDCProtocol
internal import ZDCServer

// Zones
extension PostgresTransaction {
  static let zoneQuery = """
    SELECT z.id, t.tree_id, z.root, z.seq, z.head, a.bytes, z.retired, z.closed_ms, z.tree
    FROM trees t JOIN zones z ON z.tree = t.id JOIN acls a ON a.id = z.acl
    """

  func zone(_ id: ZoneID) throws -> ZoneRow? {
    try known.zones[id]
      ?? db.first("\(Self.zoneQuery) WHERE t.tree_id = $1 AND z.root = $2", .id(id.tree), .id(id.root), row: zoneRow)
  }

  func zone(ofNode node: NodeID, tree: TreeID) throws -> ZoneRow? {
    guard let key = try treeKey(tree), let place = try zones(ofNodes: [node], tree: key)[node]
    else { return nil }
    return try db.first("\(Self.zoneQuery) WHERE z.id = $1", .int(place.zone.rawValue), row: zoneRow)
  }

  func zone(of tree: TreeID, where user: UserID, holds permission: ZoneACL.Permissions) throws -> ZoneRow? {
    try db.first(
      """
      \(Self.zoneQuery) JOIN members m ON m.zone = z.id AND m.user_id = $1
      WHERE t.tree_id = $2 AND m.permissions & $3::int4 <> 0 AND z.closed_ms IS NULL ORDER BY z.id LIMIT 1
      """, .id(user), .id(tree), .int(Int64(permission.rawValue)), row: zoneRow)
  }

  func zoneRow(_ row: PostgresRow) throws -> ZoneRow {
    let key = ZoneKey(row.int(0))
    let zone = ZoneID(tree: try row.id(1), root: try row.id(2))
    places[key] = (row.int(8), zone.root)
    treeKeys[zone.tree] = row.int(8)
    return ZoneRow(
      key: key, zone: zone, seq: row.unsigned(3), head: try row.id(4), acl: row.bytes(5),
      retiredBelow: try RetiredKeys.decoded(row.bytes(6)), closedMs: row.optionalUnsigned(7))
  }

  func zoneStatus(_ row: PostgresRow) throws -> ZoneStatus {
    ZoneStatus(zone: ZoneID(tree: try row.id(0), root: try row.id(1)), seq: row.unsigned(2), head: try row.id(3))
  }

  func genesisCommits(owner: UserID, appTreeID: String) throws -> [CommitHash] {
    try db.all(
      """
      SELECT c.hash FROM users u JOIN trees t ON t.owner = u.id
      JOIN zones z ON z.tree = t.id AND z.root = substr(t.tree_id, 1, 16) JOIN commits c ON c.zone = z.id AND c.seq = 0
      WHERE u.user_id = $1 AND t.app = $2 ORDER BY t.trunk
      """, .id(owner), .text(appTreeID)
    ) { try $0.id(0) }
  }

  func trees(of owner: UserID) throws -> [TreeRow] {
    try db.all(
      """
      SELECT t.tree_id, t.trunk, t.app FROM users u JOIN trees t ON t.owner = u.id
      WHERE u.user_id = $1 ORDER BY t.app, t.trunk
      """, .id(owner)
    ) { row in
      guard let trunk = Trunk(rawValue: UInt8(clamping: row.int(1))) else { throw PostgresError.damaged }
      return TreeRow(tree: try row.id(0), trunk: trunk, appTreeID: row.text(2))
    }
  }

  func zoneCount(of owner: UserID, limit: Int) throws -> Int {
    try db.first(
      """
      SELECT count(*) FROM (
        SELECT 1 FROM users u JOIN trees t ON t.owner = u.id JOIN zones z ON z.tree = t.id
        WHERE u.user_id = $1 LIMIT $2) c
      """, .id(owner), .int(Int64(limit))
    ) { Int($0.int(0)) } ?? 0
  }

  func treeID(of zone: ZoneKey) throws -> TreeID? {
    try db.first("SELECT t.tree_id FROM zones z JOIN trees t ON t.id = z.tree WHERE z.id = $1", .int(zone.rawValue)) {
      try $0.id(0)
    }
  }

  /// Returns the number of the zone's tree, which its nodes are stored under.
  func tree(of zone: ZoneKey) throws -> Int64 { try place(of: zone).tree }

  /// Returns the number of the zone's tree, and the zone's root.
  func place(of zone: ZoneKey) throws -> (tree: Int64, root: NodeID) {
    if let known = places[zone] { return known }
    let place = try db.first("SELECT tree, root FROM zones WHERE id = $1", .int(zone.rawValue)) {
      (tree: $0.int(0), root: try $0.id(1) as NodeID)
    }
    guard let place else { throw PostgresError.damaged }
    places[zone] = place
    return place
  }

  /// Returns the number that other tables have for a tree.
  func treeKey(_ id: TreeID) throws -> Int64? {
    if let known = treeKeys[id] { return known }
    let key = try db.first("SELECT id FROM trees WHERE tree_id = $1", .id(id)) { $0.int(0) }
    treeKeys[id] = key
    return key
  }

  func lastReceivedMs() throws -> UInt64? {
    try db.first("SELECT max(received_ms) FROM commits") { $0.optionalUnsigned(0) } ?? nil
  }
}

// Logs
extension PostgresTransaction {
  func commit(_ seq: UInt64, of zone: ZoneKey) throws -> StoredCommit? {
    try db.first(
      "SELECT hash, received_ms FROM commits WHERE zone = $1 AND seq = $2", .int(zone.rawValue), .ms(seq)
    ) { StoredCommit(hash: try $0.id(0), receivedMs: $0.unsigned(1)) }
  }

  func commits(
    of zone: ZoneKey, after: UInt64?, withRecords: Bool, _ body: (CommitRow) throws -> Bool
  ) throws {
    let withRecords = try withRecords && closedMs(of: zone) == nil
    var last = after.map { Int64(clamping: $0) } ?? -1
    // Most callers want one commit, or few.
    var count = 2
    while true {
      let page = try commits(of: zone, after: last, limit: count)
      for commit in try withRecords ? addingRecords(to: page, of: zone) : page {
        guard try body(commit) else { return }
      }
      guard page.count == count, let end = page.last else { return }
      last = Int64(clamping: end.seq)
      count = min(count * 4, 32)
    }
  }

  private func commits(of zone: ZoneKey, after: Int64, limit: Int) throws -> [CommitRow] {
    try db.all(
      """
      SELECT c.seq, c.received_ms, c.bytes, a.bytes FROM commits c LEFT JOIN acls a ON a.id = c.acl
      WHERE c.zone = $1 AND c.seq > $2 ORDER BY c.seq LIMIT $3
      """, .int(zone.rawValue), .int(after), .int(Int64(limit))
    ) { row in
      CommitRow(
        seq: row.unsigned(0), receivedMs: row.unsigned(1), bytes: row.bytes(2), acl: row.optionalBytes(3))
    }
  }

  private func addingRecords(to commits: [CommitRow], of zone: ZoneKey) throws -> [CommitRow] {
    guard let (first, last) = commits.first.flatMap({ first in commits.last.map { (first.seq, $0.seq) } }) else {
      return []
    }
    let rows = try db.all(
      """
      SELECT \(Self.recordColumns), put_seq FROM nodes WHERE zone = $1 AND put_seq BETWEEN $2 AND $3
      ORDER BY put_seq, put
      """, .int(zone.rawValue), .ms(first), .ms(last)
    ) { (record: try liveRecord($0), seq: $0.unsigned(6)) }
    // A split may have taken a node away since.
    let zones = try zones(ofNodes: rows.map(\.record.name.node), tree: try tree(of: zone))
    let rowsBySeq = Dictionary(grouping: rows.filter { zones[$0.record.name.node]?.zone == zone }, by: \.seq)
    return commits.map { commit in
      var commit = commit
      for (record, _) in rowsBySeq[commit.seq] ?? [] {
        do { commit.records.append(try record.checked()) } catch {
          commit.damaged.append(RecordDamaged(record.name))
        }
      }
      return commit
    }
  }

  func grant(zone: ZoneKey, user: UserID, hash: GrantHash) throws -> [UInt8]? {
    try db.first(
      "SELECT bytes FROM grants WHERE zone = $1 AND user_id = $2 AND hash = $3", .int(zone.rawValue), .id(user),
      .id(hash)
    ) { $0.bytes(0) }
  }

  func list(before seq: UInt64, of zone: ZoneKey) throws -> [UInt8]? {
    try db.first(
      """
      SELECT a.bytes FROM commits c JOIN acls a ON a.id = c.acl
      WHERE c.zone = $1 AND c.seq < $2 AND c.acl IS NOT NULL ORDER BY c.seq DESC LIMIT 1
      """, .int(zone.rawValue), .ms(seq)
    ) { $0.bytes(0) }
  }

  func stateBytes(of zone: ZoneKey) throws -> UInt64? {
    try db.first("SELECT sum(length(bytes))::int8 FROM states WHERE zone = $1", .int(zone.rawValue)) {
      $0.optionalUnsigned(0)
    } ?? nil
  }

  func statePart(_ index: Int, of zone: ZoneKey) throws -> [UInt8]? {
    try db.first(
      "SELECT bytes FROM states WHERE zone = $1 AND part = $2", .int(zone.rawValue), .int(Int64(index))
    ) { $0.bytes(0) }
  }
}

/// The stored form of the generations that a zone no longer accepts.
enum RetiredKeys {
  static func encoded(_ retired: [UserID: UInt32]) -> [UInt8] {
    var writer = ByteWriter()
    for (user, generation) in retired.sorted(by: { $0.key < $1.key }) {
      writer.append(user)
      writer.append(generation)
    }
    return writer.bytes
  }

  static func decoded(_ bytes: [UInt8]) throws -> [UserID: UInt32] {
    var reader = ByteReader(bytes)
    var retired: [UserID: UInt32] = [:]
    while reader.remaining > 0 {
      let user: UserID = try reader.read32()
      retired[user] = try reader.readUInt32()
    }
    return retired
  }
}
