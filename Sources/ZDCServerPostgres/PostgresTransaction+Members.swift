internal import ZDCProtocol
internal import ZDCServer

// Members of zones, and the zones that users follow.
extension PostgresTransaction {
  func permissions(of user: UserID, in zone: ZoneKey) throws -> ZoneACL.Permissions? {
    try member(user, of: zone).flatMap { $0.leftSeq == nil ? $0.permissions : nil }
  }

  static let memberColumns = "m.permissions, m.joined_seq, m.joined_ms, m.left_seq"

  func member(_ user: UserID, of zone: ZoneKey) throws -> MemberRow? {
    if let member = known.members[zone], member.user == user { return member.row }
    return try db.first(
      "SELECT \(Self.memberColumns) FROM members m WHERE m.user_id = $1 AND m.zone = $2", .id(user),
      .int(zone.rawValue), row: memberRow)
  }

  func memberRow(_ row: PostgresRow) -> MemberRow {
    MemberRow(
      permissions: ZoneACL.Permissions(rawValue: UInt16(clamping: row.int(0))), joinedSeq: row.unsigned(1),
      joinedMs: row.unsigned(2), leftSeq: row.optionalUnsigned(3))
  }

  func zones(offeredTo user: UserID, after cursor: UInt64, limit: Int) throws -> [OfferedZone] {
    try db.all(
      """
      SELECT t.tree_id, z.root, z.seq, z.head, m.zone FROM members m JOIN zones z ON z.id = m.zone
      JOIN trees t ON t.id = z.tree JOIN users u ON u.id = t.owner
      WHERE m.user_id = $1 AND m.zone > $2 AND m.permissions & 1 = 1 AND m.left_seq IS NULL AND u.user_id <> $1
        AND z.closed_ms IS NULL AND NOT EXISTS (SELECT 1 FROM users me JOIN memberships f ON f.user_key = me.id
          WHERE me.user_id = $1 AND f.zone = m.zone AND f.ended_seq IS NULL)
      ORDER BY m.zone LIMIT $3
      """, .id(user), .ms(cursor), .int(Int64(limit))
    ) { OfferedZone(cursor: $0.unsigned(4), status: try zoneStatus($0)) }
  }

  private static let membershipQuery = """
    SELECT t.tree_id, z.root, f.accepted_ms, f.ended_seq FROM users u JOIN memberships f ON f.user_key = u.id
    JOIN zones z ON z.id = f.zone JOIN trees t ON t.id = z.tree WHERE u.user_id = $1
    """

  func memberships(of user: UserID) throws -> [MembershipRow] {
    try db.all("\(Self.membershipQuery) ORDER BY f.accepted_ms, f.zone", .id(user), row: membershipRow)
  }

  func membership(of user: UserID, in zone: ZoneKey) throws -> MembershipRow? {
    try db.first("\(Self.membershipQuery) AND f.zone = $2", .id(user), .int(zone.rawValue), row: membershipRow)
  }

  private func membershipRow(_ row: PostgresRow) throws -> MembershipRow {
    MembershipRow(
      zone: ZoneID(tree: try row.id(0), root: try row.id(1)), acceptedMs: row.unsigned(2),
      endedSeq: row.optionalUnsigned(3))
  }

  func memberCounts(of user: UserID, limit: Int) throws -> MemberCounts {
    let named = "FROM members m WHERE m.user_id = $1"
    let own = """
      FROM users u JOIN trees t ON t.owner = u.id JOIN zones z ON z.tree = t.id JOIN members m ON m.zone = z.id
      WHERE u.user_id = $1
      """
    let rows = [(named, "IS NULL"), (named, "IS NOT NULL"), (own, "IS NULL"), (own, "IS NOT NULL")]
    let counts = rows.map { "(SELECT count(*) FROM (SELECT 1 \($0.0) AND m.left_seq \($0.1) LIMIT $2) c)" }
    let found = try db.first("SELECT \(counts.joined(separator: ", "))", .id(user), .int(Int64(limit))) { row in
      MemberCounts(
        listed: Int(row.int(0)), removed: Int(row.int(1)), members: Int(row.int(2)), formerMembers: Int(row.int(3)))
    }
    return found ?? MemberCounts(listed: 0, removed: 0, members: 0, formerMembers: 0)
  }

  func putMembership(of user: UserID, in zone: ZoneKey, now: UInt64) throws {
    db.enqueue(
      """
      INSERT INTO memberships(user_key, zone, changed, accepted_ms)
      SELECT id, $2, pg_current_xact_id(), $3 FROM users WHERE user_id = $1
      ON CONFLICT (user_key, zone) DO UPDATE
      SET changed = EXCLUDED.changed, accepted_ms = EXCLUDED.accepted_ms, ended_seq = NULL
      """, .id(user), .int(zone.rawValue), .ms(now))
  }

  /// No row is left that says what has changed. So the user's next list has all zones.
  func removeMembership(of user: UserID, in zone: ZoneKey) throws {
    let removed = try db.run(
      """
      DELETE FROM memberships WHERE user_key = (SELECT id FROM users WHERE user_id = $1) AND zone = $2
      """, .id(user), .int(zone.rawValue))
    guard removed > 0 else { return }
    db.enqueue("UPDATE users SET left_xid = pg_current_xact_id() WHERE user_id = $1", .id(user))
  }
}

// Lists of zones
extension PostgresTransaction {
  func zones(of user: UserID, since position: FeedPosition?) throws -> ZoneChanges {
    guard let feed = try feed(of: user) else { return ZoneChanges(own: [], accepted: [], position: FeedPosition("")) }
    let seal = feed.eraKey.map { SnapshotSeal(key: $0, user: user) }
    var start = position.flatMap { seal?.open($0) }
    if let left = feed.left, start?.hasSeen(left) == false { start = nil }
    let own = try ownZones(of: feed.user, since: start ?? .none)
    let accepted = try acceptedZones(of: feed.user, since: start ?? .none)
    // A position stays good as long as nothing has changed.
    if let position, start != nil, own.isEmpty, accepted.isEmpty {
      return ZoneChanges(own: [], accepted: [], position: position)
    }
    return ZoneChanges(own: own, accepted: accepted, position: seal?.seal(feed.now) ?? FeedPosition(""))
  }

  private struct Feed {
    var user: Int64
    var now: Snapshot
    /// Nil right after a crash: no position is given until a connection has begun a new era.
    var eraKey: [UInt8]?
    /// The transaction that last removed a membership.
    var left: UInt64?
  }

  /// The snapshot is read before the zones: a change between them is in this list, and again in the next one.
  private func feed(of user: UserID) throws -> Feed? {
    try db.first(
      """
      SELECT id, pg_current_snapshot()::text, (SELECT key FROM era LIMIT 1), left_xid::text FROM users WHERE user_id = $1
      """, .id(user)
    ) { row in
      guard let now = Snapshot(row.text(1)) else { throw PostgresError.damaged }
      return Feed(
        user: row.int(0), now: now, eraKey: row.optionalBytes(2), left: row.isNull(3) ? nil : UInt64(row.text(3)))
    }
  }

  private func ownZones(of user: Int64, since start: Snapshot) throws -> [ZoneStatus] {
    try db.all(
      """
      SELECT t.tree_id, z.root, z.seq, z.head FROM trees t JOIN zones z ON z.tree = t.id
      WHERE t.owner = $1 AND NOT pg_visible_in_snapshot(z.changed, $2::pg_snapshot) ORDER BY z.changed, z.id
      """, .int(user), .text(start.text), row: zoneStatus)
  }

  private func acceptedZones(of user: Int64, since start: Snapshot) throws -> [ZoneStatus] {
    try db.all(
      """
      SELECT t.tree_id, z.root, coalesce(f.ended_seq, z.seq), coalesce(c.hash, z.head)
      FROM memberships f JOIN zones z ON z.id = f.zone JOIN trees t ON t.id = z.tree
      LEFT JOIN commits c ON c.zone = f.zone AND c.seq = f.ended_seq
      WHERE f.user_key = $1 AND (NOT pg_visible_in_snapshot(f.changed, $2::pg_snapshot)
        OR (f.ended_seq IS NULL AND NOT pg_visible_in_snapshot(z.changed, $2::pg_snapshot)))
      ORDER BY f.ended_seq IS NULL, z.changed, z.id
      """, .int(user), .text(start.text), row: zoneStatus)
  }
}

// Changes of lists
extension PostgresTransaction {
  /// Brings the members of a zone in line with a new list. Only rows of users whom the list adds, changes or removes are
  /// written.
  func changeMembers(of zone: ZoneKey, to entries: [ZoneACL.Entry], seq: UInt64, at receivedMs: UInt64) throws {
    let rows = try db.all(
      "SELECT user_id, permissions FROM members WHERE zone = $1 AND left_seq IS NULL", .int(zone.rawValue)
    ) { (try $0.id(0) as UserID, $0.int(1)) }
    var known = Dictionary(rows, uniquingKeysWith: { first, _ in first })
    let changed = entries.filter { known.removeValue(forKey: $0.user) != Int64($0.permissions.rawValue) }
    if !changed.isEmpty { putMembers(changed, in: zone, seq: seq, at: receivedMs) }
    if !known.isEmpty { removeMembers(known.keys.sorted(), from: zone, seq: seq) }
  }

  /// A member whose permissions change joined before.
  private func putMembers(_ entries: [ZoneACL.Entry], in zone: ZoneKey, seq: UInt64, at receivedMs: UInt64) {
    db.enqueue(
      """
      INSERT INTO members AS m (user_id, zone, permissions, joined_seq, joined_ms)
      SELECT w.id, $3, w.permissions, $4, $5 FROM unnest($1::bytea[], $2::int8[]) AS w(id, permissions)
      ON CONFLICT (user_id, zone) DO UPDATE SET permissions = EXCLUDED.permissions,
        joined_seq = CASE WHEN m.left_seq IS NULL THEN m.joined_seq ELSE EXCLUDED.joined_seq END,
        joined_ms = CASE WHEN m.left_seq IS NULL THEN m.joined_ms ELSE EXCLUDED.joined_ms END, left_seq = NULL
      """, .ids(entries.map(\.user)), .ints(entries.map { Int64($0.permissions.rawValue) }), .int(zone.rawValue),
      .ms(seq), .ms(receivedMs))
  }

  private func removeMembers(_ users: [UserID], from zone: ZoneKey, seq: UInt64) {
    db.enqueue(
      "UPDATE members SET permissions = 0, left_seq = $3 WHERE user_id = ANY($1) AND zone = $2", .ids(users),
      .int(zone.rawValue), .ms(seq))
    db.enqueue(
      """
      UPDATE memberships f SET ended_seq = $3, changed = pg_current_xact_id() FROM users u
      WHERE u.user_id = ANY($1) AND f.user_key = u.id AND f.zone = $2 AND f.ended_seq IS NULL
      """, .ids(users), .int(zone.rawValue), .ms(seq))
  }
}
