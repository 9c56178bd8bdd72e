import Foundation
import Testing
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Three people change a branch, offline or while their engines run. Then one of them is removed.
struct BranchEngineTests {
  typealias People = ListChangeTests.People

  /// - Alice, Bob and Carol change the branch at once, and Alice removes Bob; she and Carol continue
  /// => all have the same branch, and Bob's keys, with all of the server's data, open nothing that was written later
  @Test(arguments: [false, true]) func threePeopleChangeTheBranch_andOneIsRemoved(isOnline: Bool) async throws {
    try await TestWorld.run { world in
      let people = try await BranchTests.shared(world)
      if isOnline {
        try await Self.whileAllRun(people) {
          try await Self.change(people)
          try await Self.waitUntilAllHaveAll(people)
        }
      } else {
        try await Self.change(people)
      }
      try await BranchTests.expectConvergence(people)
      try await Self.expectAllChanges(people)
      try await people.alice.unshare("/home/list", with: people.bob)
      try await Self.changeWithoutBob(people)
      try await Self.expectBobHasLostAccess(people)
    }
  }

  // MARK: Engines

  private static func whileAllRun(
    _ people: People, _ body: @escaping @Sendable () async throws -> Void
  ) async throws {
    let (alice, bob, carol) = (people.alice, people.bob, people.carol)
    for device in [alice, bob, carol] {
      device.engineClock = people.world.clock.engineClock
      try await device.relaunch()
    }
    try await alice.whileRunning { try await bob.whileRunning { try await carol.whileRunning(body) } }
  }

  /// Waits until everything is sent, and the events have brought each change to the others. The devices lose against
  /// each other and pause, so the clock advances with each look.
  private static func waitUntilAllHaveAll(_ people: People) async throws {
    for _ in 0..<5_000 {
      if try await haveAll(people) { return }
      people.world.clock.advance(by: .seconds(1))
      try await Task.sleep(for: .milliseconds(20))
    }
    throw TestFailure("the devices do not come to rest")
  }

  private static func haveAll(_ people: People) async throws -> Bool {
    for device in [people.alice, people.bob, people.carol] {
      guard try await device.queueCount() == 0 else { return false }
    }
    let top = try await BranchTests.path("", people)
    let wanted = try await names(people.alice, "/home/list")
    for member in [people.bob, people.carol] {
      guard try await names(member, top) == wanted else { return false }
    }
    return true
  }

  /// The paths of the nodes of a branch. Their content has to be downloaded first.
  private static func names(_ device: TestDevice, _ path: String) async throws -> [String]? {
    try await device.branch(path)?.split(separator: "\n").map { String($0).components(separatedBy: "  ")[0] }
  }

  // MARK: Changes

  /// All people change the branch at the same time. No change names a path that another one changes: while the engines
  /// run, their order is not known.
  private static func change(_ people: People) async throws {
    let (alice, bob, carol) = (people.alice, people.bob, people.carol)
    let top = try await BranchTests.path("", people)
    let c = try await bob.node(top + "/a/b/c")
    let changes: [@Sendable () async throws -> Void] = [
      {
        try await alice.rename("/home/list/a", to: "renamed")
        try await alice.create("/home/list/alice", "alice")
        try await alice.edit("/home/list/h", "alice's h")
      },
      {
        try await bob.edit(top, "bob's top")
        try await bob.create(top + "/bob", "bob")
        try await edit(c, "bob's c", on: bob)
      },
      {
        try await carol.move(top + "/h/i", to: top + "/i")
        try await carol.create(top + "/d/e/new", "carol")
        try await carol.delete(top + "/g")
      },
    ]
    try await withThrowingTaskGroup(of: Void.self) { group in
      for change in changes { group.addTask { try await change() } }
      try await group.waitForAll()
    }
  }

  /// Edits a node wherever it is: another person may have renamed a folder above it.
  private static func edit(_ node: ZDCNode, _ text: String, on device: TestDevice) async throws {
    try await device.write { transaction, cloud in
      let content = TestContent(data: Data(text.utf8), eTag: node.eTag_data)
      transaction.setObject(content, forKey: node.uuid, inCollection: TestContent.collection)
      cloud.queueDataUpload(forNodeID: node.uuid, withChangeset: nil)
    }
  }

  private static func expectAllChanges(_ people: People) async throws {
    let tree = try #require(try await people.alice.branch("/home/list"))
    let lines = [
      "/renamed/b/c  \"bob's c\"", "/alice  \"alice\"", "/bob  \"bob\"", "/h  \"alice's h\"", "/i  \"9\"",
      "/d/e/new  \"carol\"",
    ]
    for line in lines { #expect(tree.contains(line), "\(tree)") }
    #expect(!tree.contains("/g"), "\(tree)")
    #expect(try await people.alice.content(of: "/home/list")?.data == Data("bob's top".utf8))
    #expect(try await people.alice.content(of: "/other")?.data == Data("private".utf8))
  }

  // MARK: The removal

  private static func changeWithoutBob(_ people: People) async throws {
    let (alice, carol) = (people.alice, people.carol)
    let top = try await BranchTests.path("", people)
    try await alice.edit("/home/list/h", "without Bob")
    try await alice.create("/home/list/secret", "secret")
    try await alice.sync()
    try await carol.sync()
    try await carol.rename(top + "/secret", to: "secret too")
    try await carol.move(top + "/i", to: top + "/d/i")
    try await carol.edit(top + "/d/e/new", "carol, without Bob")
    try await people.world.settle(alice, carol)
    #expect(try await carol.branch(top, versions: true) == alice.branch("/home/list", versions: true))
  }

  /// Bob's device has not synced since the removal: it has all keys that he ever had.
  private static func expectBobHasLostAccess(_ people: People) async throws {
    let (bob, top) = (people.bob, try await BranchTests.path("", people))
    let keys = try await bob.userKeys
    #expect(try FormerMemberCheck(people.world.server).run(keys) > 0)
    try await bob.sync()
    #expect(try await bob.branch(top) == nil)
    #expect(try await bob.queueCount() == 0)
  }
}
