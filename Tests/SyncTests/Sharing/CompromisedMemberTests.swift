import Testing
import ZDCAccounts
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZeroDarkCloud

/// K-9: zones whose key is sealed for a decryption key that its user has declared compromised.
struct CompromisedMemberTests {
  typealias People = ListChangeTests.People

  /// Alice's tree, in which Bob may write, and Carol also share.
  private static func people(_ world: TestWorld) async throws -> People {
    let people = try await People(world)
    try await people.alice.create("/note", "1")
    try await people.alice.share(with: people.bob)
    try await people.alice.share(with: people.carol, "rws")
    try await people.alice.sync()
    for member in [people.bob, people.carol] { try await member.accept(people.alice) }
    return people
  }

  private static func rotateKeys(_ device: TestDevice, areCompromised: Bool) async throws {
    let users = try #require(try device.zdc.localUserManager)
    try await users.rotateKeys(for: device.localUserID, areCompromised: areCompromised)
    try await device.sync()
  }

  /// Returns the generation of the tree's key, and that of the key for which Bob's grant is sealed.
  private static func generations(_ people: People) async throws -> [UInt32?] {
    let list = try await people.home().acl.fields
    return [list.zoneKeyGen, list.entry(for: try people.bob.userID)?.encGen]
  }

  /// - Bob rotates the own keys; Carol and Alice read the chain
  /// => only if he has declared them compromised, the tree gets a fresh key, once, from the owner; all read it
  @Test(arguments: [true, false]) func aMembersCompromisedKey_isReplacedOnce(isCompromised: Bool) async throws {
    try await TestWorld.run { world in
      let people = try await Self.people(world)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      try await Self.rotateKeys(bob, areCompromised: isCompromised)
      for device in [carol, alice] {
        try await device.meet(bob)
        #expect(try await device.queueCount() == (isCompromised ? 1 : 0), "\(device.name)")
      }
      try await carol.sync()
      #expect(try await people.home().acl.fields.zoneKeyGen == 1)
      try await alice.sync()
      let generation: UInt32 = isCompromised ? 2 : 1
      for _ in 0..<2 {
        #expect(try await Self.generations(people) == [generation, generation])
        world.clock.advance(by: .seconds(601))
        try await world.settle(alice, bob, carol)
      }
      for device in [alice, bob, carol] { #expect(try await device.queueCount() == 0, "\(device.name)") }
      for member in [bob, carol] {
        #expect(try await member.tree(of: alice) == alice.tree(versions: false))
      }
    }
  }

  /// - Bob declares the own keys compromised; he may write in Alice's tree, may only read it, or was removed in the meantime
  /// => the member's device retires the old keys there, with one commit, on all devices; that of a former member sends nothing
  @Test(arguments: ["rw", "r", nil])
  func aMembersCompromisedKeys_areRetiredInTheTreeOfAnother(letters: String?) async throws {
    try await TestWorld.run { world in
      let people = try await Self.people(world)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      if letters == "r" { try await alice.share(with: bob, "r") }
      if letters == nil { try await alice.unshare(with: bob) }
      try await alice.sync()
      try await Self.rotateKeys(bob, areCompromised: true)
      for _ in 0..<2 {
        world.clock.advance(by: .seconds(601))
        try await world.settle(bob, alice, carol)
      }
      let (user, home) = (try bob.userID, try await people.home())
      for device in letters == nil ? [alice, carol] : [alice, carol, bob] {
        let zones = try await device.database.read { try $0.zones.zones(localUser: 1) }
        let head = try #require(zones.first { $0.zone == home.zone }?.head)
        #expect(head.retiredBelow[user] == (letters == nil ? nil : 2), "\(device.name)")
      }
      let count = home.commits.count { $0.fields.operations.contains(.retireKey(user: user, gen: 2)) }
      #expect(count == (letters == nil ? 0 : 1))
      #expect(try await bob.retirementCount() == 0)
    }
  }

  /// - Bob declares the own keys compromised while no device of Alice is connected; a new one logs in
  /// => it replaces the key of her tree when it has read the root
  @Test func aNewDevice_replacesACompromisedKey() async throws {
    try await TestWorld.run { world in
      let people = try await Self.people(world)
      try await Self.rotateKeys(people.bob, areCompromised: true)
      let tablet = try await world.device("tablet")
      for _ in 0..<2 { try await tablet.sync() }
      #expect(try await Self.generations(people) == [2, 2])
      try await world.settle(people.alice, tablet)
      #expect(try await people.alice.tree() == tablet.tree())
    }
  }

  /// - a user declares their keys compromised, and the device is relaunched before it sends anything
  /// => each of their trees gets a fresh key, sealed for the new one; the other device reads and writes below it
  @Test func ownCompromisedKeys_areReplacedInEachTree() async throws {
    try await TestWorld.run { world in
      let (a, b) = (try await world.device("A"), try await world.device("B"))
      try await a.create("/folder")
      try await a.create("/folder/note", "1")
      try await world.settle(a, b)
      let users = try #require(try a.zdc.localUserManager)
      try await users.rotateKeys(for: try a.localUserID, areCompromised: true)
      try await a.relaunch()
      try await a.sync()
      try await b.sync()
      try await b.edit("/folder/note", "2")
      try await world.settle(a, b)
      let user = try a.userID
      for device in [a, b] {
        let heads = try await device.database.read { try $0.zones.zones(localUser: 1).compactMap(\.head) }
        #expect(heads.map(\.acl.fields.zoneKeyGen) == [2, 2, 2, 2], "\(device.name)")
        #expect(heads.map { $0.acl.fields.entry(for: user)?.encGen } == [2, 2, 2, 2], "\(device.name)")
        #expect(try await device.queueCount() == 0, "\(device.name)")
      }
      #expect(try await b.tree() == a.tree())
    }
  }
}
