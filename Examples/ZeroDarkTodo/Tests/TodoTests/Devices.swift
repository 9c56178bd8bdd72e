import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

@testable import TodoKit

/// A device of the account, which syncs when the test says so.
struct Device: Sendable {
  let manager: ZDCManager
  let account: Account

  func sync() async throws { try await manager.sync(account.user) }

  /// Returns a line for each task of a list.
  func lines(_ listID: String? = nil) async throws -> [String] {
    let lists = try await lists()
    guard let listID = listID ?? lists.first?.id else { return [] }
    return try await account.screen(list: listID).tasks.map { item in
      guard let task = item.task else { return "(not downloaded)" }
      let photo = item.photo == nil ? "" : " +photo"
      let details = task.details.isEmpty ? "" : ": \(task.details)"
      return "\(task.isDone ? "x" : "-") \(task.title)\(details) [\(task.priority)]\(photo)"
    }
  }

  func lists() async throws -> [ListItem] { try await account.screen().lists }

  /// The lists with their numbers of tasks.
  func titles() async throws -> [String] {
    try await lists().map { "\($0.title) \($0.counts.done)/\($0.counts.tasks)" }
  }

  func list(_ title: String) async throws -> String { try #require(try await lists().first { $0.title == title }).id }

  func item(_ title: String) async throws -> TaskItem {
    for list in try await lists() {
      let tasks = try await account.screen(list: list.id).tasks
      if let item = tasks.first(where: { $0.task?.title == title }) { return item }
    }
    throw TestFailure("no task \(title)")
  }

  func edit(_ title: String, _ change: @escaping @Sendable (inout Task) -> Void) async throws {
    try await account.edit(item(title).id, change)
  }

  /// Changes a task's details as another program can: to any size.
  func writeForeign(_ title: String, details: String) async throws {
    let id = try await item(title).id
    try await account.tree.write { transaction, cloud in
      var task = try cloud.task(id)
      task.details = details
      transaction.setObject(task, forKey: id, inCollection: Task.collection)
      cloud.queueDataUpload(forNodeID: id, withChangeset: nil)
    }
  }
}

/// Runs `body` with a server and two devices of one account. Both have the list Groceries with milk and bread.
func withDevices(
  _ body: @Sendable (_ server: TestServer, _ laptop: Device, _ phone: Device) async throws -> Void
) async throws {
  let (server, temporary) = (try await TestServer.start(), try TemporaryFolder())
  let first = try ZDCManager(
    server: server.url.absoluteString, folder: temporary.folder("laptop"), syncsAutomatically: false)
  let second = try ZDCManager(
    server: server.url.absoluteString, folder: temporary.folder("phone"), syncsAutomatically: false)
  let (account, words) = try await first.createAccount()
  let laptop = Device(manager: first, account: account)
  let phone = Device(manager: second, account: try await second.logIn(words: words))
  let groceries = try await account.createList("Groceries")
  try await account.addTask("milk", to: groceries)
  try await account.addTask("bread", to: groceries)
  for device in [laptop, phone] { try await device.sync() }
  try await body(server, laptop, phone)
  for manager in [first, second] { try await manager.close() }
  try await server.stop()
}

/// Syncs until both devices have all changes, and checks that they show the same.
func settle(_ a: Device, _ b: Device) async throws {
  for device in [a, b, a, b] { try await device.sync() }
  #expect(try await a.titles() == b.titles())
  for list in try await a.lists() { #expect(try await a.lines(list.id) == b.lines(b.list(list.title))) }
  for device in [a, b] {
    let state = try await device.account.session.syncManager.syncState(forLocalUserID: device.account.user)
    #expect(state.pending.total == 0 && state.lastError == nil)
  }
}
