package import ZDCProtocol
internal import ZDCSupport

/// The steps that one zone's sync needs, and the pauses before them. Pure.
///
/// ``ZoneWorker`` performs the steps and reports how each went; nothing else changes the state. The tables hold all
/// pending work, so that a new state after a launch loses nothing but pauses.
package struct ZoneSyncState: Sendable {
  package enum Event: Sendable {
    case pulled(isRefusedByApp: Bool)
    case pullFailed(any Error)
    /// There is no connection to the server at all.
    case pullDisconnected
    /// The engine's pull was cancelled.
    case pullAborted
    /// The server named a head that this device has, or one that it does not have.
    case headNamed(isKnown: Bool)
    /// An event that asked for a pull, and how many commits that pull brought.
    case eventPulled(commits: Int)
    case pushBegan
    case pushed
    case pushFailed(any Error)
    /// The server accepted a commit of these operations.
    case accepted(head: Head, operations: [Int64])
    /// A commit of so many nodes was refused and is split.
    case split(nodes: Int)
    /// The server refused a single node, or the server has lost the content of these operations.
    case nodeRefused
    case contentLost(operations: [Int64])
    /// Operations have pauses, and the first of these ends after this time.
    case operationsPaused(for: Duration)
  }

  /// The worker's reaction to an event.
  package enum Action: Sendable {
    /// Wakes the background sync after this time.
    case wake(in: Duration)
    /// Reports the error, because no caller gets it.
    case report(any Error)
    /// Shows that nothing of the zone is sent for so long after this error; nil once a push has gone through.
    case showPause((error: any Error, length: Duration)?)
  }

  package struct Head: Sendable, Hashable {
    package var seq: UInt64
    package var hash: CommitHash

    package init(seq: UInt64, hash: CommitHash) { (self.seq, self.hash) = (seq, hash) }

    package init(_ status: ZoneStatus) { self.init(seq: status.seq, hash: status.head) }
  }

  /// Whether the zone was pulled since the launch. Before that, nothing of it is sent in the background.
  package private(set) var hasPulled = false
  /// Whether the server has named a head, and no pull has shown it yet.
  package private(set) var needsPull = false
  /// Whether the app threw in the last pull. Its errors would otherwise repeat with each event.
  private(set) var isRefusedByApp = false
  /// The last commit of this device, so that the server's event about it costs nothing.
  package private(set) var ownHead: Head?
  /// How many nodes the next commit may hold, if that was reduced to find the one that the server refuses.
  package private(set) var commitLimit: Int?
  /// Nodes that the server refused in a row.
  private var refusals = 0
  /// Whether the server refused ``mostRefusals`` nodes in a row: the rest of the queue waits.
  package private(set) var isRefusedThroughout = false
  private var contentLosses: [Int64: Int] = [:]
  private var pullPause = Pause()
  private var pushPause = Pause()
  /// After events whose head the server does not show.
  private var eventPause = Pause()

  /// A server that refuses this many nodes in a row refuses everything.
  static let mostRefusals = 8
}

// MARK: - Questions

extension ZoneSyncState {
  package func isPullDue(now: ContinuousClock.Instant) -> Bool {
    needsPull && !pullPause.lasts(now) && !eventPause.lasts(now)
  }

  package func isPushPaused(now: ContinuousClock.Instant) -> Bool { pushPause.lasts(now) }

  /// Whether the last pull failed or was cancelled, so that this zone is not up to date.
  package var isLeftOut: Bool { pullPause.until != nil }

  /// Whether an event may cost requests now. During a pause, all events of a zone become one pull at its end.
  package func mayPullForEvent(now: ContinuousClock.Instant) -> Bool {
    let isBackingOff = pullPause.backoff.attempts > 0 && pullPause.lasts(now)
    return !isBackingOff && !eventPause.lasts(now)
  }

  /// The end of the earliest pause that lasts.
  package func nextWake(after now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
    [pullPause, pushPause, eventPause].compactMap(\.until).filter { $0 > now }.min()
  }

  /// How often the server has lost the content of one of these operations.
  package func losses(of operations: [Int64]) -> Int { operations.compactMap { contentLosses[$0] }.max() ?? 0 }
}

// MARK: - Events

extension ZoneSyncState {
  /// The only place that changes the state.
  ///
  /// - Parameter random: in 0..<1, for the length of pauses.
  package mutating func handle(_ event: Event, now: ContinuousClock.Instant, random: Double) -> [Action] {
    switch event {
    case .pulled(let isRefused): pulled(isRefused: isRefused)
    case .pullFailed(let error): return pullFailed(error, now: now, random: random)
    case .pullDisconnected: needsPull = true
    case .pullAborted: return pullAborted(now: now)
    case .headNamed(let isKnown): headNamed(isKnown: isKnown)
    case .eventPulled(let commits): return eventPulled(commits: commits, now: now, random: random)
    case .pushBegan: isRefusedThroughout = false
    case .pushed: return pushed()
    case .pushFailed(let error): return pushFailed(error, now: now, random: random)
    case .accepted(let head, let operations): accepted(head, operations)
    case .split(let nodes): commitLimit = max(1, nodes / 2)
    case .nodeRefused: nodeRefused()
    case .contentLost(let operations): for id in operations { contentLosses[id, default: 0] += 1 }
    case .operationsPaused(let pause): return [.wake(in: pause)]
    }
    return []
  }

  private mutating func headNamed(isKnown: Bool) {
    needsPull = !isKnown
    if isKnown { (hasPulled, pullPause) = (true, Pause()) }
  }

  private mutating func pulled(isRefused: Bool) {
    (hasPulled, needsPull, isRefusedByApp) = (true, false, isRefused)
    pullPause = Pause()
  }

  /// A pull that the server refuses is repeated later; one of a frozen zone is not.
  private mutating func pullFailed(_ error: any Error, now: ContinuousClock.Instant, random: Double) -> [Action] {
    hasPulled = true
    needsPull = HeadRules.isTriedAgain(after: error)
    guard needsPull else {
      pullPause = Pause()
      return []
    }
    return [.report(error), .wake(in: pullPause.begin(after: error, now: now, random: random))]
  }

  /// A pull that was aborted is not repeated immediately; it is repeated later, because the server does not name the head
  /// again.
  private mutating func pullAborted(now: ContinuousClock.Instant) -> [Action] {
    needsPull = true
    pullPause.until = now + Self.pauseAfterAbort
    return [.wake(in: Self.pauseAfterAbort)]
  }

  static let pauseAfterAbort = Duration.seconds(60)

  /// An honest server names a head that it can show.
  private mutating func eventPulled(commits: Int, now: ContinuousClock.Instant, random: Double) -> [Action] {
    guard commits == 0 else {
      eventPause = Pause()
      return []
    }
    return [.wake(in: eventPause.begin(after: EmptyEvent(), now: now, random: random))]
  }

  private struct EmptyEvent: Error {}

  private mutating func pushFailed(_ error: any Error, now: ContinuousClock.Instant, random: Double) -> [Action] {
    let length = pushPause.begin(after: error, now: now, random: random)
    return [.report(error), .wake(in: length), .showPause((error, length))]
  }

  private mutating func pushed() -> [Action] {
    defer { pushPause = Pause() }
    return pushPause.until == nil ? [] : [.showPause(nil)]
  }

  private mutating func nodeRefused() {
    refusals += 1
    isRefusedThroughout = refusals == Self.mostRefusals
    if isRefusedThroughout { refusals = 0 }
  }

  private mutating func accepted(_ head: Head, _ operations: [Int64]) {
    (ownHead, refusals) = (head, 0)
    for id in operations { contentLosses[id] = nil }
    commitLimit = commitLimit.map { min($0 * 2, Limits.commitOperations) }
  }
}

/// A pause before the next attempt, longer after each failure in a row.
struct Pause: Sendable {
  package var backoff = Backoff()
  package var until: ContinuousClock.Instant?

  package func lasts(_ now: ContinuousClock.Instant) -> Bool { until.map { $0 > now } ?? false }

  /// - Returns: how long the pause is.
  package mutating func begin(after error: any Error, now: ContinuousClock.Instant, random: Double) -> Duration {
    let length = Duration.milliseconds(Int64(backoff.next(after: error, random: random)))
    until = now + length
    return length
  }
}
