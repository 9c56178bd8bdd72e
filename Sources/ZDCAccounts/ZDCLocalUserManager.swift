internal import Foundation
internal import Synchronization
package import ZDCClientAPI
public import ZDCClientStore
internal import ZDCCrypto
package import ZDCProtocol
internal import ZDCSupport

/// Manages the accounts on this device: creates, logs in, lists and removes them.
///
/// A device can have several accounts, each with separate trees, keys and session.
///
/// ```swift
/// let users = session.localUserManager
/// if let user = try await users.allLocalUsers().first {
///   openTree(session.tree(of: user))
/// } else {
///   askForWordsOrNewAccount()
/// }
/// ```
public final class ZDCLocalUserManager: Sendable {
  package let database: ZDCDatabaseConnection
  package let connection: ServerConnection
  package let appTreeID: String
  package let now: @Sendable () -> UInt64
  /// Runs changes of accounts one at a time.
  let gate = TaskGate()
  private let open = Mutex<[UserID: OpenUser]>([:])
  /// Accounts whose words `createAccount` has returned.
  private let returned = Mutex<Set<UserID>>([])

  /// State that is created once per local user and kept, because keys cost a signature check per link and a session
  /// costs two requests.
  private struct OpenUser {
    var keys: UserKeys
    var api: ServerAPI
  }

  package init(
    database: ZDCDatabaseConnection, transport: any Transport, address: ServerAddress, appTreeID: String,
    now: @escaping @Sendable () -> UInt64
  ) {
    self.database = database
    connection = ServerConnection(transport: transport, address: address)
    self.appTreeID = appTreeID
    self.now = now
  }

  /// Creates a manager for a configuration.
  ///
  /// - Parameter transport: The transport to use; nil for HTTP over the network.
  package convenience init(config: ZDCConfig, database: ZDCDatabaseManager, transport: (any Transport)? = nil) throws {
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
  /// The secrets are stored on this device, sealed, before anything is sent. If the app is killed or the network fails
  /// at any point, call this method again: it resumes with the same account and returns the same words.
  ///
  /// That also holds for a kill after the last step, until the account counts as yours. It counts as yours once one of
  /// these has happened:
  ///
  /// - This call has returned it, and is then made again on the same object.
  /// - ``accessWords(for:)`` was called for it.
  /// - Something was put into its trees.
  ///
  /// Until then, the first call of each launch returns it again. After that, a call creates a second account.
  ///
  /// ```swift
  /// let (user, words) = try await session.localUserManager.createAccount()
  /// show(words)  // once: the owner writes them down
  /// openTree(session.tree(of: user))
  /// ```
  ///
  /// - Parameter invite: The invitation from the server's operator, where registration is by invitation.
  /// - Returns: The user and the account's 24 words. Show the words to their owner once, and do not store them. Any
  ///   device that has them has full access to the account.
  /// - Throws: `ZDCServerError` with `registrationClosed`, `inviteRequired` or `unsupportedProtocol`, ``ZDCTransportError``,
  ///   ``ZDCError`` for a failure on this device, `CancellationError`.
  public func createAccount(
    invite: String? = nil
  ) async throws -> (localUser: ZDCLocalUser, words: [String]) {
    let creation = AccountCreation(database: database, connection: connection, appTreeID: appTreeID, now: now)
    let row = try await gate.run { [self] in
      let row = try await translating { try await creation.run(invite: invite, seen: self.returned.withLock { $0 }) }
      returned.withLock { _ = $0.insert(row.userID) }
      return row
    }
    return (row.localUser, row.secrets.accessKey.words)
  }

  /// Adds an existing account as a local user, from its 24 words.
  ///
  /// Its trees are empty until the first pull. Logging in again to an account that is already on this device renews its
  /// session and keeps its data.
  ///
  /// An account that another app created has no tree for this app, and this method throws `accountStateMissing`. Ask
  /// the account's owner, and log in with `createsTree`. If the app is killed or the network fails at any point, the
  /// same call resumes.
  ///
  /// ```swift
  /// do {
  ///   let user = try await session.localUserManager.login(words: typed.split(separator: " ").map(String.init))
  ///   openTree(session.tree(of: user))
  /// } catch let error as ZDCError where error.code == .invalidWords {
  ///   askAgain()
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - words: The 24 words, spelled as in the list. Case and surrounding whitespace do not matter.
  ///   - createsTree: Whether to create a tree for this app if the account's verified chain names none.
  /// - Throws: ``ZDCError`` with `invalidWords` if the words are not an access key, or `accountNotFound` if no account
  ///   has it. `ZDCSecurityError` with `accountStateMissing`, `identityChainRollback` or `keyringMismatch` if the
  ///   server's data does not belong to it; then nothing is stored and no keys are generated. `ZDCServerError`;
  ///   ``ZDCTransportError``.
  public func login(words: [String], createsTree: Bool = false) async throws -> ZDCLocalUser {
    try await login(Self.accessKey(words), expected: nil, createsTree: createsTree)
  }

  /// Logs in again to an account on this device. Use this when the account's words were changed on another device: the
  /// error is then `accessKeyChanged` or `unauthorized`.
  ///
  /// The account keeps its trees and its queued changes. A running engine continues with the new keys.
  ///
  /// ```swift
  /// do {
  ///   try await session.syncManager.syncUntilIdle(localUserID: user.uuid)
  /// } catch let error as ZDCServerError where error.code == .unauthorized {
  ///   let words = typed.split(separator: " ").map(String.init)
  ///   try await session.localUserManager.renewLogin(of: user.uuid, words: words)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - localUserID: The ID of the local user.
  ///   - words: The account's current 24 words.
  /// - Throws: ``ZDCError`` with `localUserNotFound`, `otherAccount` if the words open another account, and the errors
  ///   of ``login(words:createsTree:)``.
  public func renewLogin(of localUserID: String, words: [String]) async throws {
    let userID = try Self.userID(localUserID)
    guard try await localUser(id: localUserID) != nil else { throw ZDCError(.localUserNotFound) }
    _ = try await login(Self.accessKey(words), expected: userID, createsTree: false)
  }

  func login(linked: DeviceLinkAnswer, createsTree: Bool) async throws -> ZDCLocalUser {
    try await login(linked.accessKey, expected: linked.user, linked: linked, createsTree: createsTree)
  }

  private func login(
    _ accessKey: AccessKey, expected: UserID?, linked: DeviceLinkAnswer? = nil, createsTree: Bool
  ) async throws -> ZDCLocalUser {
    let login = AccountLogin(
      database: database, connection: connection, appTreeID: appTreeID, now: now, expected: expected, linked: linked)
    let result = try await gate.run {
      try await translating { try await login.run(accessKey, createsTree: createsTree) }
    }
    let api = try await renew(result.row)
    await api.session.adopt(result.session)
    return result.row.localUser
  }

  /// Replaces the keys of a user, whose engine keeps the same API object.
  func renew(_ row: LocalUserRow) async throws -> ServerAPI {
    let keys = try translating { try UserKeys(row) }
    let known = open.withLock { open in
      open[row.userID]?.keys = keys
      return open[row.userID]?.api
    }
    guard let known else { return try await serverAPI(for: row.userID) }
    await known.session.renew(row.credentials)
    return known
  }

  private static func accessKey(_ words: [String]) throws -> AccessKey {
    let typed = Mnemonic.split(typed: words.joined(separator: " "))
    do {
      return try AccessKey(words: typed)
    } catch { throw ZDCError(.invalidWords, detail: error.description, underlying: error) }
  }

  /// Removes a local user and all their data from this device. The account on the server is not changed.
  ///
  /// The device is also removed from the server, if the server can be reached.
  ///
  /// ```swift
  /// do {
  ///   try await session.localUserManager.delete(user.uuid)
  /// } catch let error as ZDCError where error.code == .changesQueued {
  ///   askWhetherToLoseChanges()  // then: delete(user.uuid, force: true)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - localUserID: The ID of the local user.
  ///   - force: Whether to remove the user even if changes are queued, which are then lost.
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
    // Best effort: a device that no longer exists is no security risk, and removing a user must work offline too.
    _ = try? await ServerAPI(connection: connection, session: session).endSessions(of: row.secrets.deviceID)
  }

  /// Removes a local user and all their data from this device, as the form with an ID does.
  ///
  /// ```swift
  /// for localUser in try await session.localUserManager.allLocalUsers() {
  ///   try await session.localUserManager.delete(localUser)
  /// }
  /// ```
  ///
  /// - Throws: ``ZDCError`` with `changesQueued` or `localUserNotFound`.
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
  /// Returns the accounts on this device, in the order in which they were added. An account whose creation has not
  /// finished is omitted.
  ///
  /// ```swift
  /// let users = try await session.localUserManager.allLocalUsers()
  /// show(users.map(\.displayName))
  /// ```
  ///
  /// - Throws: The error of the database.
  public func allLocalUsers() async throws -> [ZDCLocalUser] {
    try await database.asyncRead { transaction in
      try transaction.localUsers.readyIDs().compactMap { transaction.localUser(id: $0.text) }
    }
  }

  /// Returns the IDs of the accounts on this device, in the order in which they were added.
  ///
  /// ```swift
  /// if let known = try await session.localUserManager.allLocalUserIDs().first {
  ///   openTree(session.tree(ofLocalUserID: known))
  /// } else {
  ///   askForWordsOrNewAccount()
  /// }
  /// ```
  ///
  /// - Throws: The error of the database.
  public func allLocalUserIDs() async throws -> [String] {
    try await database.asyncRead { transaction in try transaction.localUsers.readyIDs().map(\.text) }
  }

  /// Returns the account; nil if it is not on this device.
  ///
  /// ```swift
  /// if let author = try await session.localUserManager.localUser(id: senderID) { show([author.displayName]) }
  /// ```
  ///
  /// - Throws: The error of the database.
  public func localUser(id localUserID: String) async throws -> ZDCLocalUser? {
    try await database.asyncRead { $0.localUser(id: localUserID) }
  }

  /// Returns the account's 24 words. Require the device's unlock before calling it, and show the words to their owner
  /// only.
  ///
  /// The words are read from this device; the server does not have them.
  ///
  /// ```swift
  /// let words = try await session.localUserManager.accessWords(for: user.uuid)
  /// show(words)
  /// ```
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
  /// Returns the verified identity and keys of a local user.
  ///
  /// - Throws: ``ZDCError`` with `localUserNotFound` or `localUserNotReady`; `ZDCSecurityError` if the stored data does
  ///   not verify.
  package func keys(for userID: UserID) async throws -> UserKeys {
    try await openUser(userID).keys
  }

  /// Returns the server's API with this user's session, which is opened on first use.
  package func serverAPI(for userID: UserID) async throws -> ServerAPI {
    try await openUser(userID).api
  }

  /// Compares the server's identity chain of a local user with the pinned one, and stores its new links.
  ///
  /// - Parameter known: The last link that the caller has. This manager may have a longer chain.
  /// - Returns: The new keys; nil if the caller has them.
  /// - Throws: See ``IdentityRefresh``.
  package func refreshIdentity(of userID: UserID, known: LinkHash) async throws -> UserKeys? {
    let api = try await serverAPI(for: userID)
    let refresh = IdentityRefresh(database: database, api: api, user: userID, known: known, now: now)
    guard let keys = try await refresh.run() else { return nil }
    try await renew(userID)
    return keys
  }

  /// Loads a user's keys again after they changed.
  func renew(_ userID: UserID) async throws {
    let row = try await database.asyncRead { transaction in
      guard let row = try transaction.localUsers.user(userID) else { throw ZDCError(.localUserNotFound) }
      return row
    }
    _ = try await renew(row)
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
    let made = OpenUser(
      keys: try translating { try UserKeys(row) }, api: ServerAPI(connection: connection, session: session))
    // Two tasks may reach this point at the same time. The first one's session is kept.
    return open.withLock { open in
      let kept = open[userID] ?? made
      open[userID] = kept
      return kept
    }
  }
}
