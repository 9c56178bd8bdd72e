internal import Foundation
internal import Synchronization

/// Whether the server can be reached.
///
/// The running engines' event streams report this, so it reflects actual requests and not the state of a network
/// interface. In a process whose engines do not run, it stays unknown.
///
/// ```swift
/// for await isReachable in zdc.reachability.changes { banner.isHidden = isReachable }
/// ```
public final class ZDCReachability: Sendable {
  private struct State {
    var isReachable: Bool?
    var listeners: [UUID: AsyncStream<Bool>.Continuation] = [:]
  }

  private let state = Mutex(State())

  package init() {}

  /// Whether the server can be reached, or nil until an engine has tried.
  public var isReachable: Bool? { state.withLock { $0.isReachable } }

  /// The current value, if known, and every later change. A slow reader only gets the newest value.
  ///
  /// `true` after `false` corresponds to the delegate's `didReconnectToInternet`. The stream ends when the framework is
  /// closed.
  public var changes: AsyncStream<Bool> {
    let id = UUID()
    return AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
      continuation.onTermination = { [weak self] _ in self?.state.withLock { $0.listeners[id] = nil } }
      state.withLock { state in
        state.listeners[id] = continuation
        if let isReachable = state.isReachable { continuation.yield(isReachable) }
      }
    }
  }

  /// Resets the state and ends all streams, because the engines have ended.
  package func close() {
    let ended = state.withLock { state in
      defer { state = State() }
      return Array(state.listeners.values)
    }
    for listener in ended { listener.finish() }
  }

  /// Notes that a request could not reach the server.
  package func lost() {
    _ = set(false)
  }

  /// Notes that the server has answered.
  ///
  /// - Returns: Whether the server was unreachable before. True only for the first engine that reaches it again.
  package func reached() -> Bool {
    set(true) == false
  }

  /// - Returns: The previous value.
  private func set(_ isReachable: Bool) -> Bool? {
    state.withLock { state in
      let before = state.isReachable
      state.isReachable = isReachable
      if before != isReachable {
        for listener in state.listeners.values { listener.yield(isReachable) }
      }
      return before
    }
  }
}
