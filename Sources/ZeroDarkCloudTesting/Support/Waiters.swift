internal import Synchronization

/// Tasks that wait for events from other tasks. Each resumes when its event happens or when it is cancelled: a test
/// that exceeds its time limit must end, whatever it was waiting for.
final class Waiters<Event: Sendable>: Sendable {
  private struct State {
    var nextID = 0
    var waiting: [Int: (event: Event, continuation: CheckedContinuation<Void, Never>)] = [:]
    var cancelled: Set<Int> = []
  }

  private let state = Mutex(State())

  /// Suspends until ``resume(where:)`` matches the event.
  ///
  /// - Parameter hasHappened: Called once, when a resumption can no longer be missed.
  func wait(for event: Event, unless hasHappened: @Sendable () -> Bool) async {
    let id = state.withLock { state in
      state.nextID += 1
      return state.nextID
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isCancelled = state.withLock { state in
          if state.cancelled.remove(id) != nil { return true }
          state.waiting[id] = (event, continuation)
          return false
        }
        if isCancelled { return continuation.resume() }
        if hasHappened() { resume(id) }
      }
    } onCancel: {
      cancel(id)
    }
  }

  func resume(where isMet: (Event) -> Bool) {
    let met = state.withLock { state in
      let met = state.waiting.filter { isMet($0.value.event) }
      for id in met.keys { state.waiting[id] = nil }
      return met.values.map(\.continuation)
    }
    for continuation in met { continuation.resume() }
  }

  private func resume(_ id: Int) {
    state.withLock { $0.waiting.removeValue(forKey: id) }?.continuation.resume()
  }

  private func cancel(_ id: Int) {
    let waiter = state.withLock { state in
      let waiter = state.waiting.removeValue(forKey: id)
      // The waiter may not be registered yet.
      if waiter == nil { state.cancelled.insert(id) }
      return waiter
    }
    waiter?.continuation.resume()
  }
}
