import Testing
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZeroDarkCloud

/// Changes of an access list that two devices of its owner make at the same time, sent in either order.
struct ListMergeTests {
  /// A change that a device makes to a user's entry.
  enum Change: Sendable, Hashable {
    case share(String), remove

    fileprivate func make(_ device: TestDevice, _ user: TestDevice) async throws {
      switch self {
      case .share(let letters): try await device.share("/list", with: user, letters)
      case .remove: try await device.unshare("/list", with: user)
      }
    }
  }

  /// A list that Bob may write, and two devices of its owner that have read it.
  private struct Stage {
    let people: ListChangeTests.People
    let second: TestDevice
    var owners: [TestDevice] { [people.alice, second] }

    init(_ world: TestWorld) async throws {
      people = try await ListChangeTests.People(world)
      second = try await world.device("second")
      try await people.alice.create("/list", "milk")
      try await people.alice.sync()
      try await people.alice.share("/list", with: people.bob)
      try await people.alice.sync()
      try await second.sync()
      for member in [people.bob, people.carol] { try await second.meet(member) }
      try await people.bob.accept(try await people.alice.cloudID("/list"), of: people.alice)
    }

    /// Sends the changes, those of one device first.
    func settle(secondIsFirst: Bool) async throws {
      let order = secondIsFirst ? [second, people.alice] : owners
      for device in order { try await device.push() }
      try await people.world.settle(order[0], order[1])
      for device in owners { #expect(try await device.queueCount() == 0, "\(device.name)") }
    }

    func list() async throws -> ZoneACL.Fields {
      try await people.alice.database.read { transaction in
        let zone = try transaction.zones.zones(localUser: 1).first { !$0.isTrunk }
        return try #require(zone?.head?.acl.fields)
      }
    }
  }

  @Test("one device adds a member, the other removes another: both hold", arguments: [false, true])
  func differentPeople(secondIsFirst: Bool) async throws {
    try await TestWorld.run { world in
      let stage = try await Stage(world)
      let (bob, carol) = (stage.people.bob, stage.people.carol)
      try await stage.people.alice.share("/list", with: carol, "r")
      try await stage.second.unshare("/list", with: bob)
      try await stage.settle(secondIsFirst: secondIsFirst)
      for device in stage.owners { #expect(try await device.members(bob, carol, of: "/list") == ["carol": "r"]) }
      #expect(try await stage.list().version == 3)
      try await bob.sync()
      #expect(try await bob.queueCount() == 0)
      try await carol.accept(try await stage.second.cloudID("/list"), of: stage.second)
      try await carol.download()
      let path = "detached:/" + (try await stage.second.cloudID("/list"))
      #expect(try await carol.content(of: path)?.data.count == 4)
    }
  }

  /// A removal wins over other permissions, whichever comes first. Of two changes of permissions, the later one wins.
  @Test(
    "both change one member's entry",
    arguments: [
      (Change.share("r"), Change.share("rws"), nil), (.share("r"), .share("r"), "r"), (.remove, .remove, ""),
      (.remove, .share("r"), ""), (.share("rws"), .remove, ""),
    ] as [(Change, Change, String?)], [false, true])
  func oneMember(_ row: (first: Change, second: Change, expected: String?), secondIsFirst: Bool) async throws {
    try await TestWorld.run { world in
      let stage = try await Stage(world)
      let bob = stage.people.bob
      try await row.first.make(stage.people.alice, bob)
      try await row.second.make(stage.second, bob)
      try await stage.settle(secondIsFirst: secondIsFirst)
      let expected = row.expected ?? (secondIsFirst ? "r" : "rws")
      for device in stage.owners {
        #expect(try await device.members(bob, of: "/list")["bob"] ?? "" == expected, "\(device.name)")
      }
      let list = try await stage.list()
      #expect(list.zoneKeyGen == (expected.isEmpty ? 3 : 2))
      #expect((list.entry(for: try bob.userID) == nil) == expected.isEmpty)
      try await bob.sync()
    }
  }

  @Test("both add the same user", arguments: [("r", "r"), ("r", "rw"), ("rw", "r")])
  func oneNewMember(_ letters: (first: String, second: String)) async throws {
    try await TestWorld.run { world in
      let stage = try await Stage(world)
      let carol = stage.people.carol
      try await Change.share(letters.first).make(stage.people.alice, carol)
      try await Change.share(letters.second).make(stage.second, carol)
      try await stage.settle(secondIsFirst: false)
      for device in stage.owners {
        #expect(try await device.members(carol, of: "/list") == ["carol": letters.second], "\(device.name)")
      }
      #expect(try await stage.list().version == (letters.first == letters.second ? 2 : 3))
    }
  }

  /// - A member is removed, and before the answer came, the app gives them permissions again
  /// => they are a member: the app has decided after the removal
  @Test func aUserWhoIsAddedAfterTheirRemoval_isAMember() async throws {
    try await TestWorld.run { world in
      let stage = try await Stage(world)
      let (alice, bob) = (stage.people.alice, stage.people.bob)
      try await alice.unshare("/list", with: bob)
      alice.network.fail(.loseResponse, "POST", Routes.commits)
      await #expect(throws: (any Error).self) { try await alice.push() }
      try await alice.share("/list", with: bob, "r")
      try await stage.settle(secondIsFirst: false)
      #expect(try await alice.members(bob, of: "/list") == ["bob": "r"])
      #expect(try await stage.list().zoneKeyGen == 3)
    }
  }

  /// - A change of a user's entry is in flight, and the app makes another one
  /// - the server refuses the request, because another device's commit came first
  /// => the app's last change counts
  @Test(arguments: [(Change.share("rw"), Change.remove), (.remove, .share("r"))])
  func theLastOfTwoQueuedChangesCounts(_ row: (first: Change, last: Change)) async throws {
    try await TestWorld.run { world in
      let stage = try await Stage(world)
      let (alice, second) = (stage.people.alice, stage.second)
      let user = row.first == .remove ? stage.people.bob : stage.people.carol
      try await row.first.make(alice, user)
      alice.network.fail(
        .before {
          try await row.last.make(alice, user)
          try await second.edit("/list", "bread")
          try await second.push()
        }, "POST", Routes.commits)
      try await alice.push()
      #expect(alice.network.hasStruck)
      #expect(try await alice.queueCount() == 2)
      // Together, both leave the list as it is, so neither is sent.
      if row.last == .remove { try await row.last.make(alice, user) }
      #expect(try await alice.queueCount() == (row.last == .remove ? 0 : 2))
      try await stage.settle(secondIsFirst: false)
      for device in stage.owners {
        #expect(try await device.members(user, of: "/list") == (row.last == .remove ? [:] : [user.name: "r"]))
      }
    }
  }
}
