internal import ZDCClientAPI
public import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport

/// Other users: fetches and verifies their identities, and keeps what the person at this device decided about them.
///
/// A user's identity is a chain of signed links that begins with the user ID. This device pins the chain of each user
/// whom it has met, accepts only links that continue it, and shows its state in ``ZDCUser/identity``. Decisions are
/// stored on this device, sealed, and hold for all of its accounts. They are not sent to the server or to other devices.
///
/// To show a state that changes, observe it:
///
/// ```swift
/// let bobID = "the text of Bob's user ID"
/// for try await bob in connection.values(of: { $0.user(id: bobID) }) {
///   if bob?.identity == .changed { show(["Bob has new words. Compare again."]) }
/// }
/// ```
public final class ZDCUserManager: Sendable {
  private let users: ZDCLocalUserManager

  package init(users: ZDCLocalUserManager) { self.users = users }

  private var database: ZDCDatabaseConnection { users.database }

  // MARK: Looking up

  /// Fetches the newest links of a user's identity chain, verifies that they continue the pinned chain, and pins them.
  ///
  /// The senders of messages and the members of access lists are known without it. The owner whom only the text of an
  /// invitation names is not, if another member sent it: fetch them by ``ZDCCloudPath/ownerID``.
  ///
  /// ```swift
  /// let bob = try await session.userManager.fetchUser(id: bobsUserID, for: user.uuid)
  /// if bob.identity == .changed { show(["Bob's words were changed. Compare again."]) }
  /// ```
  ///
  /// - Parameters:
  ///   - userID: The ID of the user.
  ///   - localUserID: The ID of the local user whose session asks.
  /// - Returns: The user, with the state after the fetch.
  /// - Throws: ``ZDCError`` with `localUserNotFound`, or `userNotFound` if neither the server nor this device knows the
  ///   user; `ZDCSecurityError` such as `identityChainInvalid` if the server's answer is no continuation, which is then
  ///   not used; `ZDCServerError`; `ZDCTransportError`.
  @discardableResult
  public func fetchUser(id userID: String, for localUserID: String) async throws -> ZDCUser {
    guard let user = UserID(text: userID) else { throw ZDCError(.userNotFound) }
    let api = try await users.serverAPI(for: try ZDCLocalUserManager.userID(localUserID))
    let store = IdentityStore(database: database, api: api, now: users.now)
    let isLocal = try await database.asyncRead { try $0.localUsers.user(user) != nil }
    if !isLocal {
      let refused = try await translating { try await store.refresh([user]) }
      if let error = refused.first { throw error }
    }
    return try await known(user)
  }

  /// Looks a user up by their handle, and fetches their identity chain.
  ///
  /// The server says who has a handle, and the user's own signed chain must claim it. A server that colludes with another
  /// user could still name that one, if this device has not met the right one: compare the safety number before you
  /// share what matters.
  ///
  /// ```swift
  /// let bob = try await session.userManager.fetchUser(handle: "bob", for: user.uuid)
  /// show([bob.displayName])
  /// ```
  ///
  /// - Parameters:
  ///   - handle: The handle, with or without an `@`, in lowercase or uppercase.
  ///   - localUserID: The ID of the local user whose session asks.
  /// - Returns: The user, with the state after the fetch.
  /// - Throws: ``ZDCError`` with `userNotFound` if no user has the handle, `invalidParameter` if it is none;
  ///   `ZDCSecurityError` with `handleBindingChanged` if the server names a user whose chain does not claim the handle, or
  ///   another one than the user who has it; `ZDCServerError` with `tooManyRequests` after about 30 look-ups a minute; the
  ///   errors of ``fetchUser(id:for:)``.
  @discardableResult
  public func fetchUser(handle: String, for localUserID: String) async throws -> ZDCUser {
    guard let name = Handle(typed: handle) else { throw ZDCError(.invalidParameter, detail: "not a handle") }
    let found = try await lookUp(name.text, for: localUserID) { $0.handle == name }
    guard let match = found.first else { throw ZDCError(.userNotFound) }
    return try await fetchUser(id: match.user.text, for: localUserID)
  }

  /// Finds users whose handles begin with a text: the first 20, in the order of their handles.
  ///
  /// All of them are verified to claim their handles. Users whom this device has not met are not stored: pass the ID to
  /// ``fetchUser(id:for:)`` before you share with one.
  ///
  /// ```swift
  /// let matches = try await session.userManager.findUsers(handle: typed, for: user.uuid)
  /// show(matches.map { "@\($0.handle ?? "")" })
  /// ```
  ///
  /// - Parameters:
  ///   - beginning: At least three characters of a handle, with or without an `@`.
  ///   - localUserID: The ID of the local user whose session asks.
  /// - Returns: The users; none if no handle begins like this.
  /// - Throws: ``ZDCError`` with `localUserNotFound`, or `invalidParameter` for a text with which no handle can begin; the
  ///   errors of ``fetchUser(handle:for:)``, except `userNotFound`.
  public func findUsers(handle beginning: String, for localUserID: String) async throws -> [ZDCUser] {
    guard let text = Handle.beginning(typed: beginning) else {
      throw ZDCError(.invalidParameter, detail: "no handle begins like this: at least three letters or digits")
    }
    let found = try await lookUp(text, for: localUserID)
    return try await database.asyncRead { transaction in
      found.map { entry in
        transaction.user(id: entry.user.text)
          ?? ZDCUser(uuid: entry.user.text, identity: .seen, handle: entry.handle.text)
      }
    }
  }

  /// Asks the server who has these handles, and checks the answers that are wanted against the users' own chains.
  private func lookUp(
    _ beginning: String, for localUserID: String,
    where isWanted: @escaping @Sendable (HandleList.Entry) -> Bool = { _ in true }
  ) async throws -> [HandleList.Entry] {
    let api = try await users.serverAPI(for: try ZDCLocalUserManager.userID(localUserID))
    let store = IdentityStore(database: database, api: api, now: users.now)
    return try await translating {
      let entries = try await api.handles(beginning: beginning).filter(isWanted)
      let holders = try await database.asyncRead { transaction in
        try entries.map { entry in try transaction.users.holders(of: entry.handle).filter { $0 != entry.user } }
      }
      let (claimed, refused) = try await store.handles(of: Array(Set(entries.map(\.user) + holders.joined())))
      if let error = refused.first { throw error }
      for (entry, others) in zip(entries, holders) {
        if let holder = others.first(where: { claimed[$0] == entry.handle }) {
          throw ZDCSecurityError(.handleBindingChanged, user: holder)
        }
        guard claimed[entry.user] == entry.handle else {
          throw ZDCSecurityError(.handleBindingChanged, user: entry.user)
        }
      }
      return entries
    }
  }

  /// Returns the users whom this device has met, in the order of their IDs, without those with an account on it.
  ///
  /// ```swift
  /// let people = try await session.userManager.allUsers()
  /// show(people.filter { !$0.isBlocked }.map(\.displayName))
  /// ```
  public func allUsers() async throws -> [ZDCUser] {
    try await database.asyncRead { transaction in
      let local = Set(try transaction.localUsers.readyIDs())
      return try transaction.users.all().filter { !local.contains($0) }.compactMap { transaction.user(id: $0.text) }
    }
  }

  private func known(_ user: UserID) async throws -> ZDCUser {
    let found = try await database.asyncRead { $0.user(id: user.text) }
    guard let found else { throw ZDCError(.userNotFound) }
    return found
  }

  // MARK: Comparing

  /// Returns the safety number of two users.
  ///
  /// ```swift
  /// let number = try session.userManager.safetyNumber(of: user.uuid, and: bobsUserID)
  /// show(number.groups)  // both read the digits to each other
  /// ```
  ///
  /// - Throws: ``ZDCError`` with `userNotFound` if one of the texts is no user ID.
  public func safetyNumber(of localUserID: String, and userID: String) throws -> ZDCSafetyNumber {
    guard let own = UserID(text: localUserID), let other = UserID(text: userID) else { throw ZDCError(.userNotFound) }
    return ZDCSafetyNumber(own, other)
  }

  /// Returns the text for a QR code that another user scans. It names the local user and the end of their chain.
  ///
  /// ```swift
  /// let code = try await session.userManager.identityCode(of: user.uuid)
  /// show([code])  // as a QR code
  /// ```
  ///
  /// - Throws: ``ZDCError`` with `localUserNotFound`.
  public func identityCode(of localUserID: String) async throws -> String {
    let identity = try await users.keys(for: try ZDCLocalUserManager.userID(localUserID)).identity
    return IdentityCode(user: identity.userID, seq: identity.seq, hash: identity.head).text
  }

  /// Notes that a person has compared the safety number with the user.
  ///
  /// ```swift
  /// let number = try session.userManager.safetyNumber(of: user.uuid, and: bobsUserID)
  /// if await userAgrees(number.description) { try await session.userManager.verify(bobsUserID) }
  /// ```
  ///
  /// - Returns: The user, verified at the end of the pinned chain.
  /// - Throws: ``ZDCError`` with `userNotFound`; call ``fetchUser(id:for:)`` first.
  @discardableResult
  public func verify(_ userID: String) async throws -> ZDCUser {
    try await change(userID) { contact, links in
      contact.verified = links.last.map { Contact.Link(seq: $0.seq, hash: $0.hash) }
    }
  }

  /// Fetches a user's chain, and verifies the user if the scanned text matches it.
  ///
  /// ```swift
  /// do {
  ///   let bob = try await session.userManager.verify(scanned: scannedCode, of: bobsUserID, for: user.uuid)
  ///   show([bob.displayName])
  /// } catch let error as ZDCSecurityError where error.code == .userIDMismatch {
  ///   show(["This code belongs to another user."])
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - text: The text of the QR code that the user shows.
  ///   - userID: The ID of the user whom the text must be of; nil for any.
  ///   - localUserID: The ID of the local user whose session asks.
  /// - Returns: The user, verified.
  /// - Throws: `ZDCSecurityError` with `userIDMismatch` for a code of another user, `identityChainRollback` if the
  ///   server withholds links that the code names, `identityChainInvalid` if it shows others; ``ZDCError`` with
  ///   `invalidParameter` for another text; the errors of ``fetchUser(id:for:)``.
  @discardableResult
  public func verify(scanned text: String, of userID: String? = nil, for localUserID: String) async throws -> ZDCUser {
    guard let code = IdentityCode(text) else { throw ZDCError(.invalidParameter, detail: "not a user's code") }
    guard userID == nil || userID == code.user.text else {
      throw ZDCSecurityError(.userIDMismatch, user: code.user)
    }
    try await fetchUser(id: code.user.text, for: localUserID)
    return try await change(code.user.text) { contact, links in
      try code.check(links)
      contact.verified = links.last.map { Contact.Link(seq: $0.seq, hash: $0.hash) }
    }
  }

  /// Accepts that a verified user's words were changed, without comparing again. The user then counts as
  /// ``ZDCIdentityState/seen``.
  ///
  /// ```swift
  /// if bob.identity == .changed, await userAgrees("Continue with Bob's new words?") {
  ///   try await session.userManager.acceptIdentityChange(bob.uuid)
  /// }
  /// ```
  ///
  /// - Throws: ``ZDCError`` with `userNotFound`.
  @discardableResult
  public func acceptIdentityChange(_ userID: String) async throws -> ZDCUser {
    try await change(userID) { contact, links in
      if contact.state(links) == .changed { contact.verified = nil }
    }
  }

  // MARK: Blocking

  /// Blocks a user on this device. Other users are not notified.
  ///
  /// ```swift
  /// try await session.userManager.block(sender.uuid)
  /// ```
  ///
  /// - Throws: ``ZDCError`` with `userNotFound`.
  @discardableResult
  public func block(_ userID: String) async throws -> ZDCUser {
    try await change(userID) { contact, _ in contact.isBlocked = true }
  }

  /// Unblocks a user on this device.
  ///
  /// ```swift
  /// for person in try await session.userManager.allUsers() where person.isBlocked {
  ///   try await session.userManager.unblock(person.uuid)
  /// }
  /// ```
  ///
  /// - Throws: ``ZDCError`` with `userNotFound`.
  @discardableResult
  public func unblock(_ userID: String) async throws -> ZDCUser {
    try await change(userID) { contact, _ in contact.isBlocked = false }
  }

  /// Changes the stored decisions about a user whose chain is pinned.
  private func change(
    _ userID: String, _ body: @Sendable (_ contact: inout Contact, _ links: [IdentityLink]) throws -> Void
  ) async throws -> ZDCUser {
    guard let user = UserID(text: userID) else { throw ZDCError(.userNotFound) }
    try await database.asyncReadWrite { transaction in
      guard let chain = try transaction.users.chain(of: user) else { throw ZDCError(.userNotFound) }
      var contact = try transaction.contacts.contact(of: user)
      try body(&contact, try IdentityChain.links(chain, of: user))
      try transaction.contacts.set(contact, of: user)
      if contact.isBlocked { try MemberHeadStore.removeAll(of: user, transaction) }
    }
    return try await known(user)
  }
}
