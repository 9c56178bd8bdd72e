internal import ZDCProtocol

/// The delay before the next retry: full jitter below a doubling ceiling (PROTOCOL 3.7). Deterministic except for the
/// random number passed in.
package struct Backoff: Sendable {
  package private(set) var attempts = 0
  /// Number of turns waited in a busy zone's queue since the last success.
  private var turns = 0
  package static let ceilingMs: UInt64 = 60_000
  package static let firstMs: UInt64 = 250
  /// The cap on a pause that the server asks for, which may be any number.
  package static let longestAskedMs: UInt64 = 300_000
  /// The maximum pause of an operation, whatever the device's clock said when the pause began.
  package static let longestPauseMs: UInt64 = 3_600_000
  /// After this many consecutive `zoneBusy` responses, the server is treated as failing.
  static let mostTurns = 100

  package init() {}

  /// Returns the pause after one more failure, in milliseconds.
  ///
  /// - Parameters:
  ///   - random: A number in 0..<1.
  ///   - atLeast: The server's `Retry-After`, in milliseconds.
  package mutating func next(random: Double, atLeast: UInt64 = 0) -> UInt64 {
    attempts += 1
    return max(min(atLeast, Self.longestAskedMs), Self.pause(attempts: attempts, random: random))
  }

  /// Returns the pause of a device that waits its turn in a zone's queue. This is not a failure, so the pause does not
  /// grow.
  package static func turn(atLeast: UInt64, random: Double) -> UInt64 {
    // Even if the server names no time, retrying needs a pause.
    max(min(atLeast, longestAskedMs), 100) + UInt64(100 * random)
  }

  /// Returns the pause that an error asks for. Waiting in a busy zone's queue does not count as a failure.
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
    // Never zero: a loop without a pause would spin.
    return max(1, UInt64(Double(ceiling) * random))
  }

  /// Returns the pause before re-uploading content that the server has lost.
  ///
  /// None after the first loss, then half a minute, doubling up to an hour, because each try uploads all of the
  /// content.
  package static func pause(losses: Int, random: Double) -> UInt64 {
    guard losses > 1 else { return 0 }
    let ceiling = min(longestPauseMs, 30_000 << UInt64(min(losses - 2, 16)))
    return UInt64(Double(ceiling) * (0.5 + random / 2))
  }
}
