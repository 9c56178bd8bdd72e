import Foundation
import GRDB
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Nodes that move to another zone: copied there, and deleted at their old place afterwards.
struct ZoneMoveTests {
  typealias People = ListChangeTests.People

  /// A list of Alice that Bob may write, and a private folder with six nodes.
  struct Moving {
    let people: People
    var (alice, bob): (TestDevice, TestDevice)
    var world: TestWorld { people.world }

    init(_ world: TestWorld) async throws {
      people = try await People(world)
      (alice, bob) = (people.alice, people.bob)
      try await alice.create("/list", "the list")
      try await alice.create("/list/old", "old")
      try await Self.createFolder(alice)
      try await alice.sync()
      try await alice.share("/list", with: bob)
      try await alice.sync()
      try await bob.accept(try await alice.cloudID("/list"), of: alice)
      try await bob.download()
    }

    static func createFolder(_ device: TestDevice) async throws {
      try await device.create("/folder", "top")
      for (path, content) in [("/a", "1"), ("/a/b", "2"), ("/a/b/c", "3"), ("/d", ""), ("/d/e", "5")] {
        try await device.create("/folder" + path, content)
      }
    }

    static let folder = """
      /a  "1"
      /a/b  "2"
      /a/b/c  "3"
      /d
      /d/e  "5"
      """

    func top() async throws -> String { "detached:/" + (try await alice.cloudID("/list")) }

    /// Expects that the member sees the list as its owner does, and that no move is left over.
    func expectEqual(_ others: TestDevice...) async throws {
      try await TestWorld.settle([alice, bob] + others)
      for other in others { #expect(try await other.tree() == alice.tree(), "\(other.name)") }
      #expect(try await bob.branch(try await top(), versions: true) == alice.branch("/list", versions: true))
      for device in [alice, bob] + others {
        let left = try await device.database.read { try ($0.moves.isEmpty, $0.operationCount()) }
        #expect(left.0 && left.1 == 0, "\(device.name)")
      }
    }
  }

  private static func code(_ body: () async throws -> Void) async -> ZDCCloudError.Code? {
    do {
      try await body()
      return nil
    } catch { return (error as? ZDCCloudError)?.code }
  }

  // MARK: One owner

  @Test("into a shared branch: the same nodes with links, tags and content, and nothing at the old place")
  func intoASharedBranch() async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let (alice, bob) = (moving.alice, moving.bob)
      let (top, inner) = (try await alice.node("/folder").uuid, try await alice.node("/folder/a/b").uuid)
      let before = try await alice.cloudID("/folder/a/b")
      try await alice.write { _, cloud in
        try cloud.linkNodeID(inner, toKey: "b", inCollection: "lists")
        cloud.setTag("x", forNodeID: inner, withIdentifier: "tag")
      }
      try await alice.move("/folder", to: "/list/moved")
      #expect(try await alice.node("/list/moved/a/b").uuid == inner)
      #expect(try await alice.queueCount() == 1)
      try await moving.expectEqual()
      #expect(try await alice.node("/list/moved").uuid == top)
      #expect(try await alice.node("/list/moved/a/b").uuid == inner)
      #expect(try await alice.cloudID("/list/moved/a/b") != before)
      let found = try await alice.write { _, cloud in
        (
          cloud.linkedNode(forKey: "b", inCollection: "lists")?.uuid,
          cloud.tag(forNodeID: inner, withIdentifier: "tag") as? String
        )
      }
      #expect(found.0 == inner && found.1 == "x")
      #expect(try await bob.branch(try await moving.top() + "/moved") == Moving.folder)
      #expect(try await !alice.tree().contains("/folder"))
    }
  }

  @Test("out of a shared branch: the members lose the nodes, and their keys open nothing of them any more")
  func outOfASharedBranch() async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let (alice, bob) = (moving.alice, moving.bob)
      try await alice.move("/folder", to: "/list/moved")
      try await moving.expectEqual()
      try await alice.move("/list/moved", to: "/back")
      try await moving.expectEqual()
      #expect(try await alice.branch("/back") == Moving.folder)
      #expect(try await bob.branch(try await moving.top()) == "/old  \"old\"")
      try await bob.edit(try await moving.top() + "/old", "bob's")
      try await moving.expectEqual()
    }
  }

  @Test("queued edits, new nodes and deletes inside go along; nodes that were never sent move without a copy")
  func queuedChangesGoAlong() async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let alice = moving.alice
      try await alice.edit("/folder/a", "edited")
      try await alice.rename("/folder/a/b", to: "renamed")
      try await alice.delete("/folder/d/e")
      try await alice.create("/folder/d/new", "new")
      try await alice.move("/folder", to: "/list/moved")
      try await alice.create("/list/moved/later", "later")
      try await alice.create("/fresh")
      try await alice.create("/fresh/x", "x")
      try await alice.move("/fresh", to: "/list/fresh")
      try await moving.expectEqual()
      #expect(
        try await alice.branch("/list/moved") == """
          /a  "edited"
          /a/renamed  "2"
          /a/renamed/c  "3"
          /d
          /d/new  "new"
          /later  "later"
          """)
      #expect(try await alice.branch("/list/fresh") == "/x  \"x\"")
    }
  }

  @Test("moved and moved back before anything was sent, only the place is as before")
  func movedBackAtOnce() async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let alice = moving.alice
      let before = try await alice.cloudID("/folder/a")
      try await alice.move("/folder", to: "/list/moved")
      try await alice.move("/list/moved", to: "/folder")
      try await moving.expectEqual()
      #expect(try await alice.cloudID("/folder/a") == before)
      #expect(try await alice.branch("/folder") == Moving.folder)
    }
  }

  @Test("content is not sent again, and nodes whose content was never downloaded move as well")
  func contentIsNotSentAgain() async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let (alice, bob) = (moving.alice, moving.bob)
      let small = String(repeating: "small", count: 8_000)
      try await alice.create("/folder/large", TestContent(data: Data(repeating: 7, count: 300_000)))
      try await alice.create("/folder/small", small)
      try await alice.sync()
      let second = try await world.device("second")
      try await second.sync()
      second.network.resetCounts()
      try await second.move("/folder", to: "/list/moved")
      try await second.sync()
      let sent = second.network.requests.reduce(0) { $0 + $1.bytesSent }
      #expect(sent < 20_000, "\(sent)")
      try await moving.expectEqual(second)
      #expect(try await bob.content(of: try await moving.top() + "/moved/large")?.data.count == 300_000)
      #expect(try await bob.content(of: try await moving.top() + "/moved/small")?.data == Data(small.utf8))
    }
  }

  @Test("the deletion is sent last, and after it the old place has nothing", arguments: [1_000, 2_500])
  func largeBranches(_ count: Int) async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let alice = moving.alice
      try await alice.create("/big")
      try await alice.create(count - 1, in: "/big")
      try await alice.sync()
      let nodes = try await alice.branch("/big")
      try await alice.move("/big", to: "/list/big")
      alice.network.resetCounts()
      try await alice.sync()
      #expect(alice.network.count("POST", Routes.commits) == (count + 999) / 1_000 + 1)
      #expect(try await alice.branch("/list/big") == nodes)
      try await moving.expectEqual()
    }
  }

  // MARK: What cannot move

  /// The top of a shared branch is never copied to another zone, so a graft of it has no copy to follow.
  @Test("shared branches, restricted rights, branches without a place and moves under way are refused at the call")
  func refusedMoves() async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let (alice, bob) = (moving.alice, moving.bob)
      try await alice.create("/box")
      try await alice.create("/box/inner", "i")
      try await alice.sync()
      try await alice.share("/box/inner", with: bob)
      #expect(await Self.code { try await alice.move("/box", to: "/list/box") } == .invalidParameter)
      try await alice.sync()
      #expect(await Self.code { try await alice.move("/box", to: "/list/box") } == .invalidParameter)
      #expect(await Self.code { try await alice.move("/box/inner", to: "/list/inner") } == .invalidParameter)
      #expect(await Self.code { try await alice.move("/folder", to: "/folder/a/b/x") } == .invalidParameter)
      #expect(await Self.code { try await alice.move("/folder", to: "/list/old") } == .conflict)
      try await alice.share("/list", with: bob, "r")
      try await alice.sync()
      try await bob.sync()
      try await bob.create("/mine")
      let top = try await moving.top()
      #expect(await Self.code { try await bob.move("/mine", to: top + "/mine") } == .notAllowed)
      #expect(await Self.code { try await bob.move(top + "/old", to: "/old") } == .notAllowed)
      try await moving.expectEqual()
    }
  }
}

extension ZDCReadTransaction {
  fileprivate func operationCount() throws -> Int {
    try Int.fetchOne(database, sql: "SELECT COUNT(*) FROM zdc_operation") ?? 0
  }
}
