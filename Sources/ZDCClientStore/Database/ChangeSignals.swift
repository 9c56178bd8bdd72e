internal import Synchronization

/// Sends hints that something was committed. A hint may be lost with the process, so receivers always read the tables
/// again.
package final class ChangeSignals: Sendable {
  package enum Interest: Hashable, Sendable {
    /// Operations of this row of zdc_local_user were queued, parked or woken.
    case queue(localUser: Int64)
    /// Operations were queued in this row of zdc_zone, and nothing else was.
    case zoneQueue(localUser: Int64, zone: Int64)
    /// Local users were added or removed.
    case localUsers
    /// App objects changed.
    case objects
    /// The app marked nodes for download.
    case downloads
    /// The server is reachable again.
    case network
    /// A pull has ended.
    case pull

    package var queue: Int64? {
      switch self {
      case .queue(let localUser), .zoneQueue(let localUser, _): localUser
      default: nil
      }
    }
  }

  private struct Subscriber {
    var interests: Set<Interest>
    /// Receives what changed; nil if anything may have changed.
    var notify: @Sendable (Set<Interest>?) -> Void
  }

  private struct State {
    var nextID = 0
    var occasions = 0
    var subscribers: [Int: Subscriber] = [:]
    var failureListeners: [Int: @Sendable (any Error) -> Void] = [:]
  }

  private let state = Mutex(State())

  package init() {}

  /// Returns a stream that buffers at most one hint. Passing no interest subscribes to all of them.
  package func hints(_ interests: Interest...) -> AsyncStream<Void> {
    let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    let id = listen(Set(interests)) { _ in continuation.yield() }
    continuation.onTermination = { [weak self] _ in self?.end(id) }
    return stream
  }

  /// Calls `notify` for each hint on the committing thread. `notify` should only pass the hint on.
  package func listen(_ interests: Set<Interest>, _ notify: @escaping @Sendable (Set<Interest>?) -> Void) -> Int {
    state.withLock { state in
      state.nextID += 1
      state.subscribers[state.nextID] = Subscriber(interests: interests, notify: notify)
      return state.nextID
    }
  }

  package func end(_ listener: Int) {
    state.withLock { _ = $0.subscribers.removeValue(forKey: listener) }
  }

  package func send(_ interests: Set<Interest>) {
    let found = state.withLock { state in
      if !interests.isDisjoint(with: [.network, .pull]) { state.occasions += 1 }
      return state.subscribers.values.filter { $0.interests.isEmpty || !$0.interests.isDisjoint(with: interests) }
    }
    for subscriber in found { subscriber.notify(interests) }
  }

  /// A number that changes whenever a failed request may succeed: the server is reachable again, or something was
  /// pulled.
  package var occasion: Int { state.withLock { $0.occasions } }

  package func queueChanged(localUser: Int64) { send([.queue(localUser: localUser)]) }

  func objectsChanged() { send([.objects]) }

  func localUsersChanged() { send([.localUsers]) }

  /// Notifies all subscribers that anything may have changed, because another process wrote.
  func everythingMayHaveChanged() {
    let all = state.withLock { state in
      state.occasions += 1
      return Array(state.subscribers.values)
    }
    for subscriber in all { subscriber.notify(nil) }
  }

  // MARK: Failures of calls that return nothing

  /// Returns a stream of errors from transactions whose caller takes no result.
  package func failures() -> AsyncStream<any Error> {
    let (stream, continuation) = AsyncStream.makeStream(of: (any Error).self, bufferingPolicy: .bufferingNewest(64))
    let id = listenForFailures { continuation.yield($0) }
    continuation.onTermination = { [weak self] _ in
      self?.state.withLock { _ = $0.failureListeners.removeValue(forKey: id) }
    }
    return stream
  }

  /// Calls `listener` with the same errors, for as long as the database is open.
  @discardableResult
  package func listenForFailures(_ listener: @escaping @Sendable (any Error) -> Void) -> Int {
    state.withLock { state in
      state.nextID += 1
      state.failureListeners[state.nextID] = listener
      return state.nextID
    }
  }

  package func report(_ error: any Error) {
    for listener in state.withLock({ Array($0.failureListeners.values) }) { listener(error) }
  }
}
