import Foundation
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCClientStore
@testable import ZDCSync
@testable import ZeroDarkCloud

/// Pointers that a member puts into the branches of others.
struct MemberPointerTests {
  /// 1,000, or as many as `ZDC_POINTERS` says.
  private static let hostilePointers = ProcessInfo.processInfo.environment["ZDC_POINTERS"].flatMap { Int($0) } ?? 1_000

  typealias People = ListChangeTests.People

  /// - Carol puts two pointers to a branch of Alice's into another one, one after the other
  /// => all devices of Bob show the branch in place of the same one, whichever they read first
  @Test("S-8: of two pointers of another member, all devices choose the same", arguments: [[1, 255], [255, 1]])
  func twoPointersOfAnotherMember(numbers: [UInt8]) async throws {
    try await TestWorld.run { world in
      let people = try await Self.accepted(world, "/list", "/other")
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      let list = try await alice.cloudID("/list")
      for number in numbers {
        let node = try #require(NodeID([UInt8](repeating: number, count: 16)))
        try await Self.point(try await alice.invite("/other").cloudPath.target, "to \(number)", node, in: list, carol)
        try await carol.sync()
        try await bob.sync()
      }
      let phone = try await world.device("phone", account: "bob")
      for path in ["/list", "/other"] { try await phone.accept(try await alice.cloudID(path), of: alice) }
      try await world.settle(phone, bob, carol, alice)
      for device in [bob, phone] {
        let branch = try await device.branch("detached:/" + list)
        #expect(branch?.contains("/to 1/leaf") == true, "\(device.name): \(branch ?? "")")
      }
      #expect(try await alice.tree().contains("/other/leaf"))
    }
  }

  /// - Alice shares a folder separately inside of each of two shared ones. Carol puts a pointer to each into the other one
  /// => all devices show both where Alice has them
  @Test("S-8: a pointer of another member does not take a folder from its place")
  func theOwnersPlaceComesFirst() async throws {
    try await TestWorld.run { world in
      let people = try await Self.accepted(world, "/a", "/b")
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      for path in ["/a/x", "/b/x"] {
        for path in [path, path + "/leaf"] { try await alice.create(path, path) }
        try await alice.sync()
        try await alice.share(path, with: carol, "rws")
      }
      try await world.settle(alice, bob, carol)
      let tree = try await alice.tree()
      let targets = [try await alice.invite("/b/x").cloudPath.target, try await alice.invite("/a/x").cloudPath.target]
      for (path, target) in zip(["/a", "/b"], targets) {
        try await Self.point([target], in: try await alice.cloudID(path), carol)
      }
      try await world.settle(carol, alice, bob)
      let fresh = try await world.device("fresh")
      try await world.settle(fresh)
      for path in ["/a", "/b"] {
        let branch = try await bob.branch("detached:/" + (try await alice.cloudID(path)))
        #expect(branch?.contains("/x/leaf") == true && branch?.contains("/p0/") == false, "\(branch ?? "")")
        for device in [alice, fresh] { #expect(try await device.branch(path) == branch, "\(device.name)") }
      }
      #expect(tree.contains("/a/x/leaf") && tree.contains("/b/x/leaf"))
    }
  }

  /// - Alice shares a folder, and separately one inside of it. Carol puts a pointer to the outer one into the inner one
  /// => all devices show the inner one where Alice has it
  @Test("S-8: a member cannot move a folder below itself")
  func theOwnersPlaceInACircle() async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      let outer = try await Self.folderAboveASmallerID(alice)
      try await alice.sync()
      for member in [bob, carol] { try await alice.share(outer, with: member) }
      try await alice.sync()
      try await alice.share(outer + "/x", with: carol, "rws")
      try await alice.sync()
      let top = try await alice.cloudID(outer)
      for member in [bob, carol] { try await member.accept(top, of: alice) }
      try await world.settle(bob, carol)
      let target = try await alice.invite(outer).cloudPath.target
      try await Self.point([target], in: try await alice.cloudID(outer + "/x"), carol)
      let (fresh, phone) = (try await world.device("fresh"), try await world.device("phone", account: "bob"))
      try await phone.accept(top, of: alice)
      try await world.settle(carol, alice, bob, fresh, phone)
      for device in [bob, phone] {
        let branch = try await device.branch("detached:/" + top)
        #expect(branch?.contains("/x/leaf") == true, "\(device.name): \(branch ?? "")")
      }
      for device in [alice, fresh] { #expect(try await device.tree().contains(outer + "/x/leaf"), "\(device.name)") }
    }
  }

  /// Creates folders, each with one in it, until the inner one's ID is the smaller one: among pointers of equal rank, the
  /// outer one would then be the first of a circle, and the inner one hidden.
  private static func folderAboveASmallerID(_ device: TestDevice) async throws -> String {
    var number = 0
    while true {
      let path = "/\(number)"
      for path in [path, path + "/x", path + "/x/leaf"] { try await device.create(path, path) }
      let inner = try #require(NodeID(text: try await device.cloudID(path + "/x")))
      if inner < (try #require(NodeID(text: try await device.cloudID(path)))) { return path }
      number += 1
    }
  }

  /// Alice's branches, accepted by Bob and Carol.
  private static func accepted(_ world: TestWorld, _ paths: String...) async throws -> People {
    let people = try await People(world)
    let (alice, members) = (people.alice, [people.bob, people.carol])
    for path in paths { for path in [path, path + "/leaf"] { try await alice.create(path, path) } }
    for path in paths { for member in members { try await alice.share(path, with: member) } }
    try await alice.sync()
    for path in paths { for member in members { try await member.accept(try await alice.cloudID(path), of: alice) } }
    try await TestWorld.settle(members)
    return people
  }

  /// - Carol puts many pointers into a branch that Bob has accepted: to branches that do not exist, to the branch that
  ///   they are in, to Bob's own tree, and one with another one below it
  /// => Bob's device sends the requests that it sends for as many folders, offers nothing more, and shows them as leaves
  @Test("G-3: many pointers of another member cost nothing") func manyPointersOfAnotherMember() async throws {
    try await TestWorld.run { world in
      let people = try await Self.accepted(world, "/list")
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      let list = try await alice.cloudID("/list")
      try await carol.create(Self.hostilePointers + 2, in: "detached:/" + list)
      try await Self.sendAll(carol, world)
      let expected = try await Self.requests(of: bob)
      var targets = [try await alice.invite("/list").cloudPath.target, try Self.home(of: bob)]
      for _ in 1..<Self.hostilePointers { targets.append(try Self.unknown(owner: alice.userID)) }
      try await Self.point(targets, in: list, carol)
      try await Self.point(
        [try Self.unknown(owner: bob.userID)], in: try await carol.cloudID("detached:/\(list)/p2"), carol)
      try await Self.sendAll(carol, world)
      let found = try await Self.requests(of: bob)
      #expect(found == expected, "\(found)\n\(expected)")
      let offered = try await bob.syncManager.offeredTrees(forLocalUserID: try bob.localUserID)
      #expect(offered.isEmpty)
      let foreign = try await bob.database.read { try $0.zones.zones(localUser: 1).count { $0.owner != nil } }
      #expect(foreign == 1)
      let shown = try #require(try await bob.branch("detached:/" + list)).split(separator: "\n")
      #expect(shown.count == 1 + 2 * (Self.hostilePointers + 2) && shown.contains("/p2/p0"))
      for name in ["p0", "p1", "p2", "p2/p0", "p\(Self.hostilePointers)"] {
        #expect(try await bob.node("detached:/\(list)/\(name)").isPointer, "\(name)")
      }
    }
  }

  /// - Carol puts pointers to branches that do not exist, with the nodeIDs that a split gives them, into a branch
  /// => Bob's device asks for the list of offered zones once for all of them, and no more often than its limit
  @Test("G-3: invented pointers of a member cost a few lists") func inventedPointersOfAnotherMember() async throws {
    try await TestWorld.run { world in
      let people = try await Self.accepted(world, "/list")
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      let list = try await alice.cloudID("/list")
      let engine = try await bob.syncManager.engine(for: bob.localUserID)
      let zones = try await engine.zones().map(\.id)
      for round in 0..<20 {
        let targets = try (0..<50).map { _ in try Self.unknown(owner: alice.userID) }
        try await carol.write { transaction, cloud in
          for (number, target) in targets.enumerated() {
            let node = NodeID.mount(ofZoneWith: target.genesis)
            try Self.point(target, "p\(round)-\(number)", node, in: list, transaction, cloud)
          }
        }
        try await carol.sync()
        _ = try await engine.pullRound(of: zones, inBackground: true) { worker, _ in
          try await worker.pull(inBackground: true)
        }
      }
      #expect(try await bob.branch("detached:/" + list)?.contains("/p19-49") == true)
      #expect(bob.network.requests.count { $0.path.contains("offered") } == 16)
      let foreign = try await bob.database.read { try $0.zones.zones(localUser: 1).count { $0.owner != nil } }
      #expect(foreign == 1)
    }
  }

  /// Sends all that is queued. The server limits what a member commits in a minute, and time passes only here.
  private static func sendAll(_ device: TestDevice, _ world: TestWorld) async throws {
    var refusal: (any Error)?
    for _ in 0..<200 {
      do { try await device.sync() } catch { refusal = error }
      if try await device.queueCount() == 0 { return }
      world.clock.advance(by: .seconds(60))
    }
    throw try #require(refusal)
  }

  /// Returns the requests of two syncs by route.
  private static func requests(of device: TestDevice) async throws -> String {
    device.network.resetCounts()
    for _ in 0..<2 { try await device.sync() }
    return device.network.counts()
  }

  /// A pointer to a branch that does not exist.
  private static func unknown(owner: UserID) throws -> PointerTarget {
    let node = NodeID.random()
    let hash = CommitHash(labelledHash: "unknown", node.bytes)
    let zone = ZoneID(tree: .derive(owner: owner, trunk: .home, appTreeID: TestDevice.treeID), root: node)
    return PointerTarget(owner: owner, zone: zone, node: node, genesis: hash, seq: 0, head: hash)
  }

  /// A pointer to a user's whole tree.
  private static func home(of device: TestDevice) throws -> PointerTarget {
    var target = try unknown(owner: try device.userID)
    target.zone = ZoneID(trunkOf: target.zone.tree)
    target.node = target.zone.root
    return target
  }

  /// - Carol puts a pointer to each of two branches into the other one, and one to itself
  /// => one of the branches is shown in the other, the same on devices that read them in another order, and neither in itself
  /// - Carol deletes the pointer that is followed, and one of Bob's devices reads that after everything else
  /// => the other one is followed instead
  @Test("G-3: pointers of another member in a circle", arguments: [[0, 1], [1, 0]])
  func pointersInACircle(order: [Int]) async throws {
    try await TestWorld.run { world in
      let people = try await Self.accepted(world, "/a", "/b")
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      let ends = [try await alice.invite("/a").cloudPath.target, try await alice.invite("/b").cloudPath.target]
      for index in order {
        try await Self.point([ends[1 - index], ends[index]], in: ends[index].node.text, carol)
        try await carol.sync()
        try await bob.sync()
      }
      let phone = try await world.device("phone", account: "bob")
      for end in ends { try await phone.accept(end.node.text, of: alice) }
      try await world.settle(phone, bob, carol, alice)
      let found = try await Self.place(of: ends, bob)
      let read = try await Self.place(of: ends, phone)
      #expect(read == found, "\(read) \(found)")
      let outer = try #require(found.firstIndex { $0.contains("/p0/leaf") })
      #expect(found[outer].contains("/leaf") && !found[1 - outer].contains("/p0/leaf"))
      try await carol.delete("detached:/" + ends[outer].node.text + "/p0")
      try await carol.sync()
      try await world.settle(bob, phone, alice)
      let after = try await Self.place(of: ends, bob)
      #expect(after[1 - outer].contains("/p0/leaf") && !after[outer].contains("/p0"))
      #expect(try await Self.place(of: ends, phone) == after)
    }
  }

  /// - Carol puts a pointer to each of two branches of Alice's into the other one
  /// - Bob deletes the pointers to both from the folder that they are in
  /// => Alice's devices put one of them at the top, and show the other one in it
  @Test func theOwnersBranchesInACircle() async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let (alice, second) = (people.alice, try await world.device("second"))
      for path in ["/p", "/p/a", "/p/a/leaf", "/p/b", "/p/b/leaf"] { try await alice.create(path, path) }
      for path in ["/p/a", "/p/b"] { try await alice.share(path, with: people.carol) }
      try await alice.sync()
      try await alice.share("/p", with: people.bob)
      try await alice.sync()
      for path in ["/p/a", "/p/b"] { try await alice.unshare(path, with: people.bob) }
      try await world.settle(alice, second)
      let folder = try await alice.cloudID("/p")
      let ends = [try await alice.invite("/p/a").cloudPath.target, try await alice.invite("/p/b").cloudPath.target]
      for end in ends { try await people.carol.accept(end.node.text, of: alice) }
      for (end, other) in zip(ends, ends.reversed()) { try await Self.point([other], in: end.node.text, people.carol) }
      try await people.carol.sync()
      try await world.settle(alice, second)
      try await people.bob.accept(folder, of: alice)
      for name in ["a", "b"] { try await people.bob.delete("detached:/\(folder)/\(name)") }
      try await people.bob.sync()
      for device in [alice, second] { try await device.pull() }
      try await world.settle(alice, second, alice)
      let tree = try await alice.tree()
      #expect(try await second.tree() == tree)
      let lines = tree.split(separator: "\n").compactMap { $0.split(separator: " ").first }
      let shown = ["/a", "/b", "/p0"].filter { lines.contains("\($0)/leaf") && lines.contains("\($0)/p0/leaf") }
      #expect(shown.count == 1, "\(tree)")
    }
  }

  /// The paths in each of two branches that the device has accepted.
  private static func place(of ends: [PointerTarget], _ device: TestDevice) async throws -> [[String]] {
    #expect(try await device.treeFaults() == [], "\(device.name)")
    var shown: [[String]] = []
    for end in ends { shown.append(try await device.shown(end).sorted()) }
    return shown
  }

  private static func point(
    _ target: PointerTarget, _ name: String, _ node: NodeID, in folder: String, _ device: TestDevice
  ) async throws {
    try await device.write { transaction, cloud in
      try Self.point(target, name, node, in: folder, transaction, cloud)
    }
  }

  /// Puts pointers with the names p0, p1 and so on into a folder.
  private static func point(_ targets: [PointerTarget], in folder: String, _ device: TestDevice) async throws {
    try await device.write { transaction, cloud in
      for (number, target) in targets.enumerated() {
        try Self.point(target, "p\(number)", .random(), in: folder, transaction, cloud)
      }
    }
  }

  private static func point(
    _ target: PointerTarget, _ name: String, _ node: NodeID, in folder: String, _ transaction: ZDCReadWriteTransaction,
    _ cloud: ZDCCloudTransaction
  ) throws {
    let parent = try #require(try cloud.row(cloudID: folder))
    let name = try cloud.fold(name, nil)
    var row = NodeRow(
      uuid: node.text, zone: parent.zone, nodeID: node, parent: parent.id, depth: parent.depth + 1,
      nameTag: try transaction.nodes.nameKeys(of: parent).nameTag(name), name: name.utf8, key: .random(), keyGen: 1,
      createdMs: 1)
    row.unused = RecordPrivate(name: nil, createdMs: 0, pointer: target)
    try transaction.nodes.insert(&row)
    try cloud.queue(.create, row, dependsOn: [])
  }
}

extension TestDevice {
  /// The paths of the nodes in an accepted branch.
  fileprivate func shown(_ target: PointerTarget) async throws -> [String] {
    let lines = try #require(try await branch("detached:/" + target.node.text)).split(separator: "\n")
    return lines.map { line in line.range(of: "  ").map { String(line[..<$0.lowerBound]) } ?? String(line) }
  }
}
