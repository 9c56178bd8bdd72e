package import ZDCClientStore
package import ZDCProtocol
internal import ZDCSupport

/// The queued operation that makes other content, which the server already has, the node's newest one: an earlier version
/// that the user has restored, or content that was put at the old place of a node during its move to another zone. The
/// node's row already names that content.
package struct QueuedRestoration {
  /// The first one. Its `baseETag` names the content that the cloud has.
  package var operation: OperationRow
  /// Those that were queued after it had been sent. The content that each of them replaces is that of the one before.
  private(set) var later: [OperationRow]

  /// Returns nil if none is queued for the node in its zone.
  package init?(_ row: NodeRow, _ transaction: ZDCReadTransaction) throws {
    let queued = try transaction.operations.operations(node: row.id)
      .filter { $0.isRestoration && $0.zone == row.zone }
    guard let first = queued.first else { return nil }
    (operation, later) = (first, Array(queued.dropFirst()))
  }

  /// Whether the request in flight has the last one. It names content that the row had before.
  var isSent: Bool { (later.last ?? operation).state == .inFlight }

  func delete(_ transaction: ZDCReadWriteTransaction) throws {
    for queued in [operation] + later { try transaction.operations.delete(id: queued.id) }
  }

  /// Drops the operations if the content of the row is that of the cloud again. The node's record is read again: the
  /// next one must name the content with the same version.
  func deleteIfReverted(_ row: NodeRow, _ transaction: ZDCReadWriteTransaction) throws {
    guard operation.state != .inFlight, operation.baseETag == row.content?.content.eTag else { return }
    try delete(transaction)
    try transaction.leaves(zone: row.zone).set(.pending, row.nodeID)
  }

  /// Gives up the first one, whose content the server no longer keeps, if there is a later one, which then replaces the
  /// same content.
  func giveUpFirst(_ row: NodeRow, _ transaction: ZDCReadWriteTransaction) throws -> Bool {
    guard var next = later.first else { return false }
    try transaction.operations.delete(id: operation.id)
    next.baseETag = operation.baseETag
    try transaction.operations.update(next)
    try Self(row, transaction)?.deleteIfReverted(row, transaction)
    return true
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
    // The user has returned to the content of the cloud while a restoration was being sent.
    if before.content?.content.eTag == row.content?.content.eTag {
      try restoration.delete(transaction)
      return false
    }
    if let kept = try restoration.content(before.content, over: row.content?.content) {
      row.content = kept
      return true
    }
    try restoration.delete(transaction)
    try transaction.record(.cloudWon, row) { entry in
      entry.mine.eTag = before.content?.content.eTag
      entry.theirs.eTag = row.content?.content.eTag
      entry.result.eTag = row.content?.content.eTag
      entry.cloudWriterID = row.cloud?.writer.text
    }
    return false
  }
}
