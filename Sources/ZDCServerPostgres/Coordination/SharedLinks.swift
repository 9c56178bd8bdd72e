internal import ZDCProtocol
internal import ZDCServer

/// The device links that are open on any process.
struct SharedLinks {
  private let db: PostgresConnection

  init(_ db: PostgresConnection) {
    self.db = db
  }

  func link(_ id: DeviceLinkID, now: UInt64) throws -> DeviceLinkRow? {
    try db.first(
      "SELECT key, answer, expires_ms, party FROM device_links WHERE id = $1 AND expires_ms > $2", .id(id), .ms(now)
    ) { row in
      DeviceLinkRow(
        key: row.bytes(0), answer: row.optionalBytes(1), expiresMs: row.unsigned(2), party: row.text(3))
    }
  }

  /// Two devices that offer at the same moment may exceed the limits by one.
  func offer(_ key: [UInt8], as id: DeviceLinkID, from party: String, now: UInt64) throws {
    db.enqueue(PostgresCoordination.removal(from: "device_links"), .ms(now))
    if let known = try link(id, now: now) { return try DeviceLinks.check(key, known) }
    let open = try db.first(
      "SELECT count(*), count(*) FILTER (WHERE party = $1) FROM device_links", .text(party)
    ) { (all: Int($0.int(0)), ofParty: Int($0.int(1))) }
    try DeviceLinks.checkRoom(all: open?.all ?? 0, ofParty: open?.ofParty ?? 0)
    try db.run(
      """
      INSERT INTO device_links(id, key, expires_ms, party) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING
      """, .id(id), .bytes(key), .ms(now + Limits.deviceLinkMs), .text(party))
    if let stored = try link(id, now: now) { try DeviceLinks.check(key, stored) }
  }

  func answer(_ id: DeviceLinkID, with sealed: [UInt8], now: UInt64) throws {
    db.enqueue(
      "UPDATE device_links SET answer = $1 WHERE id = $2 AND expires_ms > $3 AND answer IS NULL", .bytes(sealed),
      .id(id), .ms(now))
    try DeviceLinks.checkAnswer(sealed, try link(id, now: now))
  }
}
