public import Foundation
internal import Synchronization

/// A clock that stands still until a test moves it on. Device, server and faulty network share one, so that no test
/// ever waits for time.
///
/// ```swift
/// let clock = ManualClock()
/// clock.advance(by: .seconds(60))  // what waited for a minute goes on
/// ```
public final class ManualClock: Sendable {
  private let sleepers = Sleepers()
  /// Milliseconds since 1970 when no time had passed.
  private let startMs: Mutex<Int64>

  /// - Parameter date: where the clock starts; 1 January 2026 unless told.
  public init(startingAt date: Date = Date(timeIntervalSince1970: 1_767_225_600)) {
    startMs = Mutex(Int64(date.timeIntervalSince1970 * 1_000))
  }

  /// Milliseconds since 1970.
  public var nowMs: UInt64 { UInt64(max(0, startMs.withLock { $0 } + Self.milliseconds(sleepers.now))) }

  public var now: Date { Date(timeIntervalSince1970: Double(nowMs) / 1_000) }

  /// Moves on, and wakes everybody whose time has come.
  public func advance(by duration: Duration) { sleepers.advance(by: max(.zero, duration)) }

  /// Sets the clock back, as its user may at any time. Sleepers stay asleep for as long as before.
  public func setBack(by duration: Duration) { startMs.withLock { $0 -= Self.milliseconds(duration) } }

  /// Suspends until ``advance(by:)`` has moved the clock that far.
  ///
  /// - Throws: `CancellationError` if the task is cancelled.
  public func sleep(for duration: Duration) async throws { try await sleepers.sleep(for: duration) }

  /// Suspends until that many calls of ``sleep(for:)`` are waiting, or the task is cancelled: what a test does before it
  /// moves the clock.
  public func waitForSleepers(_ count: Int = 1) async { await sleepers.wait(for: count) }

  private static func milliseconds(_ duration: Duration) -> Int64 {
    let (seconds, attoseconds) = duration.components
    return seconds * 1_000 + attoseconds / 1_000_000_000_000_000
  }
}
