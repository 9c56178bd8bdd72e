internal import ZDCProtocol

/// Limits on what each member adds to another user's zone (PROTOCOL 3.12). The owner has none.
final class MemberRates: Sendable {
  private struct Key: Hashable {
    var user: UserID
    var zone: ZoneID
  }

  private let commits: RateLimiter<Key>
  private let bytes: RateLimiter<Key>
  private let elapsed: @Sendable () -> UInt64

  /// - Parameters:
  ///   - elapsed: the clock that never goes back, in milliseconds.
  ///   - processes: returns the number of processes that share the commits.
  init(
    _ bounds: Configuration.Bounds, elapsed: @escaping @Sendable () -> UInt64,
    processes: @escaping @Sendable () -> Int = { 1 }
  ) {
    commits = RateLimiter(
      perMinute: bounds.memberCommitsPerMinute, burst: 2 * bounds.memberCommitsPerMinute, processes: processes)
    bytes = RateLimiter(
      perMinute: bounds.memberBytesPerMinute, burst: 8 * bounds.memberBytesPerMinute, processes: processes)
    self.elapsed = elapsed
  }

  /// Takes one commit of that size. It may exceed the size that is left; the member's next ones then wait.
  ///
  /// - Throws: `tooManyRequests` with the time to wait.
  func take(_ user: UserID, in zone: ZoneID, bytes count: Int) throws {
    let key = Key(user: user, zone: zone)
    let now = elapsed()
    guard let wait = bytes.wait(key, now: now) ?? commits.take(key, now: now) else {
      return bytes.charge(key, count, now: now)
    }
    throw ServerError(
      .tooManyRequests, "a member commits too much in this zone", retryable: true, retryAfterMs: wait)
  }
}
