import Synchronization

/// Counts what happens and wakes whoever waits for a number of it.
final class Tally: Sendable {
  private struct State {
    var count = 0
    var waiting: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
  }

  private let state = Mutex(State())

  var count: Int { state.withLock { $0.count } }

  func add() {
    let ready = state.withLock { state in
      state.count += 1
      let ready = state.waiting.filter { $0.count <= state.count }
      if !ready.isEmpty { state.waiting.removeAll { $0.count <= state.count } }
      return ready
    }
    for waiter in ready { waiter.continuation.resume() }
  }

  func wait(until count: Int) async {
    await withCheckedContinuation { continuation in
      let isReady = state.withLock { state in
        if state.count >= count { return true }
        state.waiting.append((count, continuation))
        return false
      }
      if isReady { continuation.resume() }
    }
  }
}
