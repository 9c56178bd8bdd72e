internal import Foundation
internal import ZDCClientAPI
package import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport

/// Creates an account in three steps. If the process is killed between two steps, the next call resumes at the first
/// unfinished one:
///
/// 1. Store the secrets and the exact request in the database (state `creating`).
/// 2. Register the account with the server. The same request may be sent again and gets the same answer.
/// 3. Insert the trunks' rows and set the user to `ready`, in one transaction.
///
/// The account exists from then on, but the caller may not have received its words. Until it is known that they were
/// seen, the next call returns the same account.
struct AccountCreation {
  package let database: ZDCDatabaseConnection
  package let connection: ServerConnection
  package let appTreeID: String
  package let now: @Sendable () -> UInt64

  /// - Parameter seen: Accounts that the calling manager has returned, whose words have therefore been seen.
  package func run(invite: String?, seen: Set<UserID>) async throws -> LocalUserRow {
    if let row = try await unseen(seen) { return row }
    let row = try await begin(invite: invite)
    let answer = try await connection.register(row.secrets.request)
    guard answer.userID == row.userID else { throw ZDCSecurityError(.userIDMismatch, user: row.userID) }
    return try await finish(row)
  }

  /// Returns the account that was created but whose words may not have been seen.
  private func unseen(_ seen: Set<UserID>) async throws -> LocalUserRow? {
    try await database.asyncReadWrite { [connection, appTreeID] transaction in
      let users = transaction.localUsers
      for user in seen { try users.setSeen(user) }
      return try users.unseen(origin: connection.origin, appTreeID: appTreeID)
    }
  }

  /// Runs step 1, or loads the row that an earlier call stored.
  private func begin(invite: String?) async throws -> LocalUserRow {
    if let row = try await unfinished() { return try await withInvite(invite, row) }
    _ = try await connection.info()
    let fresh = try makeRow(invite: invite)
    return try await database.asyncReadWrite { transaction in
      var row = fresh
      try transaction.localUsers.insert(&row)
      return row
    }
  }

  private func unfinished() async throws -> LocalUserRow? {
    try await database.asyncRead { [connection, appTreeID] transaction in
      try transaction.localUsers.unfinished(origin: connection.origin, appTreeID: appTreeID)
    }
  }

  private func makeRow(invite: String?) throws -> LocalUserRow {
    let birth = try NewAccount(accessKey: .random(), appTreeID: appTreeID, timeMs: now())
    let request = try Self.request(birth, appTreeID: appTreeID, invite: invite)
    var chain = Bundle.Writer()
    chain.append(link: birth.genesis.bytes)
    let secrets = LocalUserSecrets(
      accessKey: birth.accessKey, deviceID: .random(), deviceKey: .random(), origin: connection.origin,
      appTreeID: appTreeID, keyringBlob: birth.keyringBlob, request: request)
    return LocalUserRow(
      userID: birth.userID, state: .creating, chain: chain.bytes, secrets: secrets, createdMs: now())
  }

  private static func request(_ birth: NewAccount, appTreeID: String, invite: String?) throws -> [UInt8] {
    let trunks = birth.trunks.map { trunk -> WireBytes in
      var bundle = Bundle.Writer()
      bundle.append(record: trunk.root.bytes)
      bundle.append(grant: trunk.grant.bytes)
      bundle.append(acl: trunk.acl.bytes)
      bundle.append(commit: trunk.commit.bytes)
      return WireBytes(bundle.bytes)
    }
    return try encode(
      RegisterRequest(
        genesis: WireBytes(birth.genesis.bytes), keyring: WireBytes(birth.keyringBlob),
        lookupID: birth.accessKey.lookupID, loginKey: WireBytes(birth.accessKey.loginKey.publicKey), invite: invite,
        tree: RegisterRequest.Tree(appTreeID: appTreeID, trunks: trunks)))
  }

  private static func encode(_ request: RegisterRequest) throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return [UInt8](try encoder.encode(request))
  }

  private static func decode(_ row: LocalUserRow) throws -> RegisterRequest {
    do {
      return try JSONDecoder().decode(RegisterRequest.self, from: Data(row.secrets.request))
    } catch { throw ZDCError(.corruptDatabase) }
  }

  /// Replaces the invitation, since the first attempt may have had a wrong one or none. The account stays the same.
  private func withInvite(_ invite: String?, _ row: LocalUserRow) async throws -> LocalUserRow {
    var request = try Self.decode(row)
    guard let invite, request.invite != invite else { return row }
    request.invite = invite
    var changed = row
    changed.secrets.request = try Self.encode(request)
    let updated = changed
    try await database.asyncReadWrite { transaction in try transaction.localUsers.update(updated) }
    return updated
  }

  /// Runs step 3.
  private func finish(_ row: LocalUserRow) async throws -> LocalUserRow {
    let request = try Self.decode(row)
    let keys = try UserKeys(row)
    var ready = row
    ready.state = .ready
    ready.secrets.request = []
    ready.isNew = true
    let finished = ready
    try await database.asyncReadWrite { transaction in
      let rows = TrunkRows(
        transaction: transaction, localUser: finished.id, appTreeID: finished.secrets.appTreeID,
        owner: finished.userID)
      try rows.insertGenesis(request.tree.trunks.map(\.bytes), keys: keys)
      try transaction.localUsers.update(finished)
      transaction.signal(.localUsers)
    }
    return finished
  }
}

extension UserKeys {
  package init(_ row: LocalUserRow) throws {
    try self.init(
      chain: row.chain, keyringBlob: row.secrets.keyringBlob, accessKey: row.secrets.accessKey, expected: row.userID,
      mayHaveNewRoot: true)
  }
}
