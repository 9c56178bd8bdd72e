internal import Foundation
internal import GRDB
public import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport

extension ZDCSyncManager {
  /// Returns a local user's security events, newest first.
  ///
  /// ```swift
  /// for event in try await session.syncManager.securityEvents(localUserID: user.uuid, limit: 20) {
  ///   print(event.date, event.error.code, "\(event.times) times")
  /// }
  /// ```
  ///
  /// - Throws: ``ZDCError``: `localUserNotFound`.
  public func securityEvents(localUserID: String, limit: Int = 1_000) async throws -> [ZDCSecurityEvent] {
    guard let user = UserID(text: localUserID) else { throw ZDCError(.localUserNotFound) }
    return try await database.roDatabaseConnection.asyncRead { transaction in
      guard let row = try transaction.localUsers.user(user) else { throw ZDCError(.localUserNotFound) }
      return try transaction.securityEvents(localUser: row.id, limit: limit)
    }
  }
}

extension ZDCReadTransaction {
  fileprivate func securityEvents(localUser: Int64, limit: Int) throws -> [ZDCSecurityEvent] {
    let zones = Dictionary(
      uniqueKeysWithValues: try zones.zones(localUser: localUser).map { ($0.id, $0.zone) })
    let statement = try database.cachedStatement(
      sql: """
        SELECT code, timeMs, zone, nodeID, userID, times, firstMs, device, firstMissing, lastMissing
        FROM zdc_security_event WHERE localUser = ? ORDER BY id DESC LIMIT ?
        """)
    return try Row.fetchAll(statement, arguments: [localUser, limit]).compactMap { row in
      // A newer version of the framework may have stored an unknown code.
      guard let code = ZDCSecurityError.Code(rawValue: row[0]) else { return nil }
      var error = ZDCSecurityError(
        code, zone: (row[2] as Int64?).flatMap { zones[$0] }, node: (row[3] as Data?).flatMap { NodeID($0) },
        user: (row[4] as Data?).flatMap { UserID($0) })
      error.device = row.unsigned(7)
      if let first = row.unsigned(8), let last = row.unsigned(9), first <= last { error.missing = first...last }
      return ZDCSecurityEvent(
        error: error, date: Date(ms: row.unsigned(1) ?? 0), times: row[5], firstDate: Date(ms: row.unsigned(6) ?? 0))
    }
  }
}
