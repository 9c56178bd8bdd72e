internal import Synchronization
package import ZDCProtocol

/// Requests that wait for the other device of a link, so that the server can answer them as soon as it sends something.
///
/// They read the link when they begin to wait and when they are woken, however long they wait: their clients need no
/// account.
package final class LinkWaiters: Sendable {
  private struct State {
    var signals: [DeviceLinkID: [Signal]] = [:]
    var isClosed = false
  }

  private let state = Mutex(State())

  package init() {}

  /// Runs `read` until it returns a value, or for that long. What it has missed wakes the request after `read` has begun.
  package func wait<T>(for id: DeviceLinkID, upTo time: Duration, _ read: () async throws -> T?) async throws -> T? {
    let end = ContinuousClock.now + time
    while let signal = park(id) {
      defer { remove(signal, id) }
      if let value = try await read() { return value }
      let rest = end - .now
      guard rest > .zero, !Task.isCancelled else { return nil }
      await signal.wait(upTo: rest)
    }
    return nil
  }

  private func park(_ id: DeviceLinkID) -> Signal? {
    state.withLock { state in
      guard !state.isClosed else { return nil }
      let signal = Signal()
      state.signals[id, default: []].append(signal)
      return signal
    }
  }

  private func remove(_ signal: Signal, _ id: DeviceLinkID) {
    state.withLock { state in
      state.signals[id]?.removeAll { $0 === signal }
      if state.signals[id]?.isEmpty == true { state.signals[id] = nil }
    }
  }

  package func wake(_ id: DeviceLinkID) {
    for signal in state.withLock({ $0.signals[id] ?? [] }) { signal.open() }
  }

  /// Wakes all requests, after an announcement may have been lost.
  package func wakeAll() {
    for signal in state.withLock({ $0.signals.values.flatMap(\.self) }) { signal.open() }
  }

  /// Ends all requests, and lets no more wait.
  package func close() {
    state.withLock { $0.isClosed = true }
    wakeAll()
  }
}
