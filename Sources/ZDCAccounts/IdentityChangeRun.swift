internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport

/// Changes the account's own identity in three steps. If the process is killed between two steps, the next call resumes
/// at the first unfinished one:
///
/// 1. Sign the link, and store it with the keys that it introduces.
/// 2. Send it. The same bytes are sent until the outcome is known.
/// 3. Adopt it: the pinned chain, the keyring and the access key change in one transaction.
///
/// If the answer of step 2 was lost, ``IdentityRefresh`` finds the link in the server's chain and runs step 3.
struct IdentityChangeRun {
  let database: ZDCDatabaseConnection
  let api: ServerAPI
  let user: UserID
  let now: @Sendable () -> UInt64

  /// Maximum number of attempts while other devices extend the chain too.
  private static let attempts = 8

  /// - Returns: The keys after the change.
  func run(_ wanted: IdentityChange) async throws -> UserKeys {
    for _ in 0..<Self.attempts {
      let change = try await next(wanted)
      let isAccepted = try await send(change)
      if isAccepted, wanted.isMade(by: change.link) { return try await keys() }
    }
    throw ServerError(.conflict, "the account's chain changes too often", retryable: true)
  }

  // MARK: Step 1

  /// Returns the pending change, if the server may still accept it or has accepted it; otherwise a new one.
  private func next(_ wanted: IdentityChange) async throws -> PendingIdentityChange {
    let pending = try await stored().pending
    if let pending, try await mayBeAccepted(pending) { return pending }
    try await refresh()
    if let pending, try pending.isIn(try await stored().row.chain, of: user) { return pending }
    return try await database.asyncReadWrite { [user, now] transaction in
      let row = try Self.row(user, transaction)
      let earlier = try transaction.identityChanges.pending(of: user)
      let keys = try UserKeys(row)
      try Self.check(keys)
      let change = try wanted.plan(after: row, keys: keys, replacing: earlier, timeMs: now())
      try transaction.identityChanges.setPending(change, of: user)
      return change
    }
  }

  private func mayBeAccepted(_ pending: PendingIdentityChange) async throws -> Bool {
    try pending.continues(try await stored().row.chain, of: user)
  }

  /// - Throws: `accountClosed`, or `accessKeyChanged` if another device has changed the words.
  private static func check(_ keys: UserKeys) throws {
    guard !keys.identity.isClosed else { throw ServerError.closedAccount }
    guard keys.canSign, !keys.isAccessKeyChanged else {
      throw ZDCSecurityError(.accessKeyChanged, user: keys.userID)
    }
  }

  // MARK: Steps 2 and 3

  /// - Returns: Whether the link is in the chain. If not, another device's link came first.
  private func send(_ change: PendingIdentityChange) async throws -> Bool {
    do {
      try await request(change)
    } catch let error as ServerError where error.code == .conflict || error.code == .accountClosed {
      try await refresh()
      let chain = try await stored().row.chain
      // The server shows no link in the place of this one.
      if try change.continues(chain, of: user) { throw error }
      return try change.isIn(chain, of: user)
    } catch let error as ServerError where error.code == .handleTaken {
      // The same link will be refused again, and would stand before every other change.
      try await database.asyncReadWrite { [user] in try $0.identityChanges.removePending(of: user) }
      throw error
    }
    if try await !adopt(change) { try await refresh() }
    return try change.isIn(try await stored().row.chain, of: user)
  }

  /// Sends the link. If the access key has changed already, only the new one opens a session.
  private func request(_ change: PendingIdentityChange) async throws {
    do {
      try await api.appendLink(change.request)
    } catch let error as ServerError where error.code == .unauthorized && change.link.kind == .rotateRoot {
      let secrets = try await stored().row.secrets
      let session = try await Login.byAccessKey(
        api.connection, change.accessKey, deviceID: secrets.deviceID, deviceKey: secrets.deviceKey)
      guard session.userID == user else { throw ZDCSecurityError(.userIDMismatch, user: user) }
      await api.session.adopt(session)
      try await api.appendLink(change.request)
    }
  }

  /// Runs step 3, unless a refresh has changed the pinned chain.
  private func adopt(_ change: PendingIdentityChange) async throws -> Bool {
    try await database.asyncReadWrite { [user, now] transaction in
      var row = try Self.row(user, transaction)
      guard try change.continues(row.chain, of: user) else { return false }
      var chain = Bundle.Writer()
      for link in try IdentityChain.links(row.chain, of: user) { chain.append(link: link.bytes) }
      chain.append(link: change.link.bytes)
      row.chain = chain.bytes
      change.apply(to: &row)
      _ = try UserKeys(row)
      try transaction.adopt(change, as: row, atMs: now())
      return true
    }
  }

  private func refresh() async throws {
    _ = try await IdentityRefresh(database: database, api: api, user: user, known: nil, now: now).run()
  }

  // MARK: The database

  private func stored() async throws -> (row: LocalUserRow, pending: PendingIdentityChange?) {
    try await database.asyncRead { [user] transaction in
      (try Self.row(user, transaction), try transaction.identityChanges.pending(of: user))
    }
  }

  private func keys() async throws -> UserKeys { try UserKeys(try await stored().row) }

  private static func row(_ user: UserID, _ transaction: ZDCReadTransaction) throws -> LocalUserRow {
    guard let row = try transaction.localUsers.user(user) else { throw ZDCError(.localUserNotFound) }
    return row
  }
}

extension ZDCReadWriteTransaction {
  /// Stores the user's row after a pending change is in the chain, and ends the change.
  func adopt(_ change: PendingIdentityChange, as row: LocalUserRow, atMs now: UInt64) throws {
    try update(row, atMs: now)
    try identityChanges.removePending(of: row.userID)
    signal(.localUsers)
  }

  /// Stores the user's row with a chain that may be longer.
  func update(_ row: LocalUserRow, atMs now: UInt64) throws {
    try localUsers.update(row)
    try replaceKeys(sealedFor: row.userID, atMs: now)
  }
}

extension ServerError {
  static let closedAccount = ServerError(.accountClosed, "the account is closed")
}
