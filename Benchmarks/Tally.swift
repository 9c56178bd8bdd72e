import Dispatch
import Foundation
import Synchronization

/// Counts events and wakes tasks that wait for a certain number of them.
final class Tally: Sendable {
  private struct Waiter {
    var id = UUID()
    var count: Int
    var continuation: CheckedContinuation<Void, any Error>
  }

  private struct State {
    var count = 0
    var waiting: [Waiter] = []
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

  /// - Throws: an error after `seconds`; a wait that long means that something is broken, not slow.
  func wait(until count: Int, seconds: Int = 180) async throws {
    try await withCheckedThrowingContinuation { continuation in
      let waiter = Waiter(count: count, continuation: continuation)
      let isReady = state.withLock { state in
        if state.count >= count { return true }
        state.waiting.append(waiter)
        return false
      }
      if isReady { return continuation.resume() }
      DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(seconds)) { [weak self] in self?.giveUp(waiter.id) }
    }
  }

  private func giveUp(_ id: UUID) {
    let (waiter, count) = state.withLock { state in
      let index = state.waiting.firstIndex { $0.id == id }
      return (index.map { state.waiting.remove(at: $0) }, state.count)
    }
    guard let waiter else { return }
    waiter.continuation.resume(throwing: BenchError("waited in vain: \(count) of \(waiter.count)"))
  }
}
