import Foundation
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Branches that are shared separately: the split, the mount, and the members of both zones.
struct BranchTests {
  typealias People = ListChangeTests.People

  /// The nodes of a large branch: 3,000, or as many as `ZDC_BRANCH_NODES` says.
  private static let manyNodes = ProcessInfo.processInfo.environment["ZDC_BRANCH_NODES"].flatMap { Int($0) } ?? 3_000

  /// The nodes of the owner's branch, with their content.
  private static let branch = [
    "": "top", "/a": "1", "/a/b": "2", "/a/b/c": "3", "/d": "", "/d/e": "5", "/d/e/f": "6", "/g": "7", "/h": "8",
    "/h/i": "9",
  ]

  /// Creates `/home/list` with ten nodes, and `/other` beside it.
  static func create(_ alice: TestDevice) async throws {
    try await alice.create("/home")
    for (path, content) in branch.sorted(by: { $0.key < $1.key }) {
      try await alice.create("/home/list" + path, content)
    }
    try await alice.create("/other", "private")
  }

  /// The branch of Alice, shared with Bob and Carol, who have accepted it.
  static func shared(_ world: TestWorld, _ letters: String = "rw") async throws -> People {
    let people = try await People(world)
    try await create(people.alice)
    try await people.alice.sync()
    try await people.alice.share("/home/list", with: people.bob, letters)
    try await people.alice.share("/home/list", with: people.carol)
    try await people.alice.sync()
    for member in [people.bob, people.carol] { try await accept(member, people) }
    return people
  }

  static func accept(_ member: TestDevice, _ people: People, _ path: String = "/home/list") async throws {
    try await member.accept(try await people.alice.cloudID(path), of: people.alice)
    try await member.download()
  }

  static func path(_ path: String = "", _ people: People) async throws -> String {
    "detached:/" + (try await people.alice.cloudID("/home/list")) + path
  }

  static func expectConvergence(_ people: People) async throws {
    try await people.world.settle(people.alice, people.bob, people.carol)
    let tree = try await people.alice.branch("/home/list", versions: true)
    let path = try await path("", people)
    #expect(try await people.bob.branch(path, versions: true) == tree)
    #expect(try await people.carol.branch(path, versions: true) == tree)
  }

  @Test("a branch of ten nodes: the owner sees what they saw, the members see the branch and nothing else")
  func aBranchIsShared() async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let (alice, bob) = (people.alice, people.bob)
      try await Self.create(alice)
      try await alice.sync()
      let (before, node) = (try await alice.tree(versions: false), try await alice.node("/home/list"))
      let queued = try await alice.share("/home/list", with: bob, "rw")
      #expect(queued.count == 1 && queued[0].nodeID == node.uuid)
      try await alice.sync()
      #expect(try await alice.tree(versions: false) == before)
      #expect(try await alice.node("/home/list").uuid == node.uuid)
      #expect(try await alice.members(bob, of: "/home/list/a/b") == ["bob": "rw"])
      #expect(try await alice.members(bob, of: "/home") == [:])
      #expect(try await alice.queueCount() == 0)
      _ = bob.recorder.take()
      try await Self.accept(bob, people)
      let path = try await Self.path("", people)
      #expect(try await bob.branch(path) == alice.branch("/home/list"))
      #expect(try await bob.content(of: path)?.data == Data("top".utf8))
      #expect(try await bob.tree() == "")
      try await world.settle(alice, bob)
      #expect(try await bob.branch(path, versions: true) == alice.branch("/home/list", versions: true))
    }
  }

  /// - Alice shares a folder of ten nodes and a large one, and then removes a member from each
  /// => the requests are the same, and have the same sizes
  @Test func aShareAndARemovalDoNotGrowWithTheBranch() async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let (alice, bob) = (people.alice, people.bob)
      let folders = [("/few", 10), ("/all", Self.manyNodes)]
      for (path, count) in folders {
        try await alice.create(path)
        try await alice.create(count, in: path)
      }
      try await alice.sync()
      var requests: [String: [String]] = [:]
      for (path, _) in folders {
        alice.network.resetCounts()
        try await alice.share(path, with: bob)
        try await alice.push()
        try await alice.unshare(path, with: bob)
        try await alice.push()
        requests[path] = alice.network.requests.map(\.description)
      }
      #expect(requests["/few"] == requests["/all"])
      #expect(requests["/all"]?.count { $0.contains(Routes.commits) } == 2)
      #expect(try await alice.queueCount() == 0)
      #expect(try await alice.members(bob, of: "/all") == [:])
    }
  }

  private static func code(_ body: () async throws -> Void) async -> ZDCCloudError.Code? {
    do {
      try await body()
      return nil
    } catch { return (error as? ZDCCloudError)?.code }
  }

  @Test("K-0: all members change the branch at once, its top included, and converge")
  func everyMemberChangesTheBranch() async throws {
    try await TestWorld.run { world in
      let people = try await Self.shared(world)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      let top = try await Self.path("", people)
      try await alice.rename("/home/list/a", to: "renamed")
      try await alice.create("/home/list/same", "alice")
      try await bob.edit(top, "bob's top")
      try await bob.create(top + "/same", "bob")
      try await bob.edit(top + "/a/b/c", "bob's c")
      try await carol.move(top + "/h/i", to: top + "/i")
      try await carol.create(top + "/d/e/new", "carol")
      try await carol.delete(top + "/g")
      try await Self.expectConvergence(people)
      let tree = try #require(try await alice.branch("/home/list"))
      for line in ["/renamed/b/c  \"bob's c\"", "/i  \"9\"", "/d/e/new  \"carol\"", "/same  ", "/same 2  "] {
        #expect(tree.contains(line), "\(tree)")
      }
      #expect(try await alice.content(of: "/home/list")?.data == Data("bob's top".utf8))
      #expect(try await alice.content(of: "/other")?.data == Data("private".utf8))
    }
  }

  @Test func aMemberWhoIsRemoved_losesTheBranchAndReadsNothingNew() async throws {
    try await TestWorld.run { world in
      let people = try await Self.shared(world)
      let (alice, bob) = (people.alice, people.bob)
      let top = try await Self.path("", people)
      try await bob.edit(top + "/a", "never sent")
      try await alice.unshare("/home/list", with: bob)
      try await alice.edit("/home/list/a", "after")
      try await alice.sync()
      _ = bob.recorder.take()
      try await bob.sync()
      #expect(try await bob.branch(top) == nil)
      #expect(bob.recorder.take().contains { $0.hasPrefix("deleted") })
      #expect(try await bob.queueCount() == 0)
      try await world.settle(alice, people.carol)
      #expect(try await people.carol.branch(top) == alice.branch("/home/list"))
    }
  }

  /// - Alice lets Bob and Carol write one node each
  /// => each creates one, changes it, deletes it and creates it again; more are refused at the call
  @Test func aMemberWithOneNode() async throws {
    try await TestWorld.run { world in
      let people = try await Self.shared(world)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      for member in [bob, carol] { try await alice.share("/home/list", with: member, "rwU") }
      try await alice.sync()
      try await carol.accept(try await alice.cloudID("/home/list"), of: alice)
      try await world.settle(bob, carol)
      for (member, name) in [(bob, "/bob"), (carol, "/carol")] {
        let path = try await Self.path(name, people)
        for text in ["first", "second"] {
          try await member.create(path, text)
          try await member.sync()
          try await member.edit(path, text + " edited")
          for other in [path + "/below", path + " 2"] {
            await #expect { try await member.create(other) } throws: { ($0 as? ZDCCloudError)?.code == .notAllowed }
          }
          try await world.settle(member, alice)
          #expect(try await alice.content(of: "/home/list" + name)?.data == Data((text + " edited").utf8))
          if text == "first" { try await member.delete(path) }
          try await member.sync()
        }
      }
      try await Self.expectConvergence(people)
    }
  }

  /// - a request of Bob's is lost, or its answer, and then Alice lets him only read
  /// => the request is dropped, and the change stays queued until Bob may write again
  @Test(arguments: [false, true]) func aRequestFromBeforeTheListWasNarrowed(isReceived: Bool) async throws {
    try await TestWorld.run { world in
      let people = try await Self.shared(world)
      let (alice, bob) = (people.alice, people.bob)
      try await bob.edit(try await Self.path("/a", people), "by Bob")
      bob.network.fail(isReceived ? .loseResponse : .loseRequest, "POST", Routes.commits)
      await #expect(throws: (any Error).self) { try await bob.push() }
      try await alice.share("/home/list", with: bob, "r")
      try await alice.sync()
      world.clock.advance(by: .seconds(600))
      try await bob.sync()
      #expect(try await bob.queueCount() == (isReceived ? 0 : 1))
      try await alice.share("/home/list", with: bob)
      try await alice.sync()
      try await bob.sync()
      #expect(try await bob.queueCount() == 0)
      try await Self.expectConvergence(people)
      #expect(try await alice.content(of: "/home/list/a")?.data == Data("by Bob".utf8))
    }
  }

  @Test("S-13: a node is shared in the transaction that creates it")
  func aNewNodeIsShared() async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let (alice, bob) = (people.alice, people.bob)
      let user = try bob.localUserID
      try await alice.write { _, cloud in
        let node = try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["new"]))
        _ = try cloud.share(nodeID: node.uuid, withUserID: user, item: ZDCShareItem(permissions: "rw"))
        _ = try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["new", "child"]))
      }
      try await alice.edit("/new", "at once")
      try await alice.sync()
      #expect(try await alice.queueCount() == 0)
      try await bob.accept(try await alice.cloudID("/new"), of: alice)
      try await world.settle(alice, bob)
      let path = "detached:/" + (try await alice.cloudID("/new"))
      #expect(try await bob.content(of: path)?.data == Data("at once".utf8))
      #expect(try await bob.branch(path) == "/child")
    }
  }

  @Test("sharing a branch again is a change of its list, and its list is what nodes below it show")
  func aBranchIsSharedTwice() async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      try await Self.create(alice)
      // Both changes go out with the split.
      try await alice.share("/home/list", with: bob)
      try await alice.share("/home/list", with: bob, "r")
      try await alice.share("/home/list", with: carol, "rws")
      try await alice.sync()
      #expect(try await alice.members(bob, carol, of: "/home/list/d") == ["bob": "r", "carol": "rws"])
      let zones = try await alice.database.read { try $0.zones.zones(localUser: 1).filter { !$0.isTrunk } }
      #expect(zones.count == 1 && zones[0].head?.seq == 0 && zones[0].head?.acl.fields.version == 1)
      try await alice.share("/home/list", with: bob, "rw")
      try await alice.unshare("/home/list", with: carol)
      try await alice.sync()
      #expect(try await alice.members(bob, carol, of: "/home/list/d") == ["bob": "rw"])
      let after = try await alice.database.read { try $0.zones.zones(localUser: 1).filter { !$0.isTrunk } }
      #expect(after.count == 1 && after[0].head?.acl.fields.version == 2)
      try await Self.accept(bob, people)
      try await world.settle(alice, bob)
      #expect(try await bob.branch(Self.path("", people)) == alice.branch("/home/list"))
    }
  }

  @Test func aBranchInsideOfABranch() async throws {
    try await TestWorld.run { world in
      let people = try await Self.shared(world)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      let top = try await Self.path("", people)
      // Carol is to lose /d; Bob stays.
      try await carol.edit(top + "/d/e", "carol's last words")
      try await alice.unshare("/home/list/d", with: carol)
      try await alice.sync()
      _ = carol.recorder.take()
      try await world.settle(alice, bob, carol)
      #expect(try await bob.branch(top) == alice.branch("/home/list"))
      #expect(try await bob.members(bob, carol, of: top + "/d") == ["bob": "rw"])
      #expect(try await bob.members(bob, carol, of: top) == ["bob": "rw", "carol": "rw"])
      #expect(carol.recorder.take().contains { $0.hasPrefix("deleted") && $0.contains("/d") })
      let rest = try #require(try await carol.branch(top))
      #expect(!rest.contains("/d/e") && rest.contains("/a/b/c"))
      try await bob.edit(top + "/d/e/f", "bob")
      try await alice.rename("/home/list/d", to: "D")
      try await world.settle(alice, bob, carol)
      #expect(try await bob.branch(top) == alice.branch("/home/list"))
      #expect(try await bob.branch(top + "/D") == "/e  \"5\"\n/e/f  \"bob\"")
      let entries = try await carol.write { _, cloud in cloud.mergeJournal() }
      #expect(entries.contains { $0.kind == .accessLost }, "\(entries)")
    }
  }

  @Test("G-2: a member of the whole tree keeps a branch that is split off, with queued changes")
  func aMemberOfTheParentZoneFollows() async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      try await Self.create(alice)
      try await alice.share(with: bob)
      try await alice.sync()
      try await bob.accept(alice)
      try await bob.download()
      let top = try bob.path("/home/list", of: alice)
      let uuid = try await bob.node(top).uuid
      try await bob.edit(top + "/a", "bob's")
      try await bob.create(top + "/a/new", "new")
      try await bob.rename(top, to: "renamed")
      try await alice.share("/home/list", with: carol)
      try await alice.sync()
      _ = bob.recorder.take()
      try await world.settle(alice, bob)
      #expect(!bob.recorder.take().contains { $0.hasPrefix("deleted") || $0.hasPrefix("new") })
      #expect(try await bob.tree(of: alice) == alice.tree(versions: false))
      let renamed = try bob.path("/home/renamed", of: alice)
      #expect(try await bob.node(renamed).uuid == uuid)
      #expect(try await alice.branch("/home/renamed/a") == "/b  \"2\"\n/b/c  \"3\"\n/new  \"new\"")
      #expect(try await bob.members(bob, carol, of: renamed) == ["bob": "rw", "carol": "rw"])
      try await carol.accept(try await alice.cloudID("/home/renamed"), of: alice)
      try await world.settle(alice, bob, carol)
      let path = "detached:/" + (try await alice.cloudID("/home/renamed"))
      #expect(try await carol.branch(path) == alice.branch("/home/renamed"))
    }
  }

  @Test("the owner renames and moves the branch by its own ID, but not into itself")
  func theBranchMovesWithItsPointer() async throws {
    try await TestWorld.run { world in
      let people = try await Self.shared(world)
      let (alice, bob) = (people.alice, people.bob)
      let uuid = try await alice.node("/home/list").uuid
      try await alice.move("/home/list", to: "/moved")
      #expect(try await alice.node("/moved").uuid == uuid)
      #expect(try await alice.node("/moved/a/b/c").parentID == alice.node("/moved/a/b").uuid)
      try await alice.sync()
      try await world.settle(alice, bob)
      let top = try await "detached:/" + alice.cloudID("/moved")
      #expect(try await bob.branch(top) == alice.branch("/moved"))
      let refusals: [@Sendable () async throws -> Void] = [
        { try await alice.move("/moved", to: "/moved/a/x") }, { try await bob.rename(top, to: "no") },
      ]
      for refusal in refusals { #expect(await Self.code(refusal) == .invalidParameter) }
      #expect(await Self.code { try await alice.create("/moved", "taken") } == .conflict)
      #expect(try await alice.queueCount() == 0)
    }
  }

  @Test("S-10: only the owner gives a branch its own list")
  func othersDoNotSplit() async throws {
    try await TestWorld.run { world in
      let people = try await Self.shared(world, "rws")
      let (bob, carol) = (people.bob, people.carol)
      let top = try await Self.path("", people)
      try await bob.meet(carol)
      await #expect(throws: ZDCSecurityError.self) { try await bob.unshare(top + "/a", with: carol) }
      #expect(try await bob.queueCount() == 0)
      try await bob.share(top, with: carol, "r")
      try await world.settle(people.alice, bob, carol)
      #expect(try await people.alice.members(carol, of: "/home/list") == ["carol": "r"])
    }
  }
}
