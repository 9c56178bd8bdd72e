package import ZDCProtocol
internal import ZDCSupport

/// The steps that one zone's sync needs, and the pauses before them. Pure.
///
/// ``ZoneWorker`` performs the steps and reports their results; nothing else changes the state. The tables hold all
/// pending work, so a new state after a launch loses only pauses.
package struct ZoneSyncState: Sendable {
  package enum Event: Sendable {
    case pulled(isRefusedByApp: Bool)
    case pullFailed(any Error)
    /// The server provides nothing of a grafted branch.
    case unreachable
    /// There is no connection to the server.
    case pullDisconnected
    /// The engine's pull was cancelled.
    case pullAborted
    /// This device follows the zone from now on. The state may be that of an earlier zone whose row had the same number.
    case followed
    /// The server named a head; `isKnown` is true if this device already has it.
    case headNamed(isKnown: Bool)
    /// A pull for an event has ended with this number of commits.
    case eventPulled(commits: Int)
    case pushBegan
    case pushed
    case pushFailed(any Error)
    /// The server accepted a commit of these operations.
    case accepted(head: Head, operations: [Int64])
    /// A commit with this number of nodes was refused and is split.
    case split(nodes: Int)
    /// The server refused a single node, or the server has lost the content of these operations.
    case nodeRefused
    case contentLost(operations: [Int64])
    /// Operations have pauses, the first of which ends after this time.
    case operationsPaused(for: Duration)
    /// A removal has raised the zone's key to this generation. Nodes that were not written since have old keys.
    case keyRaised(UInt32)
    /// A commit has replaced old keys, or lost against another one.
    case oldKeysReplaced
    /// No commit can replace old keys: there are none left, or the nodes with old keys cannot be put now.
    case oldKeysLeft(UInt32, areBlocked: Bool)
  }

  /// The worker's reaction to an event.
  package enum Action: Sendable {
    /// Wakes the background sync after this duration.
    case wake(in: Duration)
    /// Reports the error, because no caller receives it.
    case report(any Error)
    /// Shows that the zone's push is paused for this duration after this error; nil once a push has succeeded.
    case showPause((error: any Error, length: Duration)?)
  }

  package struct Head: Sendable, Hashable {
    package var seq: UInt64
    package var hash: CommitHash

    package init(seq: UInt64, hash: CommitHash) { (self.seq, self.hash) = (seq, hash) }

    package init(_ status: ZoneStatus) { self.init(seq: status.seq, hash: status.head) }
  }

  /// Whether the zone was pulled since launch. Until then, no changes of the zone are sent in the background.
  package private(set) var hasPulled = false
  /// Whether the server has named a head that no pull has fetched yet.
  package private(set) var needsPull = false
  /// Whether the app threw in the last pull. Its errors would otherwise repeat with each event.
  private(set) var isRefusedByApp = false
  /// This device's last commit, so that the server's event about it causes no work.
  package private(set) var ownHead: Head?
  /// The maximum number of nodes in the next commit, if it was reduced to find the node that the server refuses.
  package private(set) var commitLimit: Int?
  /// The number of nodes that the server refused in a row.
  private var refusals = 0
  /// Whether the server refused ``mostRefusals`` nodes in a row, so that the rest of the queue waits.
  package private(set) var isRefusedThroughout = false
  private var contentLosses: [Int64: Int] = [:]
  private var pullPause = Pause()
  /// Whether the last answer was that the server provides nothing of the grafted branch.
  private var isUnreachable = false
  private var pushPause = Pause()
  /// The pause after events whose head the server does not provide.
  private var eventPause = Pause()
  /// The generation of the zone's key for which no old keys are left, as far as this device can replace them.
  private var replacedKeyGen: UInt32 = 0
  /// When the next commit that replaces old keys is due.
  private var oldKeysDue: ContinuousClock.Instant?
  /// The number of attempts in a row whose nodes with old keys could not be put.
  private var blockedKeys = 0

  /// A server that refuses this many nodes in a row refuses everything.
  static let mostRefusals = 8
}

// MARK: - Questions

extension ZoneSyncState {
  package func isPullDue(now: ContinuousClock.Instant) -> Bool {
    needsPull && !pullPause.lasts(now) && !eventPause.lasts(now)
  }

  package func isPushPaused(now: ContinuousClock.Instant) -> Bool { pushPause.lasts(now) }

  /// Whether the last pull failed or was cancelled, so that this zone is not up to date. A branch that the server does not
  /// let the user read is up to date as far as it can be: it is listed as unreadable, possibly for good.
  package var isLeftOut: Bool { pullPause.until != nil && !isUnreachable }

  /// Returns whether an event may cause requests now. During a pause, all events of a zone are combined into one pull
  /// at its end.
  package func mayPullForEvent(now: ContinuousClock.Instant) -> Bool {
    let isBackingOff = pullPause.backoff.attempts > 0 && pullPause.lasts(now)
    return !isBackingOff && !eventPause.lasts(now)
  }

  /// Returns the end of the earliest pause still in effect.
  package func nextWake(after now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
    [pullPause.until, pushPause.until, eventPause.until, oldKeysDue].compactMap(\.self).filter { $0 > now }.min()
  }

  /// Whether to send a commit that replaces old keys.
  package func isKeyReplacementDue(now: ContinuousClock.Instant) -> Bool {
    hasPulled && !isPushPaused(now: now) && oldKeysDue.map { $0 <= now } ?? false
  }

  /// Returns how often the server has lost the content of one of these operations.
  package func losses(of operations: [Int64]) -> Int { operations.compactMap { contentLosses[$0] }.max() ?? 0 }
}

// MARK: - Events

extension ZoneSyncState {
  /// Updates the state and returns the actions to perform. This is the only place that changes the state.
  ///
  /// - Parameter random: A number in 0..<1, which varies the length of pauses.
  package mutating func handle(_ event: Event, now: ContinuousClock.Instant, random: Double) -> [Action] {
    switch event {
    case .pulled(let isRefused): pulled(isRefused: isRefused)
    case .pullFailed(let error): return pullFailed(error, now: now, random: random)
    case .unreachable: return unreachable(now: now, random: random)
    case .pullDisconnected: needsPull = true
    case .pullAborted: return pullAborted(now: now)
    case .followed: (self, needsPull) = (ZoneSyncState(), true)
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
    case .keyRaised(let keyGen): return keyRaised(keyGen, now: now, random: random)
    case .oldKeysReplaced: return oldKeysReplaced(now: now)
    case .oldKeysLeft(let keyGen, let areBlocked):
      return oldKeysLeft(keyGen, areBlocked: areBlocked, now: now, random: random)
    }
    return []
  }

  private mutating func headNamed(isKnown: Bool) {
    needsPull = !isKnown
    if isKnown { (hasPulled, pullPause, isUnreachable) = (true, Pause(), false) }
  }

  private mutating func pulled(isRefused: Bool) {
    (hasPulled, needsPull, isRefusedByApp) = (true, false, isRefused)
    (pullPause, isUnreachable) = (Pause(), false)
  }

  /// Pauses pulls after a failure. A refused pull is repeated later; a pull of a frozen zone is not.
  private mutating func pullFailed(_ error: any Error, now: ContinuousClock.Instant, random: Double) -> [Action] {
    (hasPulled, isUnreachable) = (true, false)
    needsPull = HeadRules.isTriedAgain(after: error)
    guard needsPull else {
      pullPause = Pause()
      return []
    }
    return [.report(error), .wake(in: pullPause.begin(after: error, now: now, random: random))]
  }

  /// Asks again after a pause, which grows. No event announces that the user may read the branch.
  private mutating func unreachable(now: ContinuousClock.Instant, random: Double) -> [Action] {
    (hasPulled, needsPull, isUnreachable) = (true, true, true)
    return [.wake(in: pullPause.begin(after: UnreachableBranch(), now: now, random: random))]
  }

  /// Pauses pulls after an abort. The pull is repeated later, but not immediately, because the server does not name the
  /// head again.
  private mutating func pullAborted(now: ContinuousClock.Instant) -> [Action] {
    needsPull = true
    pullPause.until = now + Self.pauseAfterAbort
    return [.wake(in: Self.pauseAfterAbort)]
  }

  static let pauseAfterAbort = Duration.seconds(60)

  /// Pauses pulls for events if one fetched no commit. An honest server only names a head that it can provide.
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

  /// The pause before a device begins to replace old keys. The owner's devices all may do it, and learn of the removal
  /// at the same moment.
  static let pauseBeforeKeys: ClosedRange<Double> = 10...60
  /// The pause between two commits that replace old keys, which leaves room for other work.
  static let pauseBetweenKeys = Duration.seconds(1)

  private mutating func keyRaised(_ keyGen: UInt32, now: ContinuousClock.Instant, random: Double) -> [Action] {
    guard keyGen > replacedKeyGen, oldKeysDue == nil else { return [] }
    return replaceOldKeys(at: now, random: random)
  }

  private mutating func replaceOldKeys(
    at now: ContinuousClock.Instant, after wait: Duration = .zero, random: Double
  ) -> [Action] {
    let range = Self.pauseBeforeKeys
    let pause = wait + Duration.seconds(range.lowerBound + (range.upperBound - range.lowerBound) * random)
    oldKeysDue = now + pause
    return [.wake(in: pause)]
  }

  private mutating func oldKeysReplaced(now: ContinuousClock.Instant) -> [Action] {
    oldKeysDue = now + Self.pauseBetweenKeys
    blockedKeys = 0
    return [.wake(in: Self.pauseBetweenKeys)]
  }

  /// Tries again for as long as the nodes cannot be put, for example because their newest records are still being
  /// pulled, or the zone's key is missing. A removal is complete only when no old keys are left. The pauses grow up to an
  /// hour, because this may last for days and each attempt wakes the device. Nothing is tried while the zone is frozen.
  private mutating func oldKeysLeft(
    _ keyGen: UInt32, areBlocked: Bool, now: ContinuousClock.Instant, random: Double
  ) -> [Action] {
    guard areBlocked else {
      (replacedKeyGen, oldKeysDue) = (keyGen, nil)
      blockedKeys = 0
      return []
    }
    blockedKeys += 1
    let wait = Duration.milliseconds(Int64(Backoff.pause(losses: blockedKeys, random: random)))
    return replaceOldKeys(at: now, after: wait, random: random)
  }

  private mutating func accepted(_ head: Head, _ operations: [Int64]) {
    (ownHead, refusals) = (head, 0)
    for id in operations { contentLosses[id] = nil }
    commitLimit = commitLimit.map { min($0 * 2, Limits.commitOperations) }
  }
}

/// A pause before the next attempt, which grows with each consecutive failure.
struct Pause: Sendable {
  package var backoff = Backoff()
  package var until: ContinuousClock.Instant?

  package func lasts(_ now: ContinuousClock.Instant) -> Bool { until.map { $0 > now } ?? false }

  /// - Returns: The length of the pause.
  package mutating func begin(after error: any Error, now: ContinuousClock.Instant, random: Double) -> Duration {
    let length = Duration.milliseconds(Int64(backoff.next(after: error, random: random)))
    until = now + length
    return length
  }
}

/// The server answers for a grafted branch as if there were none.
///
/// The invitation may have come before the access, or its sender had no right to give it, or the server hides the
/// branch. The answer proves none of them (K-14).
struct UnreachableBranch: Error {}

/// The server has removed a branch with the account of its owner, whose identity chain says that the account is closed.
/// The nodes on this device stay.
struct RemovedBranch: Error {}
