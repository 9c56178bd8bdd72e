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
}
