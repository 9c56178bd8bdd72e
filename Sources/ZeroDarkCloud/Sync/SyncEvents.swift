internal import Foundation
internal import ZDCProtocol

/// What an engine tells of itself.
final class SyncEvents: Sendable {
  private let localUserID: String
  private let hub: StatusHub

  init(localUserID: String, hub: StatusHub) {
    self.localUserID = localUserID
    self.hub = hub
  }

  func post(_ make: (String) -> ZDCSyncStatus) {
    hub.post(make(localUserID))
  }

  func report(_ error: any Error) {
    let error = DelegateError.unwrap(error)
    if let error = error as? ZDCSecurityError {
      hub.post(.security(localUserID: localUserID, error))
    } else {
      hub.post(.error(localUserID: localUserID, error))
    }
  }

  func update(_ change: (inout EngineState) -> Void) {
    hub.update(localUserID, change)
  }

  /// Nil if no round of this process has brought all.
  var lastSynced: Date? { hub.lastSynced(localUserID) }

  /// For an error that the caller gets: it shows in the state, and nobody else is told of it.
  func failed(_ error: any Error) {
    hub.failed(localUserID, error)
  }
}

/// Passes the engines' status on to everybody who listens, and keeps what it says about now.
final class StatusHub: Sendable {
  private let database: ZDCDatabaseManager
  private let listeners = Broadcast<ZDCSyncStatus>(limit: 1_000)
  let nodes = NodeEventHub()

  init(database: ZDCDatabaseManager) {
    self.database = database
  }

  func post(_ status: ZDCSyncStatus) {
    // Who stops a task knows it.
    if case .error(_, let error) = status, error is CancellationError { return }
    let now = Date(ms: database.context.clock())
    update(status.localUserID) { $0.take(status, now: now) }
    listeners.send(status)
    if case .pullFinished = status { database.context.changes.send([.pull]) }
  }

  func failed(_ localUserID: String, _ error: any Error) {
    let now = Date(ms: database.context.clock())
    update(localUserID) { $0.fail(DelegateError.unwrap(error), now: now) }
  }

  func lastSynced(_ localUserID: String) -> Date? { database.context.engines.state(localUserID).shown.lastSynced }

  func update(_ localUserID: String, _ change: (inout EngineState) -> Void) {
    guard database.context.engines.update(localUserID, change) else { return }
    database.rwDatabaseConnection.tellOfEngineState()
  }

  func stream() -> AsyncStream<ZDCSyncStatus> { listeners.stream() }

  /// One element when something of that has happened since the last one was taken.
  func occasions(_ isWanted: @escaping @Sendable (ZDCSyncStatus) -> Bool) -> AsyncStream<ZDCSyncStatus> {
    listeners.stream(limit: 1, where: isWanted)
  }

  /// All streams end.
  func close() {
    listeners.close()
    nodes.close()
  }
}

/// Sends values to any number of streams. A listener that does not keep up loses the oldest ones.
final class Broadcast<Value: Sendable>: Sendable {
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

  init(limit: Int) {
    self.limit = limit
  }

  var count: Int { state.withLock { $0.listeners.count } }

  func send(_ value: Value) {
    for listener in state.withLock({ Array($0.listeners.values) }) where listener.isWanted(value) {
      listener.continuation.yield(value)
    }
  }

  /// - Parameter limit: how many the stream keeps for a listener that is busy, if not as many as all others.
  func stream(
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

  func close() {
    let ended = state.withLock { state in
      state.isClosed = true
      defer { state.listeners = [:] }
      return Array(state.listeners.values)
    }
    for listener in ended { listener.continuation.finish() }
  }
}
