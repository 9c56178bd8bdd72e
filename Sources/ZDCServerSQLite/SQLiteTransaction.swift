internal import GRDB
internal import ZDCProtocol
internal import ZDCServer

/// A transaction of the store, valid inside one closure of `read` or `write`.
final class SQLiteTransaction: MetadataTransaction {
  private var database: Database?
  private(set) var effects: [@Sendable () -> Void] = []
  /// The most recently used zone and its tree: one commit queries the same one thousands of times.
  var treeOfZone: (zone: ZoneKey, tree: Int64)?
  var keyOfTree: (tree: TreeID, key: Int64)?
  var zoneCache = ZoneCache()
  var commitCache = CommitCache()
  /// Where small content of live nodes has gone that this transaction replaced, by its number in the contract.
  var movedContents: [Int64: Int64] = [:]

  init(_ database: Database) {
    self.database = database
  }

  /// Ends the transaction when the block has returned. Any later use is a programmer error and traps.
  func invalidate() { database = nil }

  var db: Database {
    guard let database else { preconditionFailure("a transaction was used after its block returned") }
    return database
  }

  func afterCommit(_ effect: @escaping @Sendable () -> Void) { effects.append(effect) }
}

// Accounts
extension SQLiteTransaction {
  private static let userColumns =
    """
    user_id, lookup_id, login_key, genesis, link_seq, link_head, sign_gen, enc_gen, closed_ms, created_ms, \
    suspended_ms, quota
    """

  func user(_ id: UserID) throws -> UserRow? {
    try db.first("SELECT \(Self.userColumns) FROM users WHERE user_id = ?", .id(id), row: userRow)
  }

  func users(_ ids: [UserID]) throws -> [UserID: UserRow] {
    let query = try db.prepared("SELECT \(Self.userColumns) FROM users WHERE user_id = ?")
    return try ids.reduce(into: [:]) { $0[$1] = try query.first(.id($1), row: userRow) }
  }

  func user(lookup: LookupID) throws -> UserRow? {
    try db.first("SELECT \(Self.userColumns) FROM users WHERE lookup_id = ?", .id(lookup), row: userRow)
  }

  private func userRow(_ row: SQLRow) throws -> UserRow {
    UserRow(
      id: try row.id(0), lookup: try row.id(1), loginKey: row.bytes(2), genesis: try row.id(3),
      linkSeq: UInt32(clamping: row.int(4)), linkHead: try row.id(5), signGen: UInt32(clamping: row.int(6)),
      encGen: UInt32(clamping: row.int(7)), closedMs: row.isNull(8) ? nil : row.unsigned(8), createdMs: row.unsigned(9),
      suspendedMs: row.isNull(10) ? nil : row.unsigned(10), quotaBytes: row.isNull(11) ? nil : row.unsigned(11))
  }

  func users(after id: UserID?, limit: Int) throws -> [UserRow] {
    var users: [UserRow] = []
    let query = "SELECT \(Self.userColumns) FROM users WHERE user_id > ? ORDER BY user_id LIMIT ?"
    try db.each(query, [id.map { .id($0) } ?? .bytes([]), .int(Int64(limit))]) { row in
      users.append(try userRow(row))
      return true
    }
    return users
  }

  func insertUser(_ user: UserRow) throws {
    try db.run(
      "INSERT INTO users(\(Self.userColumns)) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", .id(user.id),
      .id(user.lookup),
      .bytes(user.loginKey), .id(user.genesis), .int(Int64(user.linkSeq)), .id(user.linkHead),
      .int(Int64(user.signGen)), .int(Int64(user.encGen)), .optionalMs(user.closedMs), .ms(user.createdMs),
      .optionalMs(user.suspendedMs), .optionalMs(user.quotaBytes))
  }

  func updateUser(_ user: UserRow) throws {
    try db.run(
      """
      UPDATE users SET lookup_id = ?, login_key = ?, link_seq = ?, link_head = ?, sign_gen = ?, enc_gen = ?,
        closed_ms = ?, suspended_ms = ?, quota = ?
      WHERE user_id = ?
      """, .id(user.lookup), .bytes(user.loginKey), .int(Int64(user.linkSeq)), .id(user.linkHead),
      .int(Int64(user.signGen)), .int(Int64(user.encGen)), .optionalMs(user.closedMs),
      .optionalMs(user.suspendedMs), .optionalMs(user.quotaBytes), .id(user.id))
  }

  func links(of user: UserID) throws -> [[UInt8]] {
    try links(after: [ChainPosition(user: user, count: 0)], limit: .max)
  }

  func links(after positions: [ChainPosition], limit: Int) throws -> [[UInt8]] {
    let query = try db.prepared(
      "SELECT l.bytes FROM links l JOIN users u ON u.id = l.user WHERE u.user_id = ? AND l.seq >= ? ORDER BY l.seq")
    var all: [[UInt8]] = []
    var bytes = 0
    for position in positions {
      let links = try query.all(.id(position.user), .int(Int64(position.count))) { $0.bytes(0) }
      bytes += links.reduce(0) { $0 + $1.count }
      if !all.isEmpty, bytes > limit { break }
      all += links
    }
    return all
  }

  func link(_ seq: UInt32, of user: UserID) throws -> [UInt8]? {
    try db.first(
      "SELECT l.bytes FROM links l JOIN users u ON u.id = l.user WHERE u.user_id = ? AND l.seq = ?", .id(user),
      .int(Int64(seq))
    ) { $0.bytes(0) }
  }

  func chainBytes(of user: UserID) throws -> Int {
    try db.first(
      "SELECT coalesce(sum(length(l.bytes)), 0) FROM links l JOIN users u ON u.id = l.user WHERE u.user_id = ?",
      .id(user)
    ) { Int($0.int(0)) } ?? 0
  }

  func appendLink(_ link: IdentityLink, to user: UserID) throws {
    try db.run(
      "INSERT INTO links(user, seq, bytes) SELECT id, ?, ? FROM users WHERE user_id = ?", .int(Int64(link.seq)),
      .bytes(link.bytes), .id(user))
    try db.run(
      "INSERT OR IGNORE INTO sign_keys(user, gen, key) SELECT id, ?, ? FROM users WHERE user_id = ?",
      .int(Int64(link.signGen)), .bytes(link.signPub), .id(user))
  }

  func signKey(user: UserID, generation: UInt32) throws -> [UInt8]? {
    try db.first(
      "SELECT k.key FROM sign_keys k JOIN users u ON u.id = k.user WHERE u.user_id = ? AND k.gen = ?", .id(user),
      .int(Int64(generation))
    ) { $0.bytes(0) }
  }

  func keyring(of user: UserID) throws -> [UInt8]? {
    try db.first("SELECT keyring FROM users WHERE user_id = ? AND keyring IS NOT NULL", .id(user)) { $0.bytes(0) }
  }

  func setKeyring(_ bytes: [UInt8], of user: UserID) throws {
    try db.run("UPDATE users SET keyring = ? WHERE user_id = ?", .bytes(bytes), .id(user))
  }

  func isInviteUsed(_ codeHash: [UInt8]) throws -> Bool {
    try db.first("SELECT 1 FROM invites WHERE code_hash = ?", .bytes(codeHash)) { _ in true } ?? false
  }

  func useInvite(_ codeHash: [UInt8], user: UserID, now: UInt64) throws {
    // The account's row is inserted later in the same transaction; its key is not known yet.
    try db.run("INSERT INTO invites(code_hash, user, used_ms) VALUES (?, 0, ?)", .bytes(codeHash), .ms(now))
  }

  func handles(beginning: String, limit: Int) throws -> [HandleList.Entry] {
    let text = Array(beginning.utf8)
    return try db.all(
      """
      SELECT h.handle, u.user_id FROM handles h JOIN users u ON u.id = h.user
      WHERE h.handle >= ? AND h.handle < ? AND h.released_ms IS NULL ORDER BY h.handle LIMIT ?
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
      SELECT h.handle, h.released_ms FROM handles h JOIN users u ON u.id = h.user WHERE u.user_id = ? ORDER BY h.handle
      """, .id(user)
    ) { row in
      Handle(String(decoding: row.bytes(0), as: UTF8.self))
        .map { HandleRow(handle: $0, releasedMs: row.isNull(1) ? nil : row.unsigned(1)) }
    }.compactMap(\.self)
  }

  func setHandle(_ handle: Handle?, of user: UserID, now: UInt64, freeBefore: UInt64) throws -> Bool {
    guard let key = try userKey(user) else { return false }
    if let handle {
      let other = try db.first(
        "SELECT 1 FROM handles WHERE handle = ? AND user <> ? AND (released_ms IS NULL OR released_ms >= ?)",
        .bytes(Array(handle.text.utf8)), .int(key), .ms(freeBefore)
      ) { _ in true }
      guard other == nil else { return false }
    }
    try db.run("DELETE FROM handles WHERE user = ? AND released_ms IS NOT NULL", .int(key))
    try db.run("UPDATE handles SET released_ms = ? WHERE user = ?", .ms(now), .int(key))
    guard let handle else { return true }
    try db.run(
      "INSERT OR REPLACE INTO handles(handle, user, released_ms) VALUES (?, ?, NULL)", .bytes(Array(handle.text.utf8)),
      .int(key))
    return true
  }
}

// Devices and sessions
extension SQLiteTransaction {
  func device(_ id: DeviceID, of user: UserID) throws -> DeviceRow? {
    try db.first(
      """
      SELECT d.device_id, d.key, d.created_ms FROM devices d JOIN users u ON u.id = d.user
      WHERE u.user_id = ? AND d.device_id = ?
      """, .id(user), .id(id), row: deviceRow)
  }

  func devices(of user: UserID) throws -> [DeviceRow] {
    try db.all(
      """
      SELECT d.device_id, d.key, d.created_ms FROM devices d JOIN users u ON u.id = d.user
      WHERE u.user_id = ? ORDER BY d.created_ms, d.device_id
      """, .id(user), row: deviceRow)
  }

  private func deviceRow(_ row: SQLRow) throws -> DeviceRow {
    DeviceRow(id: try row.id(0), key: row.bytes(1), createdMs: row.unsigned(2))
  }

  func putDevice(_ device: DeviceRow, of user: UserID) throws {
    try db.run(
      "INSERT OR REPLACE INTO devices(user, device_id, key, created_ms) SELECT id, ?, ?, ? FROM users WHERE user_id = ?",
      .id(device.id), .bytes(device.key), .ms(device.createdMs), .id(user))
  }

  func removeDevice(_ id: DeviceID, of user: UserID) throws {
    for table in ["devices", "sessions"] {
      try db.run(
        "DELETE FROM \(table) WHERE user = (SELECT id FROM users WHERE user_id = ?) AND device_id = ?", .id(user),
        .id(id))
    }
  }

  func trimDevices(of user: UserID, keeping count: Int) throws -> [DeviceID] {
    guard let key = try userKey(user) else { return [] }
    let all = try db.first("SELECT count(*) FROM devices WHERE user = ?", .int(key)) { Int($0.int(0)) } ?? 0
    guard all > count else { return [] }
    // SQLite sorts NULL first: devices without a session.
    let gone = try db.all(
      """
      SELECT d.device_id FROM devices d LEFT JOIN sessions s ON s.user = d.user AND s.device_id = d.device_id
      WHERE d.user = ? GROUP BY d.device_id ORDER BY max(s.created_ms), d.created_ms, d.device_id LIMIT ?
      """, .int(key), .int(Int64(all - count))
    ) { try $0.id(0) as DeviceID }
    for device in gone { try removeDevice(device, of: user) }
    return gone
  }

  private static let sessionQuery =
    "SELECT s.token_hash, u.user_id, s.device_id, s.created_ms, s.expires_ms FROM sessions s JOIN users u ON u.id = s.user"

  func session(tokenHash: [UInt8]) throws -> SessionRow? {
    try db.first("\(Self.sessionQuery) WHERE s.token_hash = ?", .bytes(tokenHash), row: sessionRow)
  }

  func sessions(of user: UserID) throws -> [SessionRow] {
    try db.all("\(Self.sessionQuery) WHERE u.user_id = ? ORDER BY s.created_ms", .id(user), row: sessionRow)
  }

  private func sessionRow(_ row: SQLRow) throws -> SessionRow {
    SessionRow(
      tokenHash: row.bytes(0), user: try row.id(1), device: try row.id(2), createdMs: row.unsigned(3),
      expiresMs: row.unsigned(4))
  }

  func insertSession(_ session: SessionRow) throws {
    try db.run(
      """
      INSERT INTO sessions(token_hash, user, device_id, created_ms, expires_ms)
      SELECT ?, id, ?, ?, ? FROM users WHERE user_id = ?
      """, .bytes(session.tokenHash), .id(session.device), .ms(session.createdMs), .ms(session.expiresMs),
      .id(session.user))
  }

  func removeSession(tokenHash: [UInt8]) throws {
    try db.run("DELETE FROM sessions WHERE token_hash = ?", .bytes(tokenHash))
  }

  func trimSessions(of user: UserID, device: DeviceID, keeping count: Int) throws -> [[UInt8]] {
    let ended = try db.all(
      """
      SELECT s.token_hash FROM sessions s JOIN users u ON u.id = s.user WHERE u.user_id = ? AND s.device_id = ?
      ORDER BY s.expires_ms DESC, s.created_ms DESC LIMIT -1 OFFSET ?
      """, .id(user), .id(device), .int(Int64(count))
    ) { $0.bytes(0) }
    for hash in ended { try removeSession(tokenHash: hash) }
    return ended
  }

  func removeExpiredSessions(now: UInt64) throws {
    try db.run("DELETE FROM sessions WHERE expires_ms <= ?", .ms(now))
  }
}
