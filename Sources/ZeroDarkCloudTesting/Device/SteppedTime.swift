internal import Synchronization
package import ZeroDarkCloud

/// Time for the engines of a ``TestDevice`` that passes in the engines' own sleeps: with each step of the test the sleeper
/// whose time comes first wakes, and the time moves to that.
package final class SteppedTime: Sendable {
  private let start = ContinuousClock.now
  private let sleepers = Sleepers()
  private let requested = Mutex<[Duration]>([])
  private let listeners = Waiters<Void>()

  package init() {}

  /// With a random number that makes every pause as long as it may be.
  package var clock: EngineClock {
    var clock = EngineClock()
    clock.now = { self.start.advanced(by: self.now) }
    clock.sleep = { try await self.sleep($0) }
    clock.random = { 0.999 }
    return clock
  }

  package var now: Duration { sleepers.now }

  /// Every pause that was asked for, in order.
  package var pauses: [Duration] { requested.withLock { $0 } }

  /// Suspends until that many tasks sleep.
  package func waitForSleepers(_ count: Int) async { await sleepers.wait(for: count) }

  /// Suspends until that many pauses have been asked for, those of one length aside.
  package func waitForPauses(_ count: Int, besides length: Duration) async {
    while pauses.count(where: { $0 != length }) < count, !Task.isCancelled {
      let known = pauses.count
      await listeners.wait(for: ()) { pauses.count > known }
    }
  }

  /// Waits until that many tasks sleep, and wakes the one whose time comes first.
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
