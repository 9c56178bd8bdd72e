import Foundation
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// A server that forks or withholds a log, and members who lie about one. A single message reveals it.
struct HostileHeadTests {
  /// Alice shares her home with Bob. Both reach the server through a man in the middle.
  private struct Stage: Sendable {
    let hostile: HostileServer
    let (alice, bob): (TestDevice, TestDevice)

    init(_ world: TestWorld) async throws {
      hostile = HostileServer(world.server)
      alice = try await TestDevice("alice", server: world.server, clock: world.clock, through: hostile)
      bob = try await TestDevice("bob", server: world.server, clock: world.clock, through: hostile)
      for device in [alice, bob] {
        try await device.createAccount()
        try await device.sync()
      }
      try await alice.meet(bob)
      try await alice.create("/note", "1")
      try await alice.share(with: bob)
      try await alice.sync()
      try await bob.accept(alice)
      try await bob.acceptMessages(of: alice)
    }

    /// Bob's path of Alice's only node.
    var note: String { get throws { try bob.path("/note", of: alice) } }

    /// Expects that Bob has an event for each code, that each names Alice and her home, and that nothing is frozen.
    func expectEvents(_ codes: [ZDCSecurityError.Code], times: Int = 1) async throws {
      let user = try bob.localUserID
      let events = try await bob.syncManager.securityEvents(localUserID: user)
      #expect(Set(events.map(\.error.code)) == Set(codes) && events.count == codes.count)
      let (member, zone) = (try alice.userID, try await alice.homeZone().zone)
      #expect(events.allSatisfy { $0.error.user == member && $0.error.zone == zone && $0.times == times })
      #expect(try await bob.syncManager.frozenZones(localUserID: user).isEmpty)
    }

    func end() async throws {
      try await alice.close()
      try await bob.close()
    }
  }

  /// - the server shows Alice and Bob two histories of her home, and delivers one message
  /// => Bob is notified, and his branch of the history continues
  @Test("C7: a fork that is shown to two people is found by one message")
  func aForkIsFound() async throws {
    try await TestWorld.run { world in
      let stage = try await Stage(world)
      let (alice, bob) = (stage.alice, stage.bob)
      let fork = try await world.server.fork(try await world.server.backup(), clock: world.clock)
      await bob.network.renewConnections()
      try stage.hostile.lead("bob", to: fork)
      try await alice.edit("/note", "2")
      try await alice.sync()
      try await bob.edit(try stage.note, "other")
      try await bob.sync()
      try await stage.expectEvents([])
      try await alice.send("hello", to: bob)
      let envelope = try await alice.sendKeepingEnvelope()
      try stage.hostile.lead("alice", to: fork)
      #expect(try await alice.api.deliver([envelope]) == [.delivered])
      try stage.hostile.lead("alice", to: world.server)
      try await bob.sync()
      try await stage.expectEvents([.zoneForkDetected])
      #expect(try await bob.messages(from: alice) == ["alice: hello"])
      try await bob.edit(try stage.note, "third")
      try await bob.sync()
      #expect(try await bob.queueCount() == 0)
      try await stage.expectEvents([.zoneForkDetected])
      try await stage.end()
      try await fork.stop()
    }
  }

  /// - the server withholds Alice's commits from Bob, and delivers a message
  /// => Bob is notified once; when the server shows the commits, they are the ones that Alice named
  @Test("C8: withheld commits are found by one message")
  func withheldCommitsAreFound() async throws {
    try await TestWorld.run { world in
      let stage = try await Stage(world)
      let (alice, bob) = (stage.alice, stage.bob)
      let home = try #require(try await bob.zone(of: alice).head)
      stage.hostile.tell(.head(home.zone, seq: home.seq, hash: home.hash), to: "bob")
      try await alice.edit("/note", "2")
      try await alice.sync()
      try await bob.sync()
      try await stage.expectEvents([])
      try await alice.send("hello", to: bob)
      try await alice.sync()
      try await bob.sync()
      try await stage.expectEvents([.zoneRollback])
      try await bob.relaunch()
      try await bob.sync()
      try await stage.expectEvents([.zoneRollback])
      #expect(try await bob.memberHeads().map(\.isReported) == [true])
      stage.hostile.stopTampering()
      try await bob.sync()
      try await bob.download()
      #expect(try await bob.tree(of: alice, versions: false) == "/note  \"2\"")
      #expect(try await bob.memberHeads() == [])
      try await stage.expectEvents([.zoneRollback])
      try await stage.end()
    }
  }

  /// - the server withholds commits, and later shows others in their place
  /// => both are reported
  @Test func anotherCommitInThePlaceOfANamedOne_isFoundWhenItComes() async throws {
    try await TestWorld.run { world in
      let stage = try await Stage(world)
      let (alice, bob) = (stage.alice, stage.bob)
      let fork = try await world.server.fork(try await world.server.backup(), clock: world.clock)
      await alice.network.renewConnections()
      try stage.hostile.lead("alice", to: fork)
      try await alice.edit("/note", "2")
      try await alice.sync()
      try await alice.send("hello", to: bob)
      let envelope = try await alice.sendKeepingEnvelope()
      try stage.hostile.lead("alice", to: world.server)
      #expect(try await alice.api.deliver([envelope]) == [.delivered])
      try await bob.sync()
      try await stage.expectEvents([.zoneRollback])
      try await bob.edit(try stage.note, "other")
      try await bob.sync()
      try await stage.expectEvents([.zoneRollback, .zoneForkDetected])
      #expect(try await bob.memberHeads() == [])
      try await stage.end()
      try await fork.stop()
    }
  }

  /// - a member invents another commit, and one beyond the log, three times
  /// => two events name that member; the zone continues, for the liar as well
  @Test func aLyingMemberIsNamed_andStopsNothing() async throws {
    try await TestWorld.run { world in
      let stage = try await Stage(world)
      let (alice, bob) = (stage.alice, stage.bob)
      let home = try #require(try await bob.zone(of: alice).head)
      for seq in [home.seq, home.seq + 100, home.seq, home.seq + 200, home.seq, home.seq + 300] {
        try await Self.deliver([VerifiedHead(zone: home.zone, seq: seq, hash: CommitHash(1, 2, 3, seq))], stage)
        try await bob.sync()
      }
      try await stage.expectEvents([.zoneForkDetected, .zoneRollback], times: 3)
      #expect(try await bob.memberHeads().map(\.seq) == [home.seq + 300])
      try await alice.edit("/note", "2")
      try await alice.sync()
      try await bob.sync()
      try await bob.edit(try stage.note, "3")
      try await bob.sync()
      try await alice.sync()
      try await alice.download()
      #expect(try await alice.tree(versions: false) == "/note  \"3\"")
      try await stage.expectEvents([.zoneForkDetected, .zoneRollback], times: 3)
      try await stage.end()
    }
  }

  /// - a member names an invented commit for a zone that they are not in, and a zone that does not exist
  /// => neither is stored or reported
  @Test func aZoneThatTheSenderIsNotIn_isIgnored() async throws {
    try await TestWorld.run { world in
      let stage = try await Stage(world)
      let bob = stage.bob
      let own = try #require(try await bob.homeZone().head)
      let unknown = ZoneID(trunkOf: TreeID(1, 2, 3, 4))
      let heads = [own.zone, unknown].map { VerifiedHead(zone: $0, seq: own.seq, hash: CommitHash(1, 2, 3, 4)) }
      try await Self.deliver(heads.sorted { $0.zone < $1.zone }, stage)
      try await bob.sync()
      try await stage.expectEvents([])
      #expect(try await bob.memberHeads() == [])
      try await stage.end()
    }
  }

  /// - the answers for the named zone are garbled when Bob accepts messages
  /// => the messages arrive without an error; the head stays stored, and the next pull finds its commit
  @Test func aZoneThatStalls_stopsNoMessage() async throws {
    try await TestWorld.run { world in
      let stage = try await Stage(world)
      let (alice, bob) = (stage.alice, stage.bob)
      try await alice.edit("/note", "2")
      try await alice.sync()
      try await alice.send("look", to: bob)
      try await alice.sync()
      let tree = try await alice.homeZone().zone.tree.text
      stage.hostile.tell(
        Lie { answer in
          guard answer.route.pattern == Routes.zoneCommits, answer.path.contains(tree), answer.body.count > 5 else {
            return false
          }
          answer.body.removeLast()
          return true
        }, to: "bob")
      try await bob.acceptMessages(of: alice)
      #expect(stage.hostile.liesTold > 0)
      #expect(try await bob.memberHeads().map(\.isReported) == [false])
      stage.hostile.stopTampering()
      try await bob.sync()
      try await bob.download()
      #expect(try await bob.messages(from: alice) == ["alice: look"])
      #expect(try await bob.tree(of: alice, versions: false) == "/note  \"2\"")
      #expect(try await bob.memberHeads() == [])
      #expect(try await bob.securityErrors() == ["nonCanonicalEncoding"])
      try await stage.end()
    }
  }

  @Test func aBlockedMembersHeadIsForgotten() async throws {
    try await TestWorld.run { world in
      let stage = try await Stage(world)
      let (alice, bob) = (stage.alice, stage.bob)
      let home = try #require(try await bob.zone(of: alice).head)
      for forgets in [false, true] {
        try await Self.deliver(
          [VerifiedHead(zone: home.zone, seq: home.seq + (forgets ? 2 : 1), hash: CommitHash(1, 2, 3, 4))], stage)
        try await bob.sync()
        #expect(try await bob.memberHeads().count == 1)
        if forgets {
          _ = try await bob.zdc.userManager?.block(try alice.localUserID)
        } else {
          try await bob.syncManager.declineMessages(
            fromUserID: try alice.localUserID, forLocalUserID: try bob.localUserID)
        }
        #expect(try await bob.memberHeads() == [])
      }
      try await stage.end()
    }
  }

  /// Delivers a message of Alice to Bob that names these heads.
  private static func deliver(_ heads: [VerifiedHead], _ stage: Stage) async throws {
    let forger = try await HostileMessageTests.Forger(alice: stage.alice, bob: stage.bob)
    var fields = forger.fields("hello")
    fields.heads = heads
    #expect(try await stage.alice.api.deliver([forger.envelope(fields).bytes]) == [.delivered])
  }

  /// - the server is restored; Alice accepts its state, changes it and writes to Bob, whose zone is frozen
  /// => Bob accepts the state too, and no event names Alice
  @Test func aRestoredServerAccusesNoMember() async throws {
    try await TestWorld.run { world in
      let stage = try await Stage(world)
      let (alice, bob) = (stage.alice, stage.bob)
      let backup = try await world.server.backup()
      try await alice.edit("/note", "2")
      try await alice.sync()
      try await bob.sync()
      try await bob.edit(try stage.note, "3")
      try await bob.sync()
      try await alice.sync()
      try await world.server.restore(backup)
      for device in [alice, bob] { await #expect(throws: ZDCSecurityError.self) { try await device.sync() } }
      try await Self.accept(alice)
      try await alice.sync()
      try await alice.send("restored", to: bob)
      try await alice.sync()
      await #expect(throws: Never.self) { try await bob.acceptMessages(of: alice) }
      #expect(try await bob.messages(from: alice) == ["alice: restored"])
      #expect(try await bob.memberHeads().count == 1)
      try await Self.accept(bob)
      try await TestWorld.settle([alice, bob])
      try await alice.send("again", to: bob)
      try await alice.sync()
      try await bob.sync()
      #expect(try await bob.memberHeads() == [])
      let events = try await bob.syncManager.securityEvents(localUserID: try bob.localUserID)
      #expect(events.map(\.error.code) == [.zoneRollback] && events[0].error.user == nil)
      try await stage.end()
    }
  }

  private static func accept(_ device: TestDevice) async throws {
    let user = try device.localUserID
    let zone = try #require(try await device.syncManager.frozenZones(localUserID: user).first?.zone)
    try await device.syncManager.acceptServerState(ofZone: zone, localUserID: user)
  }
}
