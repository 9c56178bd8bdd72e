/// What a process that does not sync sees of its own changes.
package struct HolderProgress: Sendable, Hashable {
  /// The changes that are left and what each waits for.
  package var left: Set<String>
  /// How often they were tried and failed.
  package var failures: Int
  /// Whether the process that syncs says that some of them are on their way.
  package var isSending: Bool
  var partsSent = 0

  package init(left: Set<String>, failures: Int, isSending: Bool) {
    self.left = left
    self.failures = failures
    self.isSending = isSending
  }
}

/// How long a process waits for the one that syncs: it may be stopped, or have no server. Pure.
struct HolderWait: Sendable {
  package static let patience = Duration.seconds(15)
  /// A part of 8 MiB, or a full commit, shows nothing until it has arrived.
  static let patienceWhileSending = Duration.seconds(120)

  private let failures: Int
  private var last: HolderProgress
  private var since: ContinuousClock.Instant

  package init(_ first: HolderProgress, at now: ContinuousClock.Instant) {
    failures = first.failures
    last = first
    since = now
  }

  /// Whether more waiting may bring something.
  mutating func isWorthwhile(_ seen: HolderProgress, at now: ContinuousClock.Instant) -> Bool {
    if seen.failures > failures { return false }
    if seen != last { (last, since) = (seen, now) }
    return since.duration(to: now) < (seen.isSending ? Self.patienceWhileSending : Self.patience)
  }
}
