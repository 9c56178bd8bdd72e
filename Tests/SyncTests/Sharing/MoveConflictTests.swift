import Foundation
import Testing
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Moves to another zone that meet changes of the same nodes: edits, shares, and moves by other devices.
struct MoveConflictTests {
  typealias Moving = ZoneMoveTests.Moving

  private static let date = Date(timeIntervalSince1970: 4_000_000_000)

  /// - Alice edits a node and moves its folder to her list; another device has edited the node before
  /// => the app is asked about the conflict first, and both texts are there
  @Test(arguments: ["/folder", "/folder/a"])
  func editedByAnotherDevice(moved: String) async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let (alice, second) = (moving.alice, try await world.device("second"))
      alice.recorder.dataConflictPolicy = .mergeLines
      try await second.sync()
      try await second.download()
      try await alice.edit("/folder/a", "1\nmine")
      try await alice.move(moved, to: "/list/moved")
      try await second.edit("/folder/a", "1\ntheirs")
      try await second.sync()
      try await moving.expectEqual(second)
      let path = "/list/moved" + "/folder/a".dropFirst(moved.count)
      try await second.download()
      let text = String(decoding: try #require(try await second.content(of: path)?.data), as: UTF8.self)
      #expect(Set(text.split(separator: "\n")) == ["1", "mine", "theirs"])
    }
  }

  /// - the same, after the copies were sent
  @Test func editedByAnotherDevice_afterTheCopies() async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let (alice, second) = (moving.alice, try await world.device("second"))
      alice.recorder.dataConflictPolicy = .mergeLines
      try await second.sync()
      try await second.download()
      try await alice.move("/folder", to: "/list/moved")
      alice.network.fail(
        .before {
          try await alice.edit("/list/moved/a", "1\nmine")
          try await second.edit("/folder/a", "1\ntheirs")
          try await second.push()
        }, "POST", Routes.commits, occurrence: 2)
      try await alice.sync()
      #expect(alice.network.hasStruck)
      try await moving.expectEqual(second)
      try await second.download()
      let data = try #require(try await second.content(of: "/list/moved/a")?.data)
      #expect(Set(String(decoding: data, as: UTF8.self).split(separator: "\n")) == ["1", "mine", "theirs"])
      let journal = try await alice.write { _, cloud in cloud.mergeJournal() }
      #expect(!journal.contains { $0.kind == .deletedHere }, "\(journal)")
    }
  }

  /// - Alice moves a folder to her list, and shares a node of it before that is sent
  /// => the node is a shared branch at its new place
  @Test(arguments: ["/list/moved", "/list/moved/a"]) func sharedAfterTheMove(shared: String) async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let (alice, carol) = (moving.alice, moving.people.carol)
      let second = try await world.device("second")
      try await second.sync()
      try await alice.move("/folder", to: "/list/moved")
      try await alice.share(shared, with: carol)
      try await moving.expectEqual(second)
      #expect(try await alice.members(carol, moving.bob, of: shared) == ["carol": "rw", "bob": "rw"])
      #expect(try await alice.branch("/list/moved") == Moving.folder)
      #expect(try await second.branch("/folder") == nil)
    }
  }

  /// - Alice moves a folder to her list and shares it; before it is deleted at the old place, another device edits a node there
  /// => the folder is a shared branch at its new place, with the edit
  @Test(arguments: [2, 3]) func sharedAfterTheMove_andEditedAtTheOldPlace(occurrence: Int) async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let (alice, carol) = (moving.alice, moving.people.carol)
      let second = try await world.device("second")
      try await second.sync()
      try await second.download()
      try await alice.move("/folder", to: "/list/moved")
      try await alice.share("/list/moved", with: carol)
      alice.network.fail(
        .before {
          try await second.edit("/folder/d", "edited")
          try await second.push()
        }, "POST", Routes.commits, occurrence: occurrence)
      try await alice.sync()
      #expect(alice.network.hasStruck)
      try await moving.expectEqual(second)
      #expect(try await alice.members(carol, of: "/list/moved") == ["carol": "rw"])
      #expect(try await second.content(of: "/list/moved/d")?.data == Data("edited".utf8))
    }
  }

  /// - Alice moves a folder to her list, and takes a node of it from a member of the list before that is sent
  /// => the member does not have the node at its new place
  @Test func unsharedAfterTheMove() async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let (alice, bob) = (moving.alice, moving.bob)
      try await alice.move("/folder", to: "/list/moved")
      #expect(try await alice.unshare("/list/moved/a", with: bob).count == 1)
      try await TestWorld.settle([alice, bob])
      #expect(try await alice.members(bob, of: "/list/moved/a") == [:])
      #expect(try await alice.members(bob, of: "/list/moved") == ["bob": "rw"])
      #expect(try await bob.branch(try await moving.top() + "/moved/a") == "")
      #expect(try await alice.branch("/list/moved") == Moving.folder)
    }
  }

  /// - Alice moves a folder to a branch of Bob's
  /// => she cannot share a node of it any more, also before that is sent
  @Test func sharedAfterTheMoveToAnotherUser() async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let (alice, bob) = (moving.alice, moving.bob)
      try await bob.create("/his")
      try await bob.sync()
      try await bob.meet(alice)
      try await bob.share("/his", with: alice)
      try await bob.sync()
      try await alice.graft("/his", try await bob.invite("/his"), from: bob)
      try await alice.sync()
      try await alice.move("/folder/a", to: "/his/a")
      let error = await #expect(throws: ZDCSecurityError.self) {
        try await alice.share("/his/a", with: moving.people.carol)
      }
      #expect(error?.code == .splitNeedsOwner)
      try await moving.expectEqual()
      #expect(try await bob.branch("/his/a") == "/b  \"2\"\n/b/c  \"3\"")
    }
  }

  /// - Alice shares a node on one device, and moves it to her list on another one, which is first
  /// => the node is a shared branch at its new place, or stays at the old one if the share is first
  @Test(arguments: [false, true]) func sharedByAnotherDevice(isSharedFirst: Bool) async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let (alice, carol) = (moving.alice, moving.people.carol)
      let second = try await world.device("second")
      try await second.sync()
      try await second.meet(carol)
      try await second.meet(moving.bob)
      try await alice.share("/folder/a", with: carol)
      try await second.move("/folder", to: "/list/moved")
      for device in isSharedFirst ? [alice, second] : [second, alice] { try await device.sync() }
      try await moving.expectEqual(second)
      let folder = isSharedFirst ? "/folder" : "/list/moved"
      #expect(try await second.members(carol, of: folder + "/a") == ["carol": "rw"])
      #expect(try await second.branch(folder) == Moving.folder)
    }
  }

  enum Return: CaseIterable, Sendable {
    case byTheApp, byASplit, byTheList
  }

  /// - Bob moves a node from Alice's list to his tree, and shares it
  /// - before he syncs, he returns the node to the list, Alice shares it separately, or she takes Bob's right to write
  /// => the node stays in Alice's list, and Bob's share of it is dropped
  @Test(arguments: Return.allCases) func sharedAfterAMoveThatIsGivenUp(by other: Return) async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let (alice, bob, carol) = (moving.alice, moving.bob, moving.people.carol)
      let old = try await moving.top() + "/old"
      try await bob.create("/mine")
      try await bob.sync()
      try await bob.meet(carol)
      try await bob.move(old, to: "/mine/old")
      try await bob.share("/mine/old", with: carol)
      switch other {
      case .byTheApp: try await bob.move("/mine/old", to: old)
      case .byASplit: try await alice.share("/list/old", with: carol)
      case .byTheList: try await alice.share("/list", with: bob, "r")
      }
      try await alice.sync()
      try await moving.expectEqual()
      #expect(try await bob.branch("/mine") == "")
      #expect(try await alice.members(carol, of: "/list/old") == (other == .byASplit ? ["carol": "rw"] : [:]))
    }
  }

  /// - Bob moves a folder from his tree to Alice's list, while Alice moves it elsewhere
  /// - Bob moves a message into the folder, and then uploads the folder again
  /// => the folder is in Alice's list, with the message
  @Test func aMessageMovesIntoABranchThatMoves() async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let (alice, bob) = (moving.alice, moving.bob)
      let top = try await moving.top()
      for path in ["/own", "/own/x"] { try await bob.create(path, path) }
      try await bob.sync()
      try await bob.meet(alice)
      try await bob.share("/own", with: alice)
      try await bob.sync()
      try await alice.graft("/own", try await bob.invite("/own"), from: bob)
      _ = try await alice.send("a message", toAll: [bob], after: [])
      try await TestWorld.settle([alice, bob])
      let message = try #require(try await bob.messageNodes(.inbox).first)
      try await bob.move("/own/x", to: top + "/x")
      try await alice.move("/own/x", to: "/x")
      try await alice.sync()
      try await bob.sync()
      let path = try #require(ZDCTreesystemPath(top + "/x/message"))
      try await bob.write { _, cloud in _ = try cloud.moveNode(message, to: path) }
      try await bob.sync()
      try await bob.reviveAll()
      try await moving.expectEqual()
      let lines = try await alice.branch("/list/x")
      #expect(lines == "/message  \"a message\"")
    }
  }

  /// - Bob moves a message from his inbox to a folder in Alice's list; Alice removes him from the folder before the
  ///   message is there
  /// => the message is in his inbox
  @Test(arguments: [false, true]) func aMessageMovesToAPlaceThatTheUserLoses(isBegun: Bool) async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let (alice, bob) = (moving.alice, moving.bob)
      let top = try await moving.top()
      for path in ["/list/lost", "/list/lost/x"] { try await alice.create(path, path) }
      _ = try await alice.send("a message", toAll: [bob], after: [])
      try await TestWorld.settle([alice, bob])
      let message = try #require(try await bob.messageNodes(.inbox).first)
      let path = try #require(ZDCTreesystemPath(top + "/lost/x/message"))
      try await bob.write { _, cloud in _ = try cloud.moveNode(message, to: path) }
      if isBegun {
        bob.network.fail(.loseRequest, "POST", Routes.commits)
        await #expect(throws: TransportError.self) { for _ in 0..<3 { try await bob.push() } }
      }
      try await alice.unshare("/list/lost", with: bob)
      try await alice.sync()
      try await TestWorld.settle([bob, alice])
      #expect(try await bob.messageNodes(.inbox).map(\.uuid) == [message.uuid])
      let entries = try await bob.write { _, cloud in cloud.mergeJournal() }
      #expect(entries.contains { $0.kind == .moveDropped && $0.mine.path?.nodeName == "message" })
    }
  }

  enum OtherChange: CaseIterable, Sendable {
    case move, share, end
  }

  /// - Alice moves a node to her list and gives it a burn date; the move is dropped, because another device has moved or
  ///   shared the node, or because its new place is gone
  /// => the node has the burn date
  @Test(arguments: OtherChange.allCases, [false, true])
  func aDroppedMove_keepsTheBurnDate(change: OtherChange, isDateFirst: Bool) async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let (alice, second) = (moving.alice, try await world.device("second"))
      try await alice.create("/list/place")
      try await TestWorld.settle([alice, second])
      try await second.meet(moving.people.carol)
      if isDateFirst { try await alice.setBurnDate(Self.date, "/folder/a") }
      try await alice.move("/folder/a", to: "/list/place/a")
      if !isDateFirst { try await alice.setBurnDate(Self.date, "/list/place/a") }
      switch change {
      case .move: try await second.move("/folder/a", to: "/a")
      case .share: try await second.share("/folder/a", with: moving.people.carol)
      case .end: try await second.delete("/list/place")
      }
      try await second.sync()
      try await moving.expectEqual(second)
      let path = change == .move ? "/a" : "/folder/a"
      for device in [alice, second] { #expect(try await device.node(path).burnDate == Self.date, "\(device.name)") }
    }
  }

  /// - a node moves with its folder, and gets a burn date before the deletion at the old place is sent
  /// - another device changes the folder there
  /// => the node has the burn date at its new place
  @Test func aBurnDate_survivesAChangeAtTheOldPlace() async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let (alice, second) = (moving.alice, try await world.device("second"))
      try await second.sync()
      try await second.download()
      try await alice.move("/folder", to: "/list/moved")
      alice.network.fail(
        .before {
          try await alice.setBurnDate(Self.date, "/list/moved/a/b")
          try await second.edit("/folder/d", "edited")
          try await second.push()
        }, "POST", Routes.commits, occurrence: 2)
      try await alice.sync()
      #expect(alice.network.hasStruck)
      try await moving.expectEqual(second)
      #expect(try await second.node("/list/moved/a/b").burnDate == Self.date)
    }
  }

  /// - Alice moves a node to her list, and only the copy is sent
  /// - another device moves the node elsewhere
  /// => Alice's device deletes the copy, although nothing else is queued
  @Test(arguments: [false, true]) func movedElsewhereByAnotherDevice(isCopied: Bool) async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let (alice, second) = (moving.alice, try await world.device("second"))
      try await second.sync()
      try await alice.move("/folder/a", to: "/list/moved")
      if isCopied {
        // The copy is in the cloud, the deletion is not.
        alice.network.fail(.loseRequest, "POST", Routes.commits, occurrence: 2)
        await #expect(throws: (any Error).self) { try await alice.sync() }
      }
      try await second.move("/folder/a", to: "/a")
      try await second.sync()
      try await moving.expectEqual(second)
      #expect(try await second.branch("/list") == "/old  \"old\"")
      #expect(try await second.branch("/a") == "/b  \"2\"\n/b/c  \"3\"")
    }
  }
}

extension TestDevice {
  fileprivate func setBurnDate(_ date: Date, _ path: String) async throws {
    var node = try await node(path)
    node.burnDate = date
    let changed = node
    try await write { _, cloud in _ = try cloud.modifyNode(changed) }
  }
}
