internal import Foundation
internal import ZDCClientAPI
package import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport

/// The steps of creating an account. Killed between any two of them, the next call goes on where this one stopped:
///
/// 1. Secrets and the exact request are in the database (state `creating`).
/// 2. The server has the account: the same request may be sent again and gets the same answer.
/// 3. The trunks' rows are there and the user is `ready`, in one transaction.
///
/// From then on the account is there; whether the caller lived to see its words is another question. Until that is
/// known it is the one that the next call returns.
struct AccountCreation {
  package let database: ZDCDatabaseConnection
  package let connection: ServerConnection
  package let appTreeID: String
  package let now: @Sendable () -> UInt64

  /// - Parameter seen: accounts that this process has returned: their words were seen.
  package func run(invite: String?, seen: Set<UserID>) async throws -> LocalUserRow {
    if let row = try await unseen(seen) { return row }
    let row = try await begin(invite: invite)
    let answer = try await connection.register(row.secrets.request)
    guard answer.userID == row.userID else { throw ZDCSecurityError(.userIDMismatch, user: row.userID) }
    return try await finish(row)
  }

  /// The account that was made and that nobody is known to have been told of.
  private func unseen(_ seen: Set<UserID>) async throws -> LocalUserRow? {
    try await database.asyncReadWrite { [connection, appTreeID] transaction in
      let users = transaction.localUsers
      for user in seen { try users.setSeen(user) }
      return try users.unseen(origin: connection.origin, appTreeID: appTreeID)
    }
  }

  /// Step 1, or what it left behind.
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
    let birth = try AccountBirth(accessKey: .random(), appTreeID: appTreeID, timeMs: now())
    let request = try Self.request(birth, appTreeID: appTreeID, invite: invite)
    var chain = Bundle.Writer()
    chain.append(link: birth.genesis.bytes)
    let secrets = LocalUserSecrets(
      accessKey: birth.accessKey, deviceID: .random(), deviceKey: .random(), origin: connection.origin,
      appTreeID: appTreeID, keyringBlob: birth.keyringBlob, request: request)
    return LocalUserRow(
      userID: birth.userID, state: .creating, chain: chain.bytes, secrets: secrets, createdMs: now())
  }

  private static func request(_ birth: AccountBirth, appTreeID: String, invite: String?) throws -> [UInt8] {
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

  /// The first attempt may have had a wrong invitation, or none: the account stays the same.
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

  /// Step 3.
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
      try rows.insertBorn(request.tree.trunks.map(\.bytes), keys: keys)
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
