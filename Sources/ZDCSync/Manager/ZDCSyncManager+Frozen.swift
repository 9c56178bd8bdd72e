internal import Foundation
internal import ZDCClientStore
public import ZDCProtocol

extension ZDCSyncManager {
  /// The local user's frozen trees (PROTOCOL 3.7, class 1).
  public func frozenZones(localUserID: String) async throws -> [ZDCFrozenZone] {
    let session = try await engine(for: localUserID).session
    return try await session.database.asyncRead { transaction in
      try transaction.frozenZones(localUser: session.localUser)
    }
  }

  /// Accepts what the server has now as a frozen tree's state, and sends it again what it lost: after an operator has
  /// restored an old backup (PROTOCOL 3.7, "Accepting a restored server").
  ///
  /// Let the user decide, and save a copy of his data before: with a hostile server this gives up what the pin protected.
  /// The whole log is verified from its beginning; if it does not hold, nothing changes. Then what this device knows and
  /// the server lacks is queued: nodes, newer versions, deletes. Your delegate is asked for content again, and has to throw
  /// for content that it does not have. What others changed meanwhile is announced as always. Devices that do the same
  /// come to the same state, and nothing is there twice.
  ///
  /// Never called by the framework. Does nothing for a tree that is not frozen.
  ///
  /// - Throws: `ZDCSecurityError` if the server's log is not valid in itself; `ZDCError` with `syncedElsewhere`;
  ///   `TransportError`, `ServerError`.
  @discardableResult
  public func acceptServerState(ofZone zone: ZoneID, localUserID: String) async throws -> ZDCRestoreSummary {
    try await asEngine { try await self.engine(for: localUserID).acceptServerState(of: zone) }
  }
}
