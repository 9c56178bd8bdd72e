public import Foundation
internal import Synchronization
package import ZeroDarkCloud

/// A clock that advances only when a test moves it. Device, server and faulty network share one, so that no test waits
/// for real time.
///
/// ```swift
/// let clock = ManualClock()
/// clock.advance(by: .seconds(60))  // sleepers of up to a minute resume
/// ```
public final class ManualClock: Sendable {
  private let sleepers = Sleepers()
  /// The initial time, in milliseconds since 1970.
  private let startMs: Mutex<Int64>

  /// - Parameter date: The initial time; 1 January 2026 by default.
  public init(startingAt date: Date = Date(timeIntervalSince1970: 1_767_225_600)) {
    startMs = Mutex(Int64(date.timeIntervalSince1970 * 1_000))
  }

  /// Milliseconds since 1970.
  public var nowMs: UInt64 { UInt64(max(0, startMs.withLock { $0 } + Self.milliseconds(sleepers.now))) }

  /// The time of the clock.
  public var now: Date { Date(timeIntervalSince1970: Double(nowMs) / 1_000) }

  /// Advances the clock, and wakes all sleepers whose deadline has passed.
  ///
  /// ```swift
  /// clock.advance(by: .seconds(60))
  /// ```
  public func advance(by duration: Duration) { sleepers.advance(by: max(.zero, duration)) }

  /// Sets the clock back, as its user may at any time. The remaining time of sleepers does not change.
  public func setBack(by duration: Duration) { startMs.withLock { $0 -= Self.milliseconds(duration) } }

  /// Suspends until ``advance(by:)`` has advanced the clock by `duration`.
  ///
  /// - Throws: `CancellationError` if the task is cancelled.
  public func sleep(for duration: Duration) async throws { try await sleepers.sleep(for: duration) }

  /// Suspends until `count` calls of ``sleep(for:)`` are waiting, or the task is cancelled. Tests call this before they
  /// advance the clock.
  ///
  /// ```swift
  /// a.network.fail(.delay(.seconds(30)), "POST", "/v1/commits")
  /// async let synced = a.sync()
  /// await clock.waitForSleepers()
  /// clock.advance(by: .seconds(30))
  /// _ = try await synced
  /// ```
  public func waitForSleepers(_ count: Int = 1) async { await sleepers.wait(for: count) }

  /// A clock for the engines of a ``TestDevice``, whose pauses then end when a test advances this clock. Without it,
  /// engines pause in real time.
  package var engineClock: EngineClock {
    let start = ContinuousClock.now
    var clock = EngineClock()
    clock.now = { [sleepers] in start.advanced(by: sleepers.now) }
    clock.sleep = { [sleepers] in try await sleepers.sleep(for: $0) }
    return clock
  }

  private static func milliseconds(_ duration: Duration) -> Int64 {
    let (seconds, attoseconds) = duration.components
    return seconds * 1_000 + attoseconds / 1_000_000_000_000_000
  }
}
