package import ZDCClientStore
package import ZDCProtocol

/// Candidates for the next commit of a zone, with the app's answers.
package struct Choice: Sendable {
  package var zone: ZoneRow
  package var head: ZoneHead
  package var plan: PushPlan
  /// Nodes of which nothing can go out before the next pull.
  package var unread: Set<Int64>
  package var answers: [ContentAnswer] = []
  package var conflicts: [OperationRow] = []
  package var refusals: [(operation: OperationRow, error: any Error)] = []
  package var failures: [(operations: [Int64], failure: ContentFailure)] = []

  /// Something to tell the app or to store, even if nothing goes out.
  package var hasNews: Bool { !(conflicts.isEmpty && refusals.isEmpty && answers.isEmpty && failures.isEmpty) }
}
