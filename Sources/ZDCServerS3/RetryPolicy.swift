internal import Synchronization

/// Decides whether a failed request is repeated, and after which pause.
///
/// All requests of a store share one budget. If the store fails for long, most of them fail after the first attempt, and
/// the store is not held down by repetitions.
final class RetryPolicy: Sendable {
  static let attempts = 5
  static let firstPauseMs: UInt64 = 50
  static let longestPauseMs: UInt64 = 5_000
  private static let capacity = 500
  private static let price = 5

  private let tokens = Mutex(RetryPolicy.capacity)

  /// Returns the pause in milliseconds, or nil if the failure is final.
  ///
  /// - Parameters:
  ///   - attempt: 1 after the first failure.
  ///   - remainingMs: the time until the caller gives up.
  ///   - random: A number in 0..<1. The pause is any up to the longest, so that requests that failed together do not
  ///     return together.
  func pause(after failure: S3Failure, attempt: Int, remainingMs: UInt64, random: Double) -> UInt64? {
    guard failure.isTransient, attempt < Self.attempts else { return nil }
    let ceiling = min(Self.longestPauseMs, Self.firstPauseMs << UInt64(2 * attempt))
    let pause = UInt64(Double(ceiling) * random)
    guard pause < remainingMs, take() else { return nil }
    return pause
  }

  private func take() -> Bool {
    tokens.withLock { tokens in
      guard tokens >= Self.price else { return false }
      tokens -= Self.price
      return true
    }
  }

  func succeeded() { tokens.withLock { $0 = min(Self.capacity, $0 + 1) } }
}
