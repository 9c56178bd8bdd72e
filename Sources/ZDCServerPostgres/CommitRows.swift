internal import ZDCProtocol
internal import ZDCServer

/// Rows that decisions about commits ask for, read in one round trip. They hold until the commits are applied.
struct CommitRows {
  var zones: [ZoneID: ZoneRow] = [:]
  /// The writer, and the owners of the zones.
  var users: [UserID: UserRow] = [:]
  /// The writer as a member of the zones.
  var members: [ZoneKey: (user: UserID, row: MemberRow)] = [:]
  var writerKey: (user: UserID, generation: UInt32, bytes: [UInt8])?
}

extension PostgresTransaction {
  func prefetchCommits(of user: UserID, to zones: [ZoneID]) throws {
    var rows = CommitRows()
    try db.fetch([
      query("\(Self.zoneQuery) JOIN \(Self.named) ON w.tree = t.tree_id AND w.root = z.root", zones) { row in
        let zone = try self.zoneRow(row)
        rows.zones[zone.zone] = zone
      },
      query(
        """
        SELECT \(Self.memberColumns), m.zone FROM \(Self.named) JOIN trees t ON t.tree_id = w.tree
        JOIN zones z ON z.tree = t.id AND z.root = w.root JOIN members m ON m.zone = z.id AND m.user_id = $3
        """, zones, user
      ) { row in rows.members[ZoneKey(row.int(4))] = (user, self.memberRow(row)) },
      PostgresQuery(
        """
        SELECT \(Self.userColumns) FROM users WHERE user_id = $1
        UNION ALL SELECT \(Self.userColumns) FROM unnest($2::bytea[]) AS w(tree)
        CROSS JOIN LATERAL (SELECT t.owner FROM trees t WHERE t.tree_id = w.tree LIMIT 1) t
        JOIN users ON users.id = t.owner WHERE user_id <> $1
        """, [.id(user), .ids(Array(Set(zones.map(\.tree))))]
      ) { row in
        let found = try self.userRow(row)
        rows.users[found.id] = found
      },
      PostgresQuery(
        """
        SELECT k.gen, k.key FROM users u JOIN sign_keys k ON k.user_key = u.id AND k.gen = u.sign_gen WHERE u.user_id = $1
        """, [.id(user)]
      ) { row in rows.writerKey = (user, UInt32(clamping: row.int(0)), row.bytes(1)) },
    ])
    known = rows
  }

  private static let named = "unnest($1::bytea[], $2::bytea[]) AS w(tree, root)"

  private func query(
    _ sql: String, _ zones: [ZoneID], _ user: UserID? = nil, row: @escaping (PostgresRow) throws -> Void
  ) -> PostgresQuery {
    let names: [PostgresValue] = [.ids(zones.map(\.tree)), .ids(zones.map(\.root))]
    return PostgresQuery(sql, names + (user.map { [.id($0)] } ?? []), row: row)
  }
}
