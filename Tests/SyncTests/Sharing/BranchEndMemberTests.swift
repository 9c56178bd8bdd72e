import Foundation
import Testing
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Devices that follow the end of a branch: in the background, in the zone around it, and killed while they apply it.
struct BranchEndMemberTests {
  typealias People = ListChangeTests.People

  /// Alice's home tree, which Bob follows, with a branch and one inside of it.
  private static func nested(_ world: TestWorld) async throws -> People {
    let people = try await People(world)
    try await BranchTests.create(people.alice)
    try await people.alice.share(with: people.bob)
    try await people.alice.sync()
    try await people.bob.accept(people.alice)
    try await people.alice.share("/home/list", with: people.carol)
    try await people.alice.sync()
    try await people.alice.share("/home/list/d", with: people.carol, "r")
    try await world.settle(people.alice, people.bob)
    return people
  }

  @Test(
    "a member of the zone around a branch is notified of its end once, and its place is free with the pointer's delete")
  func aMemberOfBothZones() async throws {
    try await TestWorld.run { world in
      let people = try await Self.nested(world)
      let (alice, bob) = (people.alice, people.bob)
      let uuids = [try await bob.node(bob.path("/home/list", of: alice)).uuid]
      let path = try bob.path("/home/list", of: alice).dropFirst("detached:".count)
      try await alice.delete("/home/list")
      var heard: [String] = []
      for _ in 0..<3 {
        _ = bob.recorder.take()
        try await alice.push()
        try await bob.sync()
        heard += bob.recorder.take()
        try await bob.sync()
        #expect(bob.recorder.take() == [])
      }
      #expect(heard == ["deleted \(path)/d", "deleted \(path)"])
      #expect(try await bob.tree(of: alice) == alice.tree(versions: false))
      #expect(try await bob.write { _, cloud in uuids.compactMap { cloud.node(id: $0) } }.isEmpty)
      try await bob.create(try bob.path("/home/list", of: alice), "another")
      try await world.settle(bob, alice)
      #expect(try await alice.tree(versions: false) == "/home\n/home/list  \"another\"\n/other  \"private\"")
    }
  }

  @Test("engines in the background send all commits of an end, and announce it")
  func inTheBackground() async throws {
    try await TestWorld.run { world in
      let people = try await Self.nested(world)
      let (alice, bob) = (people.alice, people.bob)
      let path = try bob.path("/home/list", of: alice).dropFirst("detached:".count)
      let before = try world.server.commitCount()
      try await alice.whileRunning {
        try await bob.whileRunning {
          try await alice.delete("/home/list")
          try await alice.waitUntilQueueIsEmpty()
          await bob.recorder.wait(for: "deleted \(path)")
        }
      }
      #expect(try world.server.commitCount() == before + 3)
      try await world.settle(alice, bob)
      #expect(try await BranchEndTests.branchCount(alice) == 0)
      #expect(try await bob.tree(of: alice) == alice.tree(versions: false))
    }
  }

  @Test("a member and another device of the owner are killed after each transaction in which they follow an end")
  func killedWhileFollowing() async throws {
    try await TestWorld.run { world in
      let people = try await Self.nested(world)
      let (alice, bob) = (people.alice, people.bob)
      let second = try await world.device("second")
      var kills = 0
      for commits in 0..<16 {
        let (folder, uuid) = ("/folder\(commits)", "\(commits)")
        try await alice.create(folder)
        try await alice.create(folder + "/list", "list")
        try await alice.create(folder + "/list/inner", "inner")
        try await alice.sync()
        try await alice.share(folder + "/list", with: people.carol, "r")
        try await alice.sync()
        try await alice.share(folder + "/list/inner", with: people.carol)
        try await world.settle(alice, second, bob)
        let path = try bob.path(folder + "/list/inner", of: alice)
        for (device, path) in [(bob, path), (second, folder + "/list/inner")] {
          try await device.edit(path, "queued \(uuid)")
        }
        try await alice.delete(folder + "/list")
        try await alice.sync()
        for device in [bob, second] {
          device.die(afterCommits: commits)
          do { try await device.sync() } catch { #expect(device.isDead, "\(error)") }
          if device.isDead { kills += 1 }
          try await device.relaunch()
        }
        try await world.settle(bob, second, alice)
        for device in [alice, second, bob] { #expect(try await device.queueCount() == 0) }
        #expect(try await second.tree() == alice.tree())
        #expect(try await bob.tree(of: alice) == alice.tree(versions: false))
        for device in [second, bob] {
          let entries = try await device.write { _, cloud in cloud.mergeJournal() }
          #expect(entries.filter { $0.kind == .deletedInCloud }.count == commits + 1, "\(entries)")
        }
        if kills < 2 * (commits + 1) { break }
      }
      #expect(kills >= 6 && kills < 32, "\(kills)")
    }
  }

  @Test("a split whose answer is lost, and a delete of the node before the outcome is known")
  func deletedBeforeTheAnswerIsKnown() async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let alice = people.alice
      try await BranchTests.create(alice)
      try await alice.sync()
      let root = try await alice.cloudID("/home/list")
      try await alice.share("/home/list", with: people.bob)
      alice.network.fail(.loseResponse, "POST", Routes.commits)
      do { try await alice.sync() } catch { #expect(error is TransportError) }
      try await alice.delete("/home/list")
      try await world.settle(alice)
      #expect(try await alice.tree(versions: false) == "/home\n/other  \"private\"")
      #expect(try await BranchEndTests.branchCount(alice) == 0)
      #expect(try await BranchEndTests.endCount(root, people) == 1)
    }
  }

  @Test("a node whose sharing was not sent is deleted as any other")
  func deletedBeforeItIsSplitOff() async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let alice = people.alice
      try await BranchTests.create(alice)
      try await alice.sync()
      let before = try world.server.commitCount()
      try await alice.share("/home/list", with: people.bob)
      try await alice.delete("/home/list")
      #expect(try await alice.queue() == "delete (deleted) ready")
      try await alice.sync()
      #expect(try world.server.commitCount() == before + 1)
      #expect(try await alice.tree(versions: false) == "/home\n/other  \"private\"")
    }
  }
}
