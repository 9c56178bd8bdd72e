import Foundation
import Testing
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// What an app learns about others' changes of a branch that it shares with them.
struct SharedCallbackTests {
  typealias People = ListChangeTests.People

  /// How Bob's device shows Alice's branch.
  enum Place: CaseIterable, Sendable { case detached, graft }

  /// The branch of Alice, which Bob and Carol may write, and its path on Bob's device.
  private static func shared(_ world: TestWorld, _ place: Place) async throws -> (people: People, path: String) {
    guard place == .graft else {
      let people = try await BranchTests.shared(world)
      return (people, try await BranchTests.path("", people))
    }
    let people = try await People(world)
    let (alice, bob, carol) = (people.alice, people.bob, people.carol)
    try await BranchTests.create(alice)
    try await alice.sync()
    for member in [bob, carol] { try await alice.share("/home/list", with: member) }
    try await alice.sync()
    try await bob.graft("/list", try await alice.invite("/home/list"), from: alice)
    try await world.settle(bob, alice)
    return (people, "/list")
  }

  /// - Alice changes the list of a branch: she lets Carol only read, or removes her
  /// => her other device and Bob's report that the branch has changed, at the place where they show it
  @Test(
    "seed 003:270: a changed list of a branch is a modified node with .treesystem", arguments: Place.allCases,
    [false, true])
  func aChangedListIsAnnounced(place: Place, isRemoval: Bool) async throws {
    try await TestWorld.run { world in
      let (people, path) = try await Self.shared(world, place)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      let second = try await world.device("second")
      try await world.settle(alice, second, bob)
      for device in [alice, second, bob] { _ = device.recorder.take() }
      if isRemoval {
        try await alice.unshare("/home/list", with: carol)
      } else {
        try await alice.share("/home/list", with: carol, "r")
      }
      for device in [alice, second, bob] { try await device.sync() }
      #expect(alice.recorder.take() == [])
      #expect(second.recorder.take() == ["modified treesystem /home/list"])
      let shown = place == .graft ? path : String(path.dropFirst("detached:".count))
      #expect(bob.recorder.take() == ["modified treesystem \(shown)"])
      let item = try await bob.node(path).shareList.shareItem(forUserID: try carol.localUserID)
      #expect(item?.permissions == (isRemoval ? nil : "r"))
    }
  }

  /// Alice's list, which Bob and Carol have accepted, and its path on Bob's device.
  private static func accepted(_ bob: TestDevice, _ world: TestWorld) async throws -> (carol: TestDevice, top: String) {
    let alice = try await world.device("alice")
    let carol = try await world.device("carol", account: "carol")
    for device in [alice, bob, carol] { try await device.sync() }
    try await alice.create("/list")
    try await alice.create("/list/milk", "1 l")
    try await alice.sync()
    for member in [bob, carol] {
      try await alice.meet(member)
      try await alice.share("/list", with: member)
    }
    try await alice.sync()
    let list = try await alice.cloudID("/list")
    for member in [bob, carol] { try await member.accept(list, of: alice) }
    try await carol.download()
    return (carol, "/" + list)
  }

  /// - Carol creates, edits, renames and deletes nodes of Alice's list, each a minute after the one before
  /// => in each call, Bob's app gets the time at which the server received the change
  @Test func theTimesOfAnotherMembersChanges() async throws {
    try await TestWorld.run { world in
      let app = ScriptedDelegate()
      let bob = try await TestDevice("bob", server: world.server, clock: world.clock, delegate: app)
      try await bob.createAccount()
      let (carol, top) = try await Self.accepted(bob, world)
      let path = "detached:" + top
      let changes: [(call: String, change: @Sendable () async throws -> Void)] = [
        ("new \(top)/eggs", { try await carol.create(path + "/eggs", "six") }),
        ("modified \(top)/milk", { try await carol.edit(path + "/milk", "2 l") }),
        ("moved \(top)/oat milk", { try await carol.rename(path + "/milk", to: "oat milk") }),
        ("deleted \(top)/eggs", { try await carol.delete(path + "/eggs") }),
      ]
      for (call, change) in changes {
        world.clock.advance(by: .seconds(60))
        try await change()
        try await carol.sync()
        try await bob.pull()
        if !call.hasPrefix("deleted") { #expect(app.changes[call] == world.clock.now, "\(call)") }
      }
      #expect(app.deletions == ["\(top)/eggs": world.clock.now] as [String: Date?])
      try await bob.close()
    }
  }
}
