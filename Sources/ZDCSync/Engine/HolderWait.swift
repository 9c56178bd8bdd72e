/// The progress of a process's own changes, as seen while another process syncs them.
package struct HolderProgress: Sendable, Hashable {
  /// The remaining changes and what each is waiting for.
  package var left: Set<String>
  /// The number of failed attempts to send them.
  package var failures: Int
  /// Whether the syncing process reports that it is sending some of them.
  package var isSending: Bool
  var partsSent = 0

  package init(left: Set<String>, failures: Int, isSending: Bool) {
    self.left = left
    self.failures = failures
    self.isSending = isSending
  }
}

/// Decides how long a process waits for the process that syncs, which may be suspended or unable to reach a server.
/// Pure.
struct HolderWait: Sendable {
  package static let patience = Duration.seconds(15)
  /// An 8 MiB part or a full commit shows no progress until it has arrived.
  static let patienceWhileSending = Duration.seconds(120)

  private let failures: Int
  private var last: HolderProgress
  private var since: ContinuousClock.Instant

  package init(_ first: HolderProgress, at now: ContinuousClock.Instant) {
    failures = first.failures
    last = first
    since = now
  }

  /// Whether further waiting may show progress.
  mutating func isWorthwhile(_ seen: HolderProgress, at now: ContinuousClock.Instant) -> Bool {
    if seen.failures > failures { return false }
    if seen != last { (last, since) = (seen, now) }
    return since.duration(to: now) < (seen.isSending ? Self.patienceWhileSending : Self.patience)
  }
}
