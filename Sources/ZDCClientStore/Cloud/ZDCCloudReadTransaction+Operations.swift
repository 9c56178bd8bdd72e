internal import Foundation
public import ZDCMerge
internal import ZDCTreesystem

// The queue as the app sees it.

extension ZDCCloudReadTransaction {
  /// Whether content of the node is queued or being uploaded.
  public final func hasPendingDataUploads(forNodeID nodeID: String) -> Bool {
    transaction.poisoning { try !uploads(nodeID).isEmpty } ?? false
  }

  /// The changesets of the queued uploads, oldest first.
  public final func pendingChangesets(forNodeID nodeID: String) -> [ZDCChangeset] {
    transaction.poisoning {
      try uploads(nodeID).compactMap(\.changeset).map { ZDCChangeset(encoded: Data($0)) }
    } ?? []
  }

  /// Unfinished puts of a node's children, oldest first; for what has to arrive in order, such as a chat.
  public final func pendingPutOperations(withParentID parentID: String) -> [ZDCCloudOperation] {
    transaction.poisoning { () -> [ZDCCloudOperation] in
      guard let parent = try row(parentID) else { return [] }
      return try transaction.operations.putsOfChildren(of: parent.id).map(transaction.zdcOperation)
    } ?? []
  }

  /// Queued operations of a node, oldest first.
  public final func pendingOperations(forNodeID nodeID: String) -> [ZDCCloudOperation] {
    transaction.poisoning { () -> [ZDCCloudOperation] in
      guard let row = try row(nodeID) else { return [] }
      return try transaction.operations.operations(node: row.id).map(transaction.zdcOperation)
    } ?? []
  }

  /// The queue of the whole tree, in its order.
  public final func pendingOperations() -> [ZDCCloudOperation] {
    transaction.poisoning { try queue().map(transaction.zdcOperation) } ?? []
  }

  /// The operation; nil once it is done.
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
