package import ZDCProtocol

/// A device that asks to be linked to an account (PROTOCOL 3.4). The server cannot read the answer.
package struct DeviceLinkRow: Sendable, Hashable {
  package var offer: [UInt8]
  package var answer: [UInt8]?
  /// The nonce, once the new device has revealed it: after it got the answer.
  package var nonce: [UInt8]?
  package var expiresMs: UInt64
  package var party: String

  package init(
    offer: [UInt8], answer: [UInt8]? = nil, nonce: [UInt8]? = nil, expiresMs: UInt64, party: String
  ) {
    (self.offer, self.answer, self.nonce) = (offer, answer, nonce)
    (self.expiresMs, self.party) = (expiresMs, party)
  }
}

/// The links that are open, for ten minutes each. They are never stored.
package struct DeviceLinks {
  static let mostPerParty = 8
  static let most = 1_024

  private var rows: [DeviceLinkID: DeviceLinkRow] = [:]

  func link(_ id: DeviceLinkID, now: UInt64) -> DeviceLinkRow? { rows[id].flatMap { $0.expiresMs > now ? $0 : nil } }

  mutating func offer(_ offer: [UInt8], as id: DeviceLinkID, from party: String, now: UInt64) throws {
    if let known = link(id, now: now) { return try Self.check(offer, known) }
    rows = rows.filter { $0.value.expiresMs > now }
    let counts = Dictionary(rows.values.map { ($0.party, 1) }, uniquingKeysWith: +)
    let largest = counts.values.max() ?? 0
    if try Self.mustMakeRoom(all: rows.count, ofParty: counts[party, default: 0], largest: largest) {
      let gone = rows.filter { counts[$0.value.party] == largest }.min { $0.value.expiresMs < $1.value.expiresMs }
      if let gone { rows[gone.key] = nil }
    }
    rows[id] = DeviceLinkRow(offer: offer, expiresMs: now + Limits.deviceLinkMs, party: party)
  }

  mutating func answer(_ id: DeviceLinkID, with sealed: [UInt8], now: UInt64) throws {
    try Self.checkAnswer(sealed, link(id, now: now))
    rows[id]?.answer = sealed
  }

  mutating func reveal(_ nonce: DeviceLinkNonce, of id: DeviceLinkID, now: UInt64) throws {
    try Self.checkNonce(nonce, link(id, now: now))
    rows[id]?.nonce = nonce.bytes
  }

  // MARK: - Rules

  /// - Throws: `conflict` if the link has another offer.
  package static func check(_ offer: [UInt8], _ known: DeviceLinkRow) throws {
    guard known.offer == offer else { throw ServerError(.conflict, "another device has this link") }
  }

  /// Returns whether the oldest link of the addresses with the most must go, to make room for a new one. Otherwise a host
  /// with many addresses could keep all others out.
  ///
  /// - Parameter largest: the largest number of links of one address.
  /// - Throws: `tooManyRequests` if the new one's own address has as many as any.
  package static func mustMakeRoom(all: Int, ofParty: Int, largest: Int) throws -> Bool {
    guard ofParty < mostPerParty, all < most || ofParty < largest else {
      throw ServerError(
        .tooManyRequests, "too many devices ask to be linked", retryable: true, retryAfterMs: Limits.deviceLinkMs)
    }
    return all >= most
  }

  package static func checkAnswer(_ sealed: [UInt8], _ row: DeviceLinkRow?) throws {
    guard let row else { throw unknown }
    guard row.answer ?? sealed == sealed else { throw ServerError(.conflict, "the link has another answer") }
  }

  /// Only the new device knows the number that it has committed to.
  package static func checkNonce(_ nonce: DeviceLinkNonce, _ row: DeviceLinkRow?) throws {
    guard let row else { throw unknown }
    do { try DeviceLinkOffer(row.offer).check(nonce) } catch {
      throw ServerError(.conflict, "the link has another nonce")
    }
  }

  private static let unknown = ServerError(.notFound, "no such link, or it has expired")
}
