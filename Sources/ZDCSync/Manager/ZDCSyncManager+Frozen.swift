internal import Foundation
internal import ZDCClientStore
public import ZDCProtocol

extension ZDCSyncManager {
  /// Returns the local user's frozen trees (PROTOCOL 3.7, class 1).
  ///
  /// ```swift
  /// for zone in try await session.syncManager.frozenZones(localUserID: user.uuid) {
  ///   print(zone.trunk, zone.error.explanation)
  /// }
  /// ```
  ///
  /// - Throws: ``ZDCError``: `localUserNotFound`, or `localUserNotReady` for an account whose creation has not
  ///   finished.
  public func frozenZones(localUserID: String) async throws -> [ZDCFrozenZone] {
    let session = try await engine(for: localUserID).session
    return try await session.database.asyncRead { transaction in
      try transaction.frozenZones(localUser: session.localUser)
    }
  }

  /// Accepts the server's current state of a frozen tree, and sends again what the server lost. Call this after an
  /// operator has restored an old backup (PROTOCOL 3.7, "Accepting a restored server").
  ///
  /// Let the user decide, and save a copy of their data first: with a hostile server, this gives up the protection of
  /// the pin. The whole log is verified from its beginning; if it is invalid, nothing changes. Then everything that
  /// this device knows and the server lacks is queued: nodes, newer versions, deletes. Your delegate is asked for
  /// content again, and must throw for content that it does not have. Changes that others made in the meantime are
  /// announced as usual. Devices that do the same reach the same state, without duplicates.
  ///
  /// The framework never calls this method. It does nothing for a tree that is not frozen.
  ///
  /// ```swift
  /// for zone in try await session.syncManager.frozenZones(localUserID: user.uuid) where await userConfirms(zone) {
  ///   let summary = try await session.syncManager.acceptServerState(ofZone: zone.zone, localUserID: user.uuid)
  ///   print("\(summary.created) nodes are sent again, \(summary.missingCommits) commits were lost")
  /// }
  /// ```
  ///
  /// - Throws: `ZDCSecurityError` if the server's log is invalid; `ZDCError` with `syncedElsewhere`; `ZDCTransportError`,
  ///   `ZDCServerError`.
  @discardableResult
  public func acceptServerState(ofZone zone: ZDCZoneID, localUserID: String) async throws -> ZDCRestoreSummary {
    try await asEngine { try await self.engine(for: localUserID).acceptServerState(of: zone) }
  }
}
