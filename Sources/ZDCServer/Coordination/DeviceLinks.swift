internal import ZDCProtocol

/// A device that asks to be linked to an account (PROTOCOL 3.4). The server can read neither key nor answer.
package struct DeviceLinkRow: Sendable, Hashable {
  package var key: [UInt8]
  package var answer: [UInt8]?
  package var expiresMs: UInt64
  package var party: String
}

/// The links that are open, for ten minutes each. They are never stored.
struct DeviceLinks {
  static let mostPerParty = 8
  static let most = 1_024

  private var rows: [DeviceLinkID: DeviceLinkRow] = [:]

  func link(_ id: DeviceLinkID, now: UInt64) -> DeviceLinkRow? { rows[id].flatMap { $0.expiresMs > now ? $0 : nil } }

  mutating func offer(_ key: [UInt8], as id: DeviceLinkID, from party: String, now: UInt64) throws {
    if let known = link(id, now: now) {
      guard known.key == key else { throw ServerError(.conflict, "another device has this link") }
      return
    }
    rows = rows.filter { $0.value.expiresMs > now }
    guard rows.count < Self.most, rows.values.count(where: { $0.party == party }) < Self.mostPerParty else {
      throw ServerError(
        .tooManyRequests, "too many devices ask to be linked", retryable: true, retryAfterMs: Limits.deviceLinkMs)
    }
    rows[id] = DeviceLinkRow(key: key, expiresMs: now + Limits.deviceLinkMs, party: party)
  }

  mutating func answer(_ id: DeviceLinkID, with sealed: [UInt8], now: UInt64) throws {
    guard let row = link(id, now: now) else { throw ServerError(.notFound, "no such link, or it has expired") }
    guard row.answer ?? sealed == sealed else { throw ServerError(.conflict, "the link has another answer") }
    rows[id]?.answer = sealed
  }
}
