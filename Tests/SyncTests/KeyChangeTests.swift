import Testing
import ZDCAccounts
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZeroDarkCloud

/// The account's keys are rotated elsewhere while a device holds the older ones.
struct KeyChangeTests {
  @Test("K-18: the account's keys were rotated elsewhere: the change is signed again and goes out")
  func anOldSignature_isMadeAgain() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/f", "1")
      try await world.settle(a, b)
      let user = try #require(UserID(text: try a.localUserID))
      try await EventTests.rotateKeys(try await UnreadableRecordTests.rogue(world, a), user)
      try await b.edit("/f", "2")
      try await b.create("/g", "3")
      try await b.sync()
      #expect(try await b.queueCount() == 0)
      try await world.settle(a, b)
      #expect(try await a.tree(versions: false) == "/f  \"2\"\n/g  \"3\"")
    }
  }

  enum Retired: CaseIterable, Sendable {
    case owner, member
  }

  /// - keys are retired in a shared branch: the owner's, who has rotated again since, or those of a member who may only read
  /// - the owner shares a node in it, which retires them in the new zone as well
  /// => all members read the new zone, and the owner's queue is empty
  @Test(arguments: Retired.allCases) func retiredKeys_areRetiredInABranchOfTheBranch(of retired: Retired) async throws {
    try await TestWorld.run { world in
      let people = try await ListChangeTests.People(world)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      for path in ["/list", "/list/note"] { try await alice.create(path, path) }
      try await alice.sync()
      try await alice.share("/list", with: bob, "r")
      try await alice.share("/list", with: carol)
      try await alice.sync()
      let root = try await alice.cloudID("/list")
      for member in [bob, carol] { try await member.accept(root, of: alice) }
      let zone = ZoneID(
        tree: .derive(owner: try alice.userID, trunk: .home, appTreeID: TestDevice.treeID),
        root: try #require(NodeID(text: root)))
      let user = try retired == .owner ? alice.userID : bob.userID
      if retired == .owner {
        let users = try #require(try alice.zdc.localUserManager)
        try await users.rotateKeys(for: try alice.localUserID, areCompromised: true)
        try await alice.sync()
        try await alice.rotateKeys()
      } else {
        try await bob.rotateKeys()
        let rogue = try await people.rogue("bob", bob)
        try await rogue.push(try await rogue.zone(zone).commit([.retireKey(user: user, gen: 2)]))
      }
      for device in [alice, bob, carol] { try await device.sync() }
      try await alice.share("/list/note", with: carol, "r")
      for device in [alice, bob, carol] { try await device.sync() }
      #expect(try await alice.queueCount() == 0)
      let node = try #require(NodeID(text: try await alice.cloudID("/list/note")))
      for device in [alice, bob, carol] {
        let rows = try await device.database.read { try $0.zones.zones(localUser: 1) }
        #expect(rows.allSatisfy { $0.frozen == nil }, "\(device.name)")
        let branch = rows.first { $0.zone == ZoneID(tree: zone.tree, root: node) }
        #expect(branch?.head?.retiredBelow[user] == 2, "\(device.name)")
      }
    }
  }

  /// Alice has sent Bob a message, which neither he nor his tablet has accepted.
  private static func unacceptedMessage(
    _ world: TestWorld
  ) async throws -> (alice: TestDevice, bob: TestDevice, tablet: TestDevice) {
    let pair = try await MessageTests.Pair(world)
    let tablet = try await world.device("tablet", account: "bob")
    try await tablet.sync()
    try await pair.alice.send("hello", to: pair.bob)
    try await pair.alice.sync()
    return (pair.alice, pair.bob, tablet)
  }

  /// - another device rotates the account's keys before this one takes messages over, or while it does
  /// => the commit in the inbox is signed again
  @Test("K-18: a device with old keys takes messages over", arguments: [false, true])
  func messagesAreTakenOver(isLate: Bool) async throws {
    try await TestWorld.run { world in
      let (alice, bob, tablet) = try await Self.unacceptedMessage(world)
      if isLate {
        tablet.network.fail(.before { try await bob.rotateKeys() }, "POST", Routes.commits)
      } else {
        try await bob.rotateKeys()
      }
      try await tablet.acceptMessages(of: alice)
      #expect(try await tablet.messages(from: alice) == ["alice: hello"])
    }
  }

  /// - another device rotates the account's keys while this one takes messages over, and again while it does so once more
  /// => the commit in the inbox is signed with the newest keys
  @Test("K-18: keys are rotated twice while messages are taken over")
  func messagesAreTakenOver_withTheNewestKeys() async throws {
    try await TestWorld.run { world in
      let (alice, bob, tablet) = try await Self.unacceptedMessage(world)
      let again: @Sendable () async throws -> Void = {
        try await bob.rotateKeys()
        tablet.network.fail(.before { try await bob.rotateKeys() }, "POST", Routes.commits)
      }
      tablet.network.fail(.before(again), "POST", Routes.commits)
      try await tablet.acceptMessages(of: alice)
      #expect(tablet.network.hasStruck)
      #expect(try await tablet.messages(from: alice) == ["alice: hello"])
    }
  }

  /// - another device rotates the account's keys while this one sends the profile
  @Test("K-18: a profile is signed again") func theProfileIsSet() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await world.settle(a, b)
      try await b.setProfile("B")
      b.network.fail(.before { try await a.rotateKeys() }, "POST", Routes.commits)
      try await b.sync()
      #expect(try await b.queueCount() == 0)
    }
  }

  /// - this device has rotated keys that were compromised
  /// - another one rotates the keys before this one retires the old ones, or while it does
  /// => every zone retires the compromised key, with a commit that the newest key has signed
  @Test("K-18: keys are rotated elsewhere before compromised ones are retired", arguments: [false, true])
  func compromisedKeysAreRetired(isLate: Bool) async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.create("/f", "1")
      try await a.sync()
      let users = try #require(try a.zdc.localUserManager)
      let rotation = try await users.rotateKeys(for: try a.localUserID, areCompromised: true)
      #expect(rotation.queuedRetirements == 4)
      let b = try await world.device("B")
      if isLate {
        a.network.fail(.before { try await b.rotateKeys() }, "POST", Routes.commits)
      } else {
        try await b.rotateKeys()
      }
      try await a.sync()
      #expect(a.network.hasStruck)
      try await world.settle(a, b)
      let user = try a.userID
      for device in [a, b] {
        let heads = try await device.database.read { try $0.zones.zones(localUser: 1).compactMap(\.head) }
        let retired = heads.compactMap { $0.retiredBelow[user] }
        #expect(retired.count == 4 && retired.contains(3), "\(device.name) \(retired)")
        #expect(isLate || retired == [3, 3, 3, 3], "\(device.name) \(retired)")
      }
      let left = try await a.retirementCount()
      #expect(left == 0)
    }
  }

  /// - another process of the device has read the account's new keys and stored them
  @Test("C9: keys that another process stored are taken over")
  func keysOfAnotherProcess() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.create("/f", "1")
      try await a.sync()
      let user = try #require(UserID(text: try a.localUserID))
      let second = try await TestDevice(
        "second", reopening: a.folder, databaseKey: a.databaseKey, serverURL: world.server.url, clock: world.clock)
      try await EventTests.rotateKeys(try await UnreadableRecordTests.rogue(world, a), user)
      try await second.sync()
      try await second.create("/g", "2")
      try await second.sync()
      #expect(try await second.queueCount() == 0)
      try await second.close()
      try await a.create("/h", "3")
      try await a.sync()
      #expect(try await a.queueCount() == 0)
    }
  }
}

extension TestDevice {
  /// Replaces the keys of the device's user.
  func rotateKeys(areCompromised: Bool = false) async throws {
    guard let users = try zdc.localUserManager else { throw TestFailure("\(name)'s database is locked") }
    try await users.rotateKeys(for: try localUserID, areCompromised: areCompromised)
  }
}

extension TestDevice {
  /// The number of zones in which compromised keys of the user are not retired yet.
  func retirementCount() async throws -> Int {
    let session = try await syncManager.engine(for: try localUserID).session
    return try await database.read { transaction in
      session.keys.retirements(in: try transaction.zones.zones(localUser: session.localUser)).count
    }
  }
}
