/// Decides whether the wall clock can be trusted to expire retained content, which is then lost permanently.
///
/// A clock that jumps ahead by more than a day may be wrong. Nothing is collected for one more day, so that the clock
/// can be corrected or an operator notices the warning.
struct CollectionGuard: Sendable {
  static let dayMs: UInt64 = 24 * 3_600_000

  private var lastNow: UInt64
  private var lastElapsed: UInt64
  private let startNow: UInt64
  private let startElapsed: UInt64
  private var isFirst = true
  /// By the monotonic clock.
  private var heldUntil: UInt64?

  init(now: UInt64, elapsed: UInt64) {
    (startNow, startElapsed) = (now, elapsed)
    (lastNow, lastElapsed) = (now, elapsed)
  }

  /// - Parameters:
  ///   - now: the wall clock's time.
  ///   - elapsed: the monotonic clock's time.
  ///   - newest: when the newest commit was received; nil if there is none.
  mutating func mayCollect(now: UInt64, elapsed: UInt64, newest: UInt64?) -> Bool {
    let isAhead = now > lastNow && now - lastNow > (elapsed - min(lastElapsed, elapsed)) + Self.dayMs
    // After a start there is no earlier reading, only the time of the newest commit.
    let startedAhead = isFirst && newest.map { startNow > $0 && startNow - $0 > Self.dayMs } ?? false
    if isAhead { heldUntil = elapsed + Self.dayMs }
    if startedAhead { heldUntil = max(heldUntil ?? 0, startElapsed + Self.dayMs) }
    (lastNow, lastElapsed, isFirst) = (now, elapsed, false)
    guard let end = heldUntil else { return true }
    if elapsed >= end { heldUntil = nil }
    return elapsed >= end
  }
}
