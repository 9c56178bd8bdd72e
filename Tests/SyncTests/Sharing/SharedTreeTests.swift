import Foundation
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// The tree of another user: accepted, followed, changed, and lost again.
struct SharedTreeTests {
  typealias People = ListChangeTests.People

  /// The owner's tree with two members who have accepted it.
  private static func shared(_ world: TestWorld, _ letters: String = "rw") async throws -> People {
    let people = try await People(world)
    try await people.alice.create("/list")
    try await people.alice.create("/list/milk", "1 l")
    try await people.alice.share(with: people.bob, letters)
    try await people.alice.share(with: people.carol)
    try await people.alice.sync()
    for member in [people.bob, people.carol] {
      try await member.accept(people.alice)
      try await member.download()
    }
    return people
  }

  /// Expects that all people show the owner's tree alike, with content.
  private static func expectConvergence(_ people: People) async throws {
    try await people.world.settle(people.alice, people.bob, people.carol)
    let tree = try await people.alice.tree(versions: false)
    #expect(try await people.bob.tree(of: people.alice) == tree)
    #expect(try await people.carol.tree(of: people.alice) == tree)
  }

  private static func code(_ body: () async throws -> Void) async -> ZDCCloudError.Code? {
    do {
      try await body()
      return nil
    } catch { return (error as? ZDCCloudError)?.code }
  }

  @Test("G-1: an offered tree costs nothing until it is accepted")
  func anOfferIsFollowedOnRequestOnly() async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let (alice, bob) = (people.alice, people.bob)
      try await alice.create("/note", "for two")
      try await alice.share(with: bob)
      try await alice.sync()
      try await bob.sync()
      #expect(try await bob.tree(of: alice) == nil)
      let offered = try await bob.syncManager.offeredTrees(forLocalUserID: try bob.localUserID)
      #expect(offered.count == 1 && offered[0].ownerID == nil)
      let root = try await bob.accept(alice)
      #expect(root.cloudID == offered[0].cloudID && root.trunk == .detached)
      #expect(root.anchor?.userID == (try alice.localUserID))
      #expect(root.shareList.shareItem(forUserID: try bob.localUserID)?.permissions == "rw")
      #expect(try await bob.syncManager.offeredTrees(forLocalUserID: try bob.localUserID).isEmpty)
      #expect(bob.recorder.take().contains("new \(try bob.path("/note", of: alice).dropFirst("detached:".count))"))
      try await bob.download()
      #expect(try await bob.tree(of: alice) == "/note  \"for two\"")
      #expect(try await bob.tree() == "")
      // Accepting again changes nothing, and neither does a launch.
      try await bob.accept(alice)
      try await bob.relaunch()
      try await bob.sync()
      #expect(try await bob.tree(of: alice) == "/note  \"for two\"")
    }
  }

  @Test func aTreeWithoutAccess_isNotAccepted() async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      await #expect(throws: ServerError.self) { try await people.bob.accept(people.alice) }
      #expect(try await people.bob.tree(of: people.alice) == nil)
      let stranger = UserID.zero.text
      let found = await Self.code {
        _ = try await people.bob.syncManager.acceptTree(
          ofUserID: stranger, forLocalUserID: try people.bob.localUserID)
      }
      #expect(found == .unknownUser)
      try await people.bob.sync()
    }
  }

  @Test func membersCreateEditMoveAndDelete() async throws {
    try await TestWorld.run { world in
      let people = try await Self.shared(world)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      for device in [alice, bob, carol] { _ = device.recorder.take() }
      try await bob.create(try bob.path("/list/eggs", of: alice), "six")
      try await bob.edit(try bob.path("/list/milk", of: alice), "2 l")
      try await bob.sync()
      try await alice.sync()
      #expect(Set(alice.recorder.take()) == ["new /list/eggs", "modified data /list/milk"])
      try await Self.expectConvergence(people)
      #expect(try await alice.tree(versions: false) == "/list\n/list/eggs  \"six\"\n/list/milk  \"2 l\"")
      try await carol.move(try carol.path("/list/eggs", of: alice), to: try carol.path("/eggs", of: alice))
      try await carol.delete(try carol.path("/list/milk", of: alice))
      try await Self.expectConvergence(people)
      #expect(try await alice.tree(versions: false) == "/eggs  \"six\"\n/list")
    }
  }

  @Test func threePeopleEditAtOnce_andConverge() async throws {
    try await TestWorld.run { world in
      let people = try await Self.shared(world)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      // Offline: everything is queued before anyone sends.
      try await alice.rename("/list", to: "groceries")
      try await alice.create("/groceries/same", "alice")
      try await bob.create(try bob.path("/list/same", of: alice), "bob")
      try await bob.edit(try bob.path("/list/milk", of: alice), "bob's")
      try await carol.create(try carol.path("/list/sub", of: alice))
      try await carol.create(try carol.path("/list/sub/deep", of: alice), "carol")
      try await carol.delete(try carol.path("/list/milk", of: alice))
      try await Self.expectConvergence(people)
      let tree = try await alice.tree(versions: false)
      for line in ["/groceries/same  ", "/groceries/same 2  ", "/groceries/sub/deep  \"carol\""] {
        #expect(tree.contains(line), "\(tree)")
      }
      #expect(try await people.alice.queueCount() == 0)
    }
  }

  @Test func aReaderChangesNothing() async throws {
    try await TestWorld.run { world in
      let people = try await Self.shared(world, "r")
      let (alice, bob) = (people.alice, people.bob)
      let (milk, other) = (try bob.path("/list/milk", of: alice), try bob.path("/other", of: alice))
      let top = try bob.path("", of: alice)
      let refusals: [@Sendable () async throws -> Void] = [
        { try await bob.create(other, "no") }, { try await bob.edit(milk, "no") },
        { try await bob.rename(milk, to: "no") }, { try await bob.delete(milk) },
      ]
      for refusal in refusals { #expect(await Self.code(refusal) == .notAllowed) }
      #expect(await Self.code { try await bob.share(top, with: people.carol) } == .notAllowed)
      #expect(try await bob.queueCount() == 0)
    }
  }

  /// - Bob queues a change; in the meantime, the owner leaves him `r` only
  /// => the change waits with a reason, nothing is sent, and it goes out once he may write again
  @Test func aChangeThatIsNoLongerAllowed_waits() async throws {
    try await TestWorld.run { world in
      let people = try await Self.shared(world)
      let (alice, bob) = (people.alice, people.bob)
      let milk = try bob.path("/list/milk", of: alice)
      try await bob.edit(milk, "bob's")
      try await alice.share(with: bob, "r")
      try await alice.sync()
      try await bob.sync()
      let explained = try #require(try await bob.explain(milk))
      #expect(explained.operations.map(\.reason) == [.notAllowed])
      let before = try world.server.commitCount()
      try await bob.sync()
      #expect(try world.server.commitCount() == before)
      try await alice.share(with: bob, "rw")
      try await alice.sync()
      try await bob.sync()
      try await Self.expectConvergence(people)
      #expect(try await alice.content(of: "/list/milk")?.data == Data("bob's".utf8))
    }
  }

  @Test("seed 003:270: a changed list is a modified node with .treesystem", arguments: [false, true])
  func aChangedListIsAnnounced(isRemoval: Bool) async throws {
    try await TestWorld.run { world in
      let people = try await Self.shared(world)
      let second = try await world.device("second")
      try await second.sync()
      let devices = [people.alice, second, people.bob]
      for device in devices { _ = device.recorder.take() }
      if isRemoval {
        try await people.alice.unshare(with: people.carol)
      } else {
        try await people.alice.share(with: people.carol, "r")
      }
      for device in devices { try await device.sync() }
      let root = try people.bob.path("", of: people.alice).dropFirst("detached:".count)
      #expect(people.alice.recorder.take() == [])
      #expect(second.recorder.take() == ["modified treesystem /"])
      #expect(people.bob.recorder.take() == ["modified treesystem \(root)"])
      let item = try await people.bob.node(try people.bob.path("", of: people.alice)).shareList
        .shareItem(forUserID: try people.carol.localUserID)
      #expect(item?.permissions == (isRemoval ? nil : "r"))
    }
  }

  // MARK: Losing access

  /// - Bob is removed while he has queued changes
  /// => his nodes go with one call per branch, and the journal names what was not sent
  @Test("K-14: the signed removal ends the member's copy")
  func aRemovedMemberLosesTheTree() async throws {
    try await TestWorld.run { world in
      let people = try await Self.shared(world)
      let (alice, bob) = (people.alice, people.bob)
      try await bob.edit(try bob.path("/list/milk", of: alice), "unsent")
      let milk = try await bob.node(try bob.path("/list/milk", of: alice)).uuid
      try await alice.unshare(with: bob)
      try await alice.sync()
      _ = bob.recorder.take()
      try await bob.sync()
      let list = try bob.path("/list", of: alice).dropFirst("detached:".count)
      #expect(bob.recorder.take() == ["deleted \(list)"])
      #expect(try await bob.tree(of: alice) == nil)
      #expect(try await bob.queueCount() == 0)
      let journal = try await bob.write { _, cloud in cloud.mergeJournal(forNodeID: milk) }
      #expect(journal.map(\.kind) == [.accessLost])
      try await bob.sync()
      // The others continue, and an invitation begins a new copy.
      try await alice.edit("/list/milk", "after")
      try await world.settle(alice, people.carol)
      #expect(
        try await people.carol.content(of: try people.carol.path("/list/milk", of: alice))?.data
          == Data("after".utf8))
      try await alice.share(with: bob)
      try await alice.sync()
      try await bob.accept(alice)
      try await Self.expectConvergence(people)
    }
  }

  @Test("K-14: a bare 404 changes nothing")
  func a404IsNoProof() async throws {
    try await TestWorld.run { world in
      let people = try await Self.shared(world)
      let (alice, bob) = (people.alice, people.bob)
      try await alice.edit("/list/milk", "news")
      try await alice.sync()
      let tree = try await bob.tree(of: alice)
      bob.network.fail(.answer(status: 404, code: "notFound"), "GET", Routes.zoneCommits)
      await #expect(throws: (any Error).self) { try await bob.pull() }
      #expect(try await bob.tree(of: alice) == tree && tree != nil)
      #expect(try await bob.securityErrors() == [])
      bob.network.restoreNetwork()
      try await Self.expectConvergence(people)
    }
  }

  @Test("the app's error keeps a branch until the next pull")
  func anAppThatThrows_isAskedAgain() async throws {
    struct Refused: Error {}
    try await TestWorld.run { world in
      let people = try await Self.shared(world)
      let (alice, bob) = (people.alice, people.bob)
      bob.recorder.on(.deleted) { _, _ in throw Refused() }
      try await alice.unshare(with: bob)
      try await alice.sync()
      await #expect(throws: Refused.self) { try await bob.pull() }
      #expect(try await bob.tree(of: alice) != nil)
      try await bob.pull()
      #expect(try await bob.tree(of: alice) == nil)
    }
  }

  // MARK: Leaving

  @Test("R4, K-7: a member leaves, and the owner's next sync rotates once")
  func leaving() async throws {
    try await TestWorld.run { world in
      let people = try await Self.shared(world)
      let (alice, bob) = (people.alice, people.bob)
      let second = try await world.device("second")
      try await second.sync()
      let root = try await bob.node(try bob.path("", of: alice)).uuid
      let own = try bob.localUserID
      try await bob.write { _, cloud in _ = try cloud.unshare(nodeID: root, withUserID: own) }
      try await bob.sync()
      #expect(try await bob.tree(of: alice) == nil)
      #expect(try await people.home().acl.fields.zoneKeyGen == 1)
      try await alice.pull()
      try await second.pull()
      try await world.settle(alice, second, people.carol)
      let home = try await people.home()
      #expect(home.acl.fields.zoneKeyGen == 2)
      #expect(home.acl.fields.entry(for: try bob.userID) == nil)
      #expect(try await alice.queueCount() == 0)
      #expect(try await second.queueCount() == 0)
    }
  }

  /// - a member leaves, and the owner's only device is lost; the owner logs in on a new one
  /// => its first pull replaces the key, which the member still has
  @Test func aNewDeviceOfTheOwner_replacesTheKeyOfAMemberWhoHasLeft() async throws {
    try await TestWorld.run { world in
      let people = try await Self.shared(world)
      let (alice, bob) = (people.alice, people.bob)
      let root = try await bob.node(try bob.path("", of: alice)).uuid
      let own = try bob.localUserID
      try await bob.write { _, cloud in _ = try cloud.unshare(nodeID: root, withUserID: own) }
      try await bob.sync()
      #expect(try await people.home().acl.fields.zoneKeyGen == 1)
      let second = try await world.device("second")
      for _ in 0..<2 { try await second.sync() }
      #expect(try await people.home().acl.fields.zoneKeyGen == 2)
      try await world.settle(alice, second, people.carol)
    }
  }

  // MARK: Keys

  /// - Bob keeps all keys that he had; he is removed, and others write and rename
  /// => nothing that was written afterwards opens with them, and the receipt of the log names the removal
  @Test func aRemovedMembersKeys_openNothingNew() async throws {
    try await TestWorld.run { world in
      let people = try await Self.shared(world)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      let before = try await people.home()
      let old = [before.root.key] + before.nodes.values.map(\.key)
      try await alice.unshare(with: bob)
      try await alice.edit("/list/milk", "secret")
      try await alice.create("/list/new", "secret too")
      try await alice.sync()
      try await carol.pull()
      try await carol.rename(try carol.path("/list/new", of: alice), to: "renamed")
      try await world.settle(carol, alice)
      let removal = try #require(try await people.home().commits.last { $0.fields.operations.count == 2 })
      let objects = try await people.rogue("alice", alice).homeObjects()
      let written = objects.records.filter { record in !before.nodes.values.contains { $0.record.hash == record.hash } }
      #expect(written.count >= 3 && removal.fields.seq > 0)
      for record in written {
        for key in old { #expect(throws: ZDCSecurityError.self) { try RecordOpener.open(record, key: key) } }
      }
    }
  }

  /// - Bob is removed; two devices of Alice run in the background, and one of them is busy with edits
  /// => all nodes get new keys without a request of the app, and nothing more is sent
  @Test func oldKeysAreReplacedInTheBackground() async throws {
    try await TestWorld.run { world in
      let people = try await Self.shared(world)
      let (alice, bob) = (people.alice, people.bob)
      try await alice.create(20, in: "/list")
      try await alice.sync()
      let second = try await world.device("second")
      try await second.pull()
      try await alice.unshare(with: bob)
      try await alice.sync()
      for device in [alice, second] {
        device.engineClock = world.clock.engineClock
        try await device.relaunch()
      }
      let runs = try [alice.runInBackground(), second.runInBackground()]
      defer { for run in runs { run.cancel() } }
      let isDone: @Sendable () async throws -> Bool = {
        let isStale = try await people.home().nodes.values.contains { $0.record.fields.keyGen == 1 }
        let queued = try await alice.queueCount()
        return !isStale && queued == 0
      }
      // The devices lose against each other and pause, so the number of steps varies. The clock advances once for each
      // reading of the tree, so that a busy machine slows the clock too.
      for step in 0..<1_000 {
        if step == 1 { try await alice.edit("/list/milk", "later") }
        world.clock.advance(by: .seconds(5))
        try await Task.sleep(for: .milliseconds(20))
        if try await isDone() { break }
      }
      #expect(try await isDone())
      let commits = try world.server.commitCount()
      for _ in 0..<24 {
        world.clock.advance(by: .seconds(5))
        try await Task.sleep(for: .milliseconds(20))
      }
      #expect(try world.server.commitCount() == commits)
      for run in runs {
        run.cancel()
        await run.value
      }
      try await world.settle(alice, second, people.carol)
    }
  }

  @Test("a receipt names the removal and what still has old keys", arguments: [false, true])
  func receiptsAndOldKeys(isEager: Bool) async throws {
    try await TestWorld.run { world in
      let people = try await Self.shared(world)
      let (alice, bob) = (people.alice, people.bob)
      try await alice.create("/other", "untouched")
      try await alice.create(1_200, in: "/list")
      try await alice.sync()
      let receipts: @Sendable () async throws -> [ZDCAccessReceipt] = {
        try await alice.write { _, cloud in
          cloud.trunkNode(.home).map { cloud.accessReceipts(forNodeID: $0.uuid) } ?? []
        }
      }
      #expect(try await receipts().isEmpty)
      try await alice.unshare(with: bob)
      try await alice.sync()
      let receipt = try #require(try await receipts().first)
      #expect(receipt.userID == (try bob.localUserID))
      #expect(receipt.removedByUserID == (try alice.localUserID))
      #expect(receipt.isKeyReplaced && receipt.lastKeyGeneration == 1 && receipt.nodesWithOldKeys == 1_203)
      let head = try await people.home().commits.last
      #expect(receipt.commitNumber == head?.fields.seq && receipt.commitHash == head?.hash.text)
      guard isEager else { return }
      let (before, user) = (try world.server.commitCount(), try alice.localUserID)
      try await alice.syncManager.pausePush(forLocalUserID: user)
      #expect(try await alice.syncManager.replaceOldKeys(forLocalUserID: user) == 1_203)
      try await alice.syncManager.resumePush(forLocalUserID: user)
      #expect(try await alice.syncManager.replaceOldKeys(forLocalUserID: user) == 0)
      let after = try world.server.commitCount()
      // A commit has up to a thousand nodes, those below others included.
      #expect(after == before + 2)
      #expect(try await receipts().map(\.nodesWithOldKeys) == [0])
      let home = try await people.home()
      #expect(home.nodes.values.allSatisfy { $0.record.fields.keyGen == 2 && $0.record.fields.parentKeyGen == 2 })
      #expect(try await alice.syncManager.replaceOldKeys(forLocalUserID: user) == 0)
      #expect(try world.server.commitCount() == after)
      let fresh = try await world.device("fresh")
      try await world.settle(fresh, people.carol)
      #expect(try await fresh.content(of: "/other")?.data == Data("untouched".utf8))
    }
  }
}
