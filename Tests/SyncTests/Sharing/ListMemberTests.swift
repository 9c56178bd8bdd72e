import Foundation
import Synchronization
import Testing
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Members of an access list who have written nothing: a device fetches their identity chains for the app.
struct ListMemberTests {
  typealias People = ListChangeTests.People

  private static func isChains(_ request: RecordedRequest) -> Bool { request.route.pattern == Routes.chains }

  private static func chainRequests(_ device: TestDevice) -> Int { device.network.requests.count(where: isChains) }

  private static func knows(_ device: TestDevice, _ other: TestDevice) async throws -> Bool {
    let user = try other.localUserID
    return try await device.write { transaction, _ in transaction.user(id: user) != nil }
  }

  /// - Bob has accepted Alice's tree, and she adds Carol, who writes nothing
  /// => Bob's app finds all members in the callback that reports the list, after one request for chains
  @Test func aCallbackFindsAllMembersOfItsList() async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      try await alice.share(with: bob)
      try await alice.sync()
      try await bob.accept(alice)
      #expect(try await !Self.knows(bob, carol))
      try await alice.share(with: carol)
      try await alice.sync()
      let found = Mutex<[String]>([])
      bob.recorder.on(.modified) { node, transaction in
        let members = node.shareList.allUserIDs()
        found.withLock { $0 = members.filter { transaction.user(id: $0) != nil } }
      }
      let before = Self.chainRequests(bob)
      try await bob.sync()
      #expect(found.withLock { $0 } == (try [alice, bob, carol].map { try $0.localUserID }.sorted()))
      try await alice.create("/note", "1")
      try await alice.sync()
      try await bob.sync()
      #expect(Self.chainRequests(bob) == before + 1)
      // Dave's app finds those who were there before him.
      let dave = try await world.device("dave", account: "dave")
      try await alice.meet(dave)
      try await alice.share(with: dave)
      try await alice.sync()
      let known = Mutex<Bool?>(nil)
      let user = try carol.localUserID
      dave.recorder.on(.new) { _, transaction in
        let isKnown = transaction.user(id: user) != nil
        known.withLock { $0 = isKnown }
      }
      try await dave.accept(alice)
      #expect(known.withLock { $0 } == true)
    }
  }

  /// - Carol, who may share Alice's list, invites Bob, who has not met Alice
  /// => Bob's app does not find Alice, whom only the invitation's text names, until it fetches her; the graft works
  @Test func anOwnerWhomOnlyAnInvitationNames() async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      try await alice.create("/list")
      try await alice.create("/list/milk", "1 l")
      try await alice.sync()
      try await alice.share("/list", with: carol, "rws")
      try await alice.sync()
      try await carol.graft("/list", try await alice.invite("/list"), from: alice)
      try await carol.sync()
      try await carol.meet(bob)
      try await carol.share("/list", with: bob)
      try await carol.sync()
      let invite = try await carol.invite("/list")
      try await bob.sync()
      #expect(try await !Self.knows(bob, alice))
      let users = try #require(try bob.zdc.userManager)
      try await users.fetchUser(id: invite.cloudPath.ownerID, for: bob.localUserID)
      #expect(try await Self.knows(bob, alice))
      try await bob.graft("/list", invite, from: carol)
      try await world.settle(bob, alice)
      #expect(try await bob.branch("/list") == "/milk  \"1 l\"")
    }
  }

  /// - The server refuses Bob's request for Carol's chain
  /// => the list and Alice's next changes arrive; he asks again with the first change after a pause, and not before
  @Test func refusedChainsDoNotStopThePull() async throws {
    try await TestWorld.run { world in
      let hostile = HostileServer(world.server)
      let alice = try await world.device("alice")
      let carol = try await world.device("carol", account: "carol")
      let bob = try await TestDevice("bob", server: world.server, clock: world.clock, through: hostile)
      _ = try await bob.createAccount()
      for other in [bob, carol] { try await alice.meet(other) }
      try await alice.share(with: bob)
      try await alice.sync()
      try await bob.accept(alice)
      hostile.tell(.refuse("POST", Routes.chains, status: 403, code: "forbidden"), to: "bob")
      try await alice.share(with: carol)
      try await alice.sync()
      let before = Self.chainRequests(bob)
      for name in ["/a", "/b"] {
        try await alice.create(name)
        try await alice.sync()
        try await bob.pull()
      }
      try await bob.download()
      #expect(try await bob.tree(of: alice) == alice.tree(versions: false))
      #expect(try await !Self.knows(bob, carol))
      #expect(Self.chainRequests(bob) == before + 1)
      hostile.stopTampering()
      world.clock.advance(by: .seconds(601))
      try await alice.create("/c")
      try await alice.sync()
      try await bob.pull()
      #expect(try await Self.knows(bob, carol))
      try await bob.close()
    }
  }

  /// - A list names 1,000 users, of whom the server shows none; then more than a list can have
  /// => one request for all of them, and none until a pause has passed; the next request is for the others
  @Test func aThousandMembersAreOneRequest() async throws {
    try await TestWorld.run { world in
      let hostile = HostileServer(world.server)
      let device = try await TestDevice("A", server: world.server, clock: world.clock, through: hostile)
      _ = try await device.createAccount()
      try await device.sync()
      let session = try await device.syncManager.engine(for: try device.localUserID).session
      let users = (0..<Limits.aclEntries + 10).compactMap { _ in
        UserID((0..<32).map { _ in .random(in: .min ... .max) })
      }
      var bytes: [Int] { hostile.requests.map(\.body.count) }
      hostile.forgetRequests()
      for _ in 0..<2 { #expect(try await session.identities.meet(Set(users.prefix(1_000))).isEmpty) }
      #expect(bytes == [36_000])
      world.clock.advance(by: .seconds(601))
      for _ in 0..<3 { _ = try await session.identities.meet(Set(users)) }
      #expect(bytes == [36_000, 36 * Limits.aclEntries, 360])
      try await device.close()
    }
  }
}
