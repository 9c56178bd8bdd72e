internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCProtocol

/// Keeps a local user's session token, sealed, in their row.
struct StoredSession: SessionStorage {
  package let database: ZDCDatabaseConnection
  package let user: UserID

  package func load() async throws -> [UInt8]? {
    try await database.asyncRead { [user] transaction in try transaction.localUsers.sessionToken(of: user) }
  }

  package func save(_ token: [UInt8]?) async throws {
    try await database.asyncReadWrite { [user] transaction in
      try transaction.localUsers.setSessionToken(token, of: user)
    }
  }
}
