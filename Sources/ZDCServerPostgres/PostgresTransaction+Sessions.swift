internal import ZDCProtocol
internal import ZDCServer

// Devices and sessions
extension PostgresTransaction {
  private static let deviceQuery =
    "SELECT d.device_id, d.key, d.created_ms FROM users u JOIN devices d ON d.user_key = u.id WHERE u.user_id = $1"

  func device(_ id: DeviceID, of user: UserID) throws -> DeviceRow? {
    try db.first("\(Self.deviceQuery) AND d.device_id = $2", .id(user), .id(id), row: deviceRow)
  }

  func devices(of user: UserID) throws -> [DeviceRow] {
    try db.all("\(Self.deviceQuery) ORDER BY d.created_ms, d.device_id", .id(user), row: deviceRow)
  }

  private func deviceRow(_ row: PostgresRow) throws -> DeviceRow {
    DeviceRow(id: try row.id(0), key: row.bytes(1), createdMs: row.unsigned(2))
  }

  func putDevice(_ device: DeviceRow, of user: UserID) throws {
    db.enqueue(
      """
      INSERT INTO devices(user_key, device_id, key, created_ms) SELECT id, $1, $2, $3 FROM users WHERE user_id = $4
      ON CONFLICT (user_key, device_id) DO UPDATE SET key = EXCLUDED.key, created_ms = EXCLUDED.created_ms
      """, .id(device.id), .bytes(device.key), .ms(device.createdMs), .id(user))
  }

  func removeDevice(_ id: DeviceID, of user: UserID) throws {
    for table in ["devices", "sessions"] {
      db.enqueue(
        "DELETE FROM \(table) WHERE user_key = (SELECT id FROM users WHERE user_id = $1) AND device_id = $2", .id(user),
        .id(id))
    }
  }

  func trimDevices(of user: UserID, keeping count: Int) throws -> [DeviceID] {
    guard let key = try userKey(user) else { return [] }
    let all = try db.first("SELECT count(*) FROM devices WHERE user_key = $1", .int(key)) { Int($0.int(0)) } ?? 0
    guard all > count else { return [] }
    let gone = try db.all(
      """
      SELECT d.device_id FROM devices d LEFT JOIN sessions s ON s.user_key = d.user_key AND s.device_id = d.device_id
      WHERE d.user_key = $1 GROUP BY d.device_id, d.created_ms
      ORDER BY max(s.created_ms) NULLS FIRST, d.created_ms, d.device_id LIMIT $2
      """, .int(key), .int(Int64(all - count))
    ) { try $0.id(0) as DeviceID }
    for device in gone { try removeDevice(device, of: user) }
    return gone
  }

  private static let sessionQuery = """
    SELECT s.token_hash, u.user_id, s.device_id, s.created_ms, s.expires_ms
    FROM sessions s JOIN users u ON u.id = s.user_key
    """

  func session(tokenHash: [UInt8]) throws -> SessionRow? {
    try db.first("\(Self.sessionQuery) WHERE s.token_hash = $1", .bytes(tokenHash), row: sessionRow)
  }

  func sessions(of user: UserID) throws -> [SessionRow] {
    try db.all("\(Self.sessionQuery) WHERE u.user_id = $1 ORDER BY s.created_ms", .id(user), row: sessionRow)
  }

  private func sessionRow(_ row: PostgresRow) throws -> SessionRow {
    SessionRow(
      tokenHash: row.bytes(0), user: try row.id(1), device: try row.id(2), createdMs: row.unsigned(3),
      expiresMs: row.unsigned(4))
  }

  func insertSession(_ session: SessionRow) throws {
    db.enqueue(
      """
      INSERT INTO sessions(token_hash, user_key, device_id, created_ms, expires_ms)
      SELECT $1, id, $2, $3, $4 FROM users WHERE user_id = $5
      """, .bytes(session.tokenHash), .id(session.device), .ms(session.createdMs), .ms(session.expiresMs),
      .id(session.user))
  }

  func removeSession(tokenHash: [UInt8]) throws {
    db.enqueue("DELETE FROM sessions WHERE token_hash = $1", .bytes(tokenHash))
  }

  func trimSessions(of user: UserID, device: DeviceID, keeping count: Int) throws -> [[UInt8]] {
    try db.all(
      """
      DELETE FROM sessions WHERE token_hash IN (
        SELECT s.token_hash FROM users u JOIN sessions s ON s.user_key = u.id
        WHERE u.user_id = $1 AND s.device_id = $2 ORDER BY s.expires_ms DESC, s.created_ms DESC OFFSET $3)
      RETURNING token_hash
      """, .id(user), .id(device), .int(Int64(count))
    ) { $0.bytes(0) }
  }

  func removeExpiredSessions(now: UInt64) throws { db.enqueue("DELETE FROM sessions WHERE expires_ms <= $1", .ms(now)) }
}
