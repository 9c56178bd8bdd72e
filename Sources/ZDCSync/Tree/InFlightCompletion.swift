internal import Foundation
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCTransfers

/// Completes the request in flight once it is known to be accepted, either from its answer or because a pull found its
/// commit. Runs once, in one transaction.
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
    let restored = try transaction.operations.restoredNodesInFlight(zone: zone)
    try transaction.operations.deleteInFlight(zone: zone)
    try store.remove(zone: zone)
    for rotation in rotations {
      guard let row = try transaction.nodes.node(id: rotation.node) else { continue }
      try complete(row, rotation.facts, receivedMs: receivedMs, isRotation: true)
    }
    for outcome in outcomes {
      guard let id = outcome.node, let facts = outcome.facts else { continue }
      if let content = facts.content?.public, content.cipherLength > UInt64(Limits.inlineContentBytes) {
        try UploadStore(transaction: transaction).remove(content.blobID)
      }
      // The app has deleted the node in the meantime; the delete that it queued takes care of the rest.
      guard let row = try transaction.nodes.node(id: id) else { continue }
      try complete(row, facts, receivedMs: receivedMs)
    }
    try endReverted(restored)
    // The deletion of nodes that move from another zone may have waited for these.
    if try !transaction.moves.isEmpty { transaction.signal(.queue(localUser: session.localUser)) }
  }

  /// Drops restorations that were queued while an earlier one was being sent, and that returned to the content that the
  /// cloud has now.
  private func endReverted(_ restored: [Int64]) throws {
    for id in restored {
      guard let row = try transaction.nodes.node(id: id), row.zone == zone else { continue }
      try QueuedRestoration(row, transaction)?.deleteIfReverted(row, transaction)
    }
  }

  private func complete(
    _ row: NodeRow, _ facts: InFlightStore.Outcome.Facts, receivedMs: UInt64, isRotation: Bool = false
  ) throws {
    guard row.zone != zone else { return try update(row, facts, receivedMs: receivedMs, isRotation: isRotation) }
    // The node moves from another zone, and its row has returned there for now.
    guard var copy = try transaction.moves.copy(row: row.id), copy.isHeld, copy.copyZone == zone else { return }
    copy.other.cloud = state(facts, receivedMs)
    copy.other.replaced = nil
    copy.other.keyGen = facts.keyGen
    if let rekeyed = facts.rekeyed { (copy.other.key, copy.other.historyWrap) = rekeyed }
    if let content = facts.content { copy.other.content = self.content(content, receivedMs) }
    try transaction.moves.insert(copy)
  }

  private func state(_ facts: InFlightStore.Outcome.Facts, _ receivedMs: UInt64) -> NodeRow.RemoteState {
    NodeRow.RemoteState(
      recordVersion: facts.recordVersion, recordHash: facts.recordHash, parent: facts.parent, name: facts.name,
      nameTag: facts.nameTag, writer: session.user, receivedMs: receivedMs, burnMs: facts.burnMs)
  }

  private func content(
    _ content: (public: NodeRecord.Content, secrets: ContentSecrets, timeMs: UInt64), _ receivedMs: UInt64
  ) -> NodeRow.RemoteContent {
    NodeRow.RemoteContent(
      content: content.public, secrets: content.secrets, writer: session.user, timeMs: content.timeMs,
      receivedMs: receivedMs)
  }

  private func update(
    _ before: NodeRow, _ facts: InFlightStore.Outcome.Facts, receivedMs: UInt64, isRotation: Bool
  ) throws {
    var row = before
    row.cloud = state(facts, receivedMs)
    row.keyGen = facts.keyGen
    if let rekeyed = facts.rekeyed { (row.key, row.historyWrap) = rekeyed }
    // The newest version can be opened, and has the name under which the node is shown. Fields that this version does not
    // know stay unknown.
    if row.unused?.unknownExtras.isEmpty ?? true { row.quarantine = nil }
    try endUnreadable(row)
    guard let content = facts.content else { return try transaction.nodes.updateCloud(row) }
    let base = before.content?.content.eTag
    row.content = self.content(content, receivedMs)
    try transaction.nodes.updateCloud(row)
    try rebaseSuccessors(of: row, from: base, to: content.public.eTag)
    if isRotation { return }
    try session.part(.push, of: zone, row.nodeID, in: transaction) { try notifyPushed(row) }
  }

  private func endUnreadable(_ row: NodeRow) throws {
    if try transaction.unreadable.isEmpty(zone: zone) { return }
    try transaction.unreadable.forget(zone: zone, node: row.nodeID)
    try transaction.operations.retryUnreadable(zone: zone)
  }

  /// Notifies the app that the node's content is in the cloud. An error of the app does not change that.
  func notifyPushed(_ row: NodeRow) throws {
    let node = try session.node(row, in: transaction)
    let path = try session.path(row, in: transaction)
    try session.tell(.didPushNodeData, row.nodeID, in: transaction) {
      try $0.didPushNodeData(node, at: path, transaction: transaction)
    }
    try transaction.delegateFailures.forget(zone: zone, node: row.nodeID, isPulled: false)
    try releaseLocalFiles(of: row)
  }

  /// Releases the files that the app stored for its uploads, unless another upload is queued. The app may have queued
  /// one in the callback.
  private func releaseLocalFiles(of row: NodeRow) throws {
    guard try !transaction.operations.operations(node: row.id).contains(where: { $0.kind == .putData }) else { return }
    try DiskWriter(transaction).uploadsFinished(node: row.id)
  }

  /// Rebases edits that were queued while this one was in flight. Otherwise a device would conflict with itself.
  private func rebaseSuccessors(of row: NodeRow, from old: String?, to new: String) throws {
    for var operation in try transaction.operations.operations(node: row.id)
    where operation.kind == .putData && operation.baseETag == old {
      operation.baseETag = new
      try transaction.operations.update(operation)
    }
  }

  /// Returns the operations of a request that was not accepted, and never will be, to the queue.
  ///
  /// - Parameters:
  ///   - contentOnly: Whether the reason applies only to content operations; the others may be sent immediately.
  ///   - outcome: The outcome of this attempt, if it is not recorded yet.
  /// - Returns: The number of operations that may be sent immediately.
  @discardableResult
  package func abandon(
    reason: OperationRow.Reason = .ready, detail: String? = nil, notBeforeMs: UInt64 = 0, contentOnly: Bool = false,
    outcome: ZDCAttempt.Outcome? = nil
  ) throws -> Int {
    let store = InFlightStore(transaction: transaction)
    let outcomes = try store.outcomes(zone: zone)
    let restored = try transaction.operations.restoredNodesInFlight(zone: zone)
    try store.remove(zone: zone)
    if let outcome { try transaction.attempts.record(outcome, code: nil, of: outcomes.map(\.operation)) }
    var free = 0
    for outcome in outcomes {
      // An operation that is no longer in flight was parked by the page that overtook the request, and stays parked.
      guard var operation = try transaction.operations.operation(id: outcome.operation), operation.state == .inFlight
      else { continue }
      guard try follow(&operation) else {
        try transaction.operations.delete(id: operation.id)
        continue
      }
      operation.state = .pending
      let isFree = contentOnly && operation.kind != .putData
      operation.reason = isFree ? .ready : reason
      operation.reasonDetail = isFree ? nil : detail
      operation.notBeforeMs = isFree ? 0 : notBeforeMs
      if operation.notBeforeMs > 0 { operation.attempts += 1 } else { free += 1 }
      try transaction.operations.update(operation)
    }
    try endReverted(restored)
    return free
  }

  /// Whether the operation would have copied a node whose move to this zone was given up in the meantime.
  private func isLeftOver(_ operation: OperationRow, _ row: NodeRow) throws -> Bool {
    guard operation.kind != .putData else { return false }
    let others = try transaction.operations.operations(node: row.id).filter { $0.id != operation.id }
    return row.isUploaded || others.contains { $0.kind == .create }
  }

  /// Gives an operation to the zone that its node has moved to since it was sent.
  ///
  /// - Returns: False if it is not needed there.
  private func follow(_ operation: inout OperationRow) throws -> Bool {
    let node = try operation.node.flatMap { try transaction.nodes.node(id: $0) }
    guard let row = node, row.zone != operation.zone else { return true }
    if let copy = try transaction.moves.copy(row: row.id), copy.isHeld, copy.copyZone == zone { return true }
    (operation.zone, operation.nodeID) = (row.zone, row.nodeID)
    return try !isLeftOver(operation, row)
  }
}
