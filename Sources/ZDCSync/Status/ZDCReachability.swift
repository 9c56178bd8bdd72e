internal import Foundation
internal import Synchronization

/// Whether the server can be reached (seed 001, "didReconnectToInternet").
///
/// Told by the running engines' event streams, so by what reaches the server and not by what a network interface says.
/// In a process whose engines do not run it stays unknown.
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

  /// Nil until an engine has tried.
  public var isReachable: Bool? { state.withLock { $0.isReachable } }

  /// What is known now, if anything, and every change from now on. A reader that does not keep up gets the newest only.
  ///
  /// `true` after `false` is what `didReconnectToInternet` tells the delegate. Ends when the framework is closed.
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

  /// The engines have ended: nothing is known any more, and the streams of until now end.
  package func close() {
    let ended = state.withLock { state in
      defer { state = State() }
      return Array(state.listeners.values)
    }
    for listener in ended { listener.finish() }
  }

  /// A request has failed on its way.
  package func lost() {
    _ = set(false)
  }

  /// The server has answered.
  ///
  /// - Returns: Whether it was out of reach: true once for all engines, whoever comes first.
  package func reached() -> Bool {
    set(true) == false
  }

  /// - Returns: What it was before.
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
