internal import Foundation
public import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport
internal import ZDCTreesystem

extension ZDCSyncManager {
  /// Returns the current state of the local user's sync.
  ///
  /// ```swift
  /// let state = try await session.syncManager.syncState(forLocalUserID: user.uuid)
  /// if state.isOffline, state.pending.total > 0 { show(["\(state.pending.total) changes wait for a connection"]) }
  /// ```
  ///
  /// - Throws: ``ZDCError``: `localUserNotFound`.
  public func syncState(forLocalUserID localUserID: String) async throws -> ZDCSyncState {
    try await database.roDatabaseConnection.read { try $0.syncState(localUserID) }
  }

  /// Returns the states of the local user's sync, now and after each change, for display in an app.
  ///
  /// Consecutive equal states are delivered once. A slow reader gets the newest state, and never misses the last one.
  /// The sequence ends when the framework is closed. For an observable object see ``ZDCSyncStatusModel``.
  ///
  /// ```swift
  /// for try await state in session.syncManager.syncStates(forLocalUserID: user.uuid) {
  ///   banner.isHidden = !state.isOffline
  /// }
  /// ```
  public func syncStates(forLocalUserID localUserID: String) -> ZDCDatabaseValues<ZDCSyncState> {
    let connection = database.roDatabaseConnection
    return ZDCDatabaseValues {
      connection.observe(tables: [
        "zdc_operation", "zdc_zone", "zdc_security_event", "zdc_unreadable", EngineStates.table,
      ]) {
        try $0.syncState(localUserID)
      }
    }
  }
}

extension ZDCReadTransaction {
  /// - Throws: `ZDCError` with `localUserNotFound`.
  fileprivate func syncState(_ localUserID: String) throws -> ZDCSyncState {
    guard let user = try UserID(text: localUserID).flatMap({ try localUsers.user($0) }) else {
      throw ZDCError(.localUserNotFound)
    }
    let engine = context.engines.state(localUserID, localUser: user.id)
    var state = engine.shown
    state.lastSynced = try [state.lastSynced, lastSynced(localUser: user.id)].compactMap(\.self).max()
    state.isPaused = try pushPause(localUser: user.id) != nil
    state.pending = try operations.pending(localUser: user.id, paused: Set(engine.pauses.keys))
    state.frozenZones = try frozenZones(localUser: user.id)
    state.unreadableNodes = try unreadableNodeCount(localUser: user.id)
    state.stalledZones = try stalledZones(localUser: user.id)
    return state
  }

  func unreadableNodeCount(localUser: Int64) throws -> Int {
    try zones.zones(localUser: localUser).reduce(0) { count, zone in
      try count + (zone.isUnreachable ? 1 : unreadable.count(zone: zone.id))
    }
  }

  package func frozenZones(localUser: Int64) throws -> [ZDCFrozenZone] {
    try zones.zones(localUser: localUser).compactMap { row in
      guard let code = row.frozen else { return nil }
      let event = try lastSecurityEvent(zone: row.id, code: code)
      return ZDCFrozenZone(
        zone: row.zone, trunk: ZDCTreesystemTrunk(row.trunk), error: code, since: Date(ms: event ?? 0),
        isProven: row.isProven)
    }
  }

  private func stalledZones(localUser: Int64) throws -> [ZDCStalledZone] {
    try zones.zones(localUser: localUser).compactMap { row in
      // `unreadableNodes` lists a branch that the user may not read.
      guard let code = row.doubt, code != .inviteNotAuthorized, row.frozen == nil else { return nil }
      let event = try lastSecurityEvent(zone: row.id, code: code)
      return ZDCStalledZone(
        zone: row.zone, trunk: ZDCTreesystemTrunk(row.trunk), error: code, since: Date(ms: event ?? 0))
    }
  }
}

extension ZDCSyncManager {
  /// The delegate's future callbacks for all local users as values, each sent after its transaction has committed.
  /// Callbacks of a transaction that was rolled back are omitted; they appear when they are repeated.
  ///
  /// For code other than the delegate that needs no transaction. The sequence ends when the framework is closed.
  ///
  /// ```swift
  /// for await case .didDiscoverNewNode(let node, at: let path) in session.syncManager.nodeEvents {
  ///   print(path, node.uuid)
  /// }
  /// ```
  public var nodeEvents: ZDCNodeEvents { hub.nodes.events() }
}
