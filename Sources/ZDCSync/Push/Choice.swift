package import ZDCClientStore
package import ZDCProtocol

/// Candidates for the next commit of a zone, with the app's answers.
package struct Choice: Sendable {
  package var zone: ZoneRow
  package var head: ZoneHead
  package var plan: PushPlan
  /// Nodes that cannot be pushed before the next pull.
  package var unread: Set<Int64>
  package var answers: [ContentAnswer] = []
  package var conflicts: [OperationRow] = []
  package var refusals: [(operation: OperationRow, error: any Error)] = []
  package var failures: [(operations: [Int64], failure: ContentFailure)] = []

  /// Whether there is something to report to the app or to store, even if nothing is sent.
  package var hasNews: Bool { !(conflicts.isEmpty && refusals.isEmpty && answers.isEmpty && failures.isEmpty) }
}
