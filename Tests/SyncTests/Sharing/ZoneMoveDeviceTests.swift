import Foundation
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Other devices read a move to another zone: the copies take over local IDs, links, tags and queued changes (M-3), but only
/// if the writer of the copy has deleted the node (M-4).
struct ZoneMoveDeviceTests {
  typealias Moving = ZoneMoveTests.Moving

  private static func second(_ world: TestWorld) async throws -> TestDevice {
    let second = try await world.device("second")
    try await second.sync()
    try await second.download()
    return second
  }

  @Test("nodes that another device moves keep uuid, links and tags here", arguments: [true, false])
  func otherDevicesFollow(inOnePull: Bool) async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let alice = moving.alice
      let second = try await Self.second(world)
      let uuids = (try await second.node("/folder").uuid, try await second.node("/folder/a/b/c").uuid)
      try await second.write { _, cloud in
        try cloud.linkNodeID(uuids.1, toKey: "c", inCollection: "lists")
        cloud.setTag("x", forNodeID: uuids.1, withIdentifier: "tag")
      }
      _ = second.recorder.take()
      try await alice.move("/folder", to: "/list/moved")
      if !inOnePull {
        alice.network.fail(.before { try await second.sync() }, "POST", Routes.commits, occurrence: 2)
      }
      try await alice.sync()
      try await moving.expectEqual(second)
      #expect(try await second.node("/list/moved").uuid == uuids.0)
      #expect(try await second.node("/list/moved/a/b/c").uuid == uuids.1)
      #expect(second.recorder.take().contains("moved /folder -> /list/moved"))
      let found = try await second.write { _, cloud in
        (
          cloud.linkedNode(forKey: "c", inCollection: "lists")?.uuid,
          cloud.tag(forNodeID: uuids.1, withIdentifier: "tag") as? String
        )
      }
      #expect(found.0 == uuids.1 && found.1 == "x")
    }
  }

  @Test(
    "queued edits, renames and new nodes of a device that was offline: edits and new nodes follow, the rename is dropped"
  )
  func queuedChangesFollow() async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let (alice, bob) = (moving.alice, moving.bob)
      let second = try await Self.second(world)
      try await second.edit("/folder/a", "edited")
      try await second.rename("/folder/d", to: "renamed")
      try await second.create("/folder/a/b/new", "new")
      try await alice.move("/folder", to: "/list/moved")
      try await alice.sync()
      try await moving.expectEqual(second)
      #expect(
        try await bob.branch(try await moving.top() + "/moved") == """
          /a  "edited"
          /a/b  "2"
          /a/b/c  "3"
          /a/b/new  "new"
          /d
          /d/e  "5"
          """)
      let entries = try await second.write { _, cloud in cloud.mergeJournal() }
      #expect(entries.contains { $0.kind == .moveDropped })
    }
  }

  /// - another device edits a node, and moves its folder to another branch
  /// => the app learns that the node, which keeps its uuid, has other content
  @Test func aMovedNodeWithOtherContent_isAnnouncedAsModified() async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let alice = moving.alice
      let second = try await Self.second(world)
      let uuid = try await second.node("/folder/a").uuid
      _ = second.recorder.take()
      try await alice.move("/folder", to: "/list/moved")
      try await alice.edit("/list/moved/a", "edited")
      try await alice.sync()
      try await moving.expectEqual(second)
      #expect(try await second.node("/list/moved/a").uuid == uuid)
      let events = second.recorder.take()
      #expect(events.suffix(2) == ["moved /folder -> /list/moved", "modified data /list/moved/a"], "\(events)")
      try await second.download()
      #expect(try await second.content(of: "/list/moved/a")?.data == Data("edited".utf8))
    }
  }

  @Test("M-4: a claim without the deletion, and a deletion by another writer, take over nothing")
  func aForgedClaim() async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let (alice, bob) = (moving.alice, moving.bob)
      let uuid = try await alice.node("/folder/a").uuid
      let source = try await alice.database.read { transaction in
        let row = try #require(try transaction.nodes.node(uuid: uuid))
        return MovedNode(tree: try #require(try transaction.zones.zone(id: row.zone)).zone.tree, node: row.nodeID)
      }
      // Bob's app writes what an honest client writes only for a node that it copies.
      try await bob.create(try await moving.top() + "/forged", "forged")
      let forged = try await bob.node(try await moving.top() + "/forged").uuid
      try await bob.write { transaction, _ in
        var row = try #require(try transaction.nodes.node(uuid: forged))
        row.unused = RecordPrivate(name: nil, createdMs: 0)
        row.unused?.movedFrom = source
        try transaction.nodes.update(row)
      }
      try await bob.sync()
      try await alice.sync()
      #expect(try await alice.node("/folder/a").uuid == uuid)
      #expect(try await alice.node("/list/forged").uuid != uuid)
      let second = try await world.device("second")
      try await second.sync()
      try await second.delete("/folder/a")
      try await second.sync()
      try await moving.expectEqual(second)
      #expect(try await alice.node("/list/forged").uuid != uuid)
      #expect(try await alice.branch("/folder/a") == nil)
    }
  }

  // MARK: Branches of others

  @Test("into a branch of another user, on all devices of the user, and out of it again")
  func intoAGraft() async throws {
    try await TestWorld.run { world in
      let invited = try await GraftTests.Invited(world)
      let (alice, bob) = (invited.alice, invited.bob)
      let phone = try await world.device("phone", account: "bob")
      try await bob.graft("/Groceries", invited.invite, from: alice)
      try await ZoneMoveTests.Moving.createFolder(bob)
      try await bob.sync()
      try await phone.sync()
      try await phone.download()
      let uuid = try await bob.node("/folder/a/b").uuid
      let other = try await phone.node("/folder/a/b").uuid
      try await bob.move("/folder", to: "/Groceries/folder")
      try await invited.expectEqual(on: bob, phone)
      #expect(try await alice.branch("/Groceries/folder") == Moving.folder)
      #expect(try await bob.node("/Groceries/folder/a/b").uuid == uuid)
      #expect(try await phone.node("/Groceries/folder/a/b").uuid == other)
      try await phone.move("/Groceries/folder/a", to: "/mine")
      try await invited.expectEqual(on: bob, phone)
      #expect(try await bob.branch("/mine") == "/b  \"2\"\n/b/c  \"3\"")
      #expect(try await bob.tree() == phone.tree())
      #expect(try await bob.node("/mine/b").uuid == uuid)
      #expect(try await alice.branch("/Groceries/folder") == "/d\n/d/e  \"5\"")
    }
  }

  @Test("the owner ends the branch, or removes the mover, while nodes move into it: they stay at their old place")
  func theBranchEnds() async throws {
    try await TestWorld.run { world in
      let invited = try await GraftTests.Invited(world)
      let (alice, bob) = (invited.alice, invited.bob)
      try await bob.graft("/Groceries", invited.invite, from: alice)
      try await ZoneMoveTests.Moving.createFolder(bob)
      try await bob.sync()
      let uuid = try await bob.node("/folder/a/b").uuid
      try await bob.move("/folder", to: "/Groceries/folder")
      #expect(await GraftTests.code { try await bob.delete("/Groceries") } == .invalidParameter)
      try await alice.unshare("/Groceries", with: bob)
      try await alice.sync()
      try await world.settle(alice, bob)
      #expect(try await bob.branch("/folder") == Moving.folder)
      #expect(try await bob.node("/folder/a/b").uuid == uuid)
      #expect(try await bob.branch("/Groceries") == nil)
    }
  }
}
