import Foundation
import Testing
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCAccounts
@testable import ZDCSync
@testable import ZeroDarkCloud

/// Access lists that a device pulls as edits of the list before.
struct ListEditPullTests {
  /// The number of members and of changes that `ZDC_LISTS` says; nil for 8 and 20.
  private static let lists = ProcessInfo.processInfo.environment["ZDC_LISTS"].flatMap { Int($0) }

  /// Alice's tree with eight members or more, one of whom has got other rights twenty times or more.
  private struct Stage {
    let alice: TestDevice
    /// The member whose rights change, one who has accepted the tree before, and one who has not.
    let members: [TestDevice]
    /// The requests of the first pull with two lists, by route.
    let fewLists: [String: Int]

    init(_ world: TestWorld) async throws {
      alice = try await world.device("alice")
      var members: [TestDevice] = []
      for name in ["changed", "early", "late"] {
        members.append(try await world.device(name, account: name))
        try await alice.meet(members[members.count - 1])
        try await alice.share(with: members[members.count - 1])
      }
      let count = ListEditPullTests.lists.map { min($0, Limits.aclEntries - 1) } ?? 8
      try await Self.share(alice, withNewUsers: count - members.count, world)
      try await alice.create("/note", "1")
      try await alice.sync()
      fewLists = try await Self.firstPull(members[1], of: alice)
      for number in 0..<Self.changes {
        try await alice.share(with: members[0], number == Self.changes - 1 ? "rws" : number % 2 == 0 ? "r" : "rw")
        try await alice.push()
      }
      try await alice.sync()
      self.members = members
    }

    static let changes = ListEditPullTests.lists ?? 20

    /// Accepts the tree, and returns the requests for that by route.
    static func firstPull(_ member: TestDevice, of alice: TestDevice) async throws -> [String: Int] {
      member.network.resetCounts()
      try await member.accept(alice)
      return Dictionary(grouping: member.network.requests, by: \.route.pattern).mapValues(\.count)
    }

    /// Shares the tree with users who have no running device.
    private static func share(_ alice: TestDevice, withNewUsers count: Int, _ world: TestWorld) async throws {
      let crowd = try await TestDevice("crowd", server: world.server, clock: world.clock)
      for _ in 0..<count { try await crowd.createAccount() }
      let users = crowd.localUserIDs
      try await crowd.close()
      let session = try await alice.syncManager.engine(for: try alice.localUserID).session
      let known = try await session.identities.recipients(users.compactMap { UserID(text: $0) }, own: session.keys).keys
      #expect(known.count == count)
      try await alice.write { _, cloud in
        let home = try #require(cloud.trunkNode(.home)).uuid
        for user in users {
          _ = try cloud.share(nodeID: home, withUserID: user, item: ZDCShareItem(permissions: "rw"))
        }
      }
    }
  }

  /// - A tree's list of nine users has changed 20 times; `ZDC_LISTS` says how many users and changes there are instead
  /// => a new member's device gets the changes, in less than half of the bytes of the whole lists, and with as many
  ///   requests as one that had to read two lists
  @Test func aFirstPullGetsListsAsEdits() async throws {
    try await TestWorld.run { world in
      let stage = try await Stage(world)
      let (alice, members) = (stage.alice, stage.members)
      let member = members[2]
      let zone = ZoneID(trunkOf: TreeID.derive(owner: try alice.userID, trunk: .home, appTreeID: TestDevice.treeID))
      let whole = try await alice.api.log(zone, after: nil).body.collect(upTo: 1 << 30)
      let lists = try PageContents(whole).lists
      let listBytes = lists.values.reduce(0) { $0 + $1.bytes.count }
      let requests = try await Stage.firstPull(member, of: alice)
      let pages = member.network.requests.filter { $0.path.contains("/commits?") && $0.path.contains(zone.root.text) }
      let received = pages.reduce(0) { $0 + $1.bytesReceived }
      #expect(lists.count == Stage.changes + 2 && pages.count <= (Self.lists == nil ? 1 : 2))
      #expect(received < whole.count - listBytes / 2, "\(received) of \(whole.count), \(listBytes) in lists")
      Self.expect(requests, asFewAs: stage.fewLists)
      try await member.download()
      #expect(try await member.tree(of: alice) == alice.tree(versions: false))
      let root = try member.path("", of: alice)
      #expect(try await member.members(members[0], members[1], of: root) == ["changed": "rws", "early": "rw"])
    }
  }

  /// A log that is longer than a page takes one request more.
  private static func expect(_ requests: [String: Int], asFewAs few: [String: Int]) {
    for (route, count) in requests {
      let further = route == Routes.zoneCommits && lists != nil ? 1 : 0
      #expect(count <= few[route, default: 0] + further, "\(route): \(requests), and before \(few)")
    }
    #expect(requests.values.reduce(0, +) < 20, "\(requests)")
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
