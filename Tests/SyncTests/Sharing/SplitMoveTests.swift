import Foundation
import Testing
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// A branch is shared separately while nodes of it move to another zone, or while nodes of another zone move into it.
struct SplitMoveTests {
  typealias Moving = ZoneMoveTests.Moving

  /// Sends what is queued in one zone, and nothing of the others.
  private static func push(_ root: NodeID, _ device: TestDevice) async throws {
    let engine = try await device.syncManager.engine(for: try device.localUserID)
    let zone = try await device.database.read { transaction in
      try transaction.zones.zones(localUser: engine.session.localUser).first { $0.zone.root == root }
    }
    let worker = await engine.worker(try #require(zone).id)
    while try await worker.push().summary.commits > 0 {}
  }

  private static func pushHome(_ device: TestDevice) async throws {
    let tree = TreeID.derive(owner: try device.userID, trunk: .home, appTreeID: TestDevice.treeID)
    try await push(ZoneID(trunkOf: tree).root, device)
  }

  private static func push(_ path: String, _ device: TestDevice) async throws {
    try await push(try #require(NodeID(text: try await device.cloudID(path))), device)
  }

  /// - Alice moves nodes out of a folder, and shares the folder before or after the copies are sent
  /// => the nodes are at their old place until the copies are there, and keep their local IDs on her other device
  @Test(arguments: [false, true]) func outOfTheBranch(isCopied: Bool) async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let (alice, carol) = (moving.alice, moving.people.carol)
      let second = try await world.device("second")
      try await second.sync()
      let uuids = (try await second.node("/folder/a").uuid, try await second.node("/folder/a/b").uuid)
      try await alice.move("/folder/a", to: "/list/moved")
      try await Self.pushHome(alice)
      if isCopied {
        try await Self.push("/list", alice)
        try await second.sync()
      }
      try await alice.share("/folder", with: carol)
      try await Self.pushHome(alice)
      if !isCopied {
        try await Self.push("/folder", alice)
        try await second.sync()
        #expect(try await second.node("/folder/a").uuid == uuids.0)
      }
      try await moving.expectEqual(second)
      #expect(try await second.node("/list/moved").uuid == uuids.0)
      #expect(try await second.node("/list/moved/b").uuid == uuids.1)
      #expect(try await alice.branch("/folder") == "/d\n/d/e  \"5\"")
      #expect(try await moving.bob.branch(try await moving.top() + "/moved") == "/b  \"2\"\n/b/c  \"3\"")
    }
  }

  /// - Alice moves nodes out of a folder to a branch of Bob's, and shares the folder before the copies are sent
  /// - Bob removes her from his branch
  /// => the nodes return to the folder, with an entry in the journal
  @Test func theNewPlaceEnds() async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let (alice, bob, carol) = (moving.alice, moving.bob, moving.people.carol)
      try await bob.create("/his")
      try await bob.sync()
      try await bob.meet(alice)
      try await bob.share("/his", with: alice)
      try await bob.sync()
      try await alice.graft("/his", try await bob.invite("/his"), from: bob)
      try await alice.sync()
      let uuid = try await alice.node("/folder/a/b").uuid
      try await alice.move("/folder/a", to: "/his/a")
      try await Self.pushHome(alice)
      try await alice.share("/folder", with: carol)
      try await Self.pushHome(alice)
      try await bob.unshare("/his", with: alice)
      try await bob.sync()
      try await moving.expectEqual()
      #expect(try await alice.branch("/folder") == Moving.folder)
      #expect(try await alice.node("/folder/a/b").uuid == uuid)
      let entries = try await alice.write { _, cloud in cloud.mergeJournal() }
      #expect(entries.contains { $0.kind == .moveDropped })
    }
  }

  /// - Alice moves nodes into a part of a list, and shares the part before or after the copies are sent
  /// - another device changes a node at its old place before it is deleted there
  /// => the move continues with the copies that are there
  @Test(arguments: [false, true]) func intoTheBranch(isCopied: Bool) async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let (alice, carol) = (moving.alice, moving.people.carol)
      let second = try await world.device("second")
      try await alice.create("/list/part")
      try await world.settle(alice, second)
      try await alice.move("/folder", to: "/list/part/moved")
      try await Self.pushHome(alice)
      if isCopied { try await Self.push("/list", alice) }
      try await alice.share("/list/part", with: carol)
      try await Self.push("/list", alice)
      let copies = try await alice.cloudID("/list/part/moved/d/e")
      try await second.edit("/folder/a", "edited")
      try await second.push()
      try await moving.expectEqual(second)
      #expect(try await alice.cloudID("/list/part/moved/d/e") == copies)
      #expect(
        try await second.branch("/list/part/moved")
          == Moving.folder.replacingOccurrences(of: "\"1\"", with: "\"edited\""))
      #expect(try await second.branch("/folder") == nil)
    }
  }
}
