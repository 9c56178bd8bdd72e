import Synchronization
import Testing
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Messages that wait for operations of another tree, and what `explain` says about them.
struct MessageDependencyTests {
  typealias Pair = MessageTests.Pair
  typealias People = ListChangeTests.People

  private static func delivery(_ message: ZDCNode, _ device: TestDevice) async throws -> ZDCOperationExplanation? {
    try await device.write { _, cloud in
      cloud.explain(nodeID: message.uuid)?.operations.first { $0.kind == "deliver" }
    }
  }

  @Test func anInvitationThatWaits_namesTheListAndTheNodeBelow() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let (alice, bob) = (pair.alice, pair.bob)
      let list = try await alice.create("/list")
      let shares = try await alice.share("/list", with: bob)
      let message = try await alice.send("join", to: bob, after: shares)
      let share = try #require(shares.first?.uuid)
      let waiting = try #require(try await Self.delivery(message, alice))
      let explained = try #require(try await alice.write { _, cloud in cloud.explain(nodeID: list.uuid) })
      let create = try #require(explained.operations.first { $0.kind == "create" }?.uuid)
      #expect(waiting.reason == .waitingForOperation && waiting.detail == share)
      #expect(waiting.waitsFor.contains(share))
      // The share waits for the node, in the same tree; the chain ends there.
      #expect(waiting.rootCauses.contains(create) && !waiting.rootCauses.contains(share))
      let queue = try await alice.write { _, cloud in cloud.explainQueue() }
      #expect(queue.first { $0.uuid == waiting.uuid }?.rootCauses == waiting.rootCauses)
      try await alice.sync()
      #expect(alice.recorder.take().contains("sent join"))
    }
  }

  /// - an invitation depends on a list that the sender may not change any more
  /// => explain names the refused change and its reason; the message leaves once the sender may share again
  @Test func anInvitationWhoseListIsRefused_namesIt_andLeavesWhenItIsSettled() async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      try await alice.share(with: bob, "rws")
      try await alice.sync()
      try await bob.accept(alice)
      try await bob.meet(carol)
      let shares = try await bob.share(try bob.path("", of: alice), with: carol)
      let message = try await bob.send("join", to: carol, after: shares)
      try await alice.share(with: bob, "rw")
      try await alice.sync()
      try await bob.sync()
      let share = try #require(shares.first?.uuid)
      let waiting = try #require(try await Self.delivery(message, bob))
      #expect(waiting.reason == .waitingForOperation && waiting.detail == share && waiting.rootCauses == [share])
      let refused = try await bob.write { _, cloud in cloud.explain(operationUUID: share) }
      #expect(refused?.reason == .notAllowed)
      try await alice.share(with: bob, "rws")
      try await alice.sync()
      try await bob.sync()
      #expect(bob.recorder.take().contains("sent join"))
      #expect(try await Self.delivery(message, bob) == nil)
    }
  }

  /// - a message depends on the share of a node, which is deleted before either is sent
  /// => the share is gone, and the message leaves without it
  @Test func aDependencyThatIsDeleted_letsTheMessageGo() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let (alice, bob) = (pair.alice, pair.bob)
      try await alice.create("/list", "milk")
      try await alice.sync()
      let shares = try await alice.share("/list", with: bob)
      let message = try await alice.send("join", to: bob, after: shares)
      #expect(try await Self.delivery(message, alice)?.detail == shares.first?.uuid)
      try await alice.delete("/list")
      let left = try #require(try await Self.delivery(message, alice))
      #expect(!left.waitsFor.contains(try #require(shares.first?.uuid)))
      try await alice.sync()
      try await bob.sync()
      #expect(try await bob.messages(from: alice) == ["alice: join"])
      #expect(try await alice.queueCount() == 0)
    }
  }

  enum Ending: CaseIterable, Sendable { case kept, deleted }

  /// - a message depends on the share of a node that another device of the sender deletes
  /// => explain names the share, and why it waits; once the app has kept the node, the message leaves after its list,
  ///   and once it has deleted the node, without one
  @Test(arguments: Ending.allCases) func aDependencyThatAnotherDeviceDeletes_isNamed(ending: Ending) async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let (alice, bob, phone) = (pair.alice, pair.bob, try await world.device("alice's phone"))
      let list = try await alice.create("/list", "milk")
      try await alice.sync()
      try await phone.sync()
      let shares = try await alice.share("/list", with: bob)
      let message = try await alice.send("join", to: bob, after: shares)
      try await phone.delete("/list")
      try await phone.sync()
      try await alice.sync()
      let share = try #require(shares.first?.uuid)
      let waiting = try #require(try await Self.delivery(message, alice))
      #expect(waiting.reason == .waitingForOperation && waiting.detail == share && waiting.rootCauses == [share])
      let parked = try await alice.write { _, cloud in cloud.explain(operationUUID: share) }
      #expect(parked?.reason == .deletedRemotely)
      let offers = Self.countOffers(to: bob, whenDelivering: alice)
      switch ending {
      case .kept:
        try await alice.write { _, cloud in cloud.queueDataUpload(forNodeID: list.uuid, withChangeset: nil) }
      case .deleted: try await alice.delete("/list")
      }
      try await world.settle(alice, phone)
      #expect(offers.counts == [ending == .kept ? 1 : 0])
      #expect(alice.recorder.take().count { $0 == "sent join" } == 1)
      #expect(try await phone.members(bob, of: "/list") == (ending == .kept ? ["bob": "rw"] : [:]))
      try await bob.sync()
      #expect(try await bob.messages(from: alice) == ["alice: join"])
    }
  }

  private final class Offers: Sendable {
    private let all = Mutex<[Int]>([])
    var counts: [Int] { all.withLock { $0 } }

    func add(_ count: Int) { all.withLock { $0.append(count) } }
  }

  /// Counts the trees that are offered to the recipient when the next message is on its way to the server.
  private static func countOffers(to recipient: TestDevice, whenDelivering sender: TestDevice) -> Offers {
    let offers = Offers()
    let look = Fault.before {
      let user = try recipient.localUserID
      offers.add(try await recipient.syncManager.offeredTrees(forLocalUserID: user).count)
    }
    sender.network.fail(look, "POST", Routes.messages)
    return offers
  }

  /// - a message depends on a share that is reverted before it is sent
  /// => the message leaves after the list, which does not name the recipient
  @Test func aDependencyThatIsReverted_letsTheMessageGo() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let (alice, bob) = (pair.alice, pair.bob)
      try await alice.create("/list", "milk")
      try await alice.sync()
      let message = try await alice.send("join", to: bob, after: try await alice.share(with: bob))
      try await alice.unshare(with: bob)
      try await alice.sync()
      #expect(try await Self.delivery(message, alice) == nil)
      #expect(try await alice.members(bob) == [:])
      try await bob.sync()
      #expect(try await bob.messages(from: alice) == ["alice: join"])
    }
  }
}
