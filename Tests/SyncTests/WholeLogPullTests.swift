import Testing
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZeroDarkCloud

/// First pulls of a log that is longer than a page.
struct WholeLogPullTests {
  /// Alice's tree, which she shares with Bob. He has not accepted it yet, and gets short pages.
  private struct Stage {
    let hostile: HostileServer
    let alice: TestDevice
    let bob: TestDevice
    let zone: ZoneID

    init(_ world: TestWorld) async throws {
      hostile = HostileServer(world.server)
      alice = try await world.device("alice")
      bob = try await TestDevice("bob", server: world.server, clock: world.clock, through: hostile)
      zone = ZoneID(trunkOf: TreeID.derive(owner: try alice.userID, trunk: .home, appTreeID: TestDevice.treeID))
      _ = try await bob.createAccount()
      try await alice.meet(bob)
      try await alice.share(with: bob)
      try await alice.create("/note", "1")
      try await alice.sync()
      hostile.tell(WholeLogPullTests.shortPages, to: "bob")
    }

    /// Bob's requests for the tree's log.
    var requests: [String] {
      bob.network.requests.map(\.path).filter { $0.contains("/\(zone.tree.text)/") && $0.contains("/commits?") }
    }

    /// Breaks the connection of Bob's next request for a whole log.
    func cut(afterBytes count: Int) {
      bob.network.fail(.cutResponse(afterBytes: count), "GET", Routes.zoneCommits, query: "whole=1")
    }

    /// Expects that Bob has what Alice has, and closes his device.
    func end() async throws {
      try await bob.download()
      #expect(try await bob.tree(of: alice) == alice.tree(versions: false))
      #expect(try await bob.securityErrors().isEmpty)
      try await bob.close()
    }
  }

  /// Reduces each page to its first two commits. This is no lie: a server may do so.
  private static let shortPages = Lie { answer in
    guard answer.route.pattern == Routes.zoneCommits, answer.isBundle, !answer.path.contains("whole=1") else {
      return false
    }
    var commits = 0
    let kept = answer.items.filter { item in
      defer { if item.kind == .commit { commits += 1 } }
      return commits < 2 && item.kind != .record
    }
    guard commits > 2 else { return false }
    answer.items = kept
    answer.headers[WireHeaders.more] = "1"
    return true
  }

  /// Ten more nodes, and ten changes of a member's rights.
  private static func write(_ alice: TestDevice, sharingWith carol: TestDevice) async throws {
    try await alice.meet(carol)
    for number in 0..<10 {
      try await alice.share(with: carol, number % 2 == 0 ? "r" : "rws")
      try await alice.create("/\(number)", "\(number)")
      try await alice.sync()
    }
  }

  /// - A log has ten pages and more, and in it ten access lists as edits of the one before
  /// => a new member gets it with two requests
  @Test func aLongLogTakesTwoRequests() async throws {
    try await TestWorld.run { world in
      let stage = try await Stage(world)
      let (alice, bob) = (stage.alice, stage.bob)
      let carol = try await world.device("carol", account: "carol")
      try await Self.write(alice, sharingWith: carol)
      let rest = try await alice.api.log(stage.zone, after: 1, withEdits: true).body.collect(upTo: 1 << 20)
      var reader = ZDCProtocol.Bundle.Reader(rest)
      let edits = try reader.all().filter { item in if case .aclEdit = item { true } else { false } }
      #expect(edits.count >= 10)
      bob.network.resetCounts()
      try await bob.accept(alice)
      #expect(stage.requests.count == 2, "\(stage.requests)")
      #expect(stage.requests.map { $0.contains("whole=1") } == [false, true])
      let root = try bob.path("", of: alice)
      #expect(try await bob.members(carol, of: root) == ["carol": "rws"])
      try await stage.end()
    }
  }

  /// - The answer with the rest of a log breaks off before it has a page
  /// => the pull fails, and the next one asks again
  @Test(arguments: [0, 40, 3_000]) func anAnswerThatBreaksOffIsAskedForAgain(afterBytes count: Int) async throws {
    try await TestWorld.run { world in
      let stage = try await Stage(world)
      let (alice, bob) = (stage.alice, stage.bob)
      let carol = try await world.device("carol", account: "carol")
      try await Self.write(alice, sharingWith: carol)
      stage.cut(afterBytes: count)
      await #expect(throws: TransportError.self) { try await bob.accept(alice) }
      #expect(bob.network.hasStruck)
      try await bob.accept(alice)
      try await stage.end()
    }
  }
}
