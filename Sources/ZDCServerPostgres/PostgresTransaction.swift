internal import ZDCProtocol
internal import ZDCServer

/// A transaction of the store, used inside one closure of `read` or `write`.
final class PostgresTransaction: MetadataTransaction {
  let db: PostgresConnection
  private(set) var effects: [@Sendable () -> Void] = []
  /// Changes of the zones' sums, which are written at the end in the order of the zones: two writes of an owner's zones
  /// never wait for each other's.
  var sums: [Int64: ZoneSums] = [:]
  /// Where small content of live nodes has gone that this transaction replaced, by its number in the contract.
  var movedContents: [Int64: Int64] = [:]
  /// The trees and roots of the zones that were asked for. A zone's tree and root never change.
  var places: [ZoneKey: (tree: Int64, root: NodeID)] = [:]
  /// The numbers of these trees.
  var treeKeys: [TreeID: Int64] = [:]
  /// What was read for the commits that are decided.
  var known = CommitRows()

  init(_ db: PostgresConnection) {
    self.db = db
  }

  func afterCommit(_ effect: @escaping @Sendable () -> Void) { effects.append(effect) }
}

// Accounts
extension PostgresTransaction {
  static let userColumns =
    """
    user_id, lookup_id, login_key, genesis, link_seq, link_head, sign_gen, enc_gen, closed_ms, created_ms, \
    suspended_ms, quota
    """

  func userRow(_ row: PostgresRow) throws -> UserRow {
    UserRow(
      id: try row.id(0), lookup: try row.id(1), loginKey: row.bytes(2), genesis: try row.id(3),
      linkSeq: UInt32(clamping: row.int(4)), linkHead: try row.id(5), signGen: UInt32(clamping: row.int(6)),
      encGen: UInt32(clamping: row.int(7)), closedMs: row.optionalUnsigned(8), createdMs: row.unsigned(9),
      suspendedMs: row.optionalUnsigned(10), quotaBytes: row.optionalUnsigned(11))
  }

  func users(after id: UserID?, limit: Int) throws -> [UserRow] {
    try db.all(
      "SELECT \(Self.userColumns) FROM users WHERE user_id > $1 ORDER BY user_id LIMIT $2",
      id.map { .id($0) } ?? .bytes([]), .int(Int64(limit)), row: userRow)
  }

  func user(_ id: UserID) throws -> UserRow? { try known.users[id] ?? users([id])[id] }

  func users(_ ids: [UserID]) throws -> [UserID: UserRow] {
    let rows = try db.all(
      "SELECT \(Self.userColumns) FROM users WHERE user_id = ANY($1)", .ids(ids), row: userRow)
    return Dictionary(rows.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
  }

  func user(lookup: LookupID) throws -> UserRow? {
    try db.first("SELECT \(Self.userColumns) FROM users WHERE lookup_id = $1", .id(lookup), row: userRow)
  }

  func insertUser(_ user: UserRow) throws {
    db.enqueue(
      "INSERT INTO users(\(Self.userColumns)) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)", .id(user.id),
      .id(user.lookup), .bytes(user.loginKey), .id(user.genesis), .int(Int64(user.linkSeq)), .id(user.linkHead),
      .int(Int64(user.signGen)), .int(Int64(user.encGen)), .ms(user.closedMs), .ms(user.createdMs),
      .ms(user.suspendedMs), .ms(user.quotaBytes))
  }

  func updateUser(_ user: UserRow) throws {
    known.users[user.id] = nil
    db.enqueue(
      """
      UPDATE users SET lookup_id = $1, login_key = $2, link_seq = $3, link_head = $4, sign_gen = $5, enc_gen = $6,
        closed_ms = $7, suspended_ms = $8, quota = $9
      WHERE user_id = $10
      """, .id(user.lookup), .bytes(user.loginKey), .int(Int64(user.linkSeq)), .id(user.linkHead),
      .int(Int64(user.signGen)), .int(Int64(user.encGen)), .ms(user.closedMs),
      .ms(user.suspendedMs), .ms(user.quotaBytes), .id(user.id))
  }

  func links(of user: UserID) throws -> [[UInt8]] {
    try links(after: [ChainPosition(user: user, count: 0)], limit: .max)
  }

  func links(after positions: [ChainPosition], limit: Int) throws -> [[UInt8]] {
    let rows = try db.all(
      """
      SELECT w.number, l.bytes FROM unnest($1::bytea[], $2::int8[]) WITH ORDINALITY AS w(id, count, number)
      JOIN users u ON u.user_id = w.id JOIN links l ON l.user_key = u.id AND l.seq >= w.count
      ORDER BY w.number, l.seq
      """, .ids(positions.map(\.user)), .ints(positions.map { Int64($0.count) })
    ) { (number: $0.int(0), bytes: $0.bytes(1)) }
    let linksByNumber = Dictionary(grouping: rows, by: \.number)
    var all: [[UInt8]] = []
    var bytes = 0
    for (_, links) in linksByNumber.sorted(by: { $0.key < $1.key }) {
      bytes += links.reduce(0) { $0 + $1.bytes.count }
      if !all.isEmpty, bytes > limit { break }
      all += links.map(\.bytes)
    }
    return all
  }

  func link(_ seq: UInt32, of user: UserID) throws -> [UInt8]? {
    try db.first(
      "SELECT l.bytes FROM users u JOIN links l ON l.user_key = u.id WHERE u.user_id = $1 AND l.seq = $2", .id(user),
      .int(Int64(seq))
    ) { $0.bytes(0) }
  }

  func chainBytes(of user: UserID) throws -> Int {
    try db.first(
      """
      SELECT coalesce(sum(length(l.bytes)), 0)::int8 FROM users u JOIN links l ON l.user_key = u.id WHERE u.user_id = $1
      """, .id(user)
    ) { Int($0.int(0)) } ?? 0
  }

  func appendLink(_ link: IdentityLink, to user: UserID) throws {
    db.enqueue(
      "INSERT INTO links(user_key, seq, bytes) SELECT id, $1, $2 FROM users WHERE user_id = $3", .int(Int64(link.seq)),
      .bytes(link.bytes), .id(user))
    db.enqueue(
      """
      INSERT INTO sign_keys(user_key, gen, key) SELECT id, $1, $2 FROM users WHERE user_id = $3 ON CONFLICT DO NOTHING
      """, .int(Int64(link.signGen)), .bytes(link.signPub), .id(user))
  }

  func signKey(user: UserID, generation: UInt32) throws -> [UInt8]? {
    if let key = known.writerKey, key.user == user, key.generation == generation { return key.bytes }
    return try db.first(
      "SELECT k.key FROM users u JOIN sign_keys k ON k.user_key = u.id WHERE u.user_id = $1 AND k.gen = $2", .id(user),
      .int(Int64(generation))
    ) { $0.bytes(0) }
  }

  func keyring(of user: UserID) throws -> [UInt8]? {
    try db.first("SELECT keyring FROM users WHERE user_id = $1 AND keyring IS NOT NULL", .id(user)) { $0.bytes(0) }
  }

  func setKeyring(_ bytes: [UInt8], of user: UserID) throws {
    db.enqueue("UPDATE users SET keyring = $1 WHERE user_id = $2", .bytes(bytes), .id(user))
  }

  func isInviteUsed(_ codeHash: [UInt8]) throws -> Bool {
    try db.first("SELECT 1 FROM invites WHERE code_hash = $1", .bytes(codeHash)) { _ in true } ?? false
  }

  func useInvite(_ codeHash: [UInt8], user: UserID, now: UInt64) throws {
    db.enqueue("INSERT INTO invites(code_hash, used_ms) VALUES ($1, $2)", .bytes(codeHash), .ms(now))
  }

  func handles(beginning: String, limit: Int) throws -> [HandleList.Entry] {
    let text = Array(beginning.utf8)
    return try db.all(
      """
      SELECT h.handle, u.user_id FROM handles h JOIN users u ON u.id = h.user_key
      WHERE h.handle >= $1 AND h.handle < $2 AND h.released_ms IS NULL ORDER BY h.handle LIMIT $3
      """, .bytes(text), .bytes(text + [0xff]), .int(Int64(limit))
    ) { row in
      try Handle(String(decoding: row.bytes(0), as: UTF8.self)).map {
        HandleList.Entry(handle: $0, user: try row.id(1))
      }
    }.compactMap(\.self)
  }

  func handles(of user: UserID) throws -> [HandleRow] {
    try db.all(
      """
      SELECT h.handle, h.released_ms FROM handles h JOIN users u ON u.id = h.user_key WHERE u.user_id = $1
      ORDER BY h.handle
      """, .id(user)
    ) { row in
      Handle(String(decoding: row.bytes(0), as: UTF8.self))
        .map { HandleRow(handle: $0, releasedMs: row.optionalUnsigned(1)) }
    }.compactMap(\.self)
  }

  /// The insert decides who gets the handle: two users may ask for it at the same time. If it refuses, the caller's error
  /// undoes the statements before it.
  func setHandle(_ handle: Handle?, of user: UserID, now: UInt64, freeBefore: UInt64) throws -> Bool {
    guard let key = try userKey(user) else { return false }
    if let handle {
      let taken = try db.first(
        """
        INSERT INTO handles AS h (handle, user_key, released_ms) VALUES ($1, $2, NULL)
        ON CONFLICT (handle) DO UPDATE SET user_key = excluded.user_key, released_ms = NULL
          WHERE h.user_key = excluded.user_key OR h.released_ms < $3
        RETURNING 1
        """, .bytes(Array(handle.text.utf8)), .int(key), .ms(freeBefore)
      ) { _ in true }
      guard taken == true else { return false }
    }
    let new = PostgresValue.bytes(Array(handle?.text.utf8 ?? "".utf8))
    db.enqueue("DELETE FROM handles WHERE user_key = $1 AND released_ms IS NOT NULL", .int(key))
    db.enqueue("UPDATE handles SET released_ms = $1 WHERE user_key = $2 AND handle <> $3", .ms(now), .int(key), new)
    return true
  }

  /// Returns the number that other tables have for a user.
  func userKey(_ id: UserID?) throws -> Int64? {
    guard let id else { return nil }
    return try db.first("SELECT id FROM users WHERE user_id = $1", .id(id)) { $0.int(0) }
  }
}
