import Foundation
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Branches of another user in one's own tree: the invitation, the pointer, and the branch on all devices.
struct GraftTests {
  typealias People = ListChangeTests.People

  /// Alice's list, shared with Bob, and an invitation to it.
  struct Invited {
    let people: People
    let invite: ZDCGraftInvite
    var (alice, bob): (TestDevice, TestDevice)
    var world: TestWorld { people.world }

    init(_ world: TestWorld, _ letters: String = "rw") async throws {
      people = try await People(world)
      (alice, bob) = (people.alice, people.bob)
      try await alice.create("/Homework")
      try await alice.create("/Groceries", "the list")
      for (name, content) in [("D", "milk"), ("E", "eggs"), ("F", ""), ("G", "bread")] {
        try await alice.create("/Groceries/" + name, content)
      }
      try await alice.sync()
      try await alice.share("/Groceries", with: bob, letters)
      try await alice.sync()
      invite = try await alice.invite("/Groceries")
    }

    /// The list on Bob's device, after all have settled.
    func expectEqual(
      _ path: String = "/Groceries", on devices: TestDevice..., remote: String = "/Groceries"
    ) async throws {
      try await TestWorld.settle([alice] + devices)
      let tree = try await alice.branch(remote, versions: true)
      for device in devices { #expect(try await device.branch(path, versions: true) == tree, "\(device.name)") }
    }
  }

  static func code(_ body: () async throws -> Void) async -> ZDCCloudError.Code? {
    do {
      try await body()
      return nil
    } catch { return (error as? ZDCCloudError)?.code }
  }

  @Test func aGraft_showsTheBranchAtItsPath_announcedFromTheTop() async throws {
    try await TestWorld.run { world in
      let invited = try await Invited(world)
      let bob = invited.bob
      try await bob.create("/Weekend Chores")
      _ = bob.recorder.take()
      let node = try await bob.graft("/Groceries", invited.invite, from: invited.alice)
      #expect(node.name == "Groceries" && node.cloudID == invited.invite.cloudID && !node.isPointer)
      #expect(node.anchor?.userID == (try invited.alice.localUserID))
      #expect(try await bob.node("/Groceries").uuid == node.uuid)
      try await bob.sync()
      let new = bob.recorder.take().filter { $0.hasPrefix("new") }
      #expect(new.first == "new /Groceries")
      #expect(Set(new) == Set(["", "/D", "/E", "/F", "/G"].map { "new /Groceries" + $0 }) && new.count == 5, "\(new)")
      #expect(try await bob.node("/Groceries").uuid == node.uuid)
      try await invited.expectEqual(on: bob)
      #expect(try await bob.content(of: "/Groceries")?.data == Data("the list".utf8))
      #expect(try await bob.members(bob, of: "/Groceries/D") == ["bob": "rw"])
      #expect(try await bob.queueCount() == 0)
      #expect(
        try await bob.tree(versions: false) == """
          /Groceries  "the list"
          /Groceries/D  "milk"
          /Groceries/E  "eggs"
          /Groceries/F
          /Groceries/G  "bread"
          /Weekend Chores
          """)
      #expect(try await invited.alice.tree(versions: false).contains("/Homework"))
    }
  }

  @Test("links, tags and paths made before the branch was read hold; children wait for it")
  func theNodeIsUsableBeforeThePull() async throws {
    try await TestWorld.run { world in
      let invited = try await Invited(world)
      let bob = invited.bob
      let node = try await bob.graft("/Groceries", invited.invite, from: invited.alice)
      try await bob.write { _, cloud in
        try cloud.linkNodeID(node.uuid, toKey: "list", inCollection: "lists")
        cloud.setTag("x", forNodeID: node.uuid, withIdentifier: "tag")
      }
      #expect(await Self.code { try await bob.create("/Groceries/early") } == .missingParent)
      #expect(await Self.code { try await bob.edit("/Groceries", "early") } != nil)
      try await bob.rename("/Groceries", to: "Food")
      try await bob.relaunch()
      try await invited.expectEqual("/Food", on: bob)
      let found = try await bob.write { _, cloud in
        (
          cloud.linkedNode(forKey: "list", inCollection: "lists")?.uuid,
          cloud.tag(forNodeID: node.uuid, withIdentifier: "tag") as? String
        )
      }
      #expect(found.0 == node.uuid && found.1 == "x")
    }
  }

  /// - Bob links and tags a node of the list, which Alice then edits and moves
  /// => it keeps its link and tag
  @Test func linksAndTagsInsideAGraftStay() async throws {
    try await TestWorld.run { world in
      let invited = try await Invited(world)
      let (alice, bob) = (invited.alice, invited.bob)
      try await bob.graft("/Groceries", invited.invite, from: alice)
      try await bob.sync()
      let node = try await bob.node("/Groceries/D")
      try await bob.write { _, cloud in
        try cloud.linkNodeID(node.uuid, toKey: "milk", inCollection: "items")
        cloud.setTag("x", forNodeID: node.uuid, withIdentifier: "tag")
      }
      try await alice.edit("/Groceries/D", "oat milk")
      try await alice.move("/Groceries/D", to: "/Groceries/F/milk")
      try await invited.expectEqual(on: bob)
      let found = try await bob.write { _, cloud in
        let linked = cloud.linkedNode(forKey: "milk", inCollection: "items")
        return (linked?.uuid, cloud.tag(forNodeID: node.uuid, withIdentifier: "tag") as? String)
      }
      #expect(found.0 == node.uuid && found.1 == "x")
      #expect(try await bob.node("/Groceries/F/milk").uuid == node.uuid)
    }
  }

  @Test("all of the guest's devices show the graft, offline changes included")
  func theOtherDevicesFollow() async throws {
    try await TestWorld.run { world in
      let invited = try await Invited(world)
      let bob = invited.bob
      let phone = try await world.device("phone", account: "bob")
      try await phone.sync()
      let node = try await bob.graft("/Groceries", invited.invite, from: invited.alice)
      try await bob.sync()
      _ = phone.recorder.take()
      try await phone.sync()
      let new = phone.recorder.take().filter { $0.hasPrefix("new") }
      #expect(new.first == "new /Groceries" && new.count == 5, "\(new)")
      #expect(try await phone.node("/Groceries").uuid == node.uuid)
      try await phone.create("/Groceries/H", "honey")
      try await bob.edit("/Groceries/D", "oat milk")
      try await bob.delete("/Groceries/E")
      try await bob.move("/Groceries/G", to: "/Groceries/F/G")
      try await invited.alice.rename("/Groceries/F", to: "Fridge")
      try await invited.expectEqual(on: bob, phone)
      let tree = try #require(try await phone.branch("/Groceries"))
      #expect(tree == "/D  \"oat milk\"\n/Fridge\n/Fridge/G  \"bread\"\n/H  \"honey\"")
      #expect(try await invited.alice.node("/Groceries/H").anchor == nil)
      let later = try await world.device("tablet", account: "bob")
      try await invited.expectEqual(on: bob, phone, later)
      #expect(try await later.node("/Groceries").uuid == node.uuid)
    }
  }

  @Test("the owner renames and moves the branch before and after the guest accepts")
  func theOwnersNamesAreTheirOwn() async throws {
    try await TestWorld.run { world in
      let invited = try await Invited(world)
      let (alice, bob) = (invited.alice, invited.bob)
      try await alice.rename("/Groceries", to: "Shopping")
      try await alice.sync()
      try await bob.create("/Shared")
      try await bob.graft("/Shared/Groceries", invited.invite, from: alice)
      try await invited.expectEqual("/Shared/Groceries", on: bob, remote: "/Shopping")
      try await alice.move("/Shopping", to: "/Homework/Shopping")
      try await bob.move("/Shared/Groceries", to: "/Food")
      try await invited.expectEqual("/Food", on: bob, remote: "/Homework/Shopping")
      #expect(try await bob.tree(versions: false).hasPrefix("/Food  \"the list\"\n"))
      #expect(try await bob.queueCount() == 0)
    }
  }

  @Test("a graft and the engine: without any call of the app, on two devices")
  func inTheBackground() async throws {
    try await TestWorld.run { world in
      let invited = try await Invited(world)
      let bob = invited.bob
      let phone = try await world.device("phone", account: "bob")
      for device in [bob, phone] { device.engineClock = world.clock.engineClock }
      for device in [bob, phone] { try await device.relaunch() }
      try await bob.whileRunning {
        try await phone.whileRunning {
          try await bob.graft("/Groceries", invited.invite, from: invited.alice)
          for device in [bob, phone] { await device.recorder.wait(for: "new /Groceries/G") }
          try await invited.alice.create("/Groceries/late", "late")
          try await invited.alice.sync()
          for device in [bob, phone] { await device.recorder.wait(for: "new /Groceries/late") }
        }
      }
      try await invited.expectEqual(on: bob, phone)
    }
  }

  @Test func refusals_doNothing() async throws {
    try await TestWorld.run { world in
      let invited = try await Invited(world)
      let (alice, bob, invite) = (invited.alice, invited.bob, invited.invite)
      try await bob.create("/taken")
      try await bob.sync()
      let before = try await bob.tree()
      let other = ZDCGraftInvite(cloudID: try await bob.cloudID("/taken"), cloudPath: invite.cloudPath)
      var trunk = invite.cloudPath.target
      trunk.zone = ZoneID(trunkOf: trunk.zone.tree)
      trunk.node = trunk.zone.root
      let whole = ZDCGraftInvite(cloudID: trunk.node.text, cloudPath: ZDCCloudPath(trunk))
      let refusals: [(ZDCCloudError.Code, @Sendable () async throws -> Void)] = [
        (.conflict, { try await bob.graft("/taken", invite, from: alice) }),
        (.missingParent, { try await bob.graft("/none/list", invite, from: alice) }),
        (.invalidParameter, { try await bob.graft("prefs:/list", invite, from: alice) }),
        (.invalidParameter, { try await bob.graft("home:/", invite, from: alice) }),
        (.invalidParameter, { try await bob.graft("/list", other, from: alice) }),
        (.invalidParameter, { try await bob.graft("/list", whole, from: alice) }),
        (.invalidParameter, { try await alice.graft("/list", invite, from: bob) }),
        (.invalidParameter, { try await bob.graft("/list", invite, from: bob) }),
      ]
      for (number, (code, refusal)) in refusals.enumerated() { #expect(await Self.code(refusal) == code, "\(number)") }
      #expect(try await bob.tree() == before)
      #expect(try await bob.queueCount() == 0)
      try await bob.graft("/list", invite, from: alice)
      try await bob.sync()
      do {
        try await bob.graft("/again", invite, from: alice)
        Issue.record("grafted twice")
      } catch let error as ZDCCloudError {
        #expect(error.code == .alreadyGrafted && error.path?.fullPath() == "home:/list")
      }
      #expect(await Self.code { try await bob.graft("/list/D/again", invite, from: alice) } == .invalidParameter)
      #expect(try await bob.queueCount() == 0)
    }
  }

  /// - Bob grafts Alice's list into a folder that he shares with Alice, who grafts that folder into the list
  /// => each sees the other's branch at their own path, and the way back to their own as a leaf, on new devices too
  @Test func twoPeopleGraftEachOthersBranches() async throws {
    try await TestWorld.run { world in
      let invited = try await Invited(world)
      let (alice, bob) = (invited.alice, invited.bob)
      try await bob.meet(alice)
      try await bob.create("/Club", "members")
      try await bob.share("/Club", with: alice, "rw")
      try await bob.sync()
      try await bob.graft("/Club/list", invited.invite, from: alice)
      try await alice.graft("/Groceries/club", try await bob.invite("/Club"), from: bob)
      try await world.settle(alice, bob)
      try await alice.edit("/Groceries/club", "alice's")
      try await bob.edit("/Club/list/D", "bob's")
      try await world.settle(alice, bob)
      let (tablet, phone) = (try await world.device("tablet"), try await world.device("phone", account: "bob"))
      try await world.settle(tablet, phone)
      for device in [alice, tablet] {
        let paths = try await Self.paths(device, "/Groceries")
        #expect(paths == ["/D", "/E", "/F", "/G", "/club", "/club/list"], "\(device.name)")
        #expect(try await device.content(of: "/Groceries/D")?.data == Data("bob's".utf8))
      }
      for device in [bob, phone] {
        let paths = try await Self.paths(device, "/Club")
        #expect(paths == ["/list", "/list/D", "/list/E", "/list/F", "/list/G", "/list/club"], "\(device.name)")
        #expect(try await device.content(of: "/Club")?.data == Data("alice's".utf8))
      }
    }
  }

  private static func paths(_ device: TestDevice, _ path: String) async throws -> [String]? {
    try await device.branch(path)?.split(separator: "\n").map { line in
      line.range(of: "  ").map { String(line[..<$0.lowerBound]) } ?? String(line)
    }
  }

  @Test func anInvite_isThereOnceTheRecipientIsListed() async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let alice = people.alice
      try await alice.create("/list")
      try await alice.create("/list/inner")
      let invites: @Sendable () async throws -> [String: Bool] = {
        try await alice.write { _, cloud in
          var found: [String: Bool] = [:]
          for names in [[], ["list"], ["list", "inner"]] {
            let path = ZDCTreesystemPath(pathComponents: names)
            found[path.relativePath()] = cloud.node(path: path).flatMap { cloud.graftInvite(for: $0) } != nil
          }
          return found
        }
      }
      #expect(try await invites().values.allSatisfy { !$0 })
      try await alice.share("/list", with: people.bob)
      #expect(try await invites().values.allSatisfy { !$0 })
      try await alice.sync()
      #expect(try await invites().filter(\.value).keys.sorted() == ["/list"])
    }
  }

  @Test func aCloudPath_isTextWithoutNames() async throws {
    try await TestWorld.run { world in
      let invited = try await Invited(world)
      let path = invited.invite.cloudPath
      let text = path.path()
      #expect(text.count == 271 && text.allSatisfy { $0.isASCII && ($0.isNumber || $0.isLowercase) })
      #expect(ZDCCloudPath(path: text) == path)
      #expect(path.ownerID == (try invited.alice.localUserID) && path.cloudID == invited.invite.cloudID)
      for bad in ["", "x", String(text.dropLast()), text + "y", "x" + text.dropFirst(), text.uppercased()] {
        #expect(ZDCCloudPath(path: bad) == nil)
      }
      let coded = try JSONEncoder().encode(invited.invite)
      #expect(try JSONDecoder().decode(ZDCGraftInvite.self, from: coded) == invited.invite)
      #expect(String(decoding: coded, as: UTF8.self).contains(text))
    }
  }

  @Test func severalGuests() async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      try await alice.create("/list", "for three")
      try await alice.sync()
      try await alice.share("/list", with: bob)
      try await alice.share("/list", with: carol)
      try await alice.sync()
      let invite = try await alice.invite("/list")
      try await bob.graft("/Alice's", invite, from: alice)
      try await carol.graft("/shared", invite, from: alice)
      try await world.settle(bob, carol)
      try await bob.create("/Alice's/bob", "b")
      try await carol.create("/shared/carol", "c")
      try await alice.create("/list/alice", "a")
      try await world.settle(alice, bob, carol)
      for (device, path) in [(alice, "/list"), (bob, "/Alice's"), (carol, "/shared")] {
        #expect(try await device.branch(path) == "/alice  \"a\"\n/bob  \"b\"\n/carol  \"c\"")
      }
      // One leaves, the other stays.
      try await bob.delete("/Alice's")
      try await world.settle(alice, bob, carol)
      #expect(try await alice.members(bob, carol, of: "/list") == ["carol": "rw"])
      #expect(try await carol.branch("/shared")?.contains("/bob  \"b\"") == true)
    }
  }

  @Test(
    "two devices graft the same branch at the same moment: one pointer remains, and nothing is lost", arguments: 0..<4)
  func graftedTwice(_ number: Int) async throws {
    try await TestWorld.run { world in
      let invited = try await Invited(world)
      let (alice, bob) = (invited.alice, invited.bob)
      let phone = try await world.device("phone", account: "bob")
      try await phone.sync()
      let node = try await bob.graft("/bob's", invited.invite, from: alice)
      #expect(try await phone.graft("/phone's", invited.invite, from: alice).uuid == node.uuid)
      try await bob.write { _, cloud in cloud.setTag("kept", forNodeID: node.uuid, withIdentifier: "tag") }
      if number % 2 == 0 { try await phone.push() }
      if number < 2 { try await bob.push() }
      try await world.settle(bob, phone, alice)
      #expect(try await phone.tree() == bob.tree())
      let (tree, branch) = (try await bob.tree(versions: false), try await alice.branch("/Groceries"))
      let lines = tree.split(separator: "\n").filter { !$0.dropFirst().contains("/") }
      #expect(lines.count == 1 && (lines[0].hasPrefix("/bob's") || lines[0].hasPrefix("/phone's")), "\(tree)")
      #expect(try await bob.branch(lines[0].hasPrefix("/bob's") ? "/bob's" : "/phone's") == branch)
      let tag = try await bob.write { _, cloud in cloud.tag(forNodeID: node.uuid, withIdentifier: "tag") as? String }
      #expect(tag == "kept")
      #expect(try await alice.members(bob, of: "/Groceries") == ["bob": "rw"])
      for device in [bob, phone] { #expect(try await device.queueCount() == 0) }
    }
  }

  @Test(
    "killed after each of its transactions, a graft is complete on both devices",
    arguments: [TestDevice.Network.dead, .alive])
  func killedAnywhere(network: TestDevice.Network) async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let (alice, bob) = (people.alice, people.bob)
      let phone = try await world.device("phone", account: "bob")
      var kills = 0
      for commits in 0..<20 {
        let list = "/list\(commits)"
        try await alice.create(list, "top")
        try await alice.create(list + "/inner", "inner")
        try await alice.sync()
        try await alice.share(list, with: bob)
        try await alice.sync()
        let node = try await bob.graft(list, try await alice.invite(list), from: alice)
        bob.die(afterCommits: commits, network: network)
        do { try await bob.sync() } catch { #expect(bob.isDead, "\(error)") }
        let isKilled = bob.isDead
        if isKilled { kills += 1 }
        try await bob.relaunch()
        try await world.settle(bob, phone, alice)
        #expect(try await bob.branch(list, versions: true) == alice.branch(list, versions: true))
        #expect(try await phone.tree() == bob.tree())
        #expect(try await bob.node(list).uuid == node.uuid)
        #expect(try await bob.queueCount() == 0)
        if !isKilled { break }
      }
      #expect(kills >= 3 && kills < 20, "\(kills)")
    }
  }
}
