import Foundation
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Several devices of an owner through a split: offline, at the same moment, killed, and without an answer.
struct BranchDeviceTests {
  typealias People = ListChangeTests.People

  private struct Devices {
    let people: People
    let second: TestDevice

    init(_ world: TestWorld) async throws {
      people = try await People(world)
      try await BranchTests.create(people.alice)
      try await people.alice.sync()
      second = try await world.device("second")
      try await second.sync()
      try await second.download()
      try await second.meet(people.bob)
    }

    /// Expects that both devices of the owner show the same, and the member the branch.
    func expectConvergence(branch: String = "/home/list") async throws {
      let (alice, bob) = (people.alice, people.bob)
      try await people.world.settle(alice, second, bob)
      #expect(try await second.tree() == alice.tree())
      try await bob.accept(try await alice.cloudID(branch), of: alice)
      try await people.world.settle(alice, second, bob)
      let top = "detached:/" + (try await alice.cloudID(branch))
      #expect(try await bob.branch(top, versions: true) == alice.branch(branch, versions: true))
    }

    func zoneCount(_ device: TestDevice) async throws -> Int {
      try await device.database.read { try $0.zones.zones(localUser: 1).filter { !$0.isTrunk }.count }
    }
  }

  @Test("a device that was offline keeps its changes inside, of, into and out of the branch")
  func anOfflineDeviceFollows() async throws {
    try await TestWorld.run { world in
      let devices = try await Devices(world)
      let (alice, second) = (devices.people.alice, devices.second)
      let uuid = try await second.node("/home/list").uuid
      let inner = try await second.node("/home/list/a/b/c").uuid
      try await alice.share("/home/list", with: devices.people.bob)
      try await alice.sync()
      try await second.edit("/home/list/a", "edited")
      try await second.move("/home/list/g", to: "/home/list/d/g")
      try await second.create("/home/list/d/new", "new")
      try await second.delete("/home/list/h/i")
      try await second.rename("/home/list", to: "renamed")
      // These two are dropped: the app moved the nodes inside of one zone.
      try await second.move("/home/renamed/h", to: "/h")
      try await second.move("/other", to: "/home/renamed/other")
      try await second.edit("/home/renamed/other", "edited too")
      _ = second.recorder.take()
      try await devices.expectConvergence(branch: "/home/renamed")
      #expect(try await second.node("/home/renamed").uuid == uuid)
      #expect(try await second.node("/home/renamed/a/b/c").uuid == inner)
      #expect(
        try await alice.tree(versions: false) == """
          /home
          /home/renamed  "top"
          /home/renamed/a  "edited"
          /home/renamed/a/b  "2"
          /home/renamed/a/b/c  "3"
          /home/renamed/d
          /home/renamed/d/e  "5"
          /home/renamed/d/e/f  "6"
          /home/renamed/d/g  "7"
          /home/renamed/d/new  "new"
          /home/renamed/h  "8"
          /other  "edited too"
          """)
      let entries = try await second.write { _, cloud in cloud.mergeJournal() }
      #expect(entries.filter { $0.kind == .moveDropped }.count == 2)
    }
  }

  @Test("nodes that were moved into a new folder before it was shared keep their identity and their queued changes")
  func movedIntoANewBranch() async throws {
    try await TestWorld.run { world in
      let devices = try await Devices(world)
      let (alice, second) = (devices.people.alice, devices.second)
      let (moved, inner) = (try await second.node("/home/list/a").uuid, try await second.node("/home/list/a/b").uuid)
      try await second.edit("/home/list/a", "edited")
      try await second.create("/home/list/a/new", "new")
      try await second.move("/home/list/d/e", to: "/home/list/a/e")
      // The branch that it leaves is about to be shared, which the app does not know.
      try await second.move("/home/list/a/b/c", to: "/home/list/g/c")
      _ = second.recorder.take()
      try await alice.create("/new", "top")
      try await alice.move("/home/list/a", to: "/new/a")
      try await alice.share("/new", with: devices.people.bob)
      try await alice.sync()
      try await devices.expectConvergence(branch: "/new")
      #expect(try await second.node("/new/a").uuid == moved)
      #expect(try await second.node("/new/a/b").uuid == inner)
      #expect(try await alice.branch("/new") == "/a  \"edited\"\n/a/b  \"2\"\n/a/b/c  \"3\"\n/a/new  \"new\"")
      #expect(!second.recorder.take().contains { $0.hasPrefix("deleted") })
      let entries = try await second.write { _, cloud in cloud.mergeJournal() }
      #expect(entries.contains { $0.kind == .moveDropped && $0.mine.path?.nodeName == "c" })
    }
  }

  @Test("a shared branch that was moved into a new folder before that was shared keeps its place")
  func aBranchMovedIntoANewBranch() async throws {
    try await TestWorld.run { world in
      let devices = try await Devices(world)
      let (alice, second) = (devices.people.alice, devices.second)
      let moved = try await second.node("/home/list/a").uuid
      try await alice.create("/new", "top")
      try await alice.share("/home/list/a", with: devices.people.bob)
      try await alice.sync()
      try await alice.move("/home/list/a", to: "/new/a")
      try await alice.sync()
      try await alice.share("/new", with: devices.people.bob)
      try await alice.sync()
      try await devices.expectConvergence(branch: "/new/a")
      #expect(try await second.node("/new/a").uuid == moved)
      #expect(try await second.branch("/new/a") == "/b  \"2\"\n/b/c  \"3\"")
    }
  }

  /// - a device, offline, moves a node out of a folder, and the folder below that node; the other one shares the folder
  /// => the node is in the folder again, and the folder at its place: a branch is never inside of itself
  @Test(arguments: [false, true]) func aBranchMovedBelowItsOwnNode(isNewBetween: Bool) async throws {
    try await TestWorld.run { world in
      let devices = try await Devices(world)
      let (alice, second) = (devices.people.alice, devices.second)
      try await second.move("/home/list/a", to: "/other/a")
      if isNewBetween { try await second.create("/other/a/new", "new") }
      try await second.move("/home/list", to: isNewBetween ? "/other/a/new/list" : "/other/a/list")
      try await alice.share("/home/list", with: devices.people.bob)
      try await alice.sync()
      try await devices.expectConvergence()
      #expect(try await second.content(of: "/home/list/a/b/c")?.data == Data("3".utf8))
      if isNewBetween { #expect(try await alice.content(of: "/home/list/a/new")?.data == Data("new".utf8)) }
      let entries = try await second.write { _, cloud in cloud.mergeJournal() }.filter { $0.kind == .moveDropped }
      #expect(Set(entries.compactMap { $0.mine.path?.nodeName }) == ["a", "list"])
    }
  }

  @Test("a branch that a device has deleted offline: the delete of the top does not end the branch")
  func anOfflineDelete() async throws {
    try await TestWorld.run { world in
      let devices = try await Devices(world)
      let (alice, second) = (devices.people.alice, devices.second)
      try await alice.share("/home/list", with: devices.people.bob)
      try await alice.sync()
      try await second.delete("/home/list/d")
      try await devices.expectConvergence()
      #expect(try await alice.branch("/home/list/d") == nil)
    }
  }

  @Test("two devices share the same node at the same moment: one zone, one pointer, both members")
  func bothDevicesShareAtOnce() async throws {
    try await TestWorld.run { world in
      let devices = try await Devices(world)
      let (alice, second, bob) = (devices.people.alice, devices.second, devices.people.bob)
      try await second.meet(devices.people.carol)
      try await alice.share("/home/list", with: bob)
      try await second.share("/home/list", with: devices.people.carol, "r")
      try await second.edit("/home/list/a/b", "second")
      alice.network.fail(.before { try await second.sync() }, "POST", Routes.commits)
      try await alice.sync()
      try await devices.expectConvergence()
      #expect(try await alice.members(bob, devices.people.carol, of: "/home/list") == ["bob": "rw", "carol": "r"])
      for device in [alice, second] { #expect(try await devices.zoneCount(device) == 1) }
    }
  }

  @Test("a new device of the owner reads the split in the log")
  func aNewDevice() async throws {
    try await TestWorld.run { world in
      let devices = try await Devices(world)
      let alice = devices.people.alice
      try await alice.share("/home/list", with: devices.people.bob)
      try await alice.sync()
      try await alice.edit("/home/list/a", "later")
      try await alice.edit("/home/list", "the top, later")
      try await devices.expectConvergence()
      let third = try await world.device("third")
      try await third.sync()
      try await third.download()
      #expect(try await third.tree() == alice.tree())
      #expect(third.recorder.take().contains("new /home/list"))
      try await third.create("/home/list/third", "3")
      try await world.settle(third, alice)
      #expect(try await third.tree() == alice.tree())
    }
  }

  @Test("killed after each of its transactions, a split happens once", arguments: [TestDevice.Network.dead, .alive])
  func killedAnywhere(network: TestDevice.Network) async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let (alice, bob) = (people.alice, people.bob)
      let second = try await world.device("second")
      var kills = 0
      for commits in 0..<14 {
        let (top, inner) = ("/list\(commits)", "/list\(commits)/inner")
        try await alice.create(top, "top")
        try await alice.create(inner, "inner")
        try await alice.sync()
        try await alice.share(top, with: bob)
        try await alice.edit(inner, "edited")
        alice.die(afterCommits: commits, network: network)
        do { try await alice.sync() } catch { #expect(alice.isDead, "\(error)") }
        let isKilled = alice.isDead
        if isKilled { kills += 1 }
        try await alice.relaunch()
        try await world.settle(alice, second)
        #expect(try await alice.queueCount() == 0)
        #expect(try await second.tree() == alice.tree())
        #expect(try await alice.members(bob, of: inner) == ["bob": "rw"])
        let zones = try await alice.database.read { try $0.zones.zones(localUser: 1).filter { !$0.isTrunk }.count }
        #expect(zones == commits + 1)
        if !isKilled { break }
      }
      #expect(kills >= 3 && kills < 14, "\(kills)")
    }
  }

  /// - Carol reads the whole tree; Alice takes a folder away from her, and is killed after each of her transactions
  /// => Carol loses what is in the folder and keeps the rest, and her keys open nothing that is written afterwards
  @Test(arguments: [TestDevice.Network.dead, .alive])
  func killedWhileASplitTakesAccessAway(network: TestDevice.Network) async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let (alice, carol) = (people.alice, people.carol)
      let second = try await world.device("second")
      try await alice.share(with: carol)
      try await alice.sync()
      try await carol.accept(alice)
      var kills = 0
      for commits in 0..<16 {
        let (top, inner) = ("/list\(commits)", "/list\(commits)/inner")
        try await alice.create(top, "top")
        try await alice.create(inner, "inner")
        try await world.settle(alice, carol)
        #expect(try await carol.tree(of: alice)?.contains(inner) == true)
        try await alice.unshare(top, with: carol)
        try await alice.edit(inner, "secret")
        alice.die(afterCommits: commits, network: network)
        do { try await alice.sync() } catch { #expect(alice.isDead, "\(error)") }
        let isKilled = alice.isDead
        if isKilled { kills += 1 }
        try await alice.relaunch()
        try await world.settle(alice, second, carol)
        #expect(try await alice.queueCount() == 0)
        #expect(try await second.tree() == alice.tree())
        try await Self.expectNoAccess(to: inner, people)
        if !isKilled { break }
      }
      #expect(kills >= 3 && kills < 16, "\(kills)")
    }
  }

  private static func expectNoAccess(to path: String, _ people: People) async throws {
    let (alice, carol) = (people.alice, people.carol)
    #expect(try await alice.members(carol, of: path) == [:])
    #expect(try await alice.members(carol) == ["carol": "rw"])
    // The pointer to the branch is a node of the tree that Carol still reads.
    #expect(try await carol.tree(of: alice)?.contains(path) == false)
    let opened = try FormerMemberCheck(people.world.server).run(try await carol.userKeys)
    #expect(opened > 0)
  }

  @Test("a lost answer, a lost request, a request received twice: one zone, one pointer", arguments: 0..<3)
  func lostAnswers(_ number: Int) async throws {
    try await TestWorld.run { world in
      let devices = try await Devices(world)
      let (alice, second) = (devices.people.alice, devices.second)
      try await alice.share("/home/list", with: devices.people.bob)
      let fault: Fault = [.loseResponse, .loseRequest, .duplicate][number]
      alice.network.fail(fault, "POST", Routes.commits)
      do { try await alice.sync() } catch { #expect(error is TransportError) }
      // Another commit follows before the device asks again.
      try await second.edit("/home/list/a/b/c", "second")
      try await second.sync()
      try await alice.edit("/home/list/a", "alice")
      try await devices.expectConvergence()
      for device in [alice, second] { #expect(try await devices.zoneCount(device) == 1) }
    }
  }

  @Test(
    "S-8: a device that deletes a pointer to a branch that it cannot read ends nothing; both devices of the owner put it back"
  )
  func aDeletedPointerIsPutBack() async throws {
    try await TestWorld.run { world in
      let devices = try await Devices(world)
      let (alice, second, carol) = (devices.people.alice, devices.second, devices.people.carol)
      try await alice.share(with: carol)
      try await alice.sync()
      try await alice.unshare("/home/list", with: carol)
      try await alice.sync()
      try await second.sync()
      let before = try await alice.branch("/home/list")
      let uuid = try await second.node("/home/list").uuid
      try await carol.accept(alice)
      let leaf = try await carol.node(try carol.path("/home/list", of: alice))
      #expect(leaf.isPointer)
      #expect(try await carol.branch(try carol.path("/home/list", of: alice)) == "")
      try await carol.delete(try carol.path("/home", of: alice))
      try await carol.sync()
      // Both read it before either puts the pointer back.
      try await alice.pull()
      try await second.pull()
      try await world.settle(alice, second, carol)
      #expect(try await second.tree() == alice.tree())
      #expect(try await alice.branch("/list") == before)
      #expect(try await second.node("/list").uuid == uuid)
    }
  }

  /// - Alice shares a folder, then the list in it, so that the list is split off the folder's zone
  /// - her second device, which does not know of the list's zone, deletes the folder: the list gets a place at the top
  /// - a new device reads that pointer before the log of the folder, which names the list's zone first
  /// => the new device shows the list there, and reports it once
  @Test func aNewDeviceShowsABranchThatWasSplitOffAnEndedOne() async throws {
    try await TestWorld.run { world in
      let people = try await ListChangeTests.People(world)
      let alice = people.alice
      let second = try await world.device("second")
      try await alice.create("/folder")
      try await alice.create("/folder/list", "the list")
      try await alice.create("/folder/list/a", "1")
      try await alice.share("/folder", with: people.bob)
      try await alice.sync()
      try await second.sync()
      try await alice.share("/folder/list", with: people.carol)
      try await alice.sync()
      try await second.delete("/folder")
      try await world.settle(second, alice, second)
      #expect(try await alice.branch("/list") == "/a  \"1\"")
      let fresh = try await world.device("fresh")
      try await world.settle(fresh)
      #expect(try await fresh.tree() == alice.tree())
      #expect(try await fresh.branch("/list") == "/a  \"1\"")
      #expect(fresh.recorder.take().filter { $0.hasPrefix("new") } == ["new /list", "new /list/a"])
    }
  }
}
