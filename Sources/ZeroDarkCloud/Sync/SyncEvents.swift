internal import Foundation
internal import ZDCProtocol

/// Passes the engine's status on to everybody who listens, and counts nothing away: a slow listener loses old messages,
/// never newest ones.
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
}

/// The listeners of ``ZDCSyncManager/statusUpdates``.
final class StatusHub: Sendable {
  private let listeners = Locked<[UUID: AsyncStream<ZDCSyncStatus>.Continuation]>([:])

  func post(_ status: ZDCSyncStatus) {
    for listener in listeners.withLock({ Array($0.values) }) { listener.yield(status) }
  }

  func stream() -> AsyncStream<ZDCSyncStatus> {
    let id = UUID()
    return AsyncStream(bufferingPolicy: .bufferingNewest(1_000)) { continuation in
      continuation.onTermination = { [listeners] _ in listeners.withLock { $0[id] = nil } }
      listeners.withLock { $0[id] = continuation }
    }
  }
}
