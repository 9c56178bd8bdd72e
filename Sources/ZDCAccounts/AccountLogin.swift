package import ZDCClientAPI
package import ZDCClientStore
package import ZDCCrypto
package import ZDCProtocol
internal import ZDCSupport

/// Logs in with words: opens a session, fetches and verifies the chain and keyring, and stores everything in one
/// transaction.
///
/// Only the device's own ID and key are generated. An account whose state is missing or does not verify ends with an
/// error, never with new keys (PROTOCOL 3.4). The app's trunks are created only if the caller asks for it and the
/// verified chain names no tree of the app.
package struct AccountLogin {
  package let database: ZDCDatabaseConnection
  package let connection: ServerConnection
  package let appTreeID: String
  package let now: @Sendable () -> UInt64
  /// The account to log in to; nil for any.
  package var expected: UserID?
  /// The history that the linking device has verified; nil at a login with words.
  package var linked: DeviceLinkAnswer?

  package struct Result: Sendable {
    package var row: LocalUserRow
    package var session: SessionResponse
  }

  package func run(_ accessKey: AccessKey, createsTree: Bool = false) async throws -> Result {
    _ = try await connection.info()
    let (deviceID, deviceKey) = try await device(accessKey)
    let session = try await login(accessKey, deviceID, deviceKey)
    if let expected, session.userID != expected { throw ZDCError(.otherAccount) }
    let api = await api(session, accessKey, deviceID, deviceKey)
    var (chain, keyringBlob) = try await fetchState(api, session.userID)
    try checkLinked(chain)
    let keys = try UserKeys(
      chain: chain, keyringBlob: keyringBlob, accessKey: accessKey, expected: session.userID,
      pinnedVersion: try await checkPin(chain, of: session.userID))
    let secrets = LocalUserSecrets(
      accessKey: accessKey, deviceID: deviceID, deviceKey: deviceKey, origin: connection.origin,
      appTreeID: appTreeID, keyringBlob: keyringBlob)
    var row = LocalUserRow(
      userID: session.userID, state: .ready, chain: chain, secrets: secrets, createdMs: now())
    if !keys.identity.hasTreeClaim(appTreeID: appTreeID) {
      guard createsTree else { throw ZDCSecurityError(.accountStateMissing, user: session.userID) }
      chain = try await addTree(row, keys, api)
      keyringBlob = try await newest(keyringBlob, chain, session.userID, api)
      (row.chain, row.secrets.keyringBlob) = (chain, keyringBlob)
      _ = try UserKeys(row)
    }
    return Result(row: try await store(row, session), session: session)
  }

  // MARK: Adding the app's tree

  /// - Returns: The chain with the claim.
  private func addTree(_ row: LocalUserRow, _ keys: UserKeys, _ api: ServerAPI) async throws -> [UInt8] {
    let trunks = try await trunksToAdd(row, keys)
    return try await TreeCreation(api: api, appTreeID: appTreeID, now: now).run(trunks, chain: row.chain, keys: keys)
  }

  /// Returns the trunks of an interrupted earlier call, or new ones, which are stored before they are sent to the
  /// server.
  private func trunksToAdd(_ row: LocalUserRow, _ keys: UserKeys) async throws -> [UInt8] {
    let fresh = try TreeCreation.trunks(for: keys, appTreeID: appTreeID, timeMs: now())
    return try await database.asyncReadWrite { transaction in
      if let known = try transaction.localUsers.user(row.userID) {
        guard known.state == .addingTree, known.secrets.appTreeID == row.secrets.appTreeID else { return fresh }
        return known.secrets.request
      }
      var adding = row
      adding.state = .addingTree
      adding.secrets.request = fresh
      try transaction.localUsers.insert(&adding)
      return fresh
    }
  }

  /// Returns the keyring that the chain names. Another device may have changed it in the meantime.
  private func newest(
    _ keyring: [UInt8], _ chain: [UInt8], _ user: UserID, _ api: ServerAPI
  ) async throws -> [UInt8] {
    let last = try IdentityChain.links(chain, of: user).last
    return last?.keyringHash == Keyring.hash(keyring) ? keyring : try await api.keyring()
  }

  // MARK: State of the account

  /// Compares the chain with the one that this device has pinned, because rollback protection applies to a login too.
  ///
  /// - Returns: The version of the keyring that is stored on this device.
  private func checkPin(_ chain: [UInt8], of user: UserID) async throws -> UInt64 {
    let known = try await database.asyncRead { try $0.localUsers.user(user) }
    guard let known, known.state == .ready else { return 0 }
    _ = try IdentityChain.compare(pinned: known.chain, with: chain, of: user)
    return try UserKeys(known).keyringVersion
  }

  /// - Throws: `identityChainRollback` if the chain ends before the one that the linking device has verified, or differs
  ///   from it.
  private func checkLinked(_ chain: [UInt8]) throws {
    guard let linked else { return }
    let links = try IdentityChain.links(chain, of: linked.user)
    let known = links.first { $0.seq == linked.chainSeq }
    guard known?.hash == linked.chainHash else { throw ZDCSecurityError(.identityChainRollback, user: linked.user) }
  }

  /// Returns the stored device of an account that is already on this device, or a new one.
  private func device(_ accessKey: AccessKey) async throws -> (DeviceID, SigningKey) {
    let known = try await database.asyncRead { [expected] transaction in
      try transaction.localUsers.all().first { $0.userID == expected || $0.secrets.accessKey == accessKey }?.secrets
    }
    return (known?.deviceID ?? .random(), known?.deviceKey ?? .random())
  }

  private func login(
    _ accessKey: AccessKey, _ deviceID: DeviceID, _ deviceKey: SigningKey
  ) async throws -> SessionResponse {
    do {
      return try await Login.byAccessKey(connection, accessKey, deviceID: deviceID, deviceKey: deviceKey)
    } catch let error as ServerError where error.code == .unauthorized {
      // By design, the server answers the same for words that never existed and words no longer valid.
      throw ZDCError(.accountNotFound, underlying: error)
    }
  }

  private func api(
    _ response: SessionResponse, _ accessKey: AccessKey, _ deviceID: DeviceID, _ deviceKey: SigningKey
  ) async -> ServerAPI {
    let credentials = SessionCredentials(
      userID: response.userID, accessKey: accessKey, deviceID: deviceID, deviceKey: deviceKey)
    let session = Session(connection: connection, credentials: credentials)
    await session.adopt(response)
    return ServerAPI(connection: connection, session: session)
  }

  private func fetchState(_ api: ServerAPI, _ user: UserID) async throws -> (chain: [UInt8], keyring: [UInt8]) {
    do {
      return (try await api.chain(of: user), try await api.keyring())
    } catch let error as ServerError where error.code == .notFound {
      throw ZDCSecurityError(.accountStateMissing, user: user)
    }
  }

  /// Stores the row. An account that is already on this device keeps all its data.
  private func store(_ row: LocalUserRow, _ session: SessionResponse) async throws -> LocalUserRow {
    try await database.asyncReadWrite { [now] transaction in
      var stored = row
      if let known = try transaction.localUsers.user(row.userID) {
        stored.id = known.id
        stored.createdMs = known.createdMs
        // A change of this device whose answer was lost may be in the chain.
        let change = try transaction.identityChanges.pending(of: row.userID)
        if let change, try change.isIn(row.chain, of: row.userID) {
          try transaction.adopt(change, as: stored, atMs: now())
        } else {
          try transaction.update(stored, atMs: now())
        }
      } else {
        try transaction.localUsers.insert(&stored)
      }
      try transaction.localUsers.setSessionToken(session.token.bytes, of: stored.userID)
      try TrunkRows(
        transaction: transaction, localUser: stored.id, appTreeID: stored.secrets.appTreeID, owner: stored.userID
      ).insertUnknown()
      for head in linked?.heads ?? [] {
        guard try transaction.zones.zone(localUser: stored.id, head.zone)?.head == nil else { continue }
        try ExpectedHeadStore(transaction, localUser: stored.id).insert(head.seq, head.hash, of: head.zone)
      }
      transaction.signal(.localUsers)
      return stored
    }
  }
}
