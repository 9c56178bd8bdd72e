internal import GRDB
internal import ZDCClientStore
internal import ZDCProtocol

/// Decides what may go out, inside one read transaction.
struct Chooser: Sendable {
  /// How far into the queue a commit looks: enough for a thousand nodes with several operations each.
  package static let window = 4_000
  /// The largest window, used when all of that waits: it bounds the rows in memory.
  static let widestWindow = 16 * window
  /// How many uploads may be pending before they hold up the rest of the queue: each is a task of its own.
  static let mostUnderWay = 8_000

  package let session: SyncSession
  package let zone: Int64
  /// Contents that need not be asked for.
  package let known: [Int64: ContentClaim]
  /// The operations of those among them that are not here yet.
  package let underWay: Set<Int64>
  /// How many nodes the commit may hold, if that is reduced.
  package let limit: Int?

  /// The next thing to send.
  package enum Due: Sendable {
    case nothing
    /// The last request has no known outcome.
    case request(InFlightStore.Request)
    case choice(Choice)
  }

  package func due(_ transaction: ZDCReadTransaction) throws -> Due {
    guard let row = try transaction.zones.zone(id: zone), row.frozen == nil else { return .nothing }
    // In the same snapshot as the queue: nothing goes out that was queued after the pause.
    guard try transaction.pushPause(localUser: session.localUser) == nil else { return .nothing }
    if let request = try InFlightStore(transaction: transaction).request(zone: zone) { return .request(request) }
    guard let head = row.head, var choice = try plan(row, head, transaction) else { return .nothing }
    try ask(&choice, transaction)
    return .choice(choice)
  }

  /// Looks further into the queue while everything that it has seen waits.
  private func plan(
    _ row: ZoneRow, _ head: ZoneHead, _ transaction: ZDCReadTransaction
  ) throws -> Choice? {
    var window = Self.window
    while true {
      let operations = try transaction.operations.operations(zone: row.id, limit: window)
      guard !operations.isEmpty else { return nil }
      let unread = try transaction.unreadNodes(of: operations, zone: row.id)
      let plan = PushPlan(
        operations: operations,
        dependencies: try transaction.operations.dependencies(zone: row.id, upTo: operations.last?.id ?? 0),
        unread: unread, unreadable: row.unreadableReason?.code, underWay: underWay, nowMs: session.now(),
        limit: limit ?? Limits.commitOperations)
      let isAllSeen = operations.count < window || window >= Self.widestWindow
      if plan.taken > 0 || isAllSeen { return Choice(zone: row, head: head, plan: plan, unread: unread) }
      window *= 4
    }
  }

  private func ask(_ choice: inout Choice, _ transaction: ZDCReadTransaction) throws {
    let request = ContentRequest(session: session, transaction: transaction)
    for step in choice.plan.steps {
      guard let node = step.node, let first = step.dataOperations.first else { continue }
      if known[node]?.holds(for: first) == true {
        if try request.isInConflict(first) { choice.conflicts.append(first) }
        continue
      }
      switch try request.ask(step.dataOperations) {
      case .answer(let answer): choice.answers.append(answer)
      case .conflict(let operation): choice.conflicts.append(operation)
      case .refused(let operation, let error): choice.refusals.append((operation, error))
      case nil: break
      }
    }
  }
}
