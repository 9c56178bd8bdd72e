import GRDB
import Synchronization
import Testing
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// The work that a split makes for the device that makes it. A branch may have a hundred thousand nodes.
struct SplitWorkTests {
  typealias People = ListChangeTests.People

  /// - The owner shares a branch
  /// => the list of its nodes is read for the request, and not again when the server has accepted that
  @Test func theNodesOfABranchAreListedOnce() async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let alice = people.alice
      try await BranchTests.create(alice)
      try await alice.sync()
      let lists = Mutex(0)
      try await alice.write { transaction, _ in
        transaction.database.trace { event in
          if event.description.contains("FROM below LIMIT") { lists.withLock { $0 += 1 } }
        }
      }
      try await alice.share("/home/list", with: people.bob)
      try await alice.sync()
      try await alice.write { transaction, _ in transaction.database.trace(options: []) }
      #expect(lists.withLock { $0 } == 1)
      try await BranchTests.accept(people.bob, people)
      try await world.settle(alice, people.bob)
      let path = try await BranchTests.path("", people)
      #expect(try await people.bob.branch(path, versions: true) == alice.branch("/home/list", versions: true))
    }
  }

  /// - The owner shares a folder of 5 nodes, and one of 45
  /// => each node takes two writes: of the log's leaf, and of the row's zone and depth
  @Test func aNodeOfABranchIsWrittenTwice() async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let few = try await Self.rowsWritten(sharing: "/few", nodes: 5, people)
      let many = try await Self.rowsWritten(sharing: "/many", nodes: 45, people)
      // Steps of the push and the pull write a few rows more or less.
      #expect(many - few < 2 * 40 + 20, "\(few) and \(many) rows")
    }
  }

  /// - The owner shares a folder, which gets a new key, and the app starts again
  /// => its nodes are found by their names, no second one gets a name, and a name that is free again can be used
  @Test func aFolderWithANewKeyFindsItsNodes() async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let alice = people.alice
      try await BranchTests.create(alice)
      try await alice.create("/home/list/first", "1")
      try await alice.create("/home/list/second", "2")
      try await alice.sync()
      try await alice.share("/home/list", with: people.bob)
      try await alice.sync()
      try await alice.relaunch()
      await #expect(throws: ZDCCloudError.self) { try await alice.create("/home/list/first", "a name that is taken") }
      try await alice.move("/home/list/first", to: "/home/list/third")
      await #expect(throws: ZDCCloudError.self) { try await alice.create("/home/list/third", "a name that is taken") }
      try await alice.create("/home/list/first", "3")
      try await alice.sync()
      try await BranchTests.accept(people.bob, people)
      try await world.settle(alice, people.bob)
      let path = try await BranchTests.path("", people)
      #expect(try await people.bob.branch(path, versions: true) == alice.branch("/home/list", versions: true))
      #expect(try await alice.treeFaults().isEmpty)
    }
  }

  private static func rowsWritten(sharing path: String, nodes count: Int, _ people: People) async throws -> Int {
    let alice = people.alice
    try await alice.create(path)
    try await alice.create(count, in: path)
    try await alice.sync()
    let before = try await changes(alice)
    try await alice.share(path, with: people.bob)
    try await alice.sync()
    return try await changes(alice) - before
  }

  private static func changes(_ device: TestDevice) async throws -> Int {
    try await device.write { transaction, _ in
      try Int.fetchOne(transaction.database, sql: "SELECT total_changes()") ?? 0
    }
  }
}
