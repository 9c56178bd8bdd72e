package import Foundation
package import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport

/// Posts the status of one engine.
package final class SyncEvents: Sendable {
  private let localUserID: String
  private let hub: StatusHub

  package init(localUserID: String, hub: StatusHub) {
    self.localUserID = localUserID
    self.hub = hub
  }

  package func post(_ make: (String) -> ZDCSyncStatus) {
    hub.post(make(localUserID))
  }

  package func report(_ error: any Error) {
    let error = publicError(error)
    if let error = error as? ZDCSecurityError {
      hub.post(.security(localUserID: localUserID, error))
    } else {
      hub.post(.error(localUserID: localUserID, error))
    }
  }

  package func update(_ change: (inout EngineState) -> Void) {
    hub.update(localUserID, change)
  }

  /// The date of the last complete pull of this process, or nil if there was none.
  package var lastSynced: Date? { hub.lastSynced(localUserID) }

  /// Stores an error that is thrown to the caller in the state, without posting a status.
  package func failed(_ error: any Error) {
    hub.failed(localUserID, error)
  }
}

/// Sends the engines' status to all listeners, and keeps the current state.
package final class StatusHub: Sendable {
  private let database: ZDCDatabaseManager
  private let listeners = Broadcast<ZDCSyncStatus>(limit: 1_000)
  package let nodes = NodeEventHub()

  package init(database: ZDCDatabaseManager) {
    self.database = database
  }

  package func post(_ status: ZDCSyncStatus) {
    // The caller that cancels a task already knows.
    if case .error(_, let error) = status, error is CancellationError { return }
    let now = Date(ms: database.context.clock())
    update(status.localUserID) { $0.take(status, now: now) }
    listeners.send(status)
    if case .pullFinished = status { database.context.changes.send([.pull]) }
  }

  package func failed(_ localUserID: String, _ error: any Error) {
    let now = Date(ms: database.context.clock())
    update(localUserID) { $0.fail(publicError(error), now: now) }
  }

  package func lastSynced(_ localUserID: String) -> Date? {
    database.context.engines.state(localUserID).shown.lastSynced
  }

  package func update(_ localUserID: String, _ change: (inout EngineState) -> Void) {
    guard database.context.engines.update(localUserID, change) else { return }
    database.rwDatabaseConnection.tellOfEngineState()
  }

  package func stream() -> AsyncStream<ZDCSyncStatus> { listeners.stream() }

  /// Returns a stream that combines all matching statuses since the last element into one.
  package func occasions(_ isWanted: @escaping @Sendable (ZDCSyncStatus) -> Bool) -> AsyncStream<ZDCSyncStatus> {
    listeners.stream(limit: 1, where: isWanted)
  }

  /// Ends all streams.
  package func close() {
    listeners.close()
    nodes.close()
  }
}
