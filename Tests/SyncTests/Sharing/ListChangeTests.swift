import Foundation
import GRDB
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Changes of an access list: queued by an app, sent as one version, and repeated until their outcome is known.
struct ListChangeTests {
  struct People: Sendable {
    let world: TestWorld
    let alice: TestDevice
    let bob: TestDevice
    let carol: TestDevice

    init(_ world: TestWorld) async throws {
      self.world = world
      alice = try await world.device("alice")
      bob = try await world.device("bob", account: "bob")
      carol = try await world.device("carol", account: "carol")
      for device in [alice, bob, carol] { try await device.sync() }
      try await alice.meet(bob)
      try await alice.meet(carol)
    }

    func rogue(_ account: String, _ device: TestDevice) async throws -> RogueWriter {
      try await RogueWriter(
        words: try #require(world.words(of: account)), user: try device.userID, server: world.server)
    }

    /// The home trunk of the owner, as its words open it on the server.
    func home() async throws -> RogueZone { try await rogue("alice", alice).home() }
  }

  private func code(_ body: () async throws -> Void) async -> ZDCCloudError.Code? {
    do {
      try await body()
      return nil
    } catch { return (error as? ZDCCloudError)?.code }
  }

  @Test func sharing_addsAnEntryAndAGrantThatTheMemberOpens() async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      try await people.alice.create("/note", "for two")
      let queued = try await people.alice.share(with: people.bob)
      #expect(queued.count == 1 && queued[0].putType == .node_Rcrd)
      #expect(try await people.alice.queue().contains("changeList"))
      #expect(try await people.alice.members(people.bob) == [:])
      try await people.alice.sync()
      #expect(try await people.alice.members(people.bob) == ["bob": "rw"])
      #expect(try await people.alice.queueCount() == 0)
      let home = try await people.home()
      #expect(home.acl.fields.version == 2 && home.acl.fields.zoneKeyGen == 1)
      #expect(home.acl.fields.entry(for: try people.bob.userID)?.permissions == [.read, .write])
      let bob = try await people.rogue("bob", people.bob)
      let grants = try PageContents(try await bob.page(of: home.zone)).grants
      let wrapHash = try #require(home.acl.fields.entry(for: try people.bob.userID)?.wrapHash)
      #expect(try bob.keys.open(try #require(grants[wrapHash]), in: home.acl) == home.root.key)
    }
  }

  @Test("K-6a: all queued changes of a list are one version")
  func manyChanges_areOneVersion() async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      try await people.alice.share(with: people.bob, "r")
      try await people.alice.share(with: people.bob, "rws")
      try await people.alice.share(with: people.carol)
      let before = try world.server.commitCount()
      try await people.alice.sync()
      #expect(try world.server.commitCount() == before + 1)
      #expect(try await people.alice.members(people.bob, people.carol) == ["bob": "rws", "carol": "rw"])
      // Fewer letters, in the next version.
      try await people.alice.share(with: people.bob, "r")
      try await people.alice.sync()
      #expect(try await people.alice.members(people.bob) == ["bob": "r"])
      #expect(try await people.home().acl.fields.version == 3)
    }
  }

  @Test func addingAndRemovingBeforeItIsSent_sendsNothing() async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let before = try world.server.commitCount()
      try await people.alice.share(with: people.bob)
      #expect(try await people.alice.unshare(with: people.bob).isEmpty)
      #expect(try await people.alice.queueCount() == 0)
      try await people.alice.sync()
      #expect(try world.server.commitCount() == before)
      #expect(try await people.alice.unshare(with: people.bob).isEmpty)
    }
  }

  @Test func misuse_isATypedError() async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let (alice, bob) = (people.alice, people.bob)
      let (own, other) = (try alice.localUserID, try bob.localUserID)
      let home = try await alice.write { _, cloud in cloud.trunkNode(.home)?.uuid ?? "" }
      let prefs = try await alice.write { _, cloud in cloud.trunkNode(.prefs)?.uuid ?? "" }
      let stranger = UserID.zero.text
      let cases: [(String, String, String, ZDCCloudError.Code)] = [
        ("", other, home, .invalidParameter), ("w", other, home, .invalidParameter),
        ("rR", other, home, .invalidParameter), ("rw", own, home, .invalidParameter),
        ("rw", stranger, home, .unknownUser), ("rw", "nonsense", home, .unknownUser),
        ("rw", other, prefs, .unsupportedShare), ("rw", other, "nonsense", .invalidParameter),
      ]
      for (letters, user, node, expected) in cases {
        let found = await code {
          try await alice.write { _, cloud in
            _ = try cloud.share(nodeID: node, withUserID: user, item: ZDCShareItem(permissions: letters))
          }
        }
        #expect(found == expected, "\(letters) \(expected)")
      }
      // Without `try`, the whole transaction is given up.
      let found = await code {
        try await alice.write { _, cloud in
          try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["lost"]))
          #expect(cloud.recursiveAddShareItem(ZDCShareItem(), forUserID: other, nodeID: home).isEmpty)
        }
      }
      #expect(found == .invalidParameter)
      #expect(try await !alice.tree().contains("/lost"))
      try await alice.sync()
    }
  }

  @Test func aRemoval_replacesTheKeyInTheSameCommit() async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      try await people.alice.create("/folder")
      try await people.alice.create("/folder/note", "before")
      try await people.alice.share(with: people.bob)
      try await people.alice.share(with: people.carol)
      try await people.alice.sync()
      let old = try await people.home().root.key
      try await people.alice.unshare(with: people.bob)
      let before = try world.server.commitCount()
      try await people.alice.sync()
      #expect(try world.server.commitCount() == before + 1)
      let home = try await people.home()
      #expect(home.acl.fields.zoneKeyGen == 2 && home.root.key != old && home.root.record.fields.keyGen == 2)
      #expect(home.acl.fields.entry(for: try people.bob.userID) == nil)
      #expect(home.acl.fields.entries.count == 2)
      #expect(try await people.alice.members(people.bob, people.carol) == ["carol": "rw"])
      // The next write rotates its path, and everything stays readable on a fresh device.
      try await people.alice.edit("/folder/note", "after")
      try await people.alice.sync()
      let later = try await people.home()
      #expect(try later.node("folder").record.fields.keyGen == 2)
      #expect(try later.node("note").record.fields.keyGen == 2)
      let fresh = try await world.device("fresh")
      try await world.settle(people.alice, fresh)
      #expect(try await fresh.content(of: "/folder/note")?.data == Data("after".utf8))
    }
  }

  @Test("each commit of a list change is repeated byte for byte", arguments: [false, true], [false, true])
  func aLostAnswer(isRemoval: Bool, isRelaunched: Bool) async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let alice = people.alice
      try await alice.create("/note", "text")
      if isRemoval {
        try await alice.share(with: people.bob)
        try await alice.sync()
        try await alice.unshare(with: people.bob)
      } else {
        try await alice.sync()
        try await alice.share(with: people.bob)
      }
      let before = try world.server.commitCount()
      alice.network.fail(.loseResponse, "POST", "/v1/commits")
      await #expect(throws: (any Error).self) { try await alice.push() }
      if isRelaunched { try await alice.relaunch() }
      try await alice.sync()
      #expect(try world.server.commitCount() == before + 1)
      #expect(try await alice.members(people.bob) == (isRemoval ? [:] : ["bob": "rw"]))
      try await alice.edit("/note", "later")
      try await alice.sync()
      #expect(try await alice.queueCount() == 0)
    }
  }

  @Test("a request that never left is made again", arguments: [false, true])
  func aLostRequest(isRemoval: Bool) async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      try await people.alice.share(with: people.bob)
      if isRemoval {
        try await people.alice.sync()
        try await people.alice.unshare(with: people.bob)
      }
      people.alice.network.fail(.loseRequest, "POST", "/v1/commits")
      await #expect(throws: (any Error).self) { try await people.alice.push() }
      try await people.alice.relaunch()
      try await people.alice.sync()
      #expect(try await people.alice.members(people.bob) == (isRemoval ? [:] : ["bob": "rw"]))
      #expect(try await people.home().acl.fields.zoneKeyGen == (isRemoval ? 2 : 1))
    }
  }

  @Test(
    "killed after each of its transactions, a change of a list is made once, and no other user has access meanwhile",
    arguments: [false, true], [TestDevice.Network.dead, .alive])
  func killedAnywhere(isRemoval: Bool, network: TestDevice.Network) async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let (alice, bob) = (people.alice, people.bob)
      try await alice.create("/note", "first")
      try await alice.share(with: people.carol)
      var kills = 0
      for commits in 0..<14 {
        if isRemoval { try await alice.share(with: bob) } else { try await alice.unshare(with: bob) }
        try await alice.sync()
        let before = try await people.home()
        if isRemoval { try await alice.unshare(with: bob) } else { try await alice.share(with: bob) }
        try await alice.edit("/note", "\(commits)")
        alice.die(afterCommits: commits, network: network)
        do { try await alice.sync() } catch { #expect(alice.isDead, "\(error)") }
        let isKilled = alice.isDead
        if isKilled { kills += 1 }
        try await people.expectAccess(after: before, isRemoval: isRemoval, isComplete: false)
        try await alice.relaunch()
        try await alice.sync()
        try await people.expectAccess(after: before, isRemoval: isRemoval, isComplete: true)
        #expect(try await alice.members(bob) == (isRemoval ? [:] : ["bob": "rw"]))
        #expect(try await alice.queueCount() == 0)
        if !isKilled { break }
      }
      #expect(kills >= 2 && kills < 14, "\(kills)")
    }
  }

  /// - Two devices of the owner change the list at once
  /// => the second one makes its version again, after that of the first
  @Test func changesOfTwoDevices_areBothInForce() async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let (alice, second) = (people.alice, try await world.device("second"))
      try await second.sync()
      try await second.meet(people.carol)
      try await alice.share(with: people.bob)
      try await second.share(with: people.carol)
      try await alice.create("/note", "text")
      try await world.settle(alice, second)
      for device in [alice, second] {
        #expect(try await device.members(people.bob, people.carol) == ["bob": "rw", "carol": "rw"])
      }
      try await alice.unshare(with: people.bob)
      try await second.unshare(with: people.carol)
      try await second.edit("/note", "by the second")
      try await world.settle(second, alice)
      for device in [alice, second] { #expect(try await device.members(people.bob, people.carol) == [:]) }
      #expect(try await people.home().acl.fields.zoneKeyGen == 3)
      #expect(try await alice.content(of: "/note")?.data == Data("by the second".utf8))
    }
  }

  /// - A verified user's words are changed before, or after, the change of the list is queued
  /// => the user gets no access until the change is accepted; a member keeps theirs
  @Test("K-10: a changed identity gets no new access before it is accepted", arguments: [true, false])
  func changedIdentity_waitsForAcceptance(isQueuedFirst: Bool) async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let users = try #require(try people.alice.zdc.userManager)
      let bob = try people.bob.localUserID
      try await users.verify(bob)
      if isQueuedFirst { try await people.alice.share(with: people.bob) }
      let accounts = try #require(try people.bob.zdc.localUserManager)
      world.setWords(try await accounts.changeAccessWords(for: bob), of: "bob")
      if !isQueuedFirst {
        #expect(try await users.fetchUser(id: bob, for: people.alice.localUserID).identity == .changed)
        let error = await #expect(throws: ZDCSecurityError.self) { try await people.alice.share(with: people.bob) }
        #expect(error?.code == .identityChangedNeedsAcceptance)
      }
      try await people.alice.sync()
      #expect(try await people.home().acl.fields.entries.count == 1)
      let reason = try await people.alice.database.read { transaction in
        try String.fetchOne(transaction.database, sql: "SELECT reasonDetail FROM zdc_operation")
      }
      #expect(reason == (isQueuedFirst ? "identityChangedNeedsAcceptance" : nil))
      try await users.acceptIdentityChange(bob)
      try await people.alice.share(with: people.bob)
      world.clock.advance(by: .seconds(600))
      try await people.alice.sync()
      #expect(try await people.home().acl.fields.entries.count == 2)
    }
  }

  @Test func aMemberWithAClosedAccount_doesNotPreventARemoval() async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      try await people.alice.share(with: people.bob)
      try await people.alice.share(with: people.carol)
      try await people.alice.sync()
      try await #require(try people.carol.zdc.localUserManager).closeAccount(people.carol.localUserID)
      try await people.alice.unshare(with: people.bob)
      try await people.alice.sync()
      #expect(try await people.alice.queueCount() == 0)
      #expect(try await people.alice.members(people.bob, people.carol) == ["carol": "rw"])
      #expect(try await people.home().acl.fields.zoneKeyGen == 2)
    }
  }

  /// - a removal and an addition are queued; the server refuses the list that has both
  /// => the removal is sent without the addition, which is sent later
  @Test func aRefusedAdditionDoesNotDelayARemoval() async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      try await alice.share(with: bob)
      try await alice.sync()
      try await alice.share(with: carol)
      try await alice.unshare(with: bob)
      alice.network.fail(.answer(status: 422, code: "refused"), "POST", Routes.commits)
      try await alice.sync()
      #expect(try await alice.members(bob, carol) == [:])
      #expect(try await people.home().acl.fields.zoneKeyGen == 2)
      #expect(try await alice.queueCount() == 1)
      world.clock.advance(by: .seconds(600))
      try await alice.sync()
      #expect(try await alice.members(bob, carol) == ["carol": "rw"])
    }
  }

  /// - the server does not show new links of any chain
  /// => a member is removed all the same: the others get the key under those that this device knows
  @Test func chainsThatAreNotFoundDoNotDelayARemoval() async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      for member in [bob, carol] { try await alice.share(with: member) }
      try await alice.sync()
      try await alice.unshare(with: bob)
      alice.network.fail(.answer(status: 404, code: "notFound"), "POST", Routes.chains, times: 10)
      try await alice.sync()
      #expect(try await alice.members(bob, carol) == ["carol": "rw"])
      #expect(try await people.home().acl.fields.zoneKeyGen == 2)
    }
  }

  /// - a change of the list, or the first list of a folder, would exceed a limit: the next number of a record or a key
  /// => it waits and says so, and everything else is sent
  @Test(arguments: [false, true]) func aChangeBeyondALimitDoesNotBlockThePush(isSplit: Bool) async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      try await alice.create("/folder")
      try await alice.share(with: bob)
      try await alice.sync()
      let node = try await alice.node(isSplit ? "/folder" : "home:/").uuid
      let old = try await Self.setNumber(-1, node, isKey: isSplit, alice)
      if isSplit {
        try await alice.share("/folder", with: carol)
      } else {
        try await alice.unshare(with: bob)
        try await alice.share(with: carol)
      }
      try await alice.create("/note", "text")
      try await alice.sync()
      #expect(try await people.home().nodes["note"] != nil)
      #expect(try await alice.members(bob, carol) == (isSplit ? ["bob": "rw"] : ["bob": "rw", "carol": "rw"]))
      let waiting = try await alice.write { _, cloud in cloud.explainQueue() }
      #expect(waiting.map { "\($0.kind) \($0.detail ?? "")" } == ["changeList limitExceeded"])
      _ = try await Self.setNumber(old, node, isKey: isSplit, alice)
      world.clock.advance(by: .seconds(600))
      try await alice.sync()
      #expect(try await alice.queueCount() == 0)
      let members = try await alice.members(bob, carol, of: isSplit ? "/folder" : "home:/")
      #expect(members == (isSplit ? ["bob": "rw", "carol": "rw"] : ["carol": "rw"]))
    }
  }

  /// Changes the generation of a node's key in the log, or the number of its record. -1 stands for the largest number.
  ///
  /// - Returns: The number before.
  private static func setNumber(
    _ number: Int64, _ uuid: String, isKey: Bool, _ device: TestDevice
  ) async throws -> Int64 {
    try await device.database.write { transaction in
      let row = try #require(try transaction.nodes.node(uuid: uuid))
      let (table, column, node) = isKey ? ("zdc_leaf", "keyGen", "node") : ("zdc_node", "recordVersion", "nodeID")
      let place = "\(table) SET \(column) = ? WHERE zone = ? AND \(node) = ?"
      let before = try Int64.fetchOne(
        transaction.database, sql: "SELECT \(column) FROM \(table) WHERE zone = ? AND \(node) = ?",
        arguments: [row.zone, row.nodeID.data])
      let new = isKey && number == -1 ? Int64(UInt32.max) : number
      try transaction.database.execute(sql: "UPDATE \(place)", arguments: [new, row.zone, row.nodeID.data])
      return try #require(before)
    }
  }
}

extension ListChangeTests.People {
  /// Expects that the list on the server is the one before the owner's change of Bob's access, or the one after it, and
  /// that nothing written after a removal is sealed under the key that Bob had.
  fileprivate func expectAccess(after before: RogueZone, isRemoval: Bool, isComplete: Bool) async throws {
    let (home, bob) = (try await home(), try bob.userID)
    let others = try Set([alice.userID, carol.userID])
    let users = Set(home.acl.fields.entries.map(\.user))
    let isMade = home.acl.fields.version > before.acl.fields.version
    #expect(isMade || !isComplete)
    #expect(home.acl.fields.version == before.acl.fields.version + (isMade ? 1 : 0))
    #expect(users == (isMade == isRemoval ? others : others.union([bob])))
    let rise: UInt32 = isMade && isRemoval ? 1 : 0
    #expect(home.acl.fields.zoneKeyGen == before.acl.fields.zoneKeyGen + rise)
    #expect((home.root.key == before.root.key) == (rise == 0))
    let (note, earlier) = (try home.node("note"), try before.node("note"))
    guard note.record.hash != earlier.record.hash else { return #expect(!isComplete) }
    #expect(isMade && note.record.fields.keyGen == home.acl.fields.zoneKeyGen)
  }
}
