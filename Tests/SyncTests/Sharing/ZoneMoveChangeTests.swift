import Foundation
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Moves to another zone while other devices change the nodes, the process dies, or answers are lost.
struct ZoneMoveChangeTests {
  typealias Moving = ZoneMoveTests.Moving

  /// Runs a step of another device before the number'th commit of the moving device.
  private static func change(
    _ device: TestDevice, before number: Int, _ step: @escaping @Sendable () async throws -> Void
  ) {
    device.network.fail(.before(step), "POST", Routes.commits, occurrence: number + 1)
  }

  @Test(
    "another device changes the nodes at the old place, before the copies or before the deletion: nothing is lost",
    arguments: [0, 1])
  func changedMeanwhile(_ number: Int) async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let (alice, bob) = (moving.alice, moving.bob)
      let second = try await world.device("second")
      try await second.sync()
      try await second.download()
      let inner = try await alice.node("/folder/a/b/c").uuid
      try await alice.move("/folder", to: "/list/moved")
      Self.change(alice, before: number) {
        try await second.edit("/folder/a", "changed")
        try await second.rename("/folder/a/b", to: "renamed")
        try await second.create("/folder/d/new", "new")
        try await second.sync()
      }
      try await alice.sync()
      #expect(alice.network.hasStruck)
      try await moving.expectEqual(second)
      #expect(try await alice.node("/list/moved/a/renamed/c").uuid == inner)
      #expect(
        try await bob.branch(try await moving.top() + "/moved") == """
          /a  "changed"
          /a/renamed  "2"
          /a/renamed/c  "3"
          /d
          /d/e  "5"
          /d/new  "new"
          """)
    }
  }

  /// A member's change of a copy whose original is not deleted yet.
  enum CopyChange: CaseIterable, Sendable {
    case edit, rename
  }

  @Test(
    "content changes at the old place, and a member changes the copy: the copy's content wins, or the old place's follows",
    arguments: CopyChange.allCases, [false, true])
  func changedAtBothPlaces(_ change: CopyChange, memberIsFirst: Bool) async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let (alice, bob) = (moving.alice, moving.bob)
      let second = try await world.device("second")
      try await second.sync()
      try await second.download()
      let copy = try await moving.top() + "/moved/a"
      try await alice.move("/folder", to: "/list/moved")
      let steps: [@Sendable () async throws -> Void] = [
        {
          try await second.edit("/folder/a", "at the old place")
          try await second.push()
        },
        {
          try await bob.sync()
          switch change {
          case .edit: try await bob.edit(copy, "at the new place")
          case .rename: try await bob.rename(copy, to: "renamed")
          }
          try await bob.sync()
        },
      ]
      Self.change(alice, before: 1) { for step in memberIsFirst ? steps.reversed() : steps { try await step() } }
      try await alice.sync()
      #expect(alice.network.hasStruck)
      try await moving.expectEqual(second)
      let path = "/list/moved/" + (change == .edit ? "a" : "renamed")
      let text = change == .edit ? "at the new place" : "at the old place"
      for device in [alice, second] {
        #expect(try await device.content(of: path)?.data == Data(text.utf8), "\(device.name)")
        #expect(try await device.queueCount() == 0, "\(device.name)")
      }
      guard change == .edit else { return }
      let uuid = try await alice.node(path).uuid
      let entries = try await alice.write { _, cloud in cloud.mergeJournal(forNodeID: uuid) }
      #expect(entries.contains { [.cloudWon, .deletedHere].contains($0.kind) && $0.result.eTag != nil }, "\(entries)")
    }
  }

  @Test("the app ends a branch with nodes that it has just moved there: they are deleted at their old place")
  func theBranchEndsBeforeTheMoveIsSent() async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let alice = moving.alice
      let second = try await world.device("second")
      try await second.sync()
      try await alice.move("/folder/a", to: "/list/moved")
      try await alice.delete("/list")
      try await world.settle(alice, second, moving.bob)
      for device in [alice, second] {
        #expect(
          try await device.tree(versions: false) == "/folder  \"top\"\n/folder/d\n/folder/d/e  \"5\"", "\(device.name)")
        #expect(try await device.queueCount() == 0)
      }
    }
  }

  @Test("nodes that another device deletes or moves out meanwhile are not in the copy", arguments: [0, 1])
  func removedMeanwhile(_ number: Int) async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let alice = moving.alice
      let second = try await world.device("second")
      try await second.sync()
      try await second.download()
      let movedOut = try await alice.node("/folder/a").uuid
      try await alice.move("/folder", to: "/list/moved")
      Self.change(alice, before: number) {
        try await second.move("/folder/a", to: "/a")
        try await second.delete("/folder/d/e")
        try await second.sync()
      }
      try await alice.sync()
      try await moving.expectEqual(second)
      #expect(try await alice.node("/a").uuid == movedOut)
      #expect(try await alice.branch("/a") == "/b  \"2\"\n/b/c  \"3\"")
      #expect(try await alice.branch("/list/moved") == "/d")
    }
  }

  @Test("another device deletes the moved folder, or moves it elsewhere, meanwhile", arguments: [0, 1], [true, false])
  func theTopChanges(_ number: Int, isDeleted: Bool) async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let alice = moving.alice
      let second = try await world.device("second")
      try await second.sync()
      try await second.download()
      try await alice.move("/folder", to: "/list/moved")
      Self.change(alice, before: number) {
        // Otherwise both devices of the user sign the same commit, byte for byte.
        world.clock.advance(by: .seconds(1))
        if isDeleted { try await second.delete("/folder") } else { try await second.move("/folder", to: "/elsewhere") }
        try await second.sync()
      }
      try await alice.sync()
      if isDeleted {
        // The app is asked about a node that was moved here and deleted there, as for a move inside of a zone.
        world.mayWait(alice)
        #expect(alice.recorder.take().contains { $0.hasPrefix("deletedDirty") })
      } else {
        try await moving.expectEqual(second)
        #expect(try await alice.branch("/elsewhere") == Moving.folder)
        #expect(try await alice.branch("/list/moved") == nil)
      }
    }
  }

  @Test(
    "members of the new branch delete its folder, or lose the mover's right, meanwhile: the nodes stay in the old one")
  func theNewPlaceGoes() async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let (alice, bob) = (moving.alice, moving.bob)
      try await alice.create("/list/place")
      try await alice.create("/folder/many")
      try await alice.create(1_100, in: "/folder/many")
      try await alice.sync()
      try await bob.sync()
      let uuid = try await alice.node("/folder/a/b").uuid
      let top = try await moving.top()
      try await alice.move("/folder", to: "/list/place/moved")
      Self.change(alice, before: 1) {
        try await bob.sync()
        try await bob.delete(top + "/place")
        try await bob.sync()
      }
      try await alice.sync()
      #expect(alice.network.hasStruck)
      try await moving.expectEqual()
      #expect(try await alice.node("/folder/a/b").uuid == uuid)
      #expect(try await alice.content(of: "/folder/a/b")?.data == Data("2".utf8))
      let entries = try await alice.write { _, cloud in cloud.mergeJournal() }
      #expect(entries.contains { $0.kind == .moveDropped })
    }
  }

  @Test("killed after each of its transactions, a move loses nothing", arguments: [TestDevice.Network.dead, .alive])
  func killedAnywhere(network: TestDevice.Network) async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let alice = moving.alice
      let second = try await world.device("second")
      var kills = 0
      for commits in 0..<24 {
        let (old, new) = ("/old\(commits)", "/list/new\(commits)")
        try await alice.create(old, "top")
        try await alice.create(old + "/inner", "inner")
        try await alice.sync()
        let uuid = try await alice.node(old + "/inner").uuid
        try await alice.edit(old + "/inner", "edited")
        try await alice.move(old, to: new)
        alice.die(afterCommits: commits, network: network)
        do { try await alice.sync() } catch { #expect(alice.isDead, "\(error)") }
        let isKilled = alice.isDead
        if isKilled { kills += 1 }
        try await alice.relaunch()
        try await moving.expectEqual(second)
        #expect(try await alice.node(new + "/inner").uuid == uuid)
        #expect(try await second.branch(new) == "/inner  \"edited\"")
        #expect(try await second.branch(old) == nil)
        if !isKilled { break }
      }
      #expect(kills >= 3 && kills < 24, "\(kills)")
    }
  }

  /// When the moving device is killed: before it has stored the answer to its number'th commit, or right after that.
  private static let borders: [(commit: Int, isStored: Bool)] = [(1, true), (2, false), (3, false), (4, false)]

  /// - Alice moves a folder with more nodes than a commit has to her list, and back; a second device edits one of them
  ///   between the two commits of the copies, and Alice's device is killed at a border of its commits
  /// => all nodes arrive, with that edit, on both devices and at the member's, and no content is sent again
  @Test func killedBetweenTheCommitsOfALargeMove() async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let (alice, second) = (moving.alice, try await world.device("second"))
      try await LargeMove.create(alice)
      #expect(LargeMove.sendsContent(alice))
      try await moving.expectEqual(second)
      for (number, border) in Self.borders.enumerated() {
        let move = LargeMove(alice: alice, second: second, number: number + 1)
        let before = try #require(try await alice.branch(move.old))
        let (uuid, blobs) = (try await alice.node(move.old + "/edited").uuid, try await move.blobs(below: move.old))
        alice.network.resetCounts()
        try await move.run(killedAt: border.commit, isStored: border.isStored)
        try await moving.expectEqual(second)
        #expect(alice.network.hasStruck, "\(border)")
        let after = try await alice.branch(move.new)
        #expect(after == before.replacingOccurrences(of: LargeMove.text(number), with: LargeMove.text(number + 1)))
        #expect(try await second.branch(move.old) == nil)
        #expect(try await alice.node(move.new + "/edited").uuid == uuid)
        #expect(try await move.blobs(below: move.new) == blobs)
        #expect(!LargeMove.sendsContent(alice), "\(border)")
      }
    }
  }

  @Test("a lost answer, a lost request, a request received twice: one copy", arguments: 0..<3, 0..<2)
  func lostAnswers(_ number: Int, at commit: Int) async throws {
    try await TestWorld.run { world in
      let moving = try await Moving(world)
      let alice = moving.alice
      let second = try await world.device("second")
      try await second.sync()
      try await second.download()
      try await alice.move("/folder", to: "/list/moved")
      let fault: Fault = [.loseResponse, .loseRequest, .duplicate][number]
      alice.network.fail(fault, "POST", Routes.commits, occurrence: commit + 1)
      do { try await alice.sync() } catch { #expect(error is TransportError) }
      // Another commit follows in each of the zones before the device asks again.
      try await second.edit("/list/old", "second")
      try await second.create("/third")
      try await second.sync()
      try await moving.expectEqual(second)
      #expect(try await alice.branch("/list/moved") == Moving.folder)
    }
  }

  @Test("a copy without room waits, and the node stays at its old place for the others")
  func withoutRoom() async throws {
    try await TestWorld.run(quotaBytes: 1 << 20) { world in
      let moving = try await Moving(world)
      let (alice, bob) = (moving.alice, moving.bob)
      try await bob.create("/large", TestContent(data: Data(repeating: 1, count: 300_000)))
      try await bob.sync()
      try await alice.create("/filler", TestContent(data: Data(repeating: 2, count: 800_000)))
      try await alice.sync()
      world.mayWait(bob)
      try await bob.move("/large", to: try await moving.top() + "/large")
      try await bob.sync()
      let explanation = try await bob.explain(try await moving.top() + "/large")
      #expect(explanation?.operations.last?.reason == .overQuota)
      let phone = try await world.device("phone", account: "bob")
      try await phone.sync()
      try await phone.download()
      #expect(try await phone.content(of: "/large")?.data.count == 300_000)
    }
  }
}

/// A move of a folder whose copies take two commits: to Alice's list with an odd number, and back with an even one.
private struct LargeMove: Sendable {
  let alice: TestDevice
  let second: TestDevice
  let number: Int

  var old: String { number.isMultiple(of: 2) ? "/list/big" : "/big" }
  var new: String { number.isMultiple(of: 2) ? "/big" : "/list/big" }

  /// The text that the second device writes during a move.
  static func text(_ number: Int) -> String { "text \(number)" }

  /// Creates two nodes more than a commit has.
  static func create(_ device: TestDevice) async throws {
    try await device.create("/big")
    try await device.create("/big/large", TestContent(data: Data(repeating: 7, count: 300_000)))
    try await device.create("/big/small", "small")
    try await device.create("/big/edited", text(0))
    try await device.create(Limits.commitOperations - 2, in: "/big")
    try await device.sync()
  }

  /// Whether the device has uploaded content that is too large for a commit.
  static func sendsContent(_ device: TestDevice) -> Bool {
    device.network.requests.contains { $0.route.pattern.hasPrefix(Routes.blobs) }
  }

  /// The blobs of the nodes that are not edited. Content that is sent again has another one.
  func blobs(below path: String) async throws -> [BlobID] {
    var blobs: [BlobID] = []
    for name in ["/large", "/small"] {
      let uuid = try await alice.node(path + name).uuid
      let row = try await alice.database.read { try $0.nodes.node(uuid: uuid) }
      blobs.append(try #require(row?.content?.content.blobID))
    }
    return blobs
  }

  /// Moves the folder. The other device edits a node at its old place before the second commit, and Alice's device is
  /// killed with the given one.
  func run(killedAt commit: Int, isStored: Bool) async throws {
    let (alice, second, edited, text) = (alice, second, old + "/edited", Self.text(number))
    try await alice.move(old, to: new)
    let edit: @Sendable () async throws -> Void = {
      try await second.edit(edited, text)
      try await second.push()
    }
    alice.network.fail(.before(edit), "POST", Routes.commits, occurrence: 2)
    let kill: @Sendable () async throws -> Void = { alice.die(afterCommits: isStored ? 1 : 0) }
    alice.network.fail(isStored ? .after(kill) : .before(kill), "POST", Routes.commits, occurrence: commit)
    do { try await alice.sync() } catch { #expect(alice.isDead, "\(error)") }
    #expect(alice.isDead)
    try await alice.relaunch()
  }
}
