internal import Synchronization
package import ZeroDarkCloud

/// Time for the engines of a ``TestDevice`` that passes in the engines' own sleeps: the first of those that sleep wakes
/// when the test takes a step, and the time is what it waited for.
package final class SteppedTime: Sendable {
  private struct Sleeper {
    var due: Duration
    var continuation: CheckedContinuation<Void, any Error>
  }

  private struct State {
    var now = Duration.zero
    var nextID = 0
    var sleepers: [Int: Sleeper] = [:]
    var cancelled: Set<Int> = []
    var pauses: [Duration] = []
  }

  private let start = ContinuousClock.now
  private let state = Mutex(State())
  private let watchers = Waiters<Int>()
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

  package var now: Duration { state.withLock { $0.now } }

  /// Every pause that was asked for, in order.
  package var pauses: [Duration] { state.withLock { $0.pauses } }

  /// Suspends until that many tasks sleep.
  package func waitForSleepers(_ count: Int) async {
    await watchers.wait(for: count) { state.withLock { $0.sleepers.count >= count } }
  }

  /// Suspends until that many pauses have been asked for, those of one length aside.
  package func waitForPauses(_ count: Int, besides length: Duration) async {
    while pauses.count(where: { $0 != length }) < count, !Task.isCancelled {
      let known = pauses.count
      await listeners.wait(for: ()) { pauses.count > known }
    }
  }

  /// Waits until that many tasks sleep, and wakes the one whose time comes first.
  package func step(sleepers: Int = 1) async {
    await waitForSleepers(sleepers)
    let continuation = state.withLock { state -> CheckedContinuation<Void, any Error>? in
      guard let first = state.sleepers.min(by: { $0.value.due < $1.value.due }) else { return nil }
      state.now = max(state.now, first.value.due)
      return state.sleepers.removeValue(forKey: first.key)?.continuation
    }
    continuation?.resume()
  }

  private func sleep(_ duration: Duration) async throws {
    let id = state.withLock { state in
      state.nextID += 1
      state.pauses.append(duration)
      return state.nextID
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { enter($0, id, duration) }
    } onCancel: {
      let sleeper = state.withLock { state in
        if state.sleepers[id] == nil { state.cancelled.insert(id) }
        return state.sleepers.removeValue(forKey: id)
      }
      sleeper?.continuation.resume(throwing: CancellationError())
    }
  }

  private func enter(_ continuation: CheckedContinuation<Void, any Error>, _ id: Int, _ duration: Duration) {
    let count = state.withLock { state -> Int? in
      if state.cancelled.remove(id) != nil { return nil }
      state.sleepers[id] = Sleeper(due: state.now + duration, continuation: continuation)
      return state.sleepers.count
    }
    guard let count else { return continuation.resume(throwing: CancellationError()) }
    watchers.resume { $0 <= count }
    listeners.resume { true }
  }
}
