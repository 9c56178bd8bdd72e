import Foundation
import Synchronization
import Testing
import ZDCProtocol
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// A server that has lost acknowledged commits. It gets this device's lost commits again; any other loss freezes the
/// tree until the user decides.
struct RestoreTests {
  /// Makes every kind of change: to /edited, /renamed, /moved, /deleted and /new.
  private static func change(_ device: TestDevice) async throws {
    try await device.edit("/edited", "2")
    try await device.rename("/renamed", to: "other")
    try await device.move("/moved", to: "/d/moved")
    try await device.delete("/deleted")
    try await device.create("/new", "n")
    try await device.create("/new/child", "c")
  }

  private static let start = ["/d", "/edited", "/renamed", "/moved", "/deleted", "/same"]
  private static let changed = """
    /d  "1"
    /d/moved  "1"
    /edited  "2"
    /new  "n"
    /new/child  "c"
    /other  "1"
    /same  "1"
    """

  private static func begin(_ device: TestDevice) async throws {
    for path in start { try await device.create(path, "1") }
    try await device.sync()
  }

  /// SECURITY 5.7, 48: a server that acknowledges a push and drops it.
  @Test func ownCommitsThatAreMissing_areSentAgain_once() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      world.expectsSecurityErrors(["ownCommitMissing"], on: a)
      try await Self.begin(a)
      try await world.settle(a, b)
      let backup = try await world.server.backup()
      try await Self.change(a)
      try await a.sync()
      try await a.edit("/new", "n")
      try await a.sync()
      try await world.server.restore(backup)
      try await world.settle(a, b)
      #expect(try await a.tree(versions: false) == Self.changed)
      #expect(try await b.tree(versions: false) == Self.changed)
      #expect(try await a.syncManager.frozenZones(localUserID: a.localUserID) == [])
      #expect(try world.server.nodeCount() == 7)
      // Everything exists once: a node is in one commit only, and another round changes nothing.
      let commits = try world.server.commitCount()
      try await a.relaunch()
      try await world.settle(a, b)
      #expect(try world.server.commitCount() == commits)
    }
  }

  /// - the queue is not empty when the loss is found
  /// => lost and queued changes are sent together
  @Test func ownCommitsThatAreMissing_withMoreInTheQueue() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      world.expectsSecurityErrors(["ownCommitMissing"], on: a)
      try await Self.begin(a)
      try await world.settle(a, b)
      let backup = try await world.server.backup()
      try await Self.change(a)
      try await a.sync()
      try await a.edit("/edited", "3")
      try await a.rename("/other", to: "third")
      try await a.create("/new/child/below", "b")
      try await a.delete("/same")
      try await world.server.restore(backup)
      try await world.settle(a, b)
      let expected = """
        /d  "1"
        /d/moved  "1"
        /edited  "3"
        /new  "n"
        /new/child  "c"
        /new/child/below  "b"
        /third  "1"
        """
      #expect(try await b.tree(versions: false) == expected)
      #expect(a.recorder.lines.filter { $0.hasPrefix("conflict") } == [])
    }
  }

  /// - the answer to a push reveals it, without a pull
  @Test func ownCommitsThatAreMissing_metByAPush() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      world.expectsSecurityErrors(["ownCommitMissing"], on: a)
      try await Self.begin(a)
      let backup = try await world.server.backup()
      try await Self.change(a)
      try await a.sync()
      try await a.create("/late", "l")
      try await world.server.restore(backup)
      try await a.push()
      try await a.sync()
      #expect(try await a.tree(versions: false) == "\(Self.changed)\n/late  \"l\"".sortedLines)
    }
  }

  @Test("C4: the loss of acknowledged own commits is made good once; the second time the tree is frozen")
  func ownCommitsThatAreMissing_areNotSentTwiceUnasked() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await Self.begin(a)
      let backup = try await world.server.backup()
      try await Self.change(a)
      try await a.sync()
      try await world.server.restore(backup)
      try await world.settle(a)
      #expect(try await a.tree(versions: false) == Self.changed)
      try await world.server.restore(backup)
      await #expect(throws: ZDCSecurityError.self) { try await a.sync() }
      let frozen = try await a.syncManager.frozenZones(localUserID: a.localUserID)
      #expect(frozen.map(\.error) == [.ownCommitMissing])
      #expect(try await a.tree(versions: false) == Self.changed)
      world.expectsSecurityErrors(try await a.securityErrors(), on: a)
      try await Self.accept(a)
      try await world.settle(a)
      #expect(try await a.tree(versions: false) == Self.changed)
    }
  }

  @Test("C4: many or old own commits that are missing freeze the tree", arguments: ["many", "old"])
  func ownCommitsThatAreMissing_areSentAgainOnlyIfFewAndRecent(loss: String) async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await Self.begin(a)
      let backup = try await world.server.backup()
      for number in 0..<(loss == "many" ? 40 : 1) {
        try await a.create("/\(number)", "x")
        try await a.sync()
      }
      if loss == "old" { world.clock.advance(by: .seconds(86_400)) }
      try await world.server.restore(backup)
      let before = try await a.tree()
      await #expect(throws: ZDCSecurityError.self) { try await a.sync() }
      let frozen = try await a.syncManager.frozenZones(localUserID: a.localUserID)
      #expect(frozen.map(\.error) == [.ownCommitMissing])
      #expect(try await a.tree() == before)
      world.expectsSecurityErrors(try await a.securityErrors(), on: a)
      try await Self.accept(a)
      try await world.settle(a)
    }
  }

  @Test("C4: content that the server still has is named again, not asked of the app")
  func ownCommitsThatAreMissing_keepTheirContent() async throws {
    struct NotHere: Error {}
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      world.expectsSecurityErrors(["ownCommitMissing"], on: a)
      try await Self.begin(a)
      let film = TestContent(data: EndToEndTests.bytes(200_000, seed: 1))
      try await a.edit("/edited", to: film)
      // The content is on the server, but the commit that names it is not yet.
      a.network.fail(.loseRequest, "POST", Routes.commits)
      await #expect(throws: TransportError.self) { try await a.sync() }
      let backup = try await world.server.backup()
      try await a.sync()
      #expect(try await a.queueCount() == 0)
      a.recorder.on(.data, times: 100) { _, _ in throw NotHere() }
      try await world.server.restore(backup)
      a.network.resetCounts()
      try await a.sync()
      #expect(try await a.queueCount() == 0)
      #expect(a.network.count("POST", Routes.blobs) == 0, "nothing is uploaded again")
      try await world.settle(b)
      #expect(try await b.content(of: "/edited")?.data == film.data)
    }
  }

  @Test("F8: a server that has everything again leaves nothing queued", arguments: [false, true])
  func serverThatIsItselfAgain_needsNothingOfTheApp(isPushedBetween: Bool) async throws {
    struct NotHere: Error {}
    try await TestWorld.run { world in
      let (a, b) = try await Self.lost(world)
      world.mayWait(b)
      world.expectsSecurityErrors([], on: b)
      await #expect(throws: ZDCSecurityError.self) { try await a.sync() }
      a.recorder.on(.data, times: 1_000) { _, _ in throw NotHere() }
      try await Self.accept(a)
      if isPushedBetween { try await a.sync() }
      try await world.server.restore(try #require(Self.latest.withLock { $0[ObjectIdentifier(world)] }))
      if isPushedBetween {
        await #expect(throws: ZDCSecurityError.self) { try await a.sync() }
        world.expectsSecurityErrors(try await a.securityErrors(), on: a)
        try await Self.accept(a)
      }
      for _ in 0..<3 { try await a.sync() }
      #expect(try await a.queue() == "")
      #expect(try await a.tree(versions: false) == Self.changed)
    }
  }

  // MARK: With changes of another device

  /// SECURITY 5.7, 29: yesterday's state.
  @Test func restoredServer_freezesTheTree_andLosesNothingHere() async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.lost(world)
      try await a.edit("/edited", "queued")
      let before = try await a.tree()
      await #expect(throws: ZDCSecurityError.self) { try await a.sync() }
      #expect(try await a.tree() == before)
      let frozen = try await a.syncManager.frozenZones(localUserID: a.localUserID)
      #expect(frozen.map(\.error) == [.zoneRollback])
      #expect(frozen.map(\.trunk) == [.home])
      #expect(frozen.map(\.since) == [Date(timeIntervalSince1970: Double(world.clock.nowMs) / 1_000)])
      // While the tree is frozen, nothing is requested and nothing is sent.
      a.network.resetCounts()
      try await a.sync()
      #expect(a.network.count("POST", "/v1/commits") == 0)
      #expect(try await a.tree() == before)
      world.mayWait(a)
      world.mayWait(b)
      world.expectsSecurityErrors([], on: b)
    }
  }

  @Test func acceptedServer_getsEverythingAgain_andDevicesConverge() async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.lost(world)
      try await a.create("/queued", "q")
      for device in [a, b] {
        await #expect(throws: ZDCSecurityError.self) { try await device.sync() }
      }
      let sent = try await Self.accept(a)
      #expect(sent.created == 2 && sent.changed == 4 && sent.deleted == 1)
      try await a.sync()
      try await Self.accept(b)
      try await world.settle(b, a)
      let expected = "\(Self.changed)\n/queued  \"q\"".sortedLines
      #expect(try await a.tree(versions: false) == expected)
      #expect(try await b.tree(versions: false) == expected)
      #expect(try world.server.nodeCount() == 8)
      for device in [a, b] { #expect(device.recorder.lines.filter { $0.hasPrefix("conflict") } == []) }
    }
  }

  /// - both devices accept before either has sent anything
  /// => one of them is overtaken and finds that the server already has what it was about to send
  @Test func acceptedByBothSimultaneously_nothingIsDuplicated() async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.lost(world)
      for device in [a, b] {
        await #expect(throws: ZDCSecurityError.self) { try await device.sync() }
      }
      try await Self.accept(a)
      try await Self.accept(b)
      try await world.settle(a, b)
      #expect(try await a.tree(versions: false) == Self.changed)
      #expect(try await b.tree(versions: false) == Self.changed)
      #expect(try world.server.nodeCount() == 7)
      for device in [a, b] { #expect(device.recorder.lines.filter { $0.hasPrefix("conflict") } == []) }
    }
  }

  /// - B saw one edit more than A before the server lost both
  /// => B's version wins, although A's is sent first
  @Test func acceptedByOneThatKnowsMore_theNewerVersionWins() async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.lost(
        world,
        andThen: { b in
          try await b.edit("/edited", "3")
          try await b.edit("/new", "n3")
          try await b.sync()
        })
      for device in [a, b] {
        await #expect(throws: ZDCSecurityError.self) { try await device.sync() }
      }
      try await Self.accept(a)
      try await a.sync()
      try await Self.accept(b)
      try await world.settle(b, a)
      let expected = Self.changed.replacing("\"2\"", with: "\"3\"").replacing("\"n\"", with: "\"n3\"")
      #expect(try await a.tree(versions: false) == expected)
      #expect(try await b.tree(versions: false) == expected)
    }
  }

  /// - the app does not have the content that the server lost
  /// => nothing is sent in its place; the device that has it sends it
  @Test func contentThatTheAppDoesNotHave_isNeverReplaced() async throws {
    struct NotHere: Error {}
    try await TestWorld.run { world in
      let (a, b) = try await Self.lost(world)
      for device in [a, b] {
        await #expect(throws: ZDCSecurityError.self) { try await device.sync() }
      }
      a.recorder.on(.data, times: 100) { _, _ in throw NotHere() }
      try await Self.accept(a)
      try await a.sync()
      #expect(try await a.queue().split(separator: "\n").allSatisfy { $0.hasSuffix("noDataFromApp") })
      try await Self.accept(b)
      try await world.settle(b, a)
      #expect(try await a.tree(versions: false) == Self.changed)
      #expect(try await b.tree(versions: false) == Self.changed)
    }
  }

  /// - a fork: the restored server has continued with another device
  @Test func serverThatWentOn_isAccepted_withBothSidesChanges() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await Self.begin(a)
      let backup = try await world.server.backup()
      try await Self.change(a)
      try await a.sync()
      try await world.server.restore(backup)
      let c = try await world.device("C")
      try await world.settle(c)
      try await c.create("/of c", "C")
      try await c.edit("/edited", "C")
      try await c.delete("/same")
      try await c.sync()
      try await c.create("/more", "m")
      try await c.sync()
      await #expect(throws: ZDCSecurityError.self) { try await a.sync() }
      let frozen = try await a.syncManager.frozenZones(localUserID: a.localUserID)
      world.expectsSecurityErrors(frozen.map(\.error.rawValue), on: a)
      #expect(frozen.map(\.error) == [.zoneForkDetected])
      try await Self.accept(a)
      try await world.settle(a, c)
      let tree = try await a.tree(versions: false)
      #expect(tree.contains("/of c  \"C\"") && tree.contains("/new/child  \"c\"") && tree.contains("/other"))
      #expect(!tree.contains("/same") && !tree.contains("/deleted") && !tree.contains("\n/moved"))
      #expect(try await c.tree(versions: false) == tree)
    }
  }

  // MARK: Members

  /// - the server has forgotten that a member was removed, or got fewer rights
  /// - the owner accepts the server
  /// => the owner's device makes the change again; members whom it does not concern keep their rights
  @Test(arguments: [nil, "r"]) func changesOfMembersThatTheServerForgot_areMadeAgain(rights: String?) async throws {
    try await TestWorld.run { world in
      let people = try await ListChangeTests.People(world)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      try await alice.create("/note", "1")
      try await alice.share(with: bob, "rws")
      try await alice.share(with: carol, "r")
      try await alice.sync()
      let backup = try await world.server.backup()
      if let rights { try await alice.share(with: bob, rights) } else { try await alice.unshare(with: bob) }
      try await alice.share(with: carol, "rw")
      try await alice.sync()
      try await world.server.restore(backup)
      world.expectsSecurityErrors(try await alice.forkErrors(), on: alice)
      try await Self.accept(alice)
      try await alice.sync()
      #expect(try await alice.queueCount() == 0)
      #expect(try await alice.members(bob, carol) == (rights.map { ["bob": $0, "carol": "r"] } ?? ["carol": "r"]))
      let list = try await people.home().acl.fields
      #expect(list.entry(for: try bob.userID)?.permissions == rights.map { _ in [.read] })
      #expect(list.zoneKeyGen == (rights == nil ? 2 : 1))
    }
  }

  /// - after the server has forgotten that a member got fewer rights, the owner's other device gives them others
  /// => those stand
  @Test func laterChangesOfAMember_stand() async throws {
    try await TestWorld.run { world in
      let people = try await ListChangeTests.People(world)
      let (alice, bob) = (people.alice, people.bob)
      let laptop = try await world.device("laptop")
      try await alice.share(with: bob, "rws")
      try await alice.sync()
      try await laptop.sync()
      try await laptop.meet(bob)
      let backup = try await world.server.backup()
      try await alice.share(with: bob, "r")
      try await alice.sync()
      try await world.server.restore(backup)
      try await laptop.share(with: bob, "rw")
      try await laptop.sync()
      world.expectsSecurityErrors(try await alice.forkErrors(), on: alice)
      try await Self.accept(alice)
      try await alice.sync()
      #expect(try await alice.queueCount() == 0)
      #expect(try await alice.members(bob) == ["bob": "rw"])
    }
  }

  // MARK: Keys

  /// - the server has lost nothing but the commits that retire the user's compromised keys, made a moment ago
  /// => the lost commits are known as this device's own, also if an answer was lost; they are not sent again unasked
  /// - the user accepts the server
  /// => the log of each tree has them again
  @Test(
    "R-missing: lost retirements of keys are made again only when the user accepts the server",
    arguments: [false, true])
  func lostRetirements_areForTheUserToDecide(isAnswerLost: Bool) async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await Self.begin(a)
      let (users, user) = (try #require(try a.zdc.localUserManager), try a.localUserID)
      let rotation = try await users.rotateKeys(for: user, areCompromised: true)
      #expect(rotation.queuedRetirements == 4)
      let backup = try await world.server.backup()
      let commits = try world.server.commitCount()
      if isAnswerLost {
        a.network.fail(.loseResponse, "POST", Routes.commits)
        await #expect(throws: TransportError.self) { try await a.sync() }
      }
      try await a.sync()
      #expect(a.network.hasStruck)
      #expect(try await Self.retirements(a) == 4)
      try await world.server.restore(backup)
      world.expectsSecurityErrors(try await a.forkErrors(), on: a)
      let frozen = try await a.syncManager.frozenZones(localUserID: user)
      #expect(frozen.count == 4)
      #expect(frozen.allSatisfy { $0.error == .ownCommitMissing }, "\(frozen.map(\.error))")
      #expect(try world.server.commitCount() == commits)
      for zone in frozen { _ = try await a.syncManager.acceptServerState(ofZone: zone.zone, localUserID: user) }
      #expect(try await a.retirementCount() == 4)
      try await a.sync()
      #expect(try await a.retirementCount() == 0)
      #expect(try await Self.retirements(a) == 4)
      let b = try await world.device("B")
      try await world.settle(a, b)
      #expect(try await Self.retirements(b) == 4)
    }
  }

  /// The number of trunks whose log retires a key of the user.
  private static func retirements(_ device: TestDevice) async throws -> Int {
    let user = try device.userID
    return try await device.database.read { transaction in
      try transaction.zones.zones(localUser: 1).filter { $0.head?.retiredBelow[user] != nil }.count
    }
  }

  // MARK: Scenarios

  /// The state of each world's server just before it was restored.
  private static let latest = Mutex<[ObjectIdentifier: TestServer.Backup]>([:])

  /// Returns A and B, which have seen changes of both that the server no longer has.
  private static func lost(
    _ world: TestWorld, andThen more: (TestDevice) async throws -> Void = { _ in }
  ) async throws -> (TestDevice, TestDevice) {
    let a = try await world.device("A")
    let b = try await world.device("B")
    try await begin(a)
    try await world.settle(a, b)
    let backup = try await world.server.backup()
    try await change(a)
    try await a.sync()
    try await world.settle(b)
    try await b.edit("/same", "1")
    try await b.sync()
    try await a.sync()
    try await world.settle(a, b)
    try await more(b)
    let newest = try await world.server.backup()
    latest.withLock { $0[ObjectIdentifier(world)] = newest }
    try await world.server.restore(backup)
    for device in [a, b] { world.expectsSecurityErrors(["zoneRollback"], on: device) }
    return (a, b)
  }

  @discardableResult
  private static func accept(_ device: TestDevice) async throws -> ZDCRestoreSummary {
    let user = try device.localUserID
    let zone = try #require(try await device.syncManager.frozenZones(localUserID: user).first?.zone)
    return try await device.syncManager.acceptServerState(ofZone: zone, localUserID: user)
  }
}

extension String {
  fileprivate var sortedLines: String { split(separator: "\n").sorted().joined(separator: "\n") }
}

extension TestDevice {
  /// Syncs with a server that shows another log, and returns the names of the errors.
  fileprivate func forkErrors() async throws -> [String] {
    await #expect(throws: ZDCSecurityError.self) { try await sync() }
    return try await securityErrors()
  }
}
