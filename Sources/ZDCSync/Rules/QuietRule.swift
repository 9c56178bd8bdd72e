/// When a sync is finished. Pure.
package struct QuietRule {
  /// Enough for what is queued, for conflicts that the app solves on the way and for commits of others that come first.
  /// An app that answers each push with another change would keep it busy for ever.
  private let limit: Int
  private var rounds = 0

  package init(queued: Int) {
    limit = 200 + 4 * queued
  }

  package var isExhausted: Bool { rounds >= limit }

  /// Whether another round has something to do: commits that were sent make others possible, and the app may have queued
  /// something when its delegate was called.
  package mutating func goesOn(after round: PushSummary, uploadsSettled: Int) -> Bool {
    rounds += 1
    return !isExhausted && (round.hasNext || round.calledApp || uploadsSettled > 0)
  }
}
