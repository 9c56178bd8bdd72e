package import ZDCClientStore
package import ZDCProtocol

/// The queued operation by which a user has made an earlier content the node's newest one. The node's row already names
/// that content.
package struct QueuedRestoration {
  package var operation: OperationRow

  /// Returns nil if none is queued for the node.
  package init?(_ row: NodeRow, _ transaction: ZDCReadTransaction) throws {
    let queued = try transaction.operations.operations(node: row.id)
    guard let operation = queued.first(where: { $0.kind == .modify && $0.resend != nil }) else { return nil }
    self.operation = operation
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
}
