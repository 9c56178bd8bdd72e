import Foundation
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Answers that prove nothing never freeze a tree: the device asks again, and resumes automatically.
extension HostileServerTests {
  struct Garbage: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var lie: @Sendable (HostileAct) throws -> [Lie]
  }

  static let garbage: [Garbage] = [
    Garbage(testDescription: "7 bytes") { _ in [body { $0 = [1, 2, 3, 4, 5, 6, 7] }] },
    Garbage(testDescription: "HTML") { _ in [body { $0 = Array("<html><body>Log in</body></html>".utf8) }] },
    Garbage(testDescription: "a page that ends early") { _ in [body { $0.removeLast($0.count / 2) }] },
    Garbage(testDescription: "a commit of a later version") { _ in [.change(.commit) { $0[4] = 9 }] },
    Garbage(testDescription: "a split without its zone") { act in
      let node = try act.zone.node("folder").record.fields.node
      let commit = try act.zone.commit([.split(node: node, genesis: .zero, count: 1)])
      return [
        .add([ServedItem(commit)], to: act.zone.zone),
        .head(act.zone.zone, seq: commit.fields.seq, hash: commit.hash),
      ]
    },
    Garbage(testDescription: "the answer for another tree") { act in
      let other = try act.stage.strangerZone.head
      return [.rewrite(.commit) { $0 = [ServedItem(other)] }]
    },
    Garbage(testDescription: "a gap") { _ in [.rewrite(.commit) { $0.removeFirst() }] },
    Garbage(testDescription: "a lying head") { act in
      [.head(act.zone.zone, seq: .max, hash: .zero), .withhold(.commit)]
    },
  ]

  private static func body(_ change: @escaping @Sendable (inout [UInt8]) -> Void) -> Lie {
    Lie { answer in
      guard answer.route.pattern == Routes.zoneCommits, answer.isBundle, answer.body.count > 20 else { return false }
      change(&answer.body)
      return true
    }
  }

  private static func act() async throws -> HostileAct {
    try await HostileAct.start(HostileScenario("C6", story: "", error: "", .passes) { _ in })
  }

  @Test("C2: one garbled answer is asked for again and changes nothing", arguments: garbage)
  func garbledOnce_isAskedForAgain(garbage: Garbage) async throws {
    let act = try await Self.act()
    for lie in try garbage.lie(act) { act.tell(lie, times: 1) }
    try await act.victim.sync()
    #expect(act.hostile.liesTold > 0)
    let state = try await DeviceState(of: act.victim)
    #expect(state.frozen == [:] && state.operations == [] && state.events.isEmpty)
    #expect(act.victim.network.renewals == 1)
    try await act.end()
  }

  @Test("C2: garbled answers never freeze, and the device resumes when they end", arguments: garbage)
  func garbledAgainAndAgain_freezesNothing(garbage: Garbage) async throws {
    let act = try await Self.act()
    let before = try await DeviceState(of: act.victim)
    for lie in try garbage.lie(act) { act.tell(lie) }
    for _ in 0..<3 { await #expect(throws: ZDCSecurityError.self) { try await act.victim.pull() } }
    let state = try await DeviceState(of: act.victim)
    #expect(state.frozen == [:] && state.events.count == 1)
    let shown = try await act.victim.syncManager.syncState(forLocalUserID: act.victim.localUserID)
    #expect(shown.stalledZones.map(\.error.rawValue) == state.events.map(\.code))
    #expect(try await act.victim.explain("/mine")?.operations.allSatisfy { $0.reason == .serverSaid } == true)
    let log = try await act.signedLog()
    #expect(state.losses(since: before, reference: act.stage.reference, log: log) == [])
    act.hostile.stopTampering()
    try await TestWorld.settle([act.victim])
    #expect(try await act.victim.tree(versions: false) == act.stage.finalTree)
    #expect(try await DeviceState(of: act.victim).operations == [])
    try await act.end()
  }

  /// - the log is of a version or a suite that this app does not know, also when the app is started again
  /// - an update of the app can read it
  /// => local changes wait until then; the log is followed from the pin, and the user has nothing to decide
  @Test("R-retry: a log of a later version is followed after an update of the app", arguments: [4, 5])
  func laterVersion_isFollowedAfterAnUpdate(byte: Int) async throws {
    let act = try await Self.act()
    let before = try await DeviceState(of: act.victim)
    act.tell(.change(.commit) { $0[byte] = 2 })
    for launch in 0..<2 {
      let error = await #expect(throws: ZDCSecurityError.self) { try await act.victim.pull() }
      #expect(error?.code == .unsupportedVersion)
      let state = try await DeviceState(of: act.victim)
      #expect(state.frozen == [:] && state.events.map(\.code) == ["unsupportedVersion"])
      let log = try await act.signedLog()
      if launch == 0 { #expect(state.losses(since: before, reference: act.stage.reference, log: log) == []) }
      try await act.victim.relaunch()
    }
    try await act.victim.create("/waits", "w")
    try await act.update()
    let tree = try await act.victim.tree(versions: false)
    let expected = "\(act.stage.finalTree)\n/waits  \"w\""
    #expect(tree.split(separator: "\n").sorted() == expected.split(separator: "\n").sorted())
    #expect(try await DeviceState(of: act.victim).operations == [])
    try await act.end()
  }

  @Test("C2: a running device resumes automatically after garbled answers", .timeLimit(.minutes(20)))
  func garbledWhileRunning_resumes() async throws {
    let act = try await Self.act()
    act.tell(Self.body { $0 = [1, 2, 3, 4, 5, 6, 7] }, times: 4)
    try await act.victim.whileRunning { await act.victim.recorder.wait(for: "pushed /mine") }
    // A refused push may deliver the honest page before the last lie.
    #expect(act.hostile.liesTold >= 2)
    act.hostile.stopTampering()
    try await TestWorld.settle([act.victim])
    #expect(try await act.victim.tree(versions: false) == act.stage.finalTree)
    try await act.end()
  }

  @Test("F6: a tree frozen without proof is tried again from its pin at the next launch")
  func frozenWithoutProof_liftsWhenTheLogExtendsThePin() async throws {
    let act = try await Self.act()
    act.tell(.head(act.zone.zone, seq: 0, hash: act.zone.commits[0].hash))
    await #expect(throws: ZDCSecurityError.self) { try await act.victim.pull() }
    var state = try await DeviceState(of: act.victim)
    #expect(Array(state.frozen.values) == ["zoneRollback"])
    // The zone stays frozen while the server keeps claiming this, even after a launch.
    try await act.victim.relaunch()
    try await act.victim.sync()
    state = try await DeviceState(of: act.victim)
    #expect(Array(state.frozen.values) == ["zoneRollback"])
    #expect(!act.hostile.requests.contains { $0.route.pattern == Routes.commits }, "a push into a frozen zone")
    act.hostile.stopTampering()
    try await act.victim.relaunch()
    try await TestWorld.settle([act.victim])
    state = try await DeviceState(of: act.victim)
    #expect(state.frozen == [:] && state.operations == [])
    #expect(try await act.victim.tree(versions: false) == act.stage.finalTree)
    try await act.end()
  }

  @Test("F6: a server state that lacks pinned commits is called a rollback when it is accepted")
  func acceptedRollback_isNamed() async throws {
    let act = try await HostileAct.start(HostileScenario("C6", story: "", error: "", .passes, from: .current) { _ in })
    // The zone freezes for another reason than the rollback that is found later.
    act.tell(.turnBit(.commit, at: -1))
    let record = try RecordSealer.seal(try act.zone.draft(new: "next"))
    try await act.rogue().push(try act.zone.commit(putting: record), [record])
    await #expect(throws: ZDCSecurityError.self) { try await act.victim.pull() }
    #expect(try await DeviceState(of: act.victim).frozen.count == 1)
    act.hostile.stopTampering()
    let yesterday = try await act.stage.server.fork(act.stage.early, clock: ManualClock())
    act.others.add(yesterday)
    try act.hostile.lead("B", to: yesterday)
    try await act.acceptServerState()
    #expect(try await DeviceState(of: act.victim).events.map(\.code).contains("zoneRollback"))
    try await act.end()
  }

  @Test("C3: a first pull that is answered with another tree of the same user pins nothing")
  func firstPull_ofAnotherTree_pinsNothing() async throws {
    let act = try await HostileAct.start(
      HostileScenario("C3", story: "", error: "", .fails, from: .fresh) { _ in })
    let rogue = try await act.rogue()
    let prefs = try await rogue.pageOfTrunk(.prefs)
    act.tell(
      Lie { answer in
        guard answer.route.pattern == Routes.zoneCommits, answer.path.contains(act.zone.zone.tree.text) else {
          return false
        }
        answer.body = prefs.body
        answer.headers[WireHeaders.zoneHead] = "\(prefs.head.seq):\(prefs.head.hash.text)"
        answer.headers[WireHeaders.more] = nil
        return true
      })
    let error = await #expect(throws: ZDCSecurityError.self) { try await act.victim.pull() }
    #expect(error?.code == .recordBindingMismatch)
    #expect(try await DeviceState(of: act.victim).pinnedZones.contains(act.zone.zone.root) == false)
    act.hostile.stopTampering()
    try await TestWorld.settle([act.victim])
    #expect(try await act.victim.tree(versions: false) == act.stage.freshTree)
    try await act.end()
  }

  @Test("hostile, small: commits that are pinned already are checked", arguments: ["foreign", "forked"])
  func commitsBelowThePin_areChecked(kind: String) async throws {
    let act = try await Self.act()
    let commits = act.zone.commits
    let known =
      try kind == "foreign"
      ? act.stage.strangerZone.commits[0]
      : act.zone.commit([.retireKey(user: act.stage.user, gen: 1)], after: commits[0])
    act.tell(.rewrite(.commit) { $0.insert(ServedItem(known), at: 0) })
    let error = await #expect(throws: ZDCSecurityError.self) { try await act.victim.pull() }
    #expect(error?.code == (kind == "foreign" ? .recordBindingMismatch : .zoneForkDetected))
    #expect(try await DeviceState(of: act.victim).frozen.count == (kind == "foreign" ? 0 : 1))
    try await act.end()
  }
}

extension HostileAct {
  /// Starts the victim's app again in a version that can read what the server has.
  fileprivate func update() async throws {
    hostile.stopTampering()
    try await victim.relaunch()
    try await TestWorld.settle([victim])
  }
}
