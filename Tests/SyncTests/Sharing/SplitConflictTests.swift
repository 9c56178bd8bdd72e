import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// A request with the commits of two zones, a split, that the server refuses because of either of them (S-12).
struct SplitConflictTests {
  typealias People = ListChangeTests.People

  /// Creates a folder whose ID is before that of the home trunk's root, or after it: the server compares the zones of a
  /// request in that order.
  private static func folder(_ alice: TestDevice, isFirst: Bool) async throws -> String {
    let root = NodeID(prefixOf: TreeID.derive(owner: try alice.userID, trunk: .home, appTreeID: TestDevice.treeID))
    for number in 0..<64 {
      let path = "/list\(number)"
      let node = try await alice.create(path, "top")
      if let id = NodeID(text: node.cloudID), (id < root) == isFirst { return path }
    }
    throw TestFailure("no folder has a fitting ID")
  }

  /// - two devices of the owner share the same folder at the same moment, and the server finds first that the new zone
  ///   exists, or that the trunk has another commit
  /// => there is one zone, whose list has both members
  @Test(arguments: [false, true]) func bothDevicesShareAtOnce(isInnerZoneFirst: Bool) async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      let path = try await Self.folder(alice, isFirst: isInnerZoneFirst)
      try await alice.sync()
      let second = try await world.device("second")
      try await second.sync()
      try await second.meet(carol)
      try await alice.share(path, with: bob)
      try await second.share(path, with: carol, "r")
      alice.network.fail(.before { try await second.sync() }, "POST", Routes.commits)
      try await alice.sync()
      #expect(try await alice.queueCount() == 0)
      try await world.settle(alice, second)
      for device in [alice, second] {
        #expect(try await device.members(bob, carol, of: path) == ["bob": "rw", "carol": "r"])
        let zones = try await device.database.read { try $0.zones.zones(localUser: 1).filter { !$0.isTrunk } }
        #expect(zones.count == 1)
      }
    }
  }

  /// - the answer to a split is a 409 with the page of another zone, which its header names
  /// => the client does not read that page as one of the zone whose request it was, but pulls that zone, and sends the
  ///   split again: for the new head, or the same bytes if there is none
  @Test(arguments: [false, true]) func aConflictOfAnotherZone(hasNews: Bool) async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let alice = people.alice
      try await alice.create("/list", "top")
      try await alice.sync()
      let hostile = HostileServer(world.server)
      let second = try await TestDevice("second", server: world.server, clock: world.clock, through: hostile)
      try await second.login(words: try #require(world.words()))
      try await second.sync()
      try await second.meet(people.bob)
      if hasNews {
        try await alice.create("/news", "news")
        try await alice.sync()
      }
      hostile.tell(try await Self.conflict(people), to: "second", times: 1)
      try await second.share("/list", with: people.bob)
      // Without a pull before it.
      if hasNews {
        try await second.push()
      } else {
        let error = await #expect(throws: ZDCServerError.self) { try await second.push() }
        #expect(error?.code == .headMismatch)
      }
      world.clock.advance(by: .seconds(600))
      try await second.sync()
      #expect(hostile.liesTold == 1)
      #expect(try await second.securityErrors() == [])
      #expect(try await second.queueCount() == 0)
      try await alice.sync()
      #expect(try await alice.members(people.bob, of: "/list") == ["bob": "rw"])
      try await second.close()
    }
  }

  /// A 409 about the prefs trunk, with its log.
  private static func conflict(_ people: People) async throws -> Lie {
    let rogue = try await people.rogue("alice", people.alice)
    let zone = ZoneID(
      trunkOf: TreeID.derive(owner: try people.alice.userID, trunk: .prefs, appTreeID: TestDevice.treeID))
    let page = try await rogue.page(of: zone)
    let head = try #require(try PageContents(page).commits.last).commit
    return .fabricate("POST", Routes.commits) { route, request in
      ServedAnswer(
        to: route, request: request, status: 409,
        headers: [
          "content-type": ZDCProtocol.Bundle.mediaType, WireHeaders.zone: "\(zone.tree.text)/\(zone.root.text)",
          WireHeaders.zoneHead: "\(head.fields.seq):\(head.hash.text)",
        ], body: page)
    }
  }
}
