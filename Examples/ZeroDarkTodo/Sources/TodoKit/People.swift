import Foundation
import ZeroDarkCloud

extension Account {
  /// Other users, as this device knows them.
  public var people: People { People(account: self) }
}

/// Other users: their keys, names and safety numbers, and the requests of those who are unknown.
///
/// What the user decides about a person is stored on this device only, for all of its accounts.
public struct People: Sendable {
  let account: Account

  private var session: ZDCSession { account.session }
  private var user: String { account.user }

  /// Fetches and verifies the keys of another user, who is then known on this device.
  ///
  /// - Throws: `userNotFound`; `invalidParameter` for the account's own ID.
  @discardableResult
  public func meet(_ userID: String) async throws -> Person {
    guard userID != user else { throw ZDCError(.invalidParameter, detail: "this is the account's own ID") }
    try await session.userManager.fetchUser(id: userID, for: user)
    return try await account.tree.read { transaction, _ in person(userID, transaction) }
  }

  /// Finds another user by their ID, or by their handle with an `@`, and fetches and verifies their keys.
  ///
  /// The server says who has a handle, and the user's own signed keys must claim it. Compare the safety number nonetheless.
  ///
  /// - Throws: `userNotFound`; `invalidParameter` for the account's own ID or handle, and for a text that is no handle.
  @discardableResult
  public func find(_ text: String) async throws -> Person {
    guard text.hasPrefix("@") else { return try await meet(text) }
    return try await meet(session.userManager.fetchUser(handle: text, for: user).uuid)
  }

  /// Chooses the handle by which others find the account, with or without an `@`. It is public. An empty one is given up.
  ///
  /// - Throws: `invalidParameter` for a text that is no handle; `ZDCServerError` with `handleTaken`.
  public func setOwnHandle(_ handle: String) async throws {
    try await session.localUserManager.setHandle(handle.isEmpty ? nil : handle, for: user)
  }

  /// Reads what this device knows about a person, without a network.
  public func person(_ userID: String) throws -> Person {
    try account.tree.read { transaction, _ in person(userID, transaction) }
  }

  /// Returns the people to whom the user has given a name, by name.
  public func named() async throws -> [Person] {
    try await account.tree.read { transaction, _ in
      var people: [Person] = []
      try transaction.enumerateKeysAndObjects(Nickname.self, inCollection: Nickname.collection) { key, _, _ in
        people.append(person(key, transaction))
      }
      return people.sorted { ($0.label, $0.id) < ($1.label, $1.id) }
    }
  }

  func person(_ userID: String, _ transaction: ZDCReadTransaction) -> Person {
    let name = transaction.object(forKey: userID, inCollection: Nickname.collection) as? Nickname
    let user = transaction.user(id: userID)
    return Person(
      id: userID, name: name?.name, ownName: user?.name, handle: user?.handle, identity: user?.identity,
      safetyNumber: safetyNumber(userID))
  }

  /// - Returns: Nothing for a text that is no user ID.
  private func safetyNumber(_ userID: String) -> [String] {
    do { return try session.userManager.safetyNumber(of: user, and: userID).groups } catch { return [] }
  }

  /// Records that the two people have compared their safety numbers.
  public func verify(_ userID: String) async throws { try await session.userManager.verify(userID) }

  /// Accepts that a verified person has new words.
  public func acceptNewWords(of userID: String) async throws {
    try await session.userManager.acceptIdentityChange(userID)
  }

  /// Changes the name that the people see with whom the user shares. An empty one takes it back.
  ///
  /// - Throws: `invalidParameter` for a name of more than 256 bytes, or with control characters.
  public func setOwnName(_ name: String) async throws {
    try await account.tree.write { _, cloud in try cloud.setProfile(ZDCProfile(name: name)) }
  }

  /// Gives another user a name, which only this device knows. An empty one removes it.
  ///
  /// - Throws: `invalidParameter` for a name of more than 200 bytes.
  public func setName(_ name: String, of userID: String) async throws {
    guard name.utf8.count <= Nickname.maxBytes else {
      throw ZDCError(.invalidParameter, detail: "a name has at most \(Nickname.maxBytes) bytes")
    }
    try await account.tree.write { transaction, _ in
      if name.isEmpty { return transaction.removeObject(forKey: userID, inCollection: Nickname.collection) }
      transaction.setObject(Nickname(name: name), forKey: userID, inCollection: Nickname.collection)
    }
  }
}

// Messages of users whom the account does not know are listed by the server, and not fetched. Everything in the list is
// an unverified claim: show the ID, and let the user decide. Messages under a key that a known person has declared
// compromised wait too.
extension People {
  /// Asks the server whose messages wait for the user's decision.
  public func unknownSenders() async throws -> [UnknownSender] {
    let requests = try await session.syncManager.messageRequests(forLocalUserID: user)
    let senders = Dictionary(grouping: requests, by: \.senderID)
    return try await account.tree.read { transaction, _ in
      senders.map { id, messages in
        UnknownSender(
          id: id, person: messages.contains(where: \.isKeyCompromised) ? person(id, transaction) : nil,
          messages: messages.count, date: messages.map(\.date).min() ?? Date())
      }.sorted { ($0.date, $0.id) < ($1.date, $1.id) }
    }
  }

  /// Receives the messages of an unknown user, now and later.
  public func accept(_ userID: String) async throws {
    try await session.syncManager.acceptMessages(fromUserID: userID, forLocalUserID: user)
  }

  /// Deletes the messages of an unknown user. With `isBlocking`, the server refuses all later ones.
  public func decline(_ userID: String, isBlocking: Bool = false) async throws {
    try await session.syncManager.declineMessages(fromUserID: userID, isBlocking: isBlocking, forLocalUserID: user)
  }
}
