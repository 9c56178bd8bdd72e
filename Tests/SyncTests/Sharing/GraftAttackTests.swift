import Foundation
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Pointers and invitations of users who want something else than the user.
struct GraftAttackTests {
  typealias Invited = GraftTests.Invited
  typealias People = ListChangeTests.People

  @Test("G-3: a pointer of another member is a leaf, and no client fetches or accepts anything because of it")
  func anotherMembersPointer() async throws {
    try await TestWorld.run { world in
      let invited = try await Invited(world)
      let (bob, carol) = (invited.bob, invited.people.carol)
      try await bob.create("/open")
      try await bob.sync()
      try await bob.meet(carol)
      try await bob.share("/open", with: carol)
      try await bob.sync()
      try await carol.accept(try await bob.cloudID("/open"), of: bob)
      let (target, top) = (
        invited.invite.cloudPath.target, try await carol.cloudID("detached:/" + bob.cloudID("/open"))
      )
      try await carol.write { transaction, cloud in
        let parent = try #require(try cloud.row(cloudID: top))
        let name = try cloud.fold("trap", nil)
        var row = NodeRow(
          uuid: "trap", zone: parent.zone, nodeID: .random(), parent: parent.id, depth: 1,
          nameTag: try transaction.nodes.nameKeys(of: parent).nameTag(name), name: name.utf8, key: .random(), keyGen: 1,
          createdMs: 1)
        row.unused = RecordPrivate(name: nil, createdMs: 0, pointer: target)
        try transaction.nodes.insert(&row)
        try cloud.queue(.create, row, dependsOn: [])
      }
      try await carol.sync()
      try await bob.sync()
      #expect(try await bob.node("/open/trap").isPointer)
      #expect(try await bob.database.read { try $0.zones.zones(localUser: 1).allSatisfy { $0.owner == nil } })
      let offered = try await bob.syncManager.offeredTrees(forLocalUserID: try bob.localUserID)
      #expect(offered.map(\.cloudID) == [invited.invite.cloudID])
      // Bob's own graft is another pointer, and shows the branch.
      try await bob.graft("/list", invited.invite, from: invited.alice)
      try await invited.expectEqual("/list", on: bob)
      #expect(try await bob.node("/open/trap").isPointer)
    }
  }

  @Test("G-5: nothing is shown before the log contains the commit that the invitation names")
  func anotherHead() async throws {
    try await TestWorld.run { world in
      let invited = try await Invited(world)
      let bob = invited.bob
      var target = invited.invite.cloudPath.target
      target.head = CommitHash(labelledHash: "another head")
      let forged = ZDCGraftInvite(cloudID: invited.invite.cloudID, cloudPath: ZDCCloudPath(target))
      _ = bob.recorder.take()
      try await bob.graft("/list", forged, from: invited.alice)
      for _ in 0..<2 {
        await #expect(throws: ZDCSecurityError.self) { try await bob.sync() }
        #expect(bob.recorder.take().isEmpty)
        #expect(try await bob.branch("/list") == "")
      }
      world.expectsSecurityErrors(["inviteHeadMismatch"], on: bob)
      try await bob.delete("/list")
      try await world.settle(bob, invited.alice)
      #expect(try await bob.tree() == "")
    }
  }

  @Test(
    "G-5: a new device is shown an older log than the one that the user has accepted: it shows nothing until it has that"
  )
  func anOlderLog() async throws {
    try await TestWorld.run { world in
      let invited = try await Invited(world)
      let (alice, bob, old) = (invited.alice, invited.bob, invited.invite.cloudPath.target)
      try await alice.edit("/Groceries/D", "oat milk")
      try await alice.sync()
      try await bob.graft("/Groceries", try await alice.invite("/Groceries"), from: alice)
      try await world.settle(bob, alice)
      let hostile = HostileServer(world.server)
      hostile.tell(.head(old.zone, seq: old.seq, hash: old.head), to: "tablet")
      hostile.tell(
        .withhold(.commit) { item in
          item.commit.map { $0.fields.zone == old.zone && $0.fields.seq > old.seq } ?? false
        }, to: "tablet")
      let tablet = try await TestDevice("tablet", server: world.server, clock: world.clock, through: hostile)
      try await tablet.login(words: try #require(world.words(of: "bob")))
      for _ in 0..<2 {
        let error = await #expect(throws: ZDCSecurityError.self) { try await tablet.sync() }
        #expect(error?.code == .inviteHeadMismatch)
        #expect(try await tablet.branch("/Groceries") == "")
      }
      hostile.stopTampering()
      try await TestWorld.settle([tablet])
      #expect(try await tablet.branch("/Groceries") == bob.branch("/Groceries"))
      try await tablet.close()
    }
  }

  @Test("G-4: another beginning than the invitation names is another zone")
  func anotherGenesis() async throws {
    try await TestWorld.run { world in
      let invited = try await Invited(world)
      let bob = invited.bob
      var target = invited.invite.cloudPath.target
      target.genesis = CommitHash(labelledHash: "another genesis")
      let forged = ZDCGraftInvite(cloudID: invited.invite.cloudID, cloudPath: ZDCCloudPath(target))
      _ = bob.recorder.take()
      try await bob.graft("/list", forged, from: invited.alice)
      await #expect(throws: ZDCSecurityError.self) { try await bob.sync() }
      #expect(bob.recorder.take().isEmpty)
      world.expectsSecurityErrors(["zoneForkDetected"], on: bob)
      try await bob.delete("/list")
      try await bob.sync()
      #expect(try await bob.tree() == "")
    }
  }

  /// - Bob has Alice's list, and grafts a part of it with an invitation that names another beginning
  /// - his device pulls the list, or the part first
  /// => the split decides: the part is where Alice has it, and the graft is a leaf
  @Test("G-4: an invitation names another beginning than the owner's split", arguments: [false, true])
  func anotherGenesisThanTheSplit(isAsked: Bool) async throws {
    try await TestWorld.run { world in
      world.skipsComparison()
      let invited = try await Invited(world)
      let (alice, bob) = (invited.alice, invited.bob)
      try await alice.create("/Groceries/D/inner", "inner")
      try await alice.sync()
      try await bob.graft("/Groceries", invited.invite, from: alice)
      try await world.settle(bob)
      let uuid = try await bob.node("/Groceries/D/inner").uuid
      try await alice.share("/Groceries/D", with: invited.people.carol, "r")
      try await alice.sync()
      var target = try await alice.invite("/Groceries/D").cloudPath.target
      target.genesis = CommitHash(labelledHash: "another genesis")
      let forged = ZDCGraftInvite(cloudID: target.node.text, cloudPath: ZDCCloudPath(target))
      try await bob.graft("/Milk", forged, from: alice)
      world.expectsSecurityErrors(["zoneForkDetected"], on: bob)
      if isAsked { try await SplitRaceTests.pull(target.node.text, bob) }
      try await SplitRaceTests.pull(try await alice.cloudID("/Groceries"), bob)
      try await world.settle(bob, alice)
      #expect(try await bob.node("/Groceries/D/inner").uuid == uuid)
      #expect(try await bob.branch("/Groceries/D") == alice.branch("/Groceries/D"))
      #expect(try await bob.node("/Milk").isPointer)
      try await bob.create("/Groceries/D/new", "new")
      try await world.settle(bob, alice)
      #expect(try await alice.node("/Groceries/D/new").name == "new")
    }
  }

  /// - Alice's split of her list comes too late, and is planned again; the list is shared with Bob
  /// - the server shows Bob, who does not see the tree around the list, the genesis of the first plan, signed by Alice
  /// => his device and a new one show nothing of it; the new one shows the list after its user accepts the true log
  @Test("S-4: the dead genesis of a split that was planned again is not the one that the invitation names")
  func theDeadGenesisOfASplit() async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let (alice, bob) = (people.alice, people.bob)
      try await Self.splitTwice(people)
      let invite = try await alice.invite("/list")
      let target = invite.cloudPath.target
      let dead = try DeadGenesis(of: target.zone, for: try bob.userID, in: alice.network.traffic)
      #expect(dead.commit.hash != target.genesis)
      let keys = try await people.rogue("bob", bob).keys
      #expect(throws: Never.self) { _ = try keys.open(dead.grant, in: dead.acl) }
      let hostile = HostileServer(world.server)
      dead.serve(from: hostile)
      let phone = try await Self.device("phone", world, hostile)
      try await phone.sync()
      _ = phone.recorder.take()
      try await phone.graft("/list", invite, from: alice)
      let tablet = try await Self.device("tablet", world, hostile)
      for device in [phone, tablet] {
        let error = await #expect(throws: ZDCSecurityError.self, "\(device.name)") { try await device.sync() }
        #expect(error?.code == .zoneForkDetected)
        #expect(!device.recorder.lines.contains { $0.hasPrefix("new /list/") }, "\(device.name)")
        #expect(try await device.branch("/list") == "", "\(device.name)")
        #expect(try await device.securityErrors() == ["zoneForkDetected"], "\(device.name)")
      }
      #expect(phone.recorder.take().isEmpty)
      hostile.stopTampering()
      try await Self.acceptServerState(of: target.zone, tablet)
      try await TestWorld.settle([tablet])
      #expect(try await tablet.branch("/list") == alice.branch("/list"))
      for device in [phone, tablet] { try await device.close() }
    }
  }

  /// Alice shares a list with Bob. Another device of hers sends a commit while the first plan of the split is on
  /// its way.
  private static func splitTwice(_ people: People) async throws {
    let alice = people.alice
    for path in ["/list", "/list/inner"] { try await alice.create(path, path) }
    try await alice.sync()
    let second = try await people.world.device("second")
    try await second.sync()
    try await second.create("/other", "news")
    alice.network.keepTraffic()
    alice.network.fail(.before { try await second.sync() }, "POST", Routes.commits)
    try await alice.share("/list", with: people.bob)
    try await alice.sync()
    try await people.world.settle(alice, second)
    #expect(alice.network.hasStruck)
    #expect(try await alice.members(people.bob, of: "/list") == ["bob": "rw"])
  }

  /// A device of Bob's that reaches the server through another one.
  private static func device(_ name: String, _ world: TestWorld, _ hostile: HostileServer) async throws -> TestDevice {
    let device = try await TestDevice(name, server: world.server, clock: world.clock, through: hostile)
    try await device.login(words: try #require(world.words(of: "bob")))
    return device
  }

  private static func acceptServerState(of zone: ZoneID, _ device: TestDevice) async throws {
    let user = try device.localUserID
    #expect(try await device.syncManager.frozenZones(localUserID: user).map(\.zone) == [zone])
    try await device.syncManager.acceptServerState(ofZone: zone, localUserID: user)
  }
}

/// The first commit of a split that its owner has sent, and that the server has refused, with its list and a grant.
private struct DeadGenesis: Sendable {
  let commit: ZoneCommit
  let acl: ZoneACL
  let grant: Grant

  /// - Parameter traffic: That of the owner's device.
  init(of zone: ZoneID, for guest: UserID, in traffic: [[UInt8]]) throws {
    let requests = traffic.lazy.map { ServedItem.items(of: $0) }
    let first = requests.first { items in items.contains { $0.commit?.fields.zone == zone } }
    let items = try #require(first)
    commit = try #require(items.compactMap(\.commit).first { $0.fields.zone == zone })
    let list = try #require(items.compactMap(\.acl).first { $0.fields.zone == zone })
    let entry = try #require(list.fields.entry(for: guest))
    acl = list
    grant = try #require(items.compactMap(\.grant).first { $0.wrapHash == entry.wrapHash })
  }

  /// Serves it as the whole log of its zone.
  func serve(from hostile: HostileServer) {
    let items = [ServedItem(acl), ServedItem(grant), ServedItem(commit)]
    let (root, head) = (commit.fields.zone.root.text, "\(commit.fields.seq):\(commit.hash.text)")
    hostile.tell(
      Lie { answer in
        guard answer.isBundle, answer.route.pattern == Routes.zoneCommits, answer.path.contains("/zones/\(root)/")
        else { return false }
        answer.items = items
        answer.headers[WireHeaders.zoneHead] = head
        return true
      })
  }
}
