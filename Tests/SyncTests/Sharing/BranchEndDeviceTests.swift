import Foundation
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Several devices of an owner through the end of a branch: offline, at the same moment, killed, and without an answer.
struct BranchEndDeviceTests {
  typealias People = ListChangeTests.People

  private struct Devices {
    let people: People
    let second: TestDevice
    let root: String

    init(_ world: TestWorld) async throws {
      people = try await BranchTests.shared(world)
      second = try await world.device("second")
      try await second.sync()
      try await second.download()
      root = try await people.alice.cloudID("/home/list")
    }

    /// Expects that the branch has ended once, everywhere.
    func expectEnd(_ tree: String = "/home\n/other  \"private\"") async throws {
      let (alice, bob) = (people.alice, people.bob)
      try await people.world.settle(alice, second, bob, people.carol)
      for device in [alice, second] { #expect(try await device.tree(versions: false) == tree) }
      #expect(try await bob.branch("detached:/" + root) == nil)
      for device in [alice, second, bob, people.carol] {
        #expect(try await BranchEndTests.branchCount(device) == 0)
        #expect(try await device.queueCount() == 0)
      }
      #expect(try await BranchEndTests.endCount(root, people) == 1)
    }
  }

  @Test("the owner's other device drops what it had queued, and shows no trace of the branch")
  func anotherDeviceFollows() async throws {
    try await TestWorld.run { world in
      let devices = try await Devices(world)
      let (alice, second) = (devices.people.alice, devices.second)
      try await second.edit("/home/list/a", "edited")
      try await second.create("/home/list/new", "new")
      try await second.rename("/home/list", to: "renamed")
      try await alice.delete("/home/list")
      try await alice.sync()
      _ = second.recorder.take()
      try await devices.expectEnd()
      let path = "/home/renamed"
      #expect(
        second.recorder.take() == ["deletedDirty \(path) [\(path)/a, \(path)/new]", "deleted \(path)"])
      let entries = try await second.write { _, cloud in cloud.mergeJournal() }
      #expect(Set(entries.compactMap(\.mine.path?.nodeName)) == ["a", "new", "renamed"], "\(entries)")
      #expect(entries.allSatisfy { $0.kind == .deletedInCloud })
    }
  }

  @Test(
    "both devices of the owner delete the branch, or a folder above it, at the same moment", arguments: [false, true])
  func bothDevicesEndIt(isAbove: Bool) async throws {
    try await TestWorld.run { world in
      let devices = try await Devices(world)
      let (alice, second) = (devices.people.alice, devices.second)
      try await alice.delete("/home/list")
      try await second.delete(isAbove ? "/home" : "/home/list")
      alice.network.fail(.before { try await second.sync() }, "POST", Routes.commits)
      try await alice.sync()
      try await devices.expectEnd(isAbove ? "/other  \"private\"" : "/home\n/other  \"private\"")
    }
  }

  @Test("a device that ends a branch and is lost: another one deletes what is left of its place")
  func aLostDevice() async throws {
    try await TestWorld.run { world in
      let devices = try await Devices(world)
      let (alice, second) = (devices.people.alice, devices.second)
      world.mayWait(alice)
      try await alice.delete("/home/list")
      // Its second commit, of the pointer, never arrives.
      try await alice.push()
      #expect(try await BranchEndTests.endCount(devices.root, devices.people) == 1)
      alice.network.isOffline = true
      let before = try world.server.commitCount()
      try await world.settle(second, devices.people.bob)
      #expect(try await second.tree(versions: false) == "/home\n/other  \"private\"")
      #expect(try world.server.commitCount() == before + 1)
      #expect(try await BranchEndTests.branchCount(second) == 0)
      alice.network.isOffline = false
      try await devices.expectEnd()
    }
  }

  @Test(
    "a new device reads a split and an end in the logs, with and without the delete of the pointer", arguments: [1, 2])
  func aNewDevice(pushes: Int) async throws {
    try await TestWorld.run { world in
      let devices = try await Devices(world)
      let alice = devices.people.alice
      try await alice.edit("/home/list/a/b", "later")
      try await alice.sync()
      try await alice.delete("/home/list")
      for _ in 0..<pushes { try await alice.push() }
      let third = try await world.device("third")
      try await third.sync()
      try await third.download()
      #expect(try await third.tree(versions: false) == "/home\n/other  \"private\"")
      #expect(try await BranchEndTests.branchCount(third) == 0)
      try await world.settle(third, alice)
      try await devices.expectEnd()
      #expect(try await third.queueCount() == 0)
    }
  }

  @Test("killed after each of its transactions, an end happens once", arguments: [TestDevice.Network.dead, .alive])
  func killedAnywhere(network: TestDevice.Network) async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let (alice, bob) = (people.alice, people.bob)
      let second = try await world.device("second")
      var kills = 0
      for commits in 0..<24 {
        let folder = "/folder\(commits)"
        for path in ["", "/list", "/list/inner", "/list/inner/leaf"] { try await alice.create(folder + path, path) }
        try await alice.sync()
        try await alice.share(folder + "/list", with: bob)
        try await alice.sync()
        try await alice.share(folder + "/list/inner", with: bob, "r")
        try await alice.sync()
        try await second.sync()
        let roots = [try await alice.cloudID(folder + "/list"), try await alice.cloudID(folder + "/list/inner")]
        try await alice.edit(folder + "/list/inner/leaf", "edited")
        try await alice.delete(folder)
        alice.die(afterCommits: commits, network: network)
        do { try await alice.sync() } catch { #expect(alice.isDead, "\(error)") }
        let isKilled = alice.isDead
        if isKilled { kills += 1 }
        // The other device sees what was sent until then.
        try await second.sync()
        try await alice.relaunch()
        try await world.settle(alice, second)
        for device in [alice, second] {
          #expect(try await device.queueCount() == 0)
          #expect(try await device.tree() == "")
          #expect(try await BranchEndTests.branchCount(device) == 0)
        }
        for root in roots { #expect(try await BranchEndTests.endCount(root, people) == 1) }
        if !isKilled { break }
      }
      #expect(kills >= 5 && kills < 24, "\(kills)")
    }
  }

  @Test("a lost answer, a lost request, a request received twice: one end", arguments: 0..<3, [1, 2])
  func lostAnswers(_ number: Int, request: Int) async throws {
    try await TestWorld.run { world in
      let devices = try await Devices(world)
      let (alice, second) = (devices.people.alice, devices.second)
      try await alice.delete("/home/list")
      for _ in 1..<request { try await alice.push() }
      let fault: Fault = [.loseResponse, .loseRequest, .duplicate][number]
      alice.network.fail(fault, "POST", Routes.commits)
      do { try await alice.sync() } catch { #expect(error is TransportError) }
      // Another commit follows before the device asks again.
      try await second.edit("/other", "second")
      try await second.sync()
      try await devices.expectEnd("/home\n/other  \"second\"")
    }
  }

  @Test(
    "a node that is deleted while the request that shares it is in flight ends as a branch",
    arguments: ["/home/list", "/home"])
  func deletedWhileItIsSplitOff(_ deleted: String) async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let (alice, bob) = (people.alice, people.bob)
      try await BranchTests.create(alice)
      try await alice.sync()
      let second = try await world.device("second")
      let root = try await alice.cloudID("/home/list")
      try await alice.share("/home/list", with: bob)
      alice.network.fail(.before { try await alice.delete(deleted) }, "POST", Routes.commits)
      try await alice.sync()
      try await world.settle(alice, second)
      let tree = deleted == "/home" ? "/other  \"private\"" : "/home\n/other  \"private\""
      for device in [alice, second] {
        #expect(try await device.tree(versions: false) == tree)
        #expect(try await BranchEndTests.branchCount(device) == 0)
      }
      #expect(try await BranchEndTests.endCount(root, people) == 1)
      #expect(try await alice.write { _, cloud in cloud.mergeJournal() }.isEmpty)
    }
  }
}
