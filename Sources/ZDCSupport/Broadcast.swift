internal import Foundation

/// Sends values to any number of streams. A listener that does not keep up loses the oldest ones.
package final class Broadcast<Value: Sendable>: Sendable {
  private struct State {
    var listeners: [UUID: Listener] = [:]
    var isClosed = false
  }

  private struct Listener {
    var isWanted: @Sendable (Value) -> Bool
    var continuation: AsyncStream<Value>.Continuation
  }

  private let state = Locked(State())
  private let limit: Int

  package init(limit: Int) {
    self.limit = limit
  }

  package var count: Int { state.withLock { $0.listeners.count } }

  package func send(_ value: Value) {
    for listener in state.withLock({ Array($0.listeners.values) }) where listener.isWanted(value) {
      listener.continuation.yield(value)
    }
  }

  /// Returns a stream of the values that `isWanted` accepts.
  ///
  /// - Parameter limit: Number of values the stream buffers for a slow listener; defaults to the limit passed to
  ///   `init`.
  package func stream(
    limit: Int? = nil, where isWanted: @escaping @Sendable (Value) -> Bool = { _ in true }
  ) -> AsyncStream<Value> {
    let id = UUID()
    return AsyncStream(bufferingPolicy: .bufferingNewest(limit ?? self.limit)) { continuation in
      continuation.onTermination = { [state] _ in state.withLock { $0.listeners[id] = nil } }
      let isClosed = state.withLock { state in
        if !state.isClosed { state.listeners[id] = Listener(isWanted: isWanted, continuation: continuation) }
        return state.isClosed
      }
      if isClosed { continuation.finish() }
    }
  }

  package func close() {
    let ended = state.withLock { state in
      state.isClosed = true
      defer { state.listeners = [:] }
      return Array(state.listeners.values)
    }
    for listener in ended { listener.continuation.finish() }
  }
}
