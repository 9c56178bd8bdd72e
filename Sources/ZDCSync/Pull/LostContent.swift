internal import Foundation
internal import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport

/// Content of nodes that are sent again after a server had lost them. Their records name the same content as before.
/// The app is asked for content only if the server no longer stores it.
struct LostContent {
  package let session: SyncSession
  package let zone: Int64
  package let transaction: ZDCReadWriteTransaction

  /// Queues lost content after the server refused the request in flight because a blob is missing.
  ///
  /// - Returns: Whether anything was queued.
  func requeueInFlight() throws -> Bool {
    var isQueued = false
    for outcome in try InFlightStore(transaction: transaction).outcomes(zone: zone) {
      guard let id = outcome.node, var operation = try transaction.operations.operation(id: outcome.operation),
        operation.kind != .putData, operation.resend != nil, let row = try transaction.nodes.node(id: id)
      else { continue }
      guard operation.kind != .modify else {
        try giveUp(operation, row)
        isQueued = true
        continue
      }
      guard let lost = row.content?.content, operation.baseETag == lost.eTag else { continue }
      operation.baseETag = nil
      try transaction.operations.update(operation)
      try forget(row)
      try queue(row, dataVersion: lost.dataVersion)
      isQueued = true
    }
    return isQueued
  }

  /// Gives up the restoration of an earlier content that the server no longer keeps, or does not keep for the node's
  /// next zone. The node's record is read again, because it names the content that the node has.
  func giveUp(_ operation: OperationRow, _ row: NodeRow) throws {
    if let restoration = try QueuedRestoration(row, transaction), restoration.operation.id == operation.id,
      try restoration.giveUpFirst(row, transaction)
    {
      return
    }
    try transaction.operations.delete(id: operation.id)
    try transaction.leaves(zone: zone).set(.pending, row.nodeID)
    try transaction.record(.cloudWon, row) { $0.mine.eTag = row.content?.content.eTag }
  }

  /// Forgets the lost content. The server's record is read again, because it names the content that the server has
  /// instead.
  private func forget(_ before: NodeRow) throws {
    guard !before.isUploaded else { return try transaction.leaves(zone: zone).set(.pending, before.nodeID) }
    var row = before
    row.content = nil
    try transaction.nodes.update(row)
    for var operation in try transaction.operations.operations(node: row.id) where operation.kind == .putData {
      operation.baseETag = nil
      try transaction.operations.update(operation)
    }
  }

  /// Queues an upload with a version number above the lost one.
  package func queue(_ row: NodeRow, dataVersion: UInt64) throws {
    let queued = try transaction.operations.operations(node: row.id)
    guard !queued.contains(where: { $0.kind == .putData && $0.resend != nil }) else { return }
    var operation = OperationRow(
      uuid: UUIDv7.make(atMs: session.now()), zone: zone, kind: .putData, node: row.id, nodeUUID: row.uuid,
      nodeID: row.nodeID, createdMs: session.now())
    operation.resend = dataVersion
    operation.baseETag = row.isUploaded ? row.content?.content.eTag : nil
    let create = queued.first { $0.kind == .create }
    try transaction.operations.insert(&operation, dependsOn: create.map { [$0.id] } ?? [])
  }
}
