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
      id: userID, name: name?.name, ownName: user?.name, identity: user?.identity, safetyNumber: safetyNumber(userID))
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
// an unverified claim: show the ID, and let the user decide.
extension People {
  /// Asks the server which unknown users have sent a message.
  public func unknownSenders() async throws -> [UnknownSender] {
    let requests = try await session.syncManager.messageRequests(forLocalUserID: user)
    return Dictionary(grouping: requests, by: \.senderID)
      .map { UnknownSender(id: $0, messages: $1.count, date: $1.map(\.date).min() ?? Date()) }
      .sorted { ($0.date, $0.id) < ($1.date, $1.id) }
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
