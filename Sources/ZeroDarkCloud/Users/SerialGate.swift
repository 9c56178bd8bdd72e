/// Runs one body at a time, in the order in which they came.
///
/// A body runs in its caller's task: it costs nothing while nobody else wants in.
final class SerialGate: Sendable {
  private struct State {
    var isTaken = false
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Locked(State())

  func run<Value>(
    isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Value
  ) async throws -> Value {
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

  /// - Returns: false if somebody is in; `next` is resumed in its turn.
  private func tryEnter(_ next: CheckedContinuation<Void, Never>?) -> Bool {
    state.withLock { state in
      guard state.isTaken else {
        state.isTaken = true
        return true
      }
      if let next { state.waiting.append(next) }
      return false
    }
  }

  private func leave() {
    let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
      guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
      state.isTaken = false
      return nil
    }
    next?.resume()
  }
}
