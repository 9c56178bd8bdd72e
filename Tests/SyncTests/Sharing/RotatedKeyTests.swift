import Testing
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Access lists that name a key of this user that another device made. A device reads the user's chain at the beginning of
/// each pull, but a list may come later, with a refused push or an event.
struct RotatedKeyTests {
  typealias People = ListChangeTests.People

  /// Alice's tree with Bob and Carol, and Bob's second device.
  private static func people(_ world: TestWorld) async throws -> (People, tablet: TestDevice) {
    let people = try await People(world)
    let (alice, bob) = (people.alice, people.bob)
    let tablet = try await world.device("tablet", account: "bob")
    try await alice.create("/list")
    try await alice.create("/list/part")
    for member in [bob, people.carol] { try await alice.share(with: member) }
    try await alice.sync()
    for device in [bob, tablet] {
      try await device.accept(alice)
      try await device.sync()
    }
    return (people, tablet)
  }

  /// - Bob rotates his keys, and Alice those of the tree
  /// - his tablet, which has not read his chain since, pushes a change, and gets the list with the refusal
  /// => it opens the grant, and sends the change
  @Test func aRefusedPush_bringsAGrantUnderANewKey() async throws {
    try await TestWorld.run { world in
      let (people, tablet) = try await Self.people(world)
      try await people.bob.rotateKeys()
      try await people.alice.unshare(with: people.carol)
      try await people.alice.sync()
      #expect(try await people.home().acl.fields.entry(for: try tablet.userID)?.encGen == 2)
      try await tablet.create(tablet.path("/list/bread", of: people.alice), "two")
      for _ in 0..<2 { try await tablet.push() }
      #expect(try await tablet.queueCount() == 0)
      try await people.alice.sync()
      #expect(try await people.alice.tree(versions: false).contains("bread"))
    }
  }

  /// - Bob rotates his keys, and Alice shares a part of the tree separately
  /// - his tablet, which has not read his chain since, gets the split with the refusal of a push
  /// => it opens the grant of the part
  @Test func aSplit_bringsAGrantUnderANewKey() async throws {
    try await TestWorld.run { world in
      let (people, tablet) = try await Self.people(world)
      try await people.bob.rotateKeys()
      try await people.alice.share("/list/part", with: people.bob, "rws")
      try await people.alice.sync()
      try await tablet.create(tablet.path("/list/bread", of: people.alice), "two")
      for _ in 0..<2 { try await tablet.push() }
      #expect(try await tablet.queueCount() == 0)
      try await tablet.create(tablet.path("/list/part/milk", of: people.alice), "1 l")
      try await world.settle(tablet, people.alice)
      #expect(try await people.alice.tree(versions: false).contains("/list/part/milk"))
    }
  }
}
