import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// The replacement of old keys after a removal, on a device that is killed meanwhile.
struct OldKeyKillTests {
  typealias People = ListChangeTests.People

  /// A tree of 20 nodes in two folders.
  private static func people(_ world: TestWorld) async throws -> People {
    let people = try await People(world)
    for folder in ["/a", "/b"] {
      try await people.alice.create(folder, "folder")
      for number in 0..<9 { try await people.alice.create("\(folder)\(folder)\(number)", "\(number)") }
    }
    try await people.alice.sync()
    return people
  }

  /// Gives Bob access to the whole tree and takes it away, so that all nodes have old keys.
  private static func removeBob(_ people: People) async throws {
    try await people.alice.share(with: people.bob)
    try await people.alice.sync()
    try await people.alice.unshare(with: people.bob)
    try await people.alice.sync()
  }

  /// Expects that each node has had one new key for each removal, and that Bob's keys open nothing new.
  private static func expectNewKeys(_ removals: Int, _ people: People) async throws {
    let home = try await people.home()
    let generations = home.nodes.values.map(\.record.fields.keyGen)
    #expect(generations == Array(repeating: UInt32(removals) + 1, count: 20))
    #expect(home.root.record.fields.keyGen == UInt32(removals) + 1)
    let opened = try FormerMemberCheck(people.world.server).run(try await people.bob.userKeys)
    #expect(opened > 0)
  }

  /// - Alice's device is killed after each of the transactions that replace the keys
  /// => the next run does the rest: no node keeps an old key, and none gets two new ones
  @Test(arguments: [TestDevice.Network.dead, .alive]) func killedAnywhere(network: TestDevice.Network) async throws {
    try await TestWorld.run { world in
      let people = try await Self.people(world)
      let alice = people.alice
      let (user, second) = (try alice.localUserID, try await world.device("second"))
      var kills = 0
      for commits in 0..<12 {
        try await Self.removeBob(people)
        alice.die(afterCommits: commits, network: network)
        do { try await alice.syncManager.replaceOldKeys(forLocalUserID: user) } catch {
          #expect(alice.isDead, "\(error)")
        }
        let isKilled = alice.isDead
        if isKilled { kills += 1 }
        try await alice.relaunch()
        #expect(try await alice.syncManager.replaceOldKeys(forLocalUserID: user) == 0)
        try await Self.expectNewKeys(commits + 1, people)
        try await world.settle(alice, second)
        #expect(try await second.tree() == alice.tree())
        if !isKilled { break }
      }
      #expect(kills >= 3 && kills < 12, "\(kills)")
    }
  }
}
