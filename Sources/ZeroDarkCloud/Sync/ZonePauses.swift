internal import ZDCProtocol

/// Zones that failed in the background, and when each is tried again: one that fails keeps no other one waiting. Pure.
struct ZonePauses: Sendable {
  private struct Pause {
    var backoff = Backoff()
    var until = ContinuousClock.now
  }

  private var pauses: [Int64: Pause] = [:]

  func isPaused(_ zone: Int64, now: ContinuousClock.Instant) -> Bool { pauses[zone].map { $0.until > now } ?? false }

  /// Whether the zone's last try failed and its pause lasts; an aborted one did not fail.
  func isBackingOff(_ zone: Int64, now: ContinuousClock.Instant) -> Bool {
    pauses[zone].map { $0.backoff.attempts > 0 && $0.until > now } ?? false
  }

  /// When the earliest of the pauses that last ends.
  func next(after now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
    pauses.values.map(\.until).filter { $0 > now }.min()
  }

  /// Zones whose pause is over.
  func due(now: ContinuousClock.Instant) -> Set<Int64> { Set(pauses.filter { $0.value.until <= now }.keys) }

  /// - Returns: how long its pause is.
  mutating func failed(
    _ zone: Int64, _ error: any Error, now: ContinuousClock.Instant, random: Double
  ) -> Duration {
    var pause = pauses[zone] ?? Pause()
    let length = Duration.milliseconds(Int64(pause.backoff.next(after: error, random: random)))
    pause.until = now + length
    pauses[zone] = pause
    return length
  }

  /// It was broken off: who does that does not want it again at once, and what it left is not to be forgotten.
  ///
  /// - Returns: how long its pause is.
  mutating func aborted(_ zone: Int64, now: ContinuousClock.Instant) -> Duration {
    pauses[zone, default: Pause()].until = now + Self.afterAbort
    return Self.afterAbort
  }

  static let afterAbort = Duration.seconds(60)

  var isEmpty: Bool { pauses.isEmpty }

  mutating func succeeded(_ zone: Int64) { pauses[zone] = nil }
}
