import Foundation
import Testing
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Members who may change the list of a branch: one removes another while the owner is away, two remove each other, and
/// several may replace the key after another member has left.
struct SharerTests {
  /// The random orders of a removal: 4, or as many as `ZDC_REMOVAL_ORDERS` says.
  private static let orders = ProcessInfo.processInfo.environment["ZDC_REMOVAL_ORDERS"].flatMap { UInt64($0) } ?? 4

  typealias People = ListChangeTests.People

  /// Alice's list, in which Bob and Carol may remove each other.
  private struct Sharers {
    let (alice, bob, carol, world): (TestDevice, TestDevice, TestDevice, TestWorld)

    init(_ world: TestWorld) async throws {
      let people = try await People(world)
      (alice, bob, carol, self.world) = (people.alice, people.bob, people.carol, world)
      try await alice.create("/list", "Alice's")
      try await alice.create("/list/milk", "1 l")
      try await alice.sync()
      for guest in [bob, carol] { try await alice.share("/list", with: guest, "rws") }
      try await alice.sync()
      for guest in [bob, carol] { try await graft(on: guest) }
      try await world.settle(alice, bob, carol)
    }

    /// Adds a member who may not change the list.
    func addDave() async throws -> TestDevice {
      let dave = try await world.device("dave", account: "dave")
      try await dave.sync()
      try await alice.meet(dave)
      try await alice.share("/list", with: dave)
      try await alice.sync()
      try await graft(on: dave)
      try await world.settle(alice, bob, carol, dave)
      return dave
    }

    func graft(on guest: TestDevice) async throws {
      try await guest.graft("/list", try await alice.invite("/list"), from: alice)
      try await guest.sync()
    }

    enum Step: CaseIterable {
      case bobPulls, bobPushes, carolPulls, carolPushes, bothPush, aliceSyncs
    }

    func take(_ step: Step) async throws {
      switch step {
      case .bobPulls: try await bob.pull()
      case .bobPushes: try await push(bob)
      case .carolPulls: try await carol.pull()
      case .carolPushes: try await push(carol)
      case .bothPush:
        async let first: Void = push(bob)
        async let second: Void = push(carol)
        _ = try await (first, second)
      case .aliceSyncs: try await alice.sync()
      }
    }

    /// The server refuses the push of a member who has lost access.
    private func push(_ device: TestDevice) async throws {
      do { try await device.push() } catch let error as ServerError where error.code == .notFound {}
    }

    /// The generation of the list's key, as a device has verified it.
    func generation(_ device: TestDevice) async throws -> UInt32? {
      try await device.database.read { transaction in
        try transaction.zones.zones(localUser: 1).first { !$0.isTrunk }?.head?.acl.fields.zoneKeyGen
      }
    }

    func expectEqual(_ devices: TestDevice...) async throws { try await expectEqual(devices) }

    func expectEqual(_ devices: [TestDevice]) async throws {
      try await TestWorld.settle([alice] + devices)
      let list = try await alice.branch("/list", versions: true)
      for device in devices { #expect(try await device.branch("/list", versions: true) == list, "\(device.name)") }
    }
  }

  /// - the owner is away; Bob removes Carol, and writes
  /// => the key is replaced at once, Carol reads nothing later, and the owner reads everything when she is back
  @Test("K-1: a member removes another one while the owner is away")
  func aMemberRemovesAnother_whileTheOwnerIsAway() async throws {
    try await TestWorld.run { world in
      let sharers = try await Sharers(world)
      let (alice, bob, carol) = (sharers.alice, sharers.bob, sharers.carol)
      try await alice.edit("/list", "Alice's, while she was away")
      let before = try #require(try await sharers.generation(bob))
      try await bob.unshare("/list", with: carol)
      try await bob.create("/list/secret", "without Carol")
      try await bob.edit("/list/milk", "2 l")
      try await bob.sync()
      #expect(try await sharers.generation(bob) == before + 1)
      try await carol.sync()
      #expect(try await carol.tree() == "")
      try await sharers.expectEqual(bob)
      #expect(try await alice.content(of: "/list/secret")?.data == Data("without Carol".utf8))
      #expect(try await bob.content(of: "/list")?.data == Data("Alice's, while she was away".utf8))
      #expect(try await alice.members(bob, carol, of: "/list") == ["bob": "rws"])
      #expect(try await sharers.generation(alice) == before + 1)
      for device in [alice, bob, carol] { #expect(try await device.queueCount() == 0, "\(device.name)") }
    }
  }

  /// - Dave leaves while the owner is away; Bob and Carol, who may replace the key, have five devices each
  /// => all ten wait for at least a minute, and one of them replaces the key; the others find that done in the log, or
  ///   when the server refuses their only request, which is no longer than that of the first one
  @Test("K-7: of several members who may replace the key, one does so", arguments: [false, true])
  func oneMemberReplacesTheKey_afterAnotherHasLeft(pushesFirst: Bool) async throws {
    try await TestWorld.run { world in
      let sharers = try await Sharers(world)
      let (bob, carol) = (sharers.bob, sharers.carol)
      let dave = try await sharers.addDave()
      var devices = [bob, carol]
      for number in 2...5 {
        for account in ["bob", "carol"] {
          devices.append(try await world.device("\(account) \(number)", account: account))
        }
      }
      try await TestWorld.settle(devices)
      let before = try #require(try await sharers.generation(bob))
      try await dave.delete("/list")
      try await TestWorld.settle([dave])

      let commits = try world.server.commitCount()
      for device in devices { try await device.sync() }
      world.clock.advance(by: .seconds(59))
      for device in devices { try await device.sync() }
      #expect(try world.server.commitCount() == commits)
      for device in devices { #expect(try await device.queueCount() == 1, "\(device.name)") }

      world.clock.advance(by: .seconds(600))
      for device in devices { device.network.resetCounts() }
      for device in devices { if pushesFirst { try await device.push() } else { try await device.sync() } }
      #expect(try world.server.commitCount() == commits + 1)
      // A request has the key sealed for each member, so it is not sent when the log shows that it is done.
      let sent = devices.map { device in
        device.network.requests.filter { $0.route.pattern == Routes.commits }.map(\.bytesSent)
      }
      let once = [1] + [Int](repeating: 0, count: devices.count - 1)
      #expect(pushesFirst ? sent.allSatisfy { $0.count <= 1 } : sent.map(\.count) == once, "\(sent)")
      let bytes = sent.flatMap { $0 }
      let first = try #require(bytes.first)
      #expect(bytes.allSatisfy { $0 <= first + first / 10 }, "\(bytes)")
      try await bob.create("/list/secret", "without Dave")
      try await sharers.expectEqual(devices)
      for device in devices {
        #expect(try await device.queueCount() == 0, "\(device.name)")
        #expect(try await sharers.generation(device) == before + 1, "\(device.name)")
      }
    }
  }

  /// - Bob and Carol remove each other at the same moment; the second one pulls first, or pushes first
  /// => the log decides: the first one stays, the second one's removal ends with their access, and the owner can add
  ///   them again
  @Test("K-8: two members remove each other", arguments: [false, true], [false, true])
  func twoMembersRemoveEachOther(isCarolFirst: Bool, pushesFirst: Bool) async throws {
    try await TestWorld.run { world in
      let sharers = try await Sharers(world)
      let alice = sharers.alice
      let (winner, loser) = isCarolFirst ? (sharers.carol, sharers.bob) : (sharers.bob, sharers.carol)
      let before = try #require(try await sharers.generation(alice))
      try await winner.unshare("/list", with: loser)
      try await loser.unshare("/list", with: winner)
      try await winner.sync()
      if pushesFirst { _ = try? await loser.push() }
      try await loser.sync()
      #expect(try await loser.tree() == "")
      #expect(try await loser.queueCount() == 0)
      try await winner.edit("/list/milk", "later")
      try await sharers.expectEqual(winner)
      #expect(try await alice.members(winner, loser, of: "/list") == [winner.name: "rws"])
      #expect(try await sharers.generation(alice) == before + 1)

      try await alice.share("/list", with: loser, "rws")
      try await alice.sync()
      try await sharers.graft(on: loser)
      try await sharers.expectEqual(winner, loser)
      #expect(try await alice.members(winner, loser, of: "/list") == [winner.name: "rws", loser.name: "rws"])
    }
  }

  /// - Bob and Carol remove each other, before either knows of it; then both pull and push, also at once, and Alice sends an
  ///   edit, in the order that a seed gives
  /// => the server picks: one of them stays, with one new key and Alice's edit, and the other one has nothing left
  @Test("K-8: two members remove each other, in any order", arguments: 0..<orders)
  func twoMembersRemoveEachOther_inAnyOrder(seed: UInt64) async throws {
    try await TestWorld.run { world in
      let sharers = try await Sharers(world)
      let (alice, bob, carol) = (sharers.alice, sharers.bob, sharers.carol)
      let before = try #require(try await sharers.generation(alice))
      try await alice.edit("/list", "sent by Alice")
      try await bob.unshare("/list", with: carol)
      try await carol.unshare("/list", with: bob)
      var numbers = SeededNumbers(seed: seed)
      for step in Sharers.Step.allCases.shuffled(using: &numbers) { try await sharers.take(step) }
      try await TestWorld.settle([alice, bob, carol])

      let left = try await alice.members(bob, carol, of: "/list")
      let (winner, loser) = left[bob.name] == nil ? (carol, bob) : (bob, carol)
      #expect(left == [winner.name: "rws"])
      #expect(try await loser.tree() == "")
      try await winner.edit("/list/milk", "later")
      try await sharers.expectEqual(winner)
      #expect(try await alice.content(of: "/list")?.data == Data("sent by Alice".utf8))
      #expect(try await alice.content(of: "/list/milk")?.data == Data("later".utf8))
      #expect(try await loser.tree() == "")
      for device in [alice, winner] { #expect(try await sharers.generation(device) == before + 1, "\(device.name)") }
      for device in [alice, bob, carol] { #expect(try await device.queueCount() == 0, "\(device.name)") }
    }
  }
}
