internal import GRDB
internal import ZDCProtocol
internal import ZDCServer

// Zones
extension SQLiteTransaction {
  private static let zoneQuery = """
    SELECT z.id, t.tree_id, z.root, z.seq, z.head, a.bytes, z.retired, z.closed_ms
    FROM zones z JOIN trees t ON t.id = z.tree JOIN acls a ON a.id = z.acl
    """

  func zone(_ id: ZoneID) throws -> ZoneRow? {
    try db.first("\(Self.zoneQuery) WHERE t.tree_id = ? AND z.root = ?", .id(id.tree), .id(id.root), row: zoneRow)
  }

  func zone(ofNode node: NodeID, tree: TreeID) throws -> ZoneRow? {
    guard let tree = try key(of: tree), let node = try liveNode(node, tree: tree),
      let zone = try zoneKey(of: node, tree: tree)
    else { return nil }
    return try db.first("\(Self.zoneQuery) WHERE z.id = ?", .int(zone.rawValue), row: zoneRow)
  }

  func zone(of tree: TreeID, where user: UserID, holds permission: ZoneACL.Permissions) throws -> ZoneRow? {
    try db.first(
      """
      \(Self.zoneQuery) JOIN members m ON m.zone = z.id AND m.user_id = ?
      WHERE t.tree_id = ? AND m.permissions & ? <> 0 AND z.closed_ms IS NULL ORDER BY z.id LIMIT 1
      """, .id(user), .id(tree), .int(Int64(permission.rawValue)), row: zoneRow)
  }

  private func zoneRow(_ row: SQLRow) throws -> ZoneRow {
    ZoneRow(
      key: ZoneKey(row.int(0)), zone: ZoneID(tree: try row.id(1), root: try row.id(2)), seq: row.unsigned(3),
      head: try row.id(4), acl: row.bytes(5), retiredBelow: try retired(row.bytes(6)),
      closedMs: row.isNull(7) ? nil : row.unsigned(7))
  }

  func zoneStatus(_ row: SQLRow) throws -> ZoneStatus {
    ZoneStatus(
      zone: ZoneID(tree: try row.id(0), root: try row.id(1)), seq: row.unsigned(2), head: try row.id(3))
  }

  func genesisCommits(owner: UserID, appTreeID: String) throws -> [CommitHash] {
    try db.all(
      """
      SELECT c.hash FROM trees t JOIN users u ON u.id = t.owner
      JOIN zones z ON z.tree = t.id AND z.root = substr(t.tree_id, 1, 16) JOIN commits c ON c.zone = z.id AND c.seq = 0
      WHERE u.user_id = ? AND t.app = ? ORDER BY t.trunk
      """, .id(owner), .text(appTreeID)
    ) { try $0.id(0) }
  }

  func trees(of owner: UserID) throws -> [TreeRow] {
    try db.all(
      """
      SELECT t.tree_id, t.trunk, t.app FROM trees t JOIN users u ON u.id = t.owner
      WHERE u.user_id = ? ORDER BY t.app, t.trunk
      """, .id(owner)
    ) { row in
      guard let trunk = Trunk(rawValue: UInt8(clamping: row.int(1))) else { throw StoreError.damaged }
      return TreeRow(tree: try row.id(0), trunk: trunk, appTreeID: row.text(2))
    }
  }

  func zoneCount(of owner: UserID, limit: Int) throws -> Int {
    try db.first(
      """
      SELECT count(*) FROM (
        SELECT 1 FROM users u JOIN trees t ON t.owner = u.id JOIN zones z ON z.tree = t.id WHERE u.user_id = ? LIMIT ?)
      """, .id(owner), .int(Int64(limit))
    ) { Int($0.int(0)) } ?? 0
  }

  func treeID(of zone: ZoneKey) throws -> TreeID? {
    try db.first(
      "SELECT t.tree_id FROM zones z JOIN trees t ON t.id = z.tree WHERE z.id = ?", .int(zone.rawValue)
    ) { try $0.id(0) }
  }

  func lastReceivedMs() throws -> UInt64? {
    try db.first("SELECT received_ms FROM commits ORDER BY feed_position DESC LIMIT 1") { $0.unsigned(0) }
  }

  private func retired(_ bytes: [UInt8]) throws -> [UserID: UInt32] {
    var reader = ByteReader(bytes)
    var retired: [UserID: UInt32] = [:]
    while reader.remaining > 0 {
      let user: UserID = try reader.read32()
      retired[user] = try reader.readUInt32()
    }
    return retired
  }
}

// Logs
extension SQLiteTransaction {
  func commit(_ seq: UInt64, of zone: ZoneKey) throws -> StoredCommit? {
    try db.first(
      "SELECT hash, received_ms FROM commits WHERE zone = ? AND seq = ?", .int(zone.rawValue), .ms(seq)
    ) { StoredCommit(hash: try $0.id(0), receivedMs: $0.unsigned(1)) }
  }

  func commits(
    of zone: ZoneKey, after: UInt64?, withRecords: Bool, _ body: (CommitRow) throws -> Bool
  ) throws {
    let sql = """
      SELECT c.seq, c.received_ms, c.bytes, a.bytes, c.feed_position, c.first_node, c.last_node
      FROM commits c LEFT JOIN acls a ON a.id = c.acl WHERE c.zone = ? AND c.seq > ? ORDER BY c.seq
      """
    let start = after.map { Int64(clamping: $0) } ?? -1
    let withRecords = try withRecords && closedMs(of: zone) == nil
    try db.each(sql, [.int(zone.rawValue), .int(start)]) { row in
      var commit = CommitRow(
        seq: row.unsigned(0), receivedMs: row.unsigned(1), bytes: row.bytes(2), acl: row.isNull(3) ? nil : row.bytes(3))
      if withRecords {
        let key = row.int(4)
        commitCache.insert(try CommitPuts(zone: zone, receivedMs: commit.receivedMs, bytes: commit.bytes), key: key)
        let new = row.optionalInt(5).flatMap { first in row.optionalInt(6).map { first...max(first, $0) } }
        try add(try liveNodes(ofCommit: key, new: new).filter { try isIn(zone, $0) }, to: &commit)
      }
      return try body(commit)
    }
  }

  /// Whether a node that a commit of this zone put is still in it. A split may have taken it away since.
  private func isIn(_ zone: ZoneKey, _ node: LiveNode) throws -> Bool {
    try zoneKey(of: node, tree: try tree(of: zone)) == zone
  }

  private func add(_ nodes: [LiveNode], to commit: inout CommitRow) throws {
    for node in nodes {
      do { commit.records.append(try node.storedRecord()) } catch let damage as RecordDamaged {
        commit.damaged.append(damage)
      }
    }
  }

  func list(before seq: UInt64, of zone: ZoneKey) throws -> [UInt8]? {
    try db.first(
      """
      SELECT a.bytes FROM commits c JOIN acls a ON a.id = c.acl
      WHERE c.zone = ? AND c.seq < ? AND c.acl IS NOT NULL ORDER BY c.seq DESC LIMIT 1
      """, .int(zone.rawValue), .ms(seq)
    ) { $0.bytes(0) }
  }

  func stateBytes(of zone: ZoneKey) throws -> UInt64? {
    try db.first("SELECT sum(length(bytes)) FROM states WHERE zone = ?", .int(zone.rawValue)) { row in
      row.isNull(0) ? nil : row.unsigned(0)
    } ?? nil
  }

  func statePart(_ index: Int, of zone: ZoneKey) throws -> [UInt8]? {
    try db.first(
      "SELECT bytes FROM states WHERE zone = ? AND part = ?", .int(zone.rawValue), .int(Int64(index))
    ) { $0.bytes(0) }
  }

  func acl(_ key: Int64) throws -> [UInt8]? {
    try db.first("SELECT bytes FROM acls WHERE id = ?", .int(key)) { $0.bytes(0) }
  }

  func grant(zone: ZoneKey, user: UserID, hash: GrantHash) throws -> [UInt8]? {
    try db.first(
      "SELECT bytes FROM grants WHERE zone = ? AND user_id = ? AND hash = ?", .int(zone.rawValue), .id(user), .id(hash)
    ) { $0.bytes(0) }
  }
}
