import Foundation
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCClientStore
@testable import ZDCSync
@testable import ZeroDarkCloud

/// Changes of a branch's list reach the branches inside of it that have lists of their own (S-11).
struct InnerListTests {
  typealias People = ListChangeTests.People

  private static let paths = ["/list", "/list/inner", "/list/inner/a", "/list/inner/a/deep"]

  /// Alice's list, shared with Bob, a branch inside of it, and one inside of that. Both inner ones began with Bob, and Carol may
  /// read them. The innermost one was made first.
  private static func nested(_ world: TestWorld) async throws -> People {
    let people = try await People(world)
    let alice = people.alice
    for path in paths + ["/list/inner/a/deep/leaf", "/list/inner/b", "/list/c"] { try await alice.create(path, path) }
    try await alice.share("/list", with: people.bob)
    try await alice.sync()
    for path in ["/list/inner/a/deep", "/list/inner"] {
      try await alice.share(path, with: people.carol, "r")
      try await alice.sync()
    }
    return people
  }

  private static func nodes(_ device: TestDevice, _ paths: String...) async throws -> [String] {
    var nodes: [String] = []
    for path in paths { nodes.append(try await device.node(path).uuid) }
    return nodes
  }

  private static func keys(of device: TestDevice) async throws -> [NodeKey] {
    try await device.database.read { transaction in
      var keys: [NodeKey] = []
      for zone in try transaction.zones.zones(localUser: 1) {
        try transaction.nodes.forEach(zone: zone.id) { keys.append($0.key) }
      }
      return keys
    }
  }

  /// - Bob, who reads the list and both branches inside, is removed from the list
  /// => one operation for each of the three lists, the outer ones first; Bob reads nothing that is written afterwards, nor does a
  ///   new device of Bob's, and Bob's keys open nothing new
  @Test func aRemovalReachesTheBranchesInside() async throws {
    try await TestWorld.run { world in
      let people = try await Self.nested(world)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      try await bob.graft("/list", try await alice.invite("/list"), from: alice)
      try await world.settle(bob)
      #expect(try await bob.branch("/list") == alice.branch("/list"))
      let keys = try await Self.keys(of: bob)
      let root = try await alice.node("/list").nodeID
      let old = try await BranchAttackTests.records(root, people)
      let queued = try await alice.unshare("/list", with: bob)
      #expect(try await queued.map(\.nodeID) == Self.nodes(alice, "/list", "/list/inner", "/list/inner/a/deep"))
      for path in Self.paths + ["/list/inner/a/deep/leaf"] { try await alice.edit(path, "secret") }
      try await alice.sync()
      #expect(try await alice.queueCount() == 0)
      for path in Self.paths { #expect(try await alice.members(bob, of: path) == [:], "\(path)") }
      #expect(try await alice.members(carol, of: "/list/inner/a/deep") == ["carol": "r"])
      let new = try await BranchAttackTests.records(root, people).filter { !old.contains($0.hash) }
      #expect(new.count >= 5)
      for record in new.records { #expect(keys.allSatisfy { !BranchAttackTests.opens($0, record) }) }
      #expect(old.records.contains { record in keys.contains { BranchAttackTests.opens($0, record) } })
      try await Self.expectNoAccess(people)
    }
  }

  private static func expectNoAccess(_ people: People) async throws {
    let (alice, bob) = (people.alice, people.bob)
    let phone = try await people.world.device("phone", account: "bob")
    for device in [bob, phone] {
      try await device.sync()
      #expect(try await device.tree() == "", "\(device.name)")
      for path in ["/list", "/list/inner", "/list/inner/a/deep"] {
        let id = try await alice.cloudID(path)
        await #expect(throws: (any Error).self, "\(path)") { try await device.accept(id, of: alice) }
      }
      #expect(try await BranchEndTests.branchCount(device) == 0, "\(device.name)")
      #expect(try await device.queueCount() == 0)
    }
    for path in ["/list", "/list/inner", "/list/inner/a/deep"] {
      let node = try await alice.node(path).uuid
      let receipts = try await alice.write { _, cloud in cloud.accessReceipts(forNodeID: node) }
      #expect(try receipts.map(\.userID) == [bob.localUserID] && receipts.allSatisfy(\.isKeyReplaced), "\(path)")
    }
  }

  /// - The list is shared with Carol, who may read only the branches inside, and then her permissions change
  /// => all three lists have them; those that depend on the place are read inside
  @Test func newPermissionsReachTheBranchesInside() async throws {
    try await TestWorld.run { world in
      let people = try await Self.nested(world)
      let (alice, carol) = (people.alice, people.carol)
      for (letters, inner) in [("rws", "rws"), ("r", "r"), ("rwL", "r"), ("rw", "rw")] {
        let queued = try await alice.share("/list", with: carol, letters)
        let all = try await Self.nodes(alice, "/list", "/list/inner", "/list/inner/a/deep")
        #expect(queued.map(\.nodeID) == (letters == "rwL" ? [all[0]] : all), "\(letters)")
        try await alice.sync()
        #expect(try await alice.queueCount() == 0)
        #expect(try await alice.members(carol, of: "/list") == ["carol": letters])
        for path in Self.paths.dropFirst() { #expect(try await alice.members(carol, of: path) == ["carol": inner]) }
      }
      #expect(try await alice.share("/list", with: carol, "rw").isEmpty)
      try await carol.graft("/list", try await alice.invite("/list"), from: alice)
      try await world.settle(carol)
      #expect(try await carol.branch("/list") == alice.branch("/list"))
      try await carol.edit("/list/inner/a/deep/leaf", "carol's")
      try await world.settle(carol, alice)
      #expect(try await alice.content(of: "/list/inner/a/deep/leaf")?.data == Data("carol's".utf8))
    }
  }

  /// - Bob shares a branch with Alice and Carol, which Alice grafts into her list
  /// => Carol's access to it stays when she is added to Alice's list, and when she is removed
  @Test func aBranchOfAnotherUserKeepsItsMembers() async throws {
    try await TestWorld.run { world in
      let people = try await Self.nested(world)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      for member in [alice, carol] { try await bob.meet(member) }
      try await bob.create("/his", "bob's")
      try await bob.sync()
      try await bob.share("/his", with: alice, "rws")
      try await bob.share("/his", with: carol, "r")
      try await bob.sync()
      try await alice.graft("/list/his", try await bob.invite("/his"), from: bob)
      try await world.settle(alice, bob)
      #expect(try await alice.share("/list", with: carol).count == 3)
      try await world.settle(alice, bob)
      #expect(try await bob.members(carol, of: "/his") == ["carol": "r"])
      #expect(try await alice.unshare("/list", with: carol).count == 3)
      try await world.settle(alice, bob)
      #expect(try await bob.members(alice, carol, of: "/his") == ["alice": "rws", "carol": "r"])
      #expect(try await alice.members(carol, of: "/list/inner") == [:])
    }
  }

  /// What another device of Alice's does before a change of the list is sent.
  enum Meanwhile: CaseIterable { case splits, createsAndSplits, createsAndSplitsTwice, moves, splitsInside }

  @Test(arguments: Meanwhile.allCases) func anotherDeviceChangesTheBranchesMeanwhile(_ change: Meanwhile) async throws {
    try await TestWorld.run { world in
      let people = try await Self.nested(world)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      let second = try await world.device("second")
      try await second.sync()
      try await second.download()
      try await second.meet(carol)
      try await alice.unshare("/list", with: bob)
      let path = try await Self.make(change, second, carol)
      try await second.sync()
      #expect(try await second.members(bob, of: path) == ["bob": "rw"])
      for _ in 0..<2 { try await world.settle(alice, second, bob) }
      for device in [alice, second] {
        #expect(try await device.queueCount() == 0, "\(device.name)")
        for path in [path, "/list"] {
          #expect(try await device.members(bob, of: path) == [:], "\(device.name) \(path)")
        }
        #expect(try await device.members(carol, of: path) == ["carol": "r"])
      }
      #expect(try await second.tree() == alice.tree())
    }
  }

  /// Returns the path of the branch.
  private static func make(_ change: Meanwhile, _ device: TestDevice, _ carol: TestDevice) async throws -> String {
    switch change {
    case .splits: try await device.share("/list/c", with: carol, "r")
    case .splitsInside: try await device.share("/list/inner/b", with: carol, "r")
    case .createsAndSplits:
      try await device.create("/list/new", "new")
      try await device.share("/list/new", with: carol, "r")
    case .createsAndSplitsTwice:
      for path in ["/list/new", "/list/new/inner"] { try await device.create(path, path) }
      try await device.share("/list/new", with: carol)
      try await device.sync()
      try await device.share("/list/new/inner", with: carol, "r")
    case .moves: try await device.move("/list/inner", to: "/list/c/moved")
    }
    return switch change {
    case .splits: "/list/c"
    case .splitsInside: "/list/inner/b"
    case .createsAndSplits: "/list/new"
    case .createsAndSplitsTwice: "/list/new/inner"
    case .moves: "/list/c/moved"
    }
  }

  /// - A device shares the list with Carol, with a message that waits for it, while another one splits a branch off
  /// => the message waits for the branch's list, too
  @Test func aMessageWaitsForABranchThatIsSplitOffMeanwhile() async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      for path in ["/list", "/list/c"] { try await alice.create(path, path) }
      try await alice.share("/list", with: bob)
      try await alice.sync()
      let second = try await world.device("second")
      try await second.sync()
      try await second.download()
      let (user, node) = (ZDCUser(uuid: try carol.localUserID, isLocal: false), try await alice.node("/list").uuid)
      try await alice.write { _, cloud in
        let item = ZDCShareItem(permissions: "r")
        let operations = cloud.recursiveAddShareItem(item, forUserID: user.uuid, nodeID: node)
        _ = try cloud.sendMessage(toRecipients: [user], withDependencies: operations)
      }
      try await second.unshare("/list/c", with: bob)
      try await second.sync()
      try await alice.pull()
      let dependencies = try await alice.database.read { transaction in
        try transaction.operations.fetchAll("WHERE kind = 7", []).map {
          try transaction.operations.dependencies(of: $0.id).compactMap(transaction.operations.operation)
            .filter { $0.kind == .changeList }.count
        }
      }
      #expect(dependencies == [2])
      try await alice.sync()
      for path in ["/list", "/list/c"] { #expect(try await alice.members(carol, of: path) == ["carol": "r"]) }
      #expect(try await alice.members(bob, of: "/list/c") == [:])
    }
  }

  /// - A node inside is to get a list of its own, and the change is not sent yet; or its outcome is unknown
  /// => it begins without the member who is removed from the branch around it
  @Test(arguments: [false, true]) func aBranchThatIsNotSplitOffYet(isSent: Bool) async throws {
    try await TestWorld.run { world in
      let people = try await Self.nested(world)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      try await alice.share("/list/c", with: carol, "r")
      if isSent {
        alice.network.fail(.loseResponse, "POST", Routes.commits)
        await #expect(throws: (any Error).self) { try await alice.push() }
      }
      let queued = try await alice.unshare("/list", with: bob)
      #expect(Set(queued.map(\.nodeID)).contains(try await alice.node("/list/c").uuid) && queued.count == 4)
      world.clock.advance(by: .seconds(600))
      for _ in 0..<2 { try await world.settle(alice) }
      #expect(try await alice.queueCount() == 0)
      #expect(try await alice.members(bob, carol, of: "/list/c") == ["carol": "r"])
    }
  }

  /// - A device of Alice's has read the list, and not the branch inside
  /// => a removal is queued for both, and sent once the branch is read
  @Test func aBranchThatIsNotReadYet() async throws {
    try await TestWorld.run { world in
      let people = try await Self.nested(world)
      let (alice, bob) = (people.alice, people.bob)
      let second = try await world.device("second")
      try await second.sync()
      // As before the first pull of the inner branch.
      let root = try await alice.node("/list/inner").nodeID
      try await second.database.write { transaction in
        let zone = try #require(try transaction.zones.zones(localUser: 1).first { $0.zone.root == root })
        let row = try #require(try transaction.nodes.root(zone: zone.id))
        try transaction.nodes.deleteSubtree(of: row.id)
        try transaction.leaves(zone: zone.id).set(.pending, root)
        for node in try transaction.leaves(zone: zone.id).branch(root, upTo: 100) {
          try transaction.leaves(zone: zone.id).set(.pending, node.node)
        }
      }
      #expect(try await second.unshare("/list", with: bob).count == 2)
      try await world.settle(second)
      #expect(try await second.queueCount() == 0)
      try await world.settle(alice)
      for path in ["/list", "/list/inner"] { #expect(try await alice.members(bob, of: path) == [:], "\(path)") }
    }
  }

  /// - Bob may share the list, but not the branch inside
  /// => Bob's changes reach the lists that he may change
  @Test func aMemberChangesOnlyTheListsThatTheyMay() async throws {
    try await TestWorld.run { world in
      let people = try await Self.nested(world)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      try await alice.share("/list", with: bob, "rws")
      try await alice.share("/list", with: carol, "rw")
      try await alice.share("/list/inner", with: bob, "r")
      try await alice.share("/list/inner/a/deep", with: bob, "rws")
      try await alice.sync()
      try await bob.graft("/list", try await alice.invite("/list"), from: alice)
      try await bob.sync()
      try await bob.meet(carol)
      let queued = try await bob.unshare("/list", with: carol)
      #expect(try await queued.map(\.nodeID) == Self.nodes(bob, "/list", "/list/inner/a/deep"))
      try await world.settle(bob, alice)
      #expect(try await alice.members(carol, of: "/list/inner") == ["carol": "rw"])
      for path in ["/list", "/list/inner/a/deep"] { #expect(try await alice.members(carol, of: path) == [:]) }
      // Without the permission to share, the call is refused, and nothing is queued.
      let inner = try await bob.node("/list/inner").uuid
      let (user, item) = (try carol.localUserID, ZDCShareItem(permissions: "r"))
      let isRefusal: (any Error) -> Bool = { ($0 as? ZDCCloudError)?.code == .notAllowed }
      await #expect(
        performing: {
          try await bob.write { _, cloud in _ = try cloud.share(nodeID: inner, withUserID: user, item: item) }
        }, throws: isRefusal)
      await #expect(performing: { try await bob.share("/list/inner", with: carol, "r") }, throws: isRefusal)
      #expect(try await bob.queueCount() == 0)
    }
  }
}
