package import ZDCClientStore
package import ZDCProtocol
internal import ZDCSupport

/// The queued operation that makes other content, which the server already has, the node's newest one: an earlier version
/// that the user has restored, or content that was put at the old place of a node during its move to another zone. The
/// node's row already names that content.
package struct QueuedRestoration {
  package var operation: OperationRow

  /// Returns nil if none is queued for the node in its zone.
  package init?(_ row: NodeRow, _ transaction: ZDCReadTransaction) throws {
    let queued = try transaction.operations.operations(node: row.id)
    guard let operation = queued.first(where: { $0.isRestoration && $0.zone == row.zone }) else { return nil }
    self.operation = operation
  }

  /// - Parameter replaced: The content that the cloud has. If it gets another one in the meantime, that wins.
  /// - Returns: The operation.
  @discardableResult static func queue(
    for row: NodeRow, over replaced: String?, at ms: UInt64, _ transaction: ZDCReadWriteTransaction
  ) throws -> Int64 {
    var operation = OperationRow(
      uuid: UUIDv7.make(atMs: ms), zone: row.zone, kind: .modify, node: row.id, nodeUUID: row.uuid, nodeID: row.nodeID,
      createdMs: ms)
    operation.resend = row.cloud?.recordVersion ?? 0
    operation.baseETag = replaced
    try transaction.operations.insert(&operation)
    return operation.id
  }

  /// Returns the content that the node gets if the cloud has `newest`; nil if another device has put content since, which
  /// wins.
  package func content(
    _ restored: NodeRow.RemoteContent?, over newest: NodeRecord.Content?
  ) throws
    -> NodeRow.RemoteContent?
  {
    guard var restored, newest?.eTag == operation.baseETag else { return nil }
    let next = try RecordRules.version(after: newest?.dataVersion ?? 0)
    restored.content = NodeRecord.Content(
      dataVersion: max(next, restored.content.dataVersion), blobID: restored.content.blobID,
      cipherLength: restored.content.cipherLength, contentRoot: restored.content.contentRoot)
    return restored
  }

  /// Keeps content that the user has restored and that is not sent yet. If another device has put content since, that
  /// wins, and the journal has an entry.
  ///
  /// - Returns: Whether the restored content stays.
  static func keep(
    _ row: inout NodeRow, before: NodeRow, _ transaction: ZDCReadWriteTransaction
  ) throws -> Bool {
    guard let restoration = try QueuedRestoration(before, transaction) else { return false }
    if let kept = try restoration.content(before.content, over: row.content?.content) {
      row.content = kept
      return true
    }
    try transaction.operations.delete(id: restoration.operation.id)
    try transaction.record(.cloudWon, row) { entry in
      entry.mine.eTag = before.content?.content.eTag
      entry.theirs.eTag = row.content?.content.eTag
      entry.result.eTag = row.content?.content.eTag
      entry.cloudWriterID = row.cloud?.writer.text
    }
    return false
  }
}
