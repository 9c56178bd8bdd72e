internal import Foundation
internal import ZDCClientAPI
package import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport
internal import ZDCTransfers
internal import ZDCTreesystem

/// Stores the decisions for a zone's next commit in one transaction: conflicts, refusals, waiting operations with their
/// reasons, and the request itself.
struct PushStager {
  package let session: SyncSession
  package let choice: Choice
  package let contents: [Int64: ReadyContent]
  /// Nodes whose content is awaited or being uploaded; true if the promise has not been fulfilled.
  package let uploading: [Int64: Bool]
  package let ahead: [Int64: PresealedRecord]
  package let transaction: ZDCReadWriteTransaction

  /// - Returns: The request to send, or nil if nothing can be sent.
  package func stage() throws -> InFlightStore.Request? {
    let held = try announceConflicts()
    try storeReasons()
    for (operations, failure) in choice.failures {
      try failure.store(operations, transaction: transaction, nowMs: session.now())
    }
    let refused = try storeRefusals()
    var builder = try filled(try builder(), except: held.union(refused))
    let namesakes = try builder.findNamesakes()
    if !namesakes.isEmpty {
      builder = try self.builder()
      builder.namesakes = namesakes
      builder = try filled(builder, except: held.union(refused))
    }
    guard !builder.isEmpty else { return nil }
    return try store(builder)
  }

  private func filled(_ empty: CommitBuilder, except held: Set<Int64>) throws -> CommitBuilder {
    var builder = empty
    // The operations in this commit so far. The plan may hold more: content that is not ready yet, and parents without
    // room.
    var included: Set<Int64> = []
    for step in choice.plan.steps where !step.isDelete { try add(step, except: held, to: &builder, &included) }
    try addDeletes(to: &builder, included)
    return builder
  }

  private func store(_ builder: CommitBuilder) throws -> InFlightStore.Request {
    let built = try builder.build()
    let inFlight = InFlightStore(transaction: transaction)
    try inFlight.store(
      built.commit.hash, request: built.request, zone: choice.zone.id, outcomes: built.outcomes,
      rotations: built.rotations, atMs: session.now())
    for row in built.renamed { try queueName(of: row) }
    return InFlightStore.Request(
      commitHash: built.commit.hash, body: built.request, uploads: try inFlight.uploads(zone: choice.zone.id))
  }

  private func builder() throws -> CommitBuilder {
    let operations = choice.plan.steps.flatMap(\.operations)
    let heldNames = try HeldNames(
      zone: choice.zone, deletes: operations.filter { $0.kind == .delete }.map(\.nodeID),
      moving: Set(operations.filter { $0.kind == .move }.map(\.nodeID)), transaction: transaction)
    return CommitBuilder(
      session: session, zoneRow: choice.zone, head: choice.head, ahead: ahead, heldNames: heldNames,
      transaction: transaction)
  }

  // MARK: Steps

  private func add(
    _ step: PushPlan.Step, except held: Set<Int64>, to builder: inout CommitBuilder, _ included: inout Set<Int64>
  ) throws {
    guard let node = step.node else { return }
    // The app may have reverted a change since, so use only operations that are still queued.
    var alive = try step.operations.compactMap { try transaction.operations.operation(id: $0.id) }
      .filter { $0.state == .pending && !held.contains($0.id) }
    // Everything else goes to the zone that the node moves to.
    if try transaction.moves.isCrossing(node) { alive = alive.filter(\.namesOldContent) }
    let records = alive.filter { $0.kind != .putData }.map(\.id)
    guard records.allSatisfy({ isFree($0, included, own: records) }) else {
      return try storeWaiting(alive, included, own: records)
    }
    let queued = Set(alive.map(\.id))
    let content = contents[node].flatMap { isCurrent($0, alive) ? $0 : nil }
    let covers = content?.claim.covers.filter(queued.contains) ?? []
    let covered = covers.filter { isFree($0, included, own: records + covers) }
    guard !records.isEmpty || !covered.isEmpty else { return try markUploading(step) }
    let supplied = covered.isEmpty ? nil : content
    let done = records + covered
    let isNameTaken = alive.contains { $0.kind != .putData && $0.isNameTaken }
    switch try builder.put(node, content: supplied?.content, done: done, isNameTaken: isNameTaken) {
    case .added: break
    case .later: return
    case .refused(let refusal): return try park(done, refusal)
    }
    included.formUnion(records + covered)
    if supplied == nil { try markUploading(step) }
  }

  /// Returns whether every dependency of the operation is done, in this commit, or in its node's own step.
  private func isFree(_ operation: Int64, _ included: Set<Int64>, own: [Int64] = []) -> Bool {
    (choice.plan.dependencies[operation] ?? []).allSatisfy { included.contains($0) || own.contains($0) }
  }

  private func storeWaiting(_ operations: [OperationRow], _ included: Set<Int64>, own: [Int64]) throws {
    for operation in operations where operation.reason != .waitingForOperation {
      let open = choice.plan.dependencies[operation.id]?.first { !included.contains($0) && !own.contains($0) }
      let detail = try open.flatMap { try transaction.operations.operation(id: $0)?.uuid }
      try transaction.operations.setState(
        operation.state, reason: .waitingForOperation, detail: detail, id: operation.id)
    }
  }

  /// Returns whether the app's answer is still current: the app has not merged since.
  private func isCurrent(_ ready: ReadyContent, _ alive: [OperationRow]) -> Bool {
    guard let first = alive.first(where: { $0.kind == .putData }) else { return false }
    return ready.claim.holds(for: first)
  }

  /// Parks the operations until the node has another version. The queue continues without them.
  private func park(_ operations: [Int64], _ refusal: RecordDrafts.Refusal) throws {
    for id in operations {
      try transaction.operations.setState(.pending, reason: refusal.reason, detail: refusal.code.rawValue, id: id)
    }
  }

  private func markUploading(_ step: PushPlan.Step) throws {
    guard let node = step.node, let isPromised = uploading[node] else { return }
    for operation in step.dataOperations {
      guard let current = try transaction.operations.operation(id: operation.id), current.reason != .conflictHeld
      else { continue }
      try transaction.operations.setState(.pending, reason: isPromised ? .promisePending : .uploading, id: current.id)
    }
  }

  private func addDeletes(to builder: inout CommitBuilder, _ included: Set<Int64>) throws {
    let deletes = try choice.plan.steps.filter(\.isDelete).flatMap(\.operations).filter { isFree($0.id, included) }
      .compactMap { try transaction.operations.operation(id: $0.id) }.filter { $0.state == .pending }
    for operation in try builder.delete(deletes) { try transaction.operations.delete(id: operation.id) }
  }

  /// Queues a move that gives the node its own name, after the deletes that it may be waiting for.
  private func queueName(of row: NodeRow) throws {
    let queued = try transaction.operations.operations(node: row.id)
    guard !queued.contains(where: { $0.kind == .move && $0.state == .pending }) else { return }
    let parent = try row.parent.flatMap { try transaction.nodes.node(id: $0) }?.nodeID
    let leaves = transaction.leaves(zone: row.zone)
    let deletes = try transaction.operations.deletes(zone: row.zone).filter {
      try leaves.leaf($0.nodeID)?.parent == parent
    }
    let move = try LocalTreeResolver(session: session, transaction: transaction).queueMove(row)
    for delete in deletes { try transaction.operations.addDependency(of: move, on: delete.id) }
  }

  // MARK: Held operations

  /// Calls the app for each conflict after the hold is stored, so that the callback can lift it. An error in one
  /// callback does not hold up other conflicts.
  private func announceConflicts() throws -> Set<Int64> {
    var held: Set<Int64> = []
    for conflict in choice.conflicts {
      guard let operation = try transaction.operations.operation(id: conflict.id),
        let row = try operation.node.flatMap({ try transaction.nodes.node(id: $0) }),
        operation.baseETag != row.content?.content.eTag
      else { continue }
      held.insert(operation.id)
      do {
        try transaction.undoable { try announce(operation, row) }
      } catch let error as DelegateError {
        try refuse(operation.id, error)
      }
    }
    return held
  }

  private func announce(_ operation: OperationRow, _ row: NodeRow) throws {
    let current = row.content?.content.eTag
    try transaction.operations.setState(.pending, reason: .conflictHeld, detail: current, id: operation.id)
    try transaction.attempts.record(.conflict, code: nil, of: [operation.id])
    let node = try session.node(row, in: transaction)
    let path = try session.path(row, in: transaction)
    try session.tell(.didDiscoverConflict, row.nodeID, in: transaction) {
      try $0.didDiscoverConflict(.data, forNode: node, atPath: path, transaction: transaction)
    }
    try slowDown(operation.id, current)
  }

  /// Pauses the operation after its callback failed. The callback's changes are rolled back, and the app is notified
  /// again after growing pauses.
  private func refuse(_ id: Int64, _ error: DelegateError) throws {
    guard var row = try transaction.operations.operation(id: id), row.state == .pending else { return }
    row.attempts += 1
    row.reason = .backoff
    row.reasonDetail = ContentFailure.detail(error.underlying)
    row.notBeforeMs = session.now() + Backoff.pause(attempts: row.attempts, random: .random(in: 0.5..<1))
    try transaction.record(error, orElse: .appFailed, of: [id])
    try transaction.operations.update(row)
    transaction.afterCommit { [events = session.events] in events.report(error) }
  }

  /// Pauses an operation that the app claims to have merged, but with a version other than the newest. The app is asked
  /// again after growing pauses.
  private func slowDown(_ id: Int64, _ current: String?) throws {
    guard var operation = try transaction.operations.operation(id: id), !operation.isParked,
      operation.baseETag != current
    else { return }
    operation.attempts += 1
    operation.reason = .backoff
    operation.reasonDetail = current
    operation.notBeforeMs = session.now() + Backoff.pause(attempts: operation.attempts, random: .random(in: 0.5..<1))
    try transaction.operations.update(operation)
  }

  private func storeReasons() throws {
    for waiting in choice.plan.waiting where waiting.reason == .waitingForOperation {
      guard let operation = try transaction.operations.operation(id: waiting.operation),
        operation.reason != .waitingForOperation || operation.reasonDetail != waiting.detail
      else { continue }
      try transaction.operations.setState(
        operation.state, reason: .waitingForOperation, detail: waiting.detail, id: operation.id)
    }
  }

  private func storeRefusals() throws -> Set<Int64> {
    for refusal in choice.refusals {
      try transaction.operations.setState(
        .pending, reason: .noDataFromApp, detail: ContentFailure.detail(refusal.error), id: refusal.operation.id)
      try transaction.record(refusal.error, orElse: .noDataFromApp, of: [refusal.operation.id])
      session.events.report(refusal.error)
    }
    return Set(choice.refusals.map(\.operation.id))
  }
}

/// The meaning of a failed content request for its operations. Pure except for storing it.
package struct ContentFailure: Sendable {
  private let reason: OperationRow.Reason
  private let detail: String?
  private let isPause: Bool
  private let attempt: (outcome: ZDCAttempt.Outcome, code: String?)?

  package init(_ error: any Error) {
    attempt = ZDCAttempt.outcome(of: error, orElse: .noDataFromApp)
    switch error {
    case is CancellationError: (reason, detail, isPause) = (.ready, nil, false)
    case let error as ServerError where error.code == .quotaExceeded:
      (reason, detail, isPause) = (.overQuota, error.code.rawValue, true)
    case let error as ServerError: (reason, detail, isPause) = (.serverSaid, error.code.rawValue, true)
    case let error as ZDCSecurityError where error.code == .contentHashMismatch:
      (reason, detail, isPause) = (.serverSaid, error.code.rawValue, true)
    case let error as TransportError where error.code == .proxyAnswered:
      (reason, detail, isPause) = (.serverSaid, error.detail, true)
    case is TransportError: (reason, detail, isPause) = (.offline, nil, true)
    case CryptoFailure.sourceChanged: (reason, detail, isPause) = (.backoff, "sourceChanged", true)
    default: (reason, detail, isPause) = (.noDataFromApp, Self.detail(error), false)
    }
  }

  /// Returns the type of the app's error. Its description may contain names.
  package static func detail(_ error: any Error) -> String? {
    (error as? ZDCError)?.code == .noDataFromApp ? nil : "\(type(of: error))"
  }

  package func store(_ operations: [Int64], transaction: ZDCReadWriteTransaction, nowMs: UInt64) throws {
    if let attempt { try transaction.attempts.record(attempt.outcome, code: attempt.code, of: operations) }
    for id in operations {
      guard var operation = try transaction.operations.operation(id: id) else { continue }
      operation.state = .pending
      operation.reason = reason
      operation.reasonDetail = detail
      if isPause {
        operation.attempts += 1
        operation.notBeforeMs = nowMs + Backoff.pause(attempts: operation.attempts, random: .random(in: 0.5..<1))
      }
      try transaction.operations.update(operation)
    }
  }
}
