internal import ZDCProtocol

/// What an operator sees of accounts and decides about them.
enum Administration {
  static let usersPerPage = 200

  static func users(
    after id: UserID?, quotas: Quotas, now: UInt64, in reader: any MetadataReader
  ) throws -> AdminUserPage {
    let rows = try reader.users(after: id, limit: usersPerPage + 1)
    let users = try rows.prefix(usersPerPage).map { try describe($0, quotas: quotas, now: now, in: reader) }
    return AdminUserPage(users: users, next: rows.count > users.count ? users.last?.userID : nil)
  }

  static func user(
    _ id: UserID, quotas: Quotas, now: UInt64, in reader: any MetadataReader
  ) throws -> AdminUser {
    try describe(row(id, in: reader), quotas: quotas, now: now, in: reader)
  }

  private static func row(_ id: UserID, in reader: any MetadataReader) throws -> UserRow {
    guard let row = try reader.user(id) else { throw ServerError(.notFound, "no such account") }
    return row
  }

  private static func describe(
    _ row: UserRow, quotas: Quotas, now: UInt64, in reader: any MetadataReader
  ) throws -> AdminUser {
    let usage = try reader.usage(of: row.id)
    return AdminUser(
      userID: row.id, createdMs: row.createdMs, closedMs: row.closedMs, suspendedMs: row.suspendedMs,
      quotaBytes: row.quotaBytes ?? quotas.limit, hasOwnQuota: row.quotaBytes != nil,
      contentBytes: usage.contentBytes, uploadBytes: usage.uploadBytes, recordBytes: usage.recordBytes,
      logBytes: usage.logBytes, liveNodes: usage.liveNodes, devices: try reader.devices(of: row.id).count,
      sessions: try reader.sessions(of: row.id).count { $0.expiresMs > now })
  }

  /// Refuses further logins and ends all sessions. The account's data stays, and members of its zones keep their access.
  ///
  /// - Returns: whether the account was not suspended.
  static func suspend(_ id: UserID, now: UInt64, in tx: any MetadataTransaction) throws -> Bool {
    var user = try row(id, in: tx)
    let isNew = user.suspendedMs == nil
    user.suspendedMs = user.suspendedMs ?? now
    try tx.updateUser(user)
    try endSessions(of: id, in: tx)
    return isNew
  }

  /// - Returns: whether the account was suspended.
  static func resume(_ id: UserID, in tx: any MetadataTransaction) throws -> Bool {
    var user = try row(id, in: tx)
    guard user.suspendedMs != nil else { return false }
    user.suspendedMs = nil
    try tx.updateUser(user)
    return true
  }

  /// - Parameter bytes: nil for the server's own quota.
  /// - Throws: `conflict` if the server compares no account with a quota.
  static func setQuota(_ bytes: UInt64?, of id: UserID, quotas: Quotas, in tx: any MetadataTransaction) throws {
    guard quotas.limit > 0 || bytes == nil else {
      throw ServerError(.conflict, "the server has no quota: start it with --quota to limit accounts")
    }
    var user = try row(id, in: tx)
    user.quotaBytes = bytes
    try tx.updateUser(user)
  }

  static func sessions(of id: UserID, now: UInt64, in reader: any MetadataReader) throws -> AdminSessions {
    let rows = try reader.sessions(of: row(id, in: reader).id).filter { $0.expiresMs > now }
    return AdminSessions(
      sessions: rows.map { AdminSession(deviceID: $0.device, createdMs: $0.createdMs, expiresMs: $0.expiresMs) })
  }

  /// Ends all sessions. Devices that may still log in do so again.
  static func endSessions(of id: UserID, in tx: any MetadataTransaction) throws {
    for session in try tx.sessions(of: row(id, in: tx).id) { try tx.removeSession(tokenHash: session.tokenHash) }
  }

  static func invites(_ codes: Set<String>, in reader: any MetadataReader) throws -> AdminInvites {
    AdminInvites(
      invites: try codes.sorted().map { code in
        AdminInvites.Invite(code: code, isUsed: try reader.isInviteUsed(Accounts.inviteHash(code)))
      })
  }
}
