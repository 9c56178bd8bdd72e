import Testing
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZeroDarkCloud

/// Access lists that a device pulls as edits of the list before.
struct ListEditPullTests {
  /// Alice's tree with eight members, and twenty changes of one of them.
  private static func changedOften(_ world: TestWorld) async throws -> (alice: TestDevice, members: [TestDevice]) {
    let alice = try await world.device("alice")
    var members: [TestDevice] = []
    for number in 1...8 {
      let member = try await world.device("member \(number)", account: "member \(number)")
      try await alice.meet(member)
      try await alice.share(with: member)
      members.append(member)
    }
    try await alice.create("/note", "1")
    try await alice.sync()
    for number in 0..<20 {
      try await alice.share(with: members[0], number % 2 == 0 ? "r" : "rws")
      try await alice.sync()
    }
    return (alice, members)
  }

  /// - A tree's list of nine users has changed 20 times
  /// => a new member's device gets the changes, in less than half of the bytes of the whole lists
  @Test func aFirstPullGetsListsAsEdits() async throws {
    try await TestWorld.run { world in
      let (alice, members) = try await Self.changedOften(world)
      let member = try #require(members.last)
      let zone = ZoneID(trunkOf: TreeID.derive(owner: try alice.userID, trunk: .home, appTreeID: TestDevice.treeID))
      let whole = try await alice.api.commitPage(zone, after: nil, withRecords: false).body.count
      let lists = try PageContents(try await alice.api.commitPage(zone, after: nil, withRecords: false).body).lists
      let listBytes = lists.values.reduce(0) { $0 + $1.bytes.count }
      member.network.resetCounts()
      try await member.accept(alice)
      let pages = member.network.requests.filter { $0.path.contains("/commits?") && $0.path.contains(zone.root.text) }
      let received = pages.reduce(0) { $0 + $1.bytesReceived }
      #expect(pages.count == 1 && lists.count == 22)
      #expect(received < whole - listBytes / 2, "\(received) of \(whole), \(listBytes) in lists")
      try await member.download()
      #expect(try await member.tree(of: alice) == alice.tree(versions: false))
      let root = try member.path("", of: alice)
      #expect(try await member.members(members[0], members[1], of: root) == ["member 1": "rws", "member 2": "rw"])
    }
  }

  /// - The server turns a bit in the signature of an edit that a member gets
  /// => nothing of the page is applied and the tree is not frozen; the next pull applies it
  @Test(arguments: [-1, 0]) func anAlteredEditIsAskedForAgain(offset: Int) async throws {
    try await TestWorld.run { world in
      let hostile = HostileServer(world.server)
      let alice = try await world.device("alice")
      let carol = try await world.device("carol", account: "carol")
      let bob = try await TestDevice("bob", server: world.server, clock: world.clock, through: hostile)
      _ = try await bob.createAccount()
      for other in [bob, carol] { try await alice.meet(other) }
      try await alice.share(with: bob)
      try await alice.share(with: carol)
      try await alice.sync()
      try await bob.accept(alice)
      hostile.tell(Self.turnBitOfEdits(at: offset), to: "bob")
      try await alice.share(with: bob, "r")
      try await alice.sync()
      await #expect(throws: ZDCSecurityError.self) { try await bob.pull() }
      #expect(hostile.liesTold > 0)
      let root = try bob.path("", of: alice)
      #expect(try await bob.members(bob, of: root) == ["bob": "rw"])
      hostile.stopTampering()
      try await bob.pull()
      #expect(try await bob.members(bob, of: root) == ["bob": "r"])
      try await bob.close()
    }
  }

  /// The type of an edit in a bundle.
  private static let editType: UInt8 = 8

  private static func turnBitOfEdits(at offset: Int) -> Lie {
    Lie { answer in
      guard answer.isBundle else { return false }
      var items = answer.items
      for index in items.indices where items[index].type == editType {
        let position = offset < 0 ? items[index].bytes.count + offset : offset
        items[index].bytes[position] ^= 1
      }
      guard items != answer.items else { return false }
      answer.items = items
      return true
    }
  }
}
