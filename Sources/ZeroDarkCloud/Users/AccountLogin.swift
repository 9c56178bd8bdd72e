internal import ZDCCrypto
internal import ZDCProtocol

/// Logging in with words: challenge, session, chain and keyring fetched and verified, then one transaction.
///
/// Nothing is generated but the device's own id and key: an account whose state is missing or does not verify ends with
/// an error, never with new keys (PROTOCOL 3.4).
struct AccountLogin {
  let database: ZDCDatabaseConnection
  let connection: ServerConnection
  let appTreeID: String
  let now: @Sendable () -> UInt64

  struct Result: Sendable {
    var row: LocalUserRow
    var session: SessionResponse
  }

  func run(_ accessKey: AccessKey) async throws -> Result {
    _ = try await connection.info()
    let (deviceID, deviceKey) = try await device(accessKey)
    let session = try await login(accessKey, deviceID, deviceKey)
    let (chain, keyringBlob) = try await fetchState(session, accessKey, deviceID, deviceKey)
    let keys = try UserKeys(
      chain: chain, keyringBlob: keyringBlob, accessKey: accessKey, expected: session.userID,
      pinnedVersion: try await checkPin(chain, of: session.userID))
    guard keys.identity.hasTreeClaim(appTreeID: appTreeID) else {
      throw ZDCSecurityError(.accountStateMissing, user: session.userID)
    }
    let secrets = LocalUserSecrets(
      accessKey: accessKey, deviceID: deviceID, deviceKey: deviceKey, origin: connection.origin,
      appTreeID: appTreeID, keyringBlob: keyringBlob)
    let row = LocalUserRow(
      userID: session.userID, state: .ready, chain: chain, secrets: secrets, createdMs: now())
    return Result(row: try await store(row, session), session: session)
  }

  /// What this device has seen of the account before counts at a login too.
  ///
  /// - Returns: the version of the keyring that is known here.
  private func checkPin(_ chain: [UInt8], of user: UserID) async throws -> UInt64 {
    let known = try await database.asyncRead { try $0.localUsers.user(user) }
    guard let known, known.state == .ready else { return 0 }
    _ = try IdentityChain.compare(pinned: known.chain, with: chain, of: user)
    return try UserKeys(known).keyringVersion
  }

  /// An account that is here already keeps its device; a new one gets a new one.
  private func device(_ accessKey: AccessKey) async throws -> (DeviceID, SigningKey) {
    let known = try await database.asyncRead { transaction in
      try transaction.localUsers.all().first { $0.secrets.accessKey == accessKey }?.secrets
    }
    return (known?.deviceID ?? .random(), known?.deviceKey ?? .random())
  }

  private func login(
    _ accessKey: AccessKey, _ deviceID: DeviceID, _ deviceKey: SigningKey
  ) async throws -> SessionResponse {
    do {
      return try await Login.byAccessKey(connection, accessKey, deviceID: deviceID, deviceKey: deviceKey)
    } catch let error as ServerError where error.code == .unauthorized {
      // Words that nobody has and words that somebody had before look alike to the server, and on purpose.
      throw ZDCError(.accountNotFound, underlying: error)
    }
  }

  private func fetchState(
    _ response: SessionResponse, _ accessKey: AccessKey, _ deviceID: DeviceID, _ deviceKey: SigningKey
  ) async throws -> (chain: [UInt8], keyring: [UInt8]) {
    let credentials = SessionCredentials(
      userID: response.userID, accessKey: accessKey, deviceID: deviceID, deviceKey: deviceKey)
    let session = Session(connection: connection, credentials: credentials)
    await session.adopt(response)
    let api = ServerAPI(connection: connection, session: session)
    do {
      return (try await api.chain(of: response.userID), try await api.keyring())
    } catch let error as ServerError where error.code == .notFound {
      throw ZDCSecurityError(.accountStateMissing, user: response.userID)
    }
  }

  /// The same account again keeps everything it has.
  private func store(_ row: LocalUserRow, _ session: SessionResponse) async throws -> LocalUserRow {
    try await database.asyncReadWrite { transaction in
      var stored = row
      if let known = try transaction.localUsers.user(row.userID) {
        stored.id = known.id
        stored.createdMs = known.createdMs
        try transaction.localUsers.update(stored)
      } else {
        try transaction.localUsers.insert(&stored)
      }
      try transaction.localUsers.setSessionToken(session.token.bytes, of: stored.userID)
      try TrunkRows(
        transaction: transaction, localUser: stored.id, appTreeID: stored.secrets.appTreeID, owner: stored.userID
      ).insertUnknown()
      transaction.signal(.localUsers)
      return stored
    }
  }
}
