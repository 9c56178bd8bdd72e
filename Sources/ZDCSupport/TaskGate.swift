/// Limits how many bodies run at the same time, in first-come, first-served order.
///
/// A body runs in its caller's task, so an uncontended gate is cheap.
package final class TaskGate: Sendable {
  private struct State {
    var running = 0
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Locked(State())
  private let limit: Int

  /// - Parameter limit: Maximum number of bodies that run at the same time.
  package init(limit: Int = 1) {
    self.limit = limit
  }

  package func run<Value>(
    isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Value
  ) async rethrows -> Value {
    await enter()
    defer { leave() }
    return try await body()
  }

  private func enter(isolation: isolated (any Actor)? = #isolation) async {
    if tryEnter(nil) { return }
    await withCheckedContinuation { continuation in
      if tryEnter(continuation) { continuation.resume() }
    }
  }

  /// - Returns: false if the gate is full; `next` is then resumed in its turn.
  private func tryEnter(_ next: CheckedContinuation<Void, Never>?) -> Bool {
    state.withLock { state in
      guard state.running >= limit else {
        state.running += 1
        return true
      }
      if let next { state.waiting.append(next) }
      return false
    }
  }

  private func leave() {
    let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
      guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
      state.running -= 1
      return nil
    }
    next?.resume()
  }
}
