internal import Foundation
internal import Synchronization
package import ZDCClientAPI
public import ZDCClientStore
internal import ZDCCrypto
package import ZDCProtocol
internal import ZDCSupport

/// Accounts on this device: creating them, logging in to them, listing and removing them.
///
/// Several can be there at once; each has its own trees, keys and session.
public final class ZDCLocalUserManager: Sendable {
  package let database: ZDCDatabaseConnection
  package let connection: ServerConnection
  package let appTreeID: String
  package let now: @Sendable () -> UInt64
  private let gate = TaskGate()
  private let open = Mutex<[UserID: OpenUser]>([:])
  /// Accounts whose words `createAccount` has returned.
  private let returned = Mutex<Set<UserID>>([])

  /// What is made once per local user and kept: keys take a signature check for each link, a session takes two
  /// requests.
  private struct OpenUser {
    var keys: UserKeys
    var api: ServerAPI
  }

  package init(
    database: ZDCDatabaseConnection, transport: any ZDCTransport, address: ServerAddress, appTreeID: String,
    now: @escaping @Sendable () -> UInt64
  ) {
    self.database = database
    connection = ServerConnection(transport: transport, address: address)
    self.appTreeID = appTreeID
    self.now = now
  }

  /// - Parameter transport: nil for one over the network.
  package convenience init(config: ZDCConfig, database: ZDCDatabaseManager, transport: (any ZDCTransport)? = nil) throws
  {
    let address = try ServerAddress(config.serverOrigin())
    let transport =
      try transport
      ?? AsyncHTTPTransport(
        address: address, caCertificates: config.caCertificates.map { [UInt8]($0) })
    self.init(
      database: database.rwDatabaseConnection, transport: transport, address: address,
      appTreeID: config.primaryTreeID, now: config.clock)
  }

  /// Creates an account on the server and makes it a local user.
  ///
  /// The secrets are stored here, sealed, before anything is sent. If the app is killed or the network fails at any
  /// point, call it again: it goes on with the same account and returns the same words. That holds for a kill behind
  /// the last step too: an account counts as yours once this call has returned it and this object is asked for another
  /// one, once ``accessWords(for:)`` was asked for its words, or once something was put into its trees. Until then each
  /// launch's first call returns it again; after that a call makes a second account.
  ///
  /// - Parameter invite: what the server's operator gave out, where registration is by invitation.
  /// - Returns: The user, and the 24 words that are the account: show them to their owner once, and keep them nowhere.
  ///   Each device that is given them can do everything.
  /// - Throws: `ServerError` with `registrationClosed`, `inviteRequired` or `unsupportedProtocol`, ``TransportError``,
  ///   ``ZDCError``.
  public func createAccount(
    invite: String? = nil
  ) async throws -> (localUser: ZDCLocalUser, words: [String]) {
    let creation = AccountCreation(database: database, connection: connection, appTreeID: appTreeID, now: now)
    let row = try await gate.run { [self] in
      let row = try await creation.run(invite: invite, seen: returned.withLock { $0 })
      returned.withLock { _ = $0.insert(row.userID) }
      return row
    }
    return (row.localUser, row.secrets.accessKey.words)
  }

  /// Makes an existing account a local user, from its 24 words.
  ///
  /// Its trees are empty until the first pull. Doing it again for an account that is here renews its session and keeps
  /// its data.
  ///
  /// An account that another app made has no tree for this app: then this throws `accountStateMissing`. Ask the
  /// account's owner, and log in with `createsTree`. If the app is killed or the network fails at any point, the same
  /// call resumes.
  ///
  /// - Parameters:
  ///   - words: spelled as in the list; case and surrounding space do not matter.
  ///   - createsTree: whether the account gets a tree for this app if its verified chain names none.
  /// - Throws: ``ZDCError`` with `invalidWords` if they are not an access key, `accountNotFound` if no account has it;
  ///   `ZDCSecurityError` with `accountStateMissing`, `identityChainRollback` or `keyringMismatch` if what the server
  ///   gives does not belong to it: nothing is stored then, and no keys are made; `ServerError`; ``TransportError``.
  public func login(words: [String], createsTree: Bool = false) async throws -> ZDCLocalUser {
    let accessKey = try Self.accessKey(words)
    let login = AccountLogin(database: database, connection: connection, appTreeID: appTreeID, now: now)
    let result = try await gate.run { try await login.run(accessKey, createsTree: createsTree) }
    forget(result.row.userID)
    let api = try await serverAPI(for: result.row.userID)
    await api.session.adopt(result.session)
    return result.row.localUser
  }

  private static func accessKey(_ words: [String]) throws -> AccessKey {
    let typed = Mnemonic.split(typed: words.joined(separator: " "))
    do {
      return try AccessKey(words: typed)
    } catch { throw ZDCError(.invalidWords, detail: error.description, underlying: error) }
  }

  /// Removes a local user and everything of theirs from this device. The account on the server is not touched.
  ///
  /// The server is told to forget this device, if it can be reached.
  ///
  /// - Parameters:
  ///   - localUserID: Which one.
  ///   - force: Also if changes are queued, which are then lost.
  /// - Throws: ``ZDCError`` with `changesQueued` or `localUserNotFound`.
  public func delete(_ localUserID: String, force: Bool = false) async throws {
    let userID = try Self.userID(localUserID)
    let (row, token) = try await database.asyncReadWrite { transaction in
      let users = transaction.localUsers
      guard let row = try users.user(userID) else { throw ZDCError(.localUserNotFound) }
      guard try force || !users.hasQueuedChanges(id: row.id) else { throw ZDCError(.changesQueued) }
      let token = try users.sessionToken(of: userID)
      try users.delete(id: row.id)
      transaction.signal(.localUsers)
      return (row, token)
    }
    forget(userID)
    let session = Session(connection: connection, credentials: row.credentials)
    if let token { await session.adopt(token) }
    // Only a courtesy: a device that nobody has is no danger, and offline the user must be removable too.
    _ = try? await ServerAPI(connection: connection, session: session).endSessions(of: row.secrets.deviceID)
  }

  /// The same for a value.
  public func delete(_ localUser: ZDCLocalUser, force: Bool = false) async throws {
    try await delete(localUser.uuid, force: force)
  }

  package func forget(_ userID: UserID) {
    open.withLock { $0[userID] = nil }
  }

  package static func userID(_ localUserID: String) throws -> UserID {
    guard let userID = UserID(text: localUserID) else { throw ZDCError(.localUserNotFound) }
    return userID
  }
}

// MARK: Looking up

extension ZDCLocalUserManager {
  /// The accounts on this device, in the order in which they came. One whose creation has not finished is not among
  /// them.
  public func allLocalUsers() async throws -> [ZDCLocalUser] {
    try await database.asyncRead { transaction in
      try transaction.localUsers.all().filter { $0.state == .ready }.map(\.localUser)
    }
  }

  /// The ids of the accounts on this device, in the order in which they came.
  public func allLocalUserIDs() async throws -> [String] {
    try await database.asyncRead { transaction in try transaction.localUsers.readyIDs().map(\.text) }
  }

  /// The account; nil if it is not on this device.
  public func localUser(id localUserID: String) async throws -> ZDCLocalUser? {
    guard let userID = UserID(text: localUserID) else { return nil }
    return try await database.asyncRead { transaction in
      guard let row = try transaction.localUsers.user(userID), row.state == .ready else { return nil }
      return row.localUser
    }
  }

  /// The account's 24 words. Ask for the device's unlock first, and show them to their owner only.
  ///
  /// - Throws: ``ZDCError`` with `localUserNotFound`.
  public func accessWords(for localUserID: String) async throws -> [String] {
    let userID = try Self.userID(localUserID)
    let row = try await database.asyncRead { transaction in
      guard let row = try transaction.localUsers.user(userID) else { throw ZDCError(.localUserNotFound) }
      return row
    }
    if row.isNew { try await database.asyncReadWrite { try $0.localUsers.setSeen(userID) } }
    return row.secrets.accessKey.words
  }
}

// MARK: For the engines

extension ZDCLocalUserManager {
  /// The verified identity and keys of a local user.
  ///
  /// - Throws: ``ZDCError`` with `localUserNotFound` or `localUserNotReady`; `ZDCSecurityError` if what is stored does
  ///   not
  ///   verify.
  package func keys(for userID: UserID) async throws -> UserKeys {
    try await openUser(userID).keys
  }

  /// The server's API with this user's session, which is opened when it is first needed.
  package func serverAPI(for userID: UserID) async throws -> ServerAPI {
    try await openUser(userID).api
  }

  /// Compares the server's identity chain of a local user with the pinned one, and takes over what is new in it.
  ///
  /// - Returns: the keys from now on; nil if nothing is new.
  /// - Throws: see ``IdentityRefresh``.
  package func refreshIdentity(of userID: UserID) async throws -> UserKeys? {
    let api = try await serverAPI(for: userID)
    let known = open.withLock { $0[userID]?.keys.identity.head }
    let refresh = IdentityRefresh(database: database, api: api, user: userID, known: known)
    guard let keys = try await refresh.run() else { return nil }
    open.withLock { $0[userID]?.keys = keys }
    return keys
  }

  private func openUser(_ userID: UserID) async throws -> OpenUser {
    if let known = open.withLock({ $0[userID] }) { return known }
    let row = try await database.asyncRead { transaction in
      guard let row = try transaction.localUsers.user(userID) else { throw ZDCError(.localUserNotFound) }
      guard row.state == .ready else { throw ZDCError(.localUserNotReady) }
      return row
    }
    let session = Session(
      connection: connection, credentials: row.credentials,
      storage: StoredSession(database: database, user: userID))
    let made = OpenUser(keys: try UserKeys(row), api: ServerAPI(connection: connection, session: session))
    // Two may have come here at once: the first one's session counts.
    return open.withLock { open in
      let kept = open[userID] ?? made
      open[userID] = kept
      return kept
    }
  }
}
