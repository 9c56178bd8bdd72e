/// The challenges that opened a session, until they expire: each opens one only.
///
/// Expired ones are removed when their number may have doubled since the last time, so a use costs the same no matter
/// how many there are.
struct UsedNonces {
  private var expiries: [[UInt8]: UInt64] = [:]
  private var limit = Self.smallest

  private static let smallest = 1_024

  /// The number of nonces in memory: at most twice the number that had not expired at the last removal.
  var count: Int { expiries.count }

  /// Marks the nonce as used. Returns false if it was used before.
  mutating func use(_ nonce: [UInt8], expiresMs: UInt64, now: UInt64) -> Bool {
    if expiries.count >= limit {
      expiries = expiries.filter { $0.value > now }
      limit = max(Self.smallest, 2 * expiries.count)
    }
    return expiries.updateValue(expiresMs, forKey: nonce) == nil
  }
}
