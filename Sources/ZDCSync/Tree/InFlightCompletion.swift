internal import Foundation
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCTransfers

/// What follows from knowing that the request in flight was accepted, by its answer or by meeting its commit in a pull:
/// once, in one transaction.
struct InFlightCompletion {
  package let session: SyncSession
  package let zone: Int64
  package let transaction: ZDCReadWriteTransaction

  package func complete(receivedMs: UInt64) throws {
    let store = InFlightStore(transaction: transaction)
    let outcomes = try store.outcomes(zone: zone)
    let rotations = try store.rotations(zone: zone)
    let uploads = try store.uploads(zone: zone)
    transaction.afterCommit { [progress = session.progress] in progress.end(uploads, .done) }
    try transaction.operations.deleteInFlight(zone: zone)
    try store.remove(zone: zone)
    for rotation in rotations {
      guard let row = try transaction.nodes.node(id: rotation.node) else { continue }
      try update(row, rotation.facts, receivedMs: receivedMs)
    }
    for outcome in outcomes {
      guard let id = outcome.node, let facts = outcome.facts else { continue }
      if let content = facts.content?.public, content.cipherLength > UInt64(Limits.inlineContentBytes) {
        try UploadStore(transaction: transaction).remove(content.blobID)
      }
      // The app deleted the node meanwhile: the delete that it queued takes care of the rest.
      guard let row = try transaction.nodes.node(id: id) else { continue }
      try update(row, facts, receivedMs: receivedMs)
    }
  }

  private func update(_ before: NodeRow, _ facts: InFlightStore.Outcome.Facts, receivedMs: UInt64) throws {
    var row = before
    row.cloud = NodeRow.CloudFacts(
      recordVersion: facts.recordVersion, recordHash: facts.recordHash, parent: facts.parent, name: facts.name,
      nameTag: facts.nameTag, writer: session.user, receivedMs: receivedMs)
    row.keyGen = facts.keyGen
    if let rekeyed = facts.rekeyed { (row.key, row.historyWrap) = rekeyed }
    // The newest version is one that opens, under the name that it is shown with.
    row.quarantine = nil
    try endUnreadable(row)
    guard let content = facts.content else { return try store(row, before: before) }
    let base = before.content?.content.eTag
    row.content = NodeRow.ContentFacts(
      content: content.public, secrets: content.secrets, writer: session.user, timeMs: content.timeMs,
      receivedMs: receivedMs)
    try store(row, before: before)
    try rebaseSuccessors(of: row, from: base, to: content.public.eTag)
    try session.part(.push, of: zone, row.nodeID, in: transaction) { try tellPushed(row) }
  }

  /// Children are found by tags of the newest key.
  private func store(_ row: NodeRow, before: NodeRow) throws {
    try transaction.nodes.updateCloud(row)
    guard row.key != before.key else { return }
    try LocalPlaces(session: session, transaction: transaction).retagChildren(of: row)
  }

  private func endUnreadable(_ row: NodeRow) throws {
    if try transaction.unreadable.isEmpty(zone: zone) { return }
    try transaction.unreadable.forget(zone: zone, node: row.nodeID)
    try transaction.operations.retryUnreadable(zone: zone)
  }

  /// Its content is in the cloud, whatever the app says.
  func tellPushed(_ row: NodeRow) throws {
    let node = try session.node(row, in: transaction)
    let path = try session.path(row, in: transaction)
    try session.tell(.didPushNodeData, row.nodeID, in: transaction) {
      try $0.didPushNodeData(node, at: path, transaction: transaction)
    }
    try transaction.delegateFailures.forget(zone: zone, node: row.nodeID, isPulled: false)
    try releaseLocalFiles(of: row)
  }

  /// What the app stored for the length of its uploads, if no other is queued, be it by the app just now.
  private func releaseLocalFiles(of row: NodeRow) throws {
    guard try !transaction.operations.operations(node: row.id).contains(where: { $0.kind == .putData }) else { return }
    try DiskWriter(transaction).uploadsFinished(node: row.id)
  }

  /// Edits that were queued while this one was under way are based on it: without this, a device would conflict with
  /// itself.
  private func rebaseSuccessors(of row: NodeRow, from old: String?, to new: String) throws {
    for var operation in try transaction.operations.operations(node: row.id)
    where operation.kind == .putData && operation.baseETag == old {
      operation.baseETag = new
      try transaction.operations.update(operation)
    }
  }

  /// The request was not accepted and never will be: its operations go back to the queue.
  ///
  /// - Parameters:
  ///   - contentOnly: the reason is that of the contents; the other operations may go at once.
  ///   - outcome: what became of this try, if that is not remembered yet.
  /// - Returns: how many may go at once.
  @discardableResult
  package func abandon(
    reason: OperationRow.Reason = .ready, detail: String? = nil, notBeforeMs: UInt64 = 0, contentOnly: Bool = false,
    outcome: ZDCAttempt.Outcome? = nil
  ) throws -> Int {
    let store = InFlightStore(transaction: transaction)
    let outcomes = try store.outcomes(zone: zone)
    try store.remove(zone: zone)
    if let outcome { try transaction.attempts.record(outcome, code: nil, of: outcomes.map(\.operation)) }
    var free = 0
    for outcome in outcomes {
      // One that is not in flight any more was parked by the page that overtook the request: it stays parked.
      guard var operation = try transaction.operations.operation(id: outcome.operation), operation.state == .inFlight
      else { continue }
      operation.state = .pending
      let isFree = contentOnly && operation.kind != .putData
      operation.reason = isFree ? .ready : reason
      operation.reasonDetail = isFree ? nil : detail
      operation.notBeforeMs = isFree ? 0 : notBeforeMs
      if operation.notBeforeMs > 0 { operation.attempts += 1 } else { free += 1 }
      try transaction.operations.update(operation)
    }
    return free
  }
}
