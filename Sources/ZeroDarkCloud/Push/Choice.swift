internal import ZDCProtocol

/// Candidates for the next commit of a zone, with the app's answers.
struct Choice: Sendable {
  var zone: ZoneRow
  var head: ZoneHead
  var plan: PushPlan
  /// Nodes of which nothing can go out before the next pull.
  var unread: Set<Int64>
  var answers: [ContentAnswer] = []
  var conflicts: [OperationRow] = []
  var refusals: [(operation: OperationRow, error: any Error)] = []
  var failures: [(operations: [Int64], failure: ContentFailure)] = []

  /// Something to tell the app or to store, even if nothing goes out.
  var hasNews: Bool { !(conflicts.isEmpty && refusals.isEmpty && answers.isEmpty && failures.isEmpty) }
}
