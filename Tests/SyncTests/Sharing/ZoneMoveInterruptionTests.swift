import Foundation
import Testing
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZeroDarkCloud

/// A move to another zone that is interrupted twice: other content at the old place follows to the copies, and before it is
/// sent, the old place changes again.
struct ZoneMoveInterruptionTests {
  typealias Moving = ZoneMoveTests.Moving

  enum SecondChange: CaseIterable, Sendable {
    case edit, rename, sibling
  }

  /// Moves a folder of Alice's to her list. Another device changes its content before it is deleted at the old place, the
  /// process ends after some transactions, and the other device changes the old place again.
  ///
  /// - Returns: Whether the process ended, and whether the other device had changed the content before.
  private static func interrupt(
    _ moving: Moving, _ second: TestDevice, _ change: SecondChange, afterCommits commits: Int
  ) async throws -> (isKilled: Bool, isEdited: Bool) {
    let (alice, old) = (moving.alice, "/old\(commits)")
    try await alice.create(old, "top")
    try await alice.create(old + "/inner", "first")
    try await TestWorld.settle([alice, second])
    try await alice.move(old, to: "/list/new\(commits)")
    let edit: @Sendable () async throws -> Void = {
      try await second.edit(old + "/inner", "second")
      try await second.push()
    }
    alice.network.fail(.before(edit), "POST", Routes.commits, occurrence: 2)
    alice.die(afterCommits: commits)
    do { try await alice.sync() } catch { #expect(alice.isDead, "\(error)") }
    let isEdited = try await second.content(of: old + "/inner")?.data == Data("second".utf8)
    guard alice.isDead, isEdited else { return (alice.isDead, isEdited) }
    switch change {
    case .edit: try await second.edit(old + "/inner", "third")
    case .rename: try await second.rename(old + "/inner", to: "renamed")
    case .sibling: try await second.create(old + "/sibling", "sibling")
    }
    try await second.push()
    return (true, true)
  }

  @Test("killed while other content follows a move, and the old place changes again: the newest content arrives once")
  func killedTwice() async throws {
    for change in SecondChange.allCases {
      try await TestWorld.run { world in
        let moving = try await Moving(world)
        let (alice, second) = (moving.alice, try await world.device("second"))
        var interrupted = 0
        for commits in 0..<30 {
          let (isKilled, isEdited) = try await Self.interrupt(moving, second, change, afterCommits: commits)
          if isKilled, isEdited { interrupted += 1 }
          alice.network.restoreNetwork()
          try await alice.relaunch()
          try await moving.expectEqual(second)
          let copies = try await alice.branch("/list/new\(commits)") ?? ""
          let text = !isEdited ? "first" : isKilled && change == .edit ? "third" : "second"
          #expect(
            copies.contains("\"\(text)\"") && copies.components(separatedBy: "inner").count <= 2,
            "\(commits): \(copies)")
          #expect(try await second.branch("/old\(commits)") == nil)
          if !isKilled { break }
        }
        #expect(interrupted > 3)
      }
    }
  }

  enum OldPlaceChange: CaseIterable, Sendable {
    case none, sibling, rename, edit
    /// The server no longer keeps the earlier content.
    case release
  }

  /// - Alice restores an earlier content, and moves the node to her list before that is sent
  /// - before the restoration or the copies are sent, another device changes the old place
  /// => the node has the restored content, unless other content came first or it is gone, which the journal says
  @Test(arguments: [("/folder", 1), ("/folder/a", 2)], OldPlaceChange.allCases)
  func restoredContent(of node: (path: String, commit: Int), change: OldPlaceChange) async throws {
    let (path, number) = node
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let (alice, second) = (moving.alice, try await world.device("second"))
      let before = try #require(try await alice.content(of: path)?.data)
      try await alice.edit(path, "newer")
      try await TestWorld.settle([alice, second])
      try await Self.restoreEarlier(path, alice)
      try await alice.move("/folder", to: "/list/moved")
      alice.network.fail(
        .before {
          try await second.sync()
          switch change {
          case .none: return
          case .sibling: try await second.create("/folder/new", "sibling")
          case .rename: try await second.rename("/folder/d", to: "renamed")
          case .edit: try await second.edit(path, "edited")
          case .release: return try await world.releaseKeptContent()
          }
          try await second.push()
        }, "POST", Routes.commits, occurrence: number)
      try await moving.expectEqual(second)
      let new = path.replacingOccurrences(of: "/folder", with: "/list/moved")
      let content = try await second.content(of: new)?.data
      let isReplaced = change == .edit || (change == .release && number == 1)
      #expect(content == (isReplaced ? Data((change == .edit ? "edited" : "newer").utf8) : before))
      let journal = try await alice.write { _, cloud in cloud.mergeJournal() }
      #expect(journal.contains { $0.kind == .cloudWon } == (isReplaced && number == 1), "\(journal)")
    }
  }

  /// - Alice restores an earlier content on one device, and moves the node on another one
  /// => the node has the content that it was moved with, and the journal names the other
  @Test func movedByAnotherDevice() async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let (alice, second) = (moving.alice, try await world.device("second"))
      try await alice.edit("/folder/a", "newer")
      try await TestWorld.settle([alice, second])
      try await Self.restoreEarlier("/folder/a", second)
      try await alice.move("/folder", to: "/list/moved")
      try await alice.sync()
      try await moving.expectEqual(second)
      #expect(try await second.content(of: "/list/moved/a")?.data == Data("newer".utf8))
      let journal = try await second.write { _, cloud in cloud.mergeJournal() }
      #expect(journal.map(\.kind) == [.cloudWon])
    }
  }

  /// - Alice restores a deleted node, and moves it, or the folder that it is in, to her list before that is sent
  /// => it has its content there, with all below it
  @Test(arguments: [("/folder/a", "/folder/a"), ("/folder/a", "/folder"), ("/folder", "/folder")])
  func restoredFromTheTrash(deleted: String, moved: String) async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let (alice, second) = (moving.alice, try await world.device("second"))
      let before = try await alice.branch(moved)
      try await alice.delete(deleted)
      try await TestWorld.settle([alice, second])
      let user = try alice.localUserID
      let trash = try await alice.syncManager.deletedNodes(localUserID: user)
      _ = try await alice.syncManager.restore(try #require(trash.first), intoFolderID: nil, localUserID: user)
      try await alice.move(moved, to: "/list/moved")
      try await moving.expectEqual(second)
      #expect(try await second.branch("/list/moved") == before)
      #expect(try await second.branch(moved) == nil)
    }
  }

  /// - a device restores a deleted node, and before that is sent, another one moves the folder that it is in
  /// => it is in the moved folder, with its content and all below it
  @Test func theFolderOfARestoredNodeIsMovedByAnotherDevice() async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let (alice, second) = (moving.alice, try await world.device("second"))
      let before = try await alice.branch("/folder")
      try await alice.delete("/folder/a")
      try await TestWorld.settle([alice, second])
      let user = try second.localUserID
      let trash = try await second.syncManager.deletedNodes(localUserID: user)
      _ = try await second.syncManager.restore(try #require(trash.first), intoFolderID: nil, localUserID: user)
      try await alice.move("/folder", to: "/list/moved")
      try await alice.sync()
      try await moving.expectEqual(second)
      #expect(try await second.branch("/list/moved") == before)
    }
  }

  /// - a device restores a deleted node, and before that is sent, another one shares the folder that it is in
  /// => it is in the shared folder, with its content and all below it
  @Test(arguments: ["/folder/a", "/folder/a/b"], [false, true])
  func theFolderOfARestoredNodeIsSharedByAnotherDevice(path: String, isMovedFirst: Bool) async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let (alice, second) = (moving.alice, try await world.device("second"))
      let before = try await alice.branch("/folder")
      try await alice.delete(path)
      try await TestWorld.settle([alice, second])
      let user = try second.localUserID
      let trash = try await second.syncManager.deletedNodes(localUserID: user)
      _ = try await second.syncManager.restore(try #require(trash.first), intoFolderID: nil, localUserID: user)
      try await second.create("/folder/new", "new")
      if isMovedFirst {
        // The other device reads the new top, the move and the split in one page.
        try await alice.create("/top", "top")
        try await alice.move("/folder", to: "/top/folder")
        try await alice.sync()
      }
      try await alice.share(isMovedFirst ? "/top" : "/folder", with: moving.bob)
      try await alice.sync()
      try await moving.expectEqual(second)
      let folder = isMovedFirst ? "/top/folder" : "/folder"
      try await second.delete(folder + "/new")
      try await moving.expectEqual(second)
      #expect(try await second.branch(folder) == before)
    }
  }

  /// - a device restores an earlier content, and before that is sent, another one shares the node
  /// => the branch is followed, and the journal says that the server has no such content there
  @Test func aNodeWithRestoredContentIsSharedByAnotherDevice() async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let (alice, second) = (moving.alice, try await world.device("second"))
      try await alice.edit("/folder", "newer")
      try await TestWorld.settle([alice, second])
      try await Self.restoreEarlier("/folder", second)
      try await alice.share("/folder", with: moving.bob)
      try await alice.sync()
      #expect(try await second.sync().frozenZones.isEmpty)
      try await moving.expectEqual(second)
      for device in [alice, second] {
        #expect(try await device.content(of: "/folder")?.data == Data("newer".utf8), "\(device.name)")
      }
      let journal = try await second.write { _, cloud in cloud.mergeJournal() }
      #expect(journal.map(\.kind) == [.cloudWon])
    }
  }

  /// - Alice restores an earlier content, and shares the folder, or removes a member from it, before that is sent
  /// => the content is sent first; a removal does not wait for it, and the journal says that it is gone
  @Test(arguments: ["/folder", "/folder/a"], [false, true])
  func aFolderWithRestoredContentIsShared(path: String, isRemoval: Bool) async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let (alice, carol, second) = (moving.alice, moving.people.carol, try await world.device("second"))
      if isRemoval { try await alice.share(with: carol) }
      let before = try #require(try await alice.content(of: path)?.data)
      try await alice.edit(path, "newer")
      try await TestWorld.settle([alice, second])
      try await Self.restoreEarlier(path, alice)
      if isRemoval {
        try await alice.unshare("/folder", with: carol)
      } else {
        try await alice.share("/folder", with: carol)
      }
      try await alice.sync()
      #expect(try await alice.members(carol, of: "/folder") == (isRemoval ? [:] : ["carol": "rw"]))
      try await moving.expectEqual(second)
      for device in [alice, second] {
        #expect(try await device.content(of: path)?.data == (isRemoval ? Data("newer".utf8) : before))
      }
      let journal = try await alice.write { _, cloud in cloud.mergeJournal() }
      #expect(journal.map(\.kind) == (isRemoval ? [.cloudWon] : []))
    }
  }

  private static func restoreEarlier(_ path: String, _ device: TestDevice) async throws {
    let (node, user) = (try await device.node(path), try device.localUserID)
    let versions = try await device.syncManager.versions(ofNodeID: node.uuid, localUserID: user)
    _ = try await device.syncManager.restore(try #require(versions.first), localUserID: user)
  }
}

extension TestWorld {
  fileprivate func releaseKeptContent() async throws {
    clock.advance(by: .seconds(31 * 24 * 3_600))
    try await server.collect()
  }
}
