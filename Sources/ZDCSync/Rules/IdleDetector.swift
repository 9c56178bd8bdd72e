/// Decides when a sync is finished. Pure.
package struct IdleDetector {
  /// A limit that suffices for the queue, for conflicts that the app resolves and for commits of other devices that
  /// come first. Without it, an app that answers each push with another change would keep the sync running forever.
  private let limit: Int
  private var rounds = 0

  package init(queued: Int) {
    limit = 200 + 4 * queued
  }

  package var isExhausted: Bool { rounds >= limit }

  /// Returns whether another round may have work to do: sent commits may unblock other operations, and the app may have
  /// queued changes in a delegate call.
  package mutating func shouldContinue(after round: ZDCPushSummary, uploadsSettled: Int) -> Bool {
    rounds += 1
    return !isExhausted && (round.hasNext || round.calledApp || round.changedQueue || uploadsSettled > 0)
  }
}
