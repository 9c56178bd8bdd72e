internal import Synchronization

/// Tasks that sleep until a test advances the time.
final class Sleepers: Sendable {
  private struct Sleeper {
    var due: Duration
    var continuation: CheckedContinuation<Void, any Error>
  }

  private struct State {
    var now = Duration.zero
    var nextID = 0
    var sleepers: [Int: Sleeper] = [:]
    var cancelled: Set<Int> = []
  }

  private let state = Mutex(State())
  private let watchers = Waiters<Int>()

  /// The elapsed time.
  var now: Duration { state.withLock { $0.now } }

  /// Suspends for a duration.
  ///
  /// - Throws: `CancellationError` if the task is cancelled.
  func sleep(for duration: Duration) async throws {
    let id = state.withLock { state in
      state.nextID += 1
      return state.nextID
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { enter($0, id, duration) }
    } onCancel: {
      cancel(id)
    }
  }

  /// Suspends until `count` tasks sleep, or the calling task is cancelled.
  func wait(for count: Int) async {
    await watchers.wait(for: count) { state.withLock { $0.sleepers.count >= count } }
  }

  /// Advances the time, and wakes the tasks whose deadline has passed.
  func advance(by duration: Duration) {
    let due = state.withLock { state in
      state.now += duration
      let due = state.sleepers.filter { $0.value.due <= state.now }
      for id in due.keys { state.sleepers[id] = nil }
      return due.values.map(\.continuation)
    }
    for continuation in due { continuation.resume() }
  }

  /// Advances the time to the earliest deadline, and wakes only that sleeper.
  func wakeFirst() {
    let continuation = state.withLock { state -> CheckedContinuation<Void, any Error>? in
      guard let first = state.sleepers.min(by: { $0.value.due < $1.value.due }) else { return nil }
      state.now = max(state.now, first.value.due)
      return state.sleepers.removeValue(forKey: first.key)?.continuation
    }
    continuation?.resume()
  }

  private func enter(_ continuation: CheckedContinuation<Void, any Error>, _ id: Int, _ duration: Duration) {
    let count = state.withLock { state -> Int? in
      if state.cancelled.remove(id) != nil { return nil }
      state.sleepers[id] = Sleeper(due: state.now + duration, continuation: continuation)
      return state.sleepers.count
    }
    guard let count else { return continuation.resume(throwing: CancellationError()) }
    watchers.resume { $0 <= count }
  }

  private func cancel(_ id: Int) {
    let sleeper = state.withLock { state in
      let sleeper = state.sleepers.removeValue(forKey: id)
      // The sleeper may not be registered yet.
      if sleeper == nil { state.cancelled.insert(id) }
      return sleeper
    }
    sleeper?.continuation.resume(throwing: CancellationError())
  }
}
