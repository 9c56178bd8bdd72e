internal import Foundation
public import ZDCMerge
internal import ZDCTreesystem

// The queue as the app sees it.

extension ZDCCloudReadTransaction {
  /// Returns whether content of the node is queued or being uploaded.
  ///
  /// False for an unknown node.
  ///
  /// ```swift
  /// if cloud.hasPendingDataUploads(forNodeID: node.uuid) { show(["not saved in the cloud yet"]) }
  /// ```
  public final func hasPendingDataUploads(forNodeID nodeID: String) -> Bool {
    transaction.poisoning { try !uploads(nodeID).isEmpty } ?? false
  }

  /// Returns the changesets of the queued uploads of a node, oldest first, for a merge with the cloud's version.
  ///
  /// An upload that was queued without a changeset has none here.
  ///
  /// ```swift
  /// let pending = cloud.pendingChangesets(forNodeID: node.uuid)
  /// try task.merge(cloudVersion: theirs, pendingChangesets: pending)
  /// ```
  public final func pendingChangesets(forNodeID nodeID: String) -> [ZDCChangeset] {
    transaction.poisoning {
      try uploads(nodeID).compactMap(\.changeset).map { ZDCChangeset(encoded: Data($0)) }
    } ?? []
  }

  /// Returns the unfinished puts of a node's children, oldest first. In a chat, they have to arrive before
  /// the next message.
  ///
  /// ```swift
  /// let earlier = cloud.pendingPutOperations(withParentID: folder.uuid)
  /// try cloud.createNode(withPath: path, dependencies: earlier)
  /// ```
  public final func pendingPutOperations(withParentID parentID: String) -> [ZDCCloudOperation] {
    transaction.poisoning { () -> [ZDCCloudOperation] in
      guard let parent = try row(parentID) else { return [] }
      return try transaction.operations.putsOfChildren(of: parent.id).map(transaction.zdcOperation)
    } ?? []
  }

  /// Returns the queued operations of a node, oldest first.
  ///
  /// ```swift
  /// let waiting = cloud.pendingOperations(forNodeID: node.uuid)
  /// show(waiting.map { "\($0.type)" })
  /// ```
  public final func pendingOperations(forNodeID nodeID: String) -> [ZDCCloudOperation] {
    transaction.poisoning { () -> [ZDCCloudOperation] in
      guard let row = try row(nodeID) else { return [] }
      return try transaction.operations.operations(node: row.id).map(transaction.zdcOperation)
    } ?? []
  }

  /// Returns the queue of the whole tree, in its order.
  ///
  /// All operations are in memory. For a count that a view shows, use ``ZDCSyncManager/syncStates(forLocalUserID:)``;
  /// for the reasons why they wait, ``explainQueue()``.
  ///
  /// ```swift
  /// let uploads = cloud.pendingOperations().filter { $0.isPutNodeDataOperation() }
  /// show(["\(uploads.count) files are not uploaded yet"])
  /// ```
  public final func pendingOperations() -> [ZDCCloudOperation] {
    transaction.poisoning { try queue().map(transaction.zdcOperation) } ?? []
  }

  /// Returns the operation; nil once it is done.
  ///
  /// ```swift
  /// let isSent = cloud.operation(uuid: operation.uuid) == nil
  /// ```
  public final func operation(uuid: String) -> ZDCCloudOperation? {
    transaction.poisoning { try operationRow(uuid).map(transaction.zdcOperation) } ?? nil
  }

  package final func operationRow(_ uuid: String) throws -> OperationRow? {
    guard let row = try transaction.operations.operation(uuid: uuid) else { return nil }
    let zone = try transaction.cloudState.facts(ofZone: row.zone).row
    return zone.localUser == localUser && zone.appTreeID == treeID ? row : nil
  }

  package final func queue() throws -> [OperationRow] {
    try transaction.zones.zones(localUser: localUser).filter { $0.appTreeID == treeID }
      .flatMap { try transaction.operations.operations(zone: $0.id, limit: .max) }
      .sorted { $0.id < $1.id }
  }

  package final func uploads(_ nodeID: String) throws -> [OperationRow] {
    guard let row = try row(nodeID) else { return [] }
    return try transaction.operations.operations(node: row.id).filter { $0.kind == .putData }
  }
}
