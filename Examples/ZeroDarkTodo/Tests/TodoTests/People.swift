import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

@testable import TodoKit

/// Two people with an account each.
struct People: Sendable {
  let server: TestServer
  let alice: Device
  let bob: Device

  /// Shares Alice's list with Bob, who accepts her and the invitation.
  ///
  /// - Returns: The list's id on Bob's device.
  @discardableResult
  func share(_ title: String = "Groceries", canEdit: Bool = true) async throws -> String {
    try await invite(title, canEdit: canEdit)
    try await bob.account.people.accept(alice.account.user)
    try await bob.sync()
    let listID = try await bob.account.accept(#require(try await bob.invitations().last).id)
    try await settle(title)
    return listID
  }

  func invite(_ title: String = "Groceries", canEdit: Bool = true) async throws {
    try await alice.account.share(alice.list(title), with: bob.account.user, canEdit: canEdit)
    try await alice.sync()
  }

  /// Runs `body` with a second device of a person, which has received everything.
  func withPhone(of device: Device, _ body: @Sendable (_ phone: Device) async throws -> Void) async throws {
    let folder = try TemporaryFolder()
    let manager = try ZDCManager(server: server.url.absoluteString, folder: folder.url, syncsAutomatically: false)
    let phone = Device(manager: manager, account: try await manager.logIn(words: device.account.words()))
    try await phone.sync()
    try await body(phone)
    try await manager.close()
  }

  /// Syncs until both have all changes, and checks that they show the same list.
  func settle(_ title: String = "Groceries") async throws {
    for device in [alice, bob, alice, bob] { try await device.sync() }
    #expect(try await alice.lines(alice.list(title)) == bob.lines(bob.list(title)))
    for device in [alice, bob] {
      let state = try await device.account.session.syncManager.syncState(forLocalUserID: device.account.user)
      #expect(state.pending.total == 0 && state.lastError == nil)
    }
  }
}

/// Runs `body` with a server, and two people who do not know each other. Alice has the list Groceries with milk and bread.
func withPeople(_ body: @Sendable (_ people: People) async throws -> Void) async throws {
  let (server, temporary) = (try await TestServer.start(), try TemporaryFolder())
  let devices = try await ["alice", "bob"].asyncMap { name in
    let manager = try ZDCManager(
      server: server.url.absoluteString, folder: temporary.folder(name), syncsAutomatically: false)
    return Device(manager: manager, account: try await manager.createAccount().account)
  }
  let people = People(server: server, alice: devices[0], bob: devices[1])
  let groceries = try await people.alice.account.createList("Groceries")
  for title in ["milk", "bread"] { try await people.alice.account.addTask(title, to: groceries) }
  for device in devices { try await device.sync() }
  try await body(people)
  for device in devices { try await device.manager.close() }
  try await server.stop()
}

extension Sequence {
  fileprivate func asyncMap<T>(_ transform: (Element) async throws -> T) async throws -> [T] {
    var result: [T] = []
    for element in self { result.append(try await transform(element)) }
    return result
  }
}

extension Device {
  func invitations() async throws -> [InvitationItem] { try await account.screen().invitations }

  /// The number of the app's objects.
  func objects() async throws -> Int {
    try await account.session.databaseManager.rwDatabaseConnection.read { transaction in
      try [List.collection, Task.collection, Invitation.collection].reduce(0) {
        try $0 + transaction.numberOfKeys(inCollection: $1)
      }
    }
  }

  /// The lines of the activity about lists that others have ended.
  func notices() async throws -> [String] {
    try await account.screen().activity.filter { $0.kind == .notice }.map { "\($0.title): \($0.change)" }
  }

  /// The members of a list, each with what they may do.
  func members(_ title: String = "Groceries") async throws -> [String: String] {
    let list = try await lists().first { $0.title == title }
    let members = list?.members ?? []
    return Dictionary(
      uniqueKeysWithValues: members.map { ($0.id, $0.isOwner ? "owner" : $0.canEdit ? "edit" : "read") })
  }
}
