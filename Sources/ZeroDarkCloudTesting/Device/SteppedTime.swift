internal import Synchronization
package import ZeroDarkCloud

/// The time for the engines of a ``TestDevice``, which advances only through their sleeps. Each step of the test wakes
/// the sleeper with the earliest deadline and moves the time to it.
package final class SteppedTime: Sendable {
  private let start = ContinuousClock.now
  private let sleepers = Sleepers()
  private let requested = Mutex<[Duration]>([])
  private let listeners = Waiters<Void>()

  package init() {}

  /// A clock whose random number makes every pause as long as possible.
  package var clock: EngineClock {
    var clock = EngineClock()
    clock.now = { self.start.advanced(by: self.now) }
    clock.sleep = { try await self.sleep($0) }
    clock.random = { 0.999 }
    return clock
  }

  package var now: Duration { sleepers.now }

  /// All requested pauses, in order.
  package var pauses: [Duration] { requested.withLock { $0 } }

  /// Suspends until `count` tasks sleep.
  package func waitForSleepers(_ count: Int) async { await sleepers.wait(for: count) }

  /// Suspends until `count` pauses have been requested, not counting pauses of `length`.
  package func waitForPauses(_ count: Int, besides length: Duration) async {
    let isMet: @Sendable () -> Bool = { self.pauses.count(where: { $0 != length }) >= count }
    // The wait must end on the same condition as the loop: a pause that is requested between the two would be missed.
    while !isMet(), !Task.isCancelled { await listeners.wait(for: (), unless: isMet) }
  }

  /// Waits until `count` tasks sleep, and wakes the one with the earliest deadline.
  package func step(sleepers count: Int = 1) async {
    await sleepers.wait(for: count)
    sleepers.wakeFirst()
  }

  private func sleep(_ duration: Duration) async throws {
    requested.withLock { $0.append(duration) }
    listeners.resume { true }
    try await sleepers.sleep(for: duration)
  }
}
