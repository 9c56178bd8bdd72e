internal import GRDB
internal import ZDCProtocol
internal import ZDCServer

// Members of zones, and the zones that users follow.
extension SQLiteTransaction {
  func permissions(of user: UserID, in zone: ZoneKey) throws -> ZoneACL.Permissions? {
    try db.first(
      "SELECT permissions FROM members WHERE user_id = ? AND zone = ? AND left_seq IS NULL", .id(user),
      .int(zone.rawValue)
    ) { ZoneACL.Permissions(rawValue: UInt16(clamping: $0.int(0))) }
  }

  func member(_ user: UserID, of zone: ZoneKey) throws -> MemberRow? {
    try db.first(
      "SELECT permissions, joined_seq, joined_ms, left_seq FROM members WHERE user_id = ? AND zone = ?", .id(user),
      .int(zone.rawValue)
    ) { row in
      MemberRow(
        permissions: ZoneACL.Permissions(rawValue: UInt16(clamping: row.int(0))), joinedSeq: row.unsigned(1),
        joinedMs: row.unsigned(2), leftSeq: row.isNull(3) ? nil : row.unsigned(3))
    }
  }

  func zones(offeredTo user: UserID, after cursor: UInt64, limit: Int) throws -> [OfferedZone] {
    try db.all(
      """
      SELECT t.tree_id, z.root, z.seq, z.head, m.zone FROM members m JOIN zones z ON z.id = m.zone
      JOIN trees t ON t.id = z.tree JOIN users u ON u.id = t.owner
      WHERE m.user_id = ?1 AND m.zone > ?2 AND m.permissions & 1 AND u.user_id <> ?1 AND z.closed_ms IS NULL
        AND NOT EXISTS (SELECT 1 FROM memberships f JOIN users me ON me.id = f.user
          WHERE me.user_id = ?1 AND f.zone = m.zone AND f.ended_seq IS NULL)
      ORDER BY m.zone LIMIT ?3
      """, .id(user), .ms(cursor), .int(Int64(limit))
    ) { OfferedZone(cursor: $0.unsigned(4), status: try zoneStatus($0)) }
  }

  private static let membershipQuery = """
    SELECT t.tree_id, z.root, f.accepted_ms, f.ended_seq
    FROM memberships f JOIN zones z ON z.id = f.zone JOIN trees t ON t.id = z.tree
    """

  func memberships(of user: UserID) throws -> [MembershipRow] {
    try db.all(
      "\(Self.membershipQuery) WHERE f.user = ? ORDER BY f.accepted_ms, f.zone", .optional(try userKey(user)),
      row: membershipRow)
  }

  func membership(of user: UserID, in zone: ZoneKey) throws -> MembershipRow? {
    try db.first(
      "\(Self.membershipQuery) WHERE f.user = ? AND f.zone = ?", .optional(try userKey(user)), .int(zone.rawValue),
      row: membershipRow)
  }

  private func membershipRow(_ row: SQLRow) throws -> MembershipRow {
    MembershipRow(
      zone: ZoneID(tree: try row.id(0), root: try row.id(1)), acceptedMs: row.unsigned(2),
      endedSeq: row.isNull(3) ? nil : row.unsigned(3))
  }

  func memberCounts(of user: UserID, limit: Int) throws -> MemberCounts {
    let named = "FROM members WHERE user_id = ?1"
    let own = """
      FROM users u JOIN trees t ON t.owner = u.id JOIN zones z ON z.tree = t.id JOIN members m ON m.zone = z.id
      WHERE u.user_id = ?1
      """
    func count(_ rows: String) throws -> Int {
      try db.first("SELECT count(*) FROM (SELECT 1 \(rows) LIMIT ?2)", .id(user), .int(Int64(limit))) { Int($0.int(0)) }
        ?? 0
    }
    return MemberCounts(
      listed: try count("\(named) AND left_seq IS NULL"), removed: try count("\(named) AND left_seq IS NOT NULL"),
      members: try count("\(own) AND m.left_seq IS NULL"), formerMembers: try count("\(own) AND m.left_seq IS NOT NULL")
    )
  }

  private static let nextNumber = "(SELECT coalesce(max(changed), 0) + 1 FROM memberships WHERE user = ?1)"

  func putMembership(of user: UserID, in zone: ZoneKey, now: UInt64) throws {
    guard let key = try userKey(user) else { throw StoreError.damaged }
    try db.run(
      """
      INSERT OR REPLACE INTO memberships(user, zone, changed, mark, accepted_ms, ended_seq)
      VALUES (?1, ?2, \(Self.nextNumber), ?3, ?4, NULL)
      """, .int(key), .int(zone.rawValue), .ms(MembershipMark.randomMark()), .ms(now))
  }

  func removeMembership(of user: UserID, in zone: ZoneKey) throws {
    try db.run(
      "DELETE FROM memberships WHERE user = ? AND zone = ?", .optional(try userKey(user)), .int(zone.rawValue))
  }
}

// Lists of zones
extension SQLiteTransaction {
  private typealias Start = (feedPosition: Int64, number: UInt64)

  func zones(of user: UserID, since position: FeedPosition?) throws -> ZoneChanges {
    guard let key = try userKey(user) else {
      return ZoneChanges(own: [], accepted: [], position: FeedPosition(""))
    }
    let start = try position.flatMap { try self.start($0, of: key) }
    let own = try ownZones(of: key, since: start ?? (0, 0))
    let accepted = try acceptedZones(of: key, since: start ?? (0, 0))
    let newest = (own + accepted).max { $0.feedPosition < $1.feedPosition }
    // A zone that the user no longer follows gives no position: its later commits are not theirs.
    let commit = newest.flatMap { $0.feedPosition > 0 ? $0.status : nil } ?? (start == nil ? nil : position?.commit)
    let (mark, era) = (try newestMark(of: key), try era())
    return ZoneChanges(
      own: own.map(\.status), accepted: accepted.map(\.status),
      position: commit.map { FeedPosition(newest: $0, membership: mark, era: era) } ?? FeedPosition(""))
  }

  private struct ChangedZone {
    var status: ZoneStatus
    /// Zero for a zone that the user no longer follows.
    var feedPosition: Int64
  }

  private func changedZone(_ row: SQLRow) throws -> ChangedZone {
    ChangedZone(status: try zoneStatus(row), feedPosition: row.int(4))
  }

  private func ownZones(of user: Int64, since start: Start) throws -> [ChangedZone] {
    try db.all(
      """
      SELECT t.tree_id, z.root, z.seq, z.head, z.feed_position FROM trees t JOIN zones z ON z.tree = t.id
      WHERE t.owner = ? AND z.feed_position > ? ORDER BY z.feed_position
      """, .int(user), .int(start.feedPosition), row: changedZone)
  }

  private func acceptedZones(of user: Int64, since start: Start) throws -> [ChangedZone] {
    try db.all(
      """
      SELECT t.tree_id, z.root, coalesce(f.ended_seq, z.seq), coalesce(c.hash, z.head),
        CASE WHEN f.ended_seq IS NULL THEN z.feed_position ELSE 0 END AS position
      FROM memberships f JOIN zones z ON z.id = f.zone JOIN trees t ON t.id = z.tree
      LEFT JOIN commits c ON c.zone = f.zone AND c.seq = f.ended_seq
      WHERE f.user = ? AND (f.changed > ? OR (f.ended_seq IS NULL AND z.feed_position > ?)) ORDER BY position
      """, .int(user), .ms(start.number), .int(start.feedPosition), row: changedZone)
  }

  private func newestMark(of user: Int64) throws -> MembershipMark? {
    try db.first("SELECT changed, mark FROM memberships WHERE user = ? ORDER BY changed DESC LIMIT 1", .int(user)) {
      MembershipMark(number: $0.unsigned(0), mark: $0.unsigned(1))
    }
  }

  private func era() throws -> UInt64? { try db.first("SELECT mark FROM era") { $0.unsigned(0) } }

  /// Returns what a position stands for; nil if it is not one of this user and this store.
  private func start(_ position: FeedPosition, of user: Int64) throws -> Start? {
    guard let commit = position.commit, position.era == (try era()) else { return nil }
    let number = try db.first(
      """
      SELECT c.feed_position FROM trees t JOIN zones z ON z.tree = t.id JOIN commits c ON c.zone = z.id
      WHERE t.tree_id = ?1 AND z.root = ?2 AND c.seq = ?3 AND c.hash = ?4
        AND (t.owner = ?5 OR EXISTS (SELECT 1 FROM memberships f WHERE f.user = ?5 AND f.zone = z.id))
      """, .id(commit.zone.tree), .id(commit.zone.root), .ms(commit.seq), .id(commit.head), .int(user)
    ) { $0.int(0) }
    guard let number else { return nil }
    guard let membership = position.membership else { return (number, 0) }
    let isKnown = try db.first(
      "SELECT 1 FROM memberships WHERE user = ? AND changed = ? AND mark = ?", .int(user), .ms(membership.number),
      .ms(membership.mark)
    ) { _ in true }
    return isKnown == true ? (number, membership.number) : nil
  }
}

// Changes of lists
extension SQLiteTransaction {
  /// Brings the members of a zone in line with a new list. Only rows of users whom the list adds, changes or removes are
  /// written.
  func changeMembers(of zone: ZoneKey, to entries: [ZoneACL.Entry], seq: UInt64, at receivedMs: UInt64) throws {
    var known: [UserID: Int64] = [:]
    try db.each("SELECT user_id, permissions FROM members WHERE zone = ? AND left_seq IS NULL", [.int(zone.rawValue)]) {
      known[try $0.id(0)] = $0.int(1)
      return true
    }
    let insert = try db.prepared(
      """
      INSERT OR REPLACE INTO members(user_id, zone, permissions, joined_seq, joined_ms, left_seq)
      VALUES (?, ?, ?, ?, ?, NULL)
      """)
    let update = try db.prepared("UPDATE members SET permissions = ? WHERE user_id = ? AND zone = ?")
    for entry in entries {
      let permissions = Int64(entry.permissions.rawValue)
      guard let old = known.removeValue(forKey: entry.user) else {
        try insert.run(.id(entry.user), .int(zone.rawValue), .int(permissions), .ms(seq), .ms(receivedMs))
        continue
      }
      if old != permissions { try update.run(.int(permissions), .id(entry.user), .int(zone.rawValue)) }
    }
    for user in known.keys { try removeMember(user, from: zone, seq: seq) }
  }

  private func removeMember(_ user: UserID, from zone: ZoneKey, seq: UInt64) throws {
    try db.run(
      "UPDATE members SET permissions = 0, left_seq = ? WHERE user_id = ? AND zone = ?", .ms(seq), .id(user),
      .int(zone.rawValue))
    guard let key = try userKey(user) else { return }
    try db.run(
      """
      UPDATE memberships SET ended_seq = ?3, mark = ?4, changed = \(Self.nextNumber)
      WHERE user = ?1 AND zone = ?2 AND ended_seq IS NULL
      """, .int(key), .int(zone.rawValue), .ms(seq), .ms(MembershipMark.randomMark()))
  }
}
