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
      "SELECT key, answer, nonce, expires_ms, party FROM device_links WHERE id = $1 AND expires_ms > $2", .id(id),
      .ms(now)
    ) { row in
      DeviceLinkRow(
        offer: row.bytes(0), answer: row.optionalBytes(1), nonce: row.optionalBytes(2), expiresMs: row.unsigned(3),
        party: row.text(4))
    }
  }

  /// Two devices that offer at the same moment may exceed the limits by one.
  func offer(_ offer: [UInt8], as id: DeviceLinkID, from party: String, now: UInt64) throws {
    db.enqueue(PostgresCoordination.removal(from: "device_links"), .ms(now))
    if let known = try link(id, now: now) { return try DeviceLinks.check(offer, known) }
    let open = try db.first(
      """
      SELECT coalesce(sum(n), 0)::int8, coalesce(sum(n) FILTER (WHERE party = $1), 0)::int8, coalesce(max(n), 0)
      FROM (\(Self.counts)) c
      """, .text(party)
    ) { (all: Int($0.int(0)), ofParty: Int($0.int(1)), largest: Int($0.int(2))) }
    let (all, ofParty, largest) = open ?? (0, 0, 0)
    if try DeviceLinks.mustMakeRoom(all: all, ofParty: ofParty, largest: largest) { removeOne() }
    try db.run(
      """
      INSERT INTO device_links(id, key, expires_ms, party) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING
      """, .id(id), .bytes(offer), .ms(now + Limits.deviceLinkMs), .text(party))
    if let stored = try link(id, now: now) { try DeviceLinks.check(offer, stored) }
  }

  private static let counts = "SELECT party, count(*) AS n FROM device_links GROUP BY party"

  private func removeOne() {
    db.enqueue(
      """
      DELETE FROM device_links WHERE id = (
        SELECT l.id FROM device_links l JOIN (\(Self.counts)) c ON c.party = l.party
        ORDER BY c.n DESC, l.expires_ms, l.id LIMIT 1)
      """)
  }

  func answer(_ id: DeviceLinkID, with sealed: [UInt8], now: UInt64) throws {
    db.enqueue("BEGIN")
    let isNew =
      try db.run(
        "UPDATE device_links SET answer = $1 WHERE id = $2 AND expires_ms > $3 AND answer IS NULL", .bytes(sealed),
        .id(id), .ms(now)) == 1
    try DeviceLinks.checkAnswer(sealed, try link(id, now: now))
    if isNew { try AnnouncementFeed.append(.link(id), to: db) }
  }

  func reveal(_ nonce: DeviceLinkNonce, of id: DeviceLinkID, now: UInt64) throws {
    db.enqueue("BEGIN")
    try DeviceLinks.checkNonce(nonce, try link(id, now: now))
    let isNew =
      try db.run(
        "UPDATE device_links SET nonce = $1 WHERE id = $2 AND nonce IS NULL", .bytes(nonce.bytes), .id(id)) == 1
    if isNew { try AnnouncementFeed.append(.link(id), to: db) }
  }
}
