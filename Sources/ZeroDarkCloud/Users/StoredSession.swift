internal import ZDCProtocol

/// Keeps a local user's session token, sealed, in his row.
struct StoredSession: SessionStorage {
  let database: ZDCDatabaseConnection
  let user: UserID

  func load() async throws -> [UInt8]? {
    try await database.asyncRead { [user] transaction in try transaction.localUsers.sessionToken(of: user) }
  }

  func save(_ token: [UInt8]?) async throws {
    try await database.asyncReadWrite { [user] transaction in
      try transaction.localUsers.setSessionToken(token, of: user)
    }
  }
}
