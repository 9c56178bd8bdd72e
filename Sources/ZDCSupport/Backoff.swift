internal import ZDCProtocol

/// How long to wait before the next try: full jitter below a doubling ceiling (PROTOCOL 3.7). Pure but for the random
/// number it is given.
package struct Backoff: Sendable {
  package private(set) var attempts = 0
  /// Turns in a busy zone's queue since the last success.
  private var turns = 0
  package static let ceilingMs: UInt64 = 60_000
  package static let firstMs: UInt64 = 250
  /// A server that asks for a longer pause gets this one: it may ask for any number.
  package static let longestAskedMs: UInt64 = 300_000
  /// No operation waits longer than this, whatever the device's clock said when its pause began.
  package static let longestPauseMs: UInt64 = 3_600_000
  /// A server that names a zone busy more often in a row is backed off from like one that fails.
  static let mostTurns = 100

  package init() {}

  /// The pause after one more failure.
  ///
  /// - Parameters:
  ///   - random: in 0..<1.
  ///   - atLeast: what the server asked for (`Retry-After`).
  package mutating func next(random: Double, atLeast: UInt64 = 0) -> UInt64 {
    attempts += 1
    return max(min(atLeast, Self.longestAskedMs), Self.pause(attempts: attempts, random: random))
  }

  /// The pause of a device that stands in a zone's queue and is served in its turn: no failure, nothing to grow.
  package static func turn(atLeast: UInt64, random: Double) -> UInt64 {
    // A server that names no time must not be asked without a pause.
    max(min(atLeast, longestAskedMs), 100) + UInt64(100 * random)
  }

  /// The pause that an error asks for; a device in a busy zone's queue has not failed.
  package mutating func next(after error: any Error, random: Double) -> UInt64 {
    let server = error as? ServerError
    let asked = server?.retryAfterMs ?? 0
    guard server?.code == .zoneBusy, turns < Self.mostTurns else { return next(random: random, atLeast: asked) }
    turns += 1
    return Self.turn(atLeast: asked, random: random)
  }

  package mutating func reset() { (attempts, turns) = (0, 0) }

  package static func pause(attempts: Int, random: Double) -> UInt64 {
    let ceiling = min(ceilingMs, firstMs << UInt64(min(max(attempts - 1, 0), 16)))
    // Never zero: a loop without a pause helps nobody.
    return max(1, UInt64(Double(ceiling) * random))
  }

  /// The pause before a content that the server has lost is sent again: none after the first loss, then half a minute,
  /// doubling up to an hour, because each try costs the whole content.
  package static func pause(losses: Int, random: Double) -> UInt64 {
    guard losses > 1 else { return 0 }
    let ceiling = min(longestPauseMs, 30_000 << UInt64(min(losses - 2, 16)))
    return UInt64(Double(ceiling) * (0.5 + random / 2))
  }
}
