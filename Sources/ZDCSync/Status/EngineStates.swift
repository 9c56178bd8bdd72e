package import Foundation
internal import GRDB
internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport

/// The in-memory state of this process's engines that no table has: whether they are active and reach the server.
package final class EngineStates: Sendable {
  /// The table that observations of an engine's state track. Only the engine's pause is stored there.
  package static let table = "zdc_meta"

  private struct Entry {
    /// The number of the local user whose engine it is; nil before the engine exists.
    var localUser: Int64?
    var state = EngineState()
  }

  private let entries = Locked<[String: Entry]>([:])

  package func state(_ localUserID: String) -> EngineState {
    entries.withLock { $0[localUserID]?.state } ?? EngineState()
  }

  /// Returns the state of this local user. An account that was removed and has logged in again is another local user with
  /// the same ID, and an empty tree.
  package func state(_ localUserID: String, localUser: Int64) -> EngineState {
    entries.withLock { entries in
      guard let entry = entries[localUserID], entry.localUser ?? localUser == localUser else { return EngineState() }
      return entry.state
    }
  }

  /// Begins the state of an engine. That of a removed user with the same ID ends.
  func begin(_ localUserID: String, localUser: Int64) {
    entries.withLock { entries in
      let known = entries[localUserID]?.localUser
      if let known, known < localUser { entries[localUserID] = nil }
      entries[localUserID, default: Entry()].localUser = max(known ?? localUser, localUser)
    }
  }

  /// - Returns: Whether the state changed.
  package func update(_ localUserID: String, _ change: (inout EngineState) -> Void) -> Bool {
    entries.withLock { entries in
      let before = entries[localUserID]?.state ?? EngineState()
      var after = before
      change(&after)
      entries[localUserID, default: Entry()].state = after
      return before.shown != after.shown || before.offline != after.offline || before.pauses != after.pauses
    }
  }
}

extension DatabaseContext {
  /// The in-memory state of this process's engines.
  package var engines: EngineStates { attachments.value { EngineStates() } }
}

/// Whether a round pulls or pushes.
package enum SyncWork: Sendable {
  case pull
  case push
}

/// One engine's part of ``ZDCSyncState``. Pure.
package struct EngineState: Sendable, Hashable {
  /// The state without the parts that come from the database.
  package private(set) var shown = ZDCSyncState()
  /// The reason why the server cannot be reached.
  package private(set) var offline: String?
  /// Zones whose pushes are paused after a failure: the error, and the end of the pause.
  package private(set) var pauses: [Int64: ZDCSyncFailure] = [:]
  private var hasPulledSinceError = false
  private var hasPushedSinceError = false
  private var hasFailedInRound = false
  /// The number of rounds running at the same time.
  private var pulls = 0
  private var pushes = 0

  package mutating func take(_ status: ZDCSyncStatus, now: Date) {
    switch status {
    case .pullStarted: begin(\.isPulling)
    case .pushStarted: begin(\.isPushing)
    case .pullFinished:
      shown.isPulling = pulls > 1
      guard !hasFailedInRound, pulls <= 1 else { return }
      shown.lastSynced = now
      reached()
      hasPulledSinceError = true
      forgetErrorIfOver()
    case .pushFinished(_, let operations):
      shown.isPushing = pushes > 1
      if operations > 0 { reached() }
      guard !hasFailedInRound else { return }
      hasPushedSinceError = true
      forgetErrorIfOver()
    // A pause is stored in the database.
    case .pushPaused, .pushResumed: break
    case .online:
      reached()
      shown.isPolling = false
    case .eventsMissing:
      reached()
      shown.isPolling = true
    case .offline:
      shown.isPolling = false
      shown.connection = .offline
      offline = offline ?? TransportError.Code.offline.rawValue
    case .error(_, let error): fail(error, now: now)
    case .security(_, let error): fail(error, now: now)
    }
  }

  /// Notes that a tree was skipped because it waits for a retry. The server was reached, but some of its changes are
  /// missing here.
  package mutating func leaveOut() {
    reached()
    hasFailedInRound = true
  }

  mutating func setPause(_ failure: ZDCSyncFailure?, of zone: Int64) { pauses[zone] = failure }

  package mutating func endPauses() { pauses = [:] }

  package mutating func beginRound(_ work: SyncWork) {
    switch work {
    case .pull: pulls += 1
    case .push: pushes += 1
    }
  }

  /// Ends a round, even if it threw and posted no `finished` status.
  package mutating func endRound(_ work: SyncWork) {
    switch work {
    case .pull:
      pulls -= 1
      if pulls == 0 { shown.isPulling = false }
    case .push:
      pushes -= 1
      if pushes == 0 { shown.isPushing = false }
    }
  }

  private mutating func begin(_ part: WritableKeyPath<ZDCSyncState, Bool>) {
    shown[keyPath: part] = true
    hasFailedInRound = false
  }

  /// Notes that the event stream has delivered its first event.
  mutating func hearStream() {
    reached()
    shown.isPolling = false
  }

  private mutating func reached() {
    shown.connection = .online
    offline = nil
  }

  package mutating func fail(_ error: any Error, now: Date) {
    guard !(error is CancellationError) else { return }
    if error is ServerError { reached() }
    if let error = error as? TransportError { (shown.connection, offline) = (.offline, error.code.rawValue) }
    shown.lastError = ZDCSyncFailure(error, date: now)
    (hasPulledSinceError, hasPushedSinceError, hasFailedInRound) = (false, false, true)
  }

  private mutating func forgetErrorIfOver() {
    if hasPulledSinceError, hasPushedSinceError { shown.lastError = nil }
  }
}

extension ZDCDatabaseConnection {
  /// Makes observations that show an engine's state fetch it again.
  func tellOfEngineState() {
    guard observations.count > 0 else { return }
    pool.asyncWrite(
      { try $0.notifyChanges(in: Table(EngineStates.table)) },
      completion: { [context] _, result in
        guard case .failure(let error) = result else { return }
        context.logFailure(error)
      })
  }
}

extension OperationStore {
  /// Counts the queued operations by what they wait for.
  ///
  /// - Parameter paused: Zones whose last push failed.
  package func pending(localUser: Int64, paused: Set<Int64> = []) throws -> ZDCSyncState.Pending {
    var pending = ZDCSyncState.Pending()
    let query = """
      SELECT state, reason, zone, COUNT(*) FROM zdc_operation
      WHERE zone IN (SELECT id FROM zdc_zone WHERE localUser = ?) GROUP BY zone, state, reason
      """
    try db.forEachRow(query, [localUser]) { row in
      guard let reason = OperationRow.Reason(rawValue: row[1]) else { throw ZDCError(.corruptDatabase) }
      let count: Int = row[3]
      pending.total += count
      let isInFlight = row[0] as Int64 == OperationRow.State.inFlight.rawValue
      switch reason {
      case _ where isInFlight: pending.inFlight += count
      case .uploading, .promisePending: pending.uploading += count
      case .noDataFromApp, .conflictHeld, .deletedRemotely, .exhausted, .notAllowed: pending.waitingForApp += count
      case .offline, .backoff, .overQuota, .serverSaid, .unreadable: pending.failing += count
      case .ready where paused.contains(row[2]): pending.failing += count
      case .ready, .waitingForOperation, .notPulledYet, .paused, .zoneFrozen, .inFlight: break
      }
    }
    return pending
  }
}
