internal import Foundation
public import ZDCMerge
internal import ZDCTreesystem

// Content: queueing it, and what to do when somebody else's came first.

extension ZDCCloudTransaction {
  /// Queues an upload of the node's content, which is asked for when its turn has come (seed 000).
  ///
  /// If others change the content in the meantime, the upload is held and `didDiscoverConflict` is called.
  ///
  /// - Parameter changeset: What was changed, for ``ZDCCloudReadTransaction/pendingChangesets(forNodeID:)``.
  /// - Returns: nil for an unknown node, a trunk or a pointer.
  @discardableResult
  public func queueDataUpload(
    forNodeID nodeID: String, withChangeset changeset: ZDCChangeset?
  ) -> ZDCCloudOperation? {
    readWrite.poisoning { () -> ZDCCloudOperation? in
      guard let row = try row(nodeID), row.parent != nil else { return nil }
      try revive(row)
      return try transaction.zdcOperation(try queueUpload(row, changeset: changeset))
    } ?? nil
  }

  /// The upload is based on what an earlier one that is still queued is based on: the app has merged nothing in
  /// between. Else on the newest
  /// version that this device knows.
  private func queueUpload(_ row: NodeRow, changeset: ZDCChangeset?) throws -> OperationRow {
    let earlier = try operations.operations(node: row.id)
    let lastUpload = earlier.last { $0.kind == .putData }
    var operation = OperationRow(
      uuid: SortedUUID.make(atMs: now), zone: row.zone, kind: .putData, node: row.id, nodeUUID: row.uuid,
      nodeID: row.nodeID,
      createdMs: now)
    operation.baseETag = lastUpload == nil ? row.content?.content.eTag : lastUpload?.baseETag
    operation.changeset = changeset.map { [UInt8]($0.encoded) }
    let create = earlier.last { $0.kind == .create }
    try operations.insert(&operation, dependsOn: [create, lastUpload].compactMap { $0?.id })
    try askAgain(earlier)
    signalQueue()
    return operation
  }

  /// Uploads for which the app had nothing are asked for again after the next change.
  private func askAgain(_ earlier: [OperationRow]) throws {
    for operation in earlier where operation.reason == .noDataFromApp && operation.state == .pending {
      try operations.setState(.pending, reason: .ready, id: operation.id)
    }
  }

  /// The app has merged that version of the content into its own: what is queued may replace it, and a held upload goes
  /// on.
  ///
  /// - Parameter eTag: Of the version that was downloaded (``ZDCCloudDataInfo/eTag``), which need not be the newest.
  public func didMergeData(withETag eTag: String, forNodeID nodeID: String) {
    readWrite.poisoning {
      for var operation in try uploads(nodeID) {
        operation.baseETag = eTag
        if operation.reason == .conflictHeld { operation.reason = .ready }
        try operations.update(operation)
      }
      signalQueue()
    }
  }

  /// Drops the queued uploads of the node's content: the version in the cloud holds. What has been sent already stays
  /// sent.
  public func skipDataUploads(forNodeID nodeID: String) {
    readWrite.poisoning {
      for operation in try uploads(nodeID) where operation.state != .inFlight {
        try operations.delete(id: operation.id)
      }
      signalQueue()
    }
  }

  // MARK: Nodes that were deleted in the cloud and kept here

  /// Queues a kept node again, and the nodes above it.
  ///
  /// - Throws: `conflict` for any other node.
  func requeue(_ row: NodeRow) throws -> ZDCNode {
    guard try revive(row) else { throw ZDCCloudError(.conflict, detail: "the node is in the tree already") }
    return try transaction.zdcNode(row)
  }

  @discardableResult
  func revive(_ row: NodeRow) throws -> Bool {
    var found = false
    for ancestor in try nodes.ancestry(of: row) {
      for operation in try operations.operations(node: ancestor.id) where operation.reason == .deletedRemotely {
        try operations.setState(.pending, reason: .ready, id: operation.id)
        found = true
      }
    }
    if found { signalQueue() }
    return found
  }
}
