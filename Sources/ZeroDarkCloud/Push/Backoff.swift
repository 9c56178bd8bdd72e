internal import ZDCProtocol

/// How long to wait before the next try: full jitter below a doubling ceiling (PROTOCOL 3.7). Pure but for the random
/// number it is given.
struct Backoff: Sendable {
  private(set) var attempts = 0
  static let ceilingMs: UInt64 = 60_000
  static let firstMs: UInt64 = 250

  /// The pause after one more failure.
  ///
  /// - Parameters:
  ///   - random: in 0..<1.
  ///   - atLeast: what the server asked for (`Retry-After`).
  mutating func next(random: Double, atLeast: UInt64 = 0) -> UInt64 {
    attempts += 1
    return max(atLeast, Self.pause(attempts: attempts, random: random))
  }

  /// The pause of a device that stands in a zone's queue and is served in its turn: no failure, nothing to grow.
  static func turn(atLeast: UInt64, random: Double) -> UInt64 {
    // A server that names no time must not be asked without a pause.
    max(atLeast, 100) + UInt64(100 * random)
  }

  /// The pause that an error asks for; who stands in a busy zone's queue has not failed.
  mutating func next(after error: any Error, random: Double) -> UInt64 {
    let server = error as? ServerError
    let asked = server?.retryAfterMs ?? 0
    return server?.code == .zoneBusy
      ? Self.turn(atLeast: asked, random: random) : next(random: random, atLeast: asked)
  }

  mutating func reset() { attempts = 0 }

  static func pause(attempts: Int, random: Double) -> UInt64 {
    let ceiling = min(ceilingMs, firstMs << UInt64(min(max(attempts - 1, 0), 16)))
    // Never zero: a loop without a pause helps nobody.
    return max(1, UInt64(Double(ceiling) * random))
  }
}
