import Testing
import ZDCProtocol

@testable import ZDCClientAPI
@testable import ZDCSync
@testable import ZeroDarkCloud

/// Event in, actions out: the next step of a zone, and the end of its pauses.
@Suite("Zone state") struct ZoneSyncStateTests {
  private struct SomeError: Error {}
  private let start = ContinuousClock.now
  private var state = ZoneSyncState()

  private func waits(_ actions: [ZoneSyncState.Action]) -> [Duration] {
    actions.compactMap { if case .wake(let pause) = $0 { pause } else { nil } }
  }

  private func errors(_ actions: [ZoneSyncState.Action]) -> Int {
    actions.count { if case .report = $0 { true } else { false } }
  }

  private func shownPauses(_ actions: [ZoneSyncState.Action]) -> [Duration?] {
    actions.compactMap { if case .showPause(let pause) = $0 { .some(pause?.length) } else { nil } }
  }

  private mutating func take(
    _ event: ZoneSyncState.Event, at offset: Duration = .zero, random: Double = 0.999
  ) -> [ZoneSyncState.Action] {
    state.handle(event, now: start + offset, random: random)
  }

  @Test("a zone whose push fails is tried again after pauses that grow")
  mutating func failingPush() {
    let first = take(.pushFailed(SomeError()))
    #expect(waits(first) == [.milliseconds(249)] && errors(first) == 1)
    #expect(shownPauses(first) == [.milliseconds(249)])
    #expect(state.isPushPaused(now: start) && !state.isPushPaused(now: start + .milliseconds(249)))
    #expect(waits(take(.pushFailed(SomeError()), at: .milliseconds(249))) == [.milliseconds(499)])
    #expect(shownPauses(take(.pushed)) == [nil])
    #expect(!state.isPushPaused(now: start) && take(.pushed).isEmpty)
    #expect(waits(take(.pushFailed(SomeError()))) == [.milliseconds(249)])
  }

  @Test("the server's own pauses are kept, and a turn in a busy zone is no failure")
  mutating func askedPauses() {
    let busy = ServerError(.zoneBusy, "", retryable: true, retryAfterMs: 250)
    for _ in 0..<5 { #expect(waits(take(.pushFailed(busy), random: 0.5)) == [.milliseconds(300)]) }
    let full = ServerError(.storageFull, "", retryable: true, retryAfterMs: 9_000)
    #expect(waits(take(.pushFailed(full), random: 0.5)) == [.seconds(9)])
  }

  @Test("a branch that the server does not let the user read is asked for again, and is not left out")
  mutating func unreachableBranch() {
    #expect(waits(take(.unreachable)) == [.milliseconds(249)])
    #expect(!state.isLeftOut && !state.isPullDue(now: start) && state.isPullDue(now: start + .milliseconds(249)))
    #expect(waits(take(.pullFailed(SomeError()), at: .milliseconds(249))) == [.milliseconds(499)])
    #expect(state.isLeftOut)
    _ = take(.unreachable)
    #expect(!state.isLeftOut)
    _ = take(.pulled(isRefusedByApp: false))
    #expect(!state.isLeftOut && !state.needsPull)
  }

  @Test("a pull that fails is due again after its pause; a frozen zone is not")
  mutating func failingPull() {
    _ = take(.headNamed(isKnown: false))
    #expect(state.isPullDue(now: start) && !state.hasPulled)
    #expect(waits(take(.pullFailed(SomeError()))) == [.milliseconds(249)])
    #expect(!state.isPullDue(now: start) && state.isPullDue(now: start + .milliseconds(249)))
    #expect(state.isLeftOut && state.hasPulled)
    #expect(take(.pullFailed(ZDCSecurityError(.zoneRollback))).isEmpty)
    #expect(!state.needsPull && !state.isLeftOut)
  }

  @Test("without a connection the zone has no separate pause, and sends nothing before its first pull")
  mutating func disconnected() {
    #expect(take(.pullDisconnected).isEmpty)
    #expect(state.isPullDue(now: start) && !state.hasPulled && !state.isLeftOut)
  }

  @Test("a pull that is aborted is due again after a minute, and an event may bring it before")
  mutating func abortedPull() {
    #expect(waits(take(.pullAborted)) == [.seconds(60)])
    #expect(!state.isPullDue(now: start + .seconds(59)) && state.isPullDue(now: start + .seconds(60)))
    #expect(state.mayPullForEvent(now: start))
    #expect(state.nextWake(after: start) == start + .seconds(60))
    _ = take(.headNamed(isKnown: true))
    #expect(!state.needsPull && state.nextWake(after: start) == nil)
  }

  @Test("events whose head the server does not show become one pull after a pause")
  mutating func emptyEvents() {
    #expect(waits(take(.eventPulled(commits: 0))) == [.milliseconds(249)])
    #expect(!state.mayPullForEvent(now: start))
    _ = take(.headNamed(isKnown: false))
    #expect(!state.isPullDue(now: start) && state.isPullDue(now: start + .milliseconds(249)))
    #expect(take(.eventPulled(commits: 1)).isEmpty)
    #expect(state.mayPullForEvent(now: start))
  }

  @Test("old keys are replaced once for each generation of the zone's key, after a pause")
  mutating func oldKeys() throws {
    _ = take(.pulled(isRefusedByApp: false))
    let pause = try #require(waits(take(.keyRaised(2))).first)
    #expect((.seconds(10) ... .seconds(60)).contains(pause))
    #expect(take(.keyRaised(2)).isEmpty && !state.isKeyReplacementDue(now: start))
    #expect(state.isKeyReplacementDue(now: start + pause))
    #expect(waits(take(.oldKeysReplaced)) == [.seconds(1)])
    #expect(!state.isKeyReplacementDue(now: start) && state.isKeyReplacementDue(now: start + .seconds(1)))
    // Nodes that cannot be put now, which may last for days, do not end the attempts. Their pauses grow up to an hour.
    var pauses: [Duration] = []
    for _ in 0..<1_000 {
      let pause = try #require(waits(take(.oldKeysLeft(2, areBlocked: true))).first)
      #expect(!state.isKeyReplacementDue(now: start) && state.isKeyReplacementDue(now: start + pause))
      pauses.append(pause)
    }
    #expect((.seconds(10) ... .seconds(60)).contains(pauses[0]))
    #expect(zip(pauses, pauses.dropFirst()).allSatisfy { $0 <= $1 })
    #expect(pauses[10...].allSatisfy { (.seconds(1_800) ... .seconds(3_660)).contains($0) })
    _ = take(.oldKeysLeft(2, areBlocked: false))
    #expect(take(.keyRaised(2)).isEmpty && !state.isKeyReplacementDue(now: start + .seconds(600)))
    #expect(!take(.keyRaised(3)).isEmpty)
  }

  @Test("a zone that is followed again is pulled immediately, whatever happened to an earlier one")
  mutating func followed() {
    _ = take(.pullFailed(ServerError(.zoneBusy, "", retryable: true, retryAfterMs: 9_000)))
    _ = take(.eventPulled(commits: 0))
    _ = take(.split(nodes: 9))
    #expect(!state.isPullDue(now: start))
    #expect(take(.followed).isEmpty)
    #expect(state.isPullDue(now: start) && !state.hasPulled && state.commitLimit == nil)
  }

  @Test("a refused commit is halved until one node is left; each accepted one doubles the next")
  mutating func splits() {
    _ = take(.split(nodes: 9))
    #expect(state.commitLimit == 4)
    _ = take(.split(nodes: 1))
    #expect(state.commitLimit == 1)
    let head = ZoneSyncState.Head(seq: 1, hash: .zero)
    for expected in [2, 4, 8] {
      _ = take(.accepted(head: head, operations: []))
      #expect(state.commitLimit == expected && state.ownHead == head)
    }
    for _ in 0..<20 { _ = take(.accepted(head: head, operations: [])) }
    #expect(state.commitLimit == Limits.commitOperations)
  }

  @Test("eight refused nodes in a row are the server's fault")
  mutating func refusals() {
    for count in 1...8 {
      _ = take(.nodeRefused)
      #expect(state.isRefusedThroughout == (count == 8))
    }
    _ = take(.nodeRefused)
    _ = take(.accepted(head: ZoneSyncState.Head(seq: 1, hash: .zero), operations: []))
    for _ in 1...7 {
      _ = take(.nodeRefused)
      #expect(!state.isRefusedThroughout)
    }
  }

  @Test("content that the server loses again and again is counted by operation until it is accepted")
  mutating func losses() {
    _ = take(.contentLost(operations: [1, 2]))
    _ = take(.contentLost(operations: [2]))
    #expect(state.losses(of: [1]) == 1 && state.losses(of: [1, 2]) == 2 && state.losses(of: [3]) == 0)
    _ = take(.accepted(head: ZoneSyncState.Head(seq: 1, hash: .zero), operations: [2]))
    #expect(state.losses(of: [1, 2]) == 1)
  }
}

@Suite("Engine pause") struct EnginePauseTests {
  @Test("an engine without a connection waits longer each time, and not at all once the server answers")
  func grows() throws {
    var pause = EnginePause()
    let start = ContinuousClock.now
    let error = TransportError(.offline)
    #expect(pause.begin(after: error, now: start, random: 0.999) == .milliseconds(249))
    #expect(pause.begin(after: error, now: start, random: 0.999) == nil, "one pause for all zones")
    #expect(pause.lasts(start) && !pause.lasts(start + .milliseconds(249)))
    #expect(pause.begin(after: error, now: start + .milliseconds(249), random: 0.999) == .milliseconds(499))
    pause.endIfOfConnection()
    #expect(!pause.lasts(start + .milliseconds(250)))
    #expect(pause.begin(after: error, now: start, random: 0.999) == .milliseconds(249))
  }

  @Test("a device that may not push is not tried again because a pull succeeds")
  func isKept() {
    var pause = EnginePause()
    let start = ContinuousClock.now
    _ = pause.begin(after: ZDCSecurityError(.accessKeyChanged), now: start, random: 0.5)
    pause.endIfOfConnection()
    #expect(pause.lasts(start))
    pause.end()
    #expect(!pause.lasts(start))
  }
}

@Suite("Zone round") struct ZoneRoundTests {
  private typealias Part = Result<Void, any Error>
  private let unanswered = Part.failure(TransportError(.timeout))

  @Test("two requests without an answer end a round that the app asked for, not one in the background")
  func unansweredRequests() throws {
    var asked = ZoneRound(ZDCPullSummary())
    try asked.add(1, unanswered) { _, _ in }
    #expect(throws: TransportError(.timeout)) { try asked.add(2, unanswered) { _, _ in } }
    var background = ZoneRound(ZDCPullSummary(), inBackground: true)
    for zone: Int64 in 1...3 { try background.add(zone, unanswered) { _, _ in } }
    #expect(background.failedZones == [1, 2, 3])
  }

  @Test("without a connection every round ends with the first zone")
  func disconnected() {
    for inBackground in [false, true] {
      var round = ZoneRound(ZDCPullSummary(), inBackground: inBackground)
      #expect(throws: TransportError(.offline)) {
        try round.add(1, Part.failure(TransportError(.offline))) { _, _ in }
      }
    }
  }
}
