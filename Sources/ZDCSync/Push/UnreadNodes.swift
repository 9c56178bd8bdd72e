internal import GRDB
package import ZDCClientStore
internal import ZDCProtocol

// Nodes whose next version cannot be made yet.

extension ZDCReadTransaction {
  /// Returns whether a newer version of the node is in the log but not here yet, or the node is gone from the log and
  /// the app has not been notified yet.
  package func isUnread(_ row: NodeRow) throws -> Bool {
    let leaves = leaves(zone: row.zone)
    if try leaves.pendingLeaf(row.nodeID) != nil { return true }
    guard row.isUploaded, try !delegateFailures.isEmpty(zone: row.zone) else { return false }
    return try leaves.leaf(row.nodeID) == nil
  }

  /// Returns the unread nodes among those of the operations, which all belong to one zone.
  func unreadNodes(of operations: [OperationRow], zone: Int64) throws -> Set<Int64> {
    // Usually everything has been read.
    let isAllRead = try leaves(zone: zone).pendingLeaves(limit: 1)?.isEmpty == true
    if isAllRead, try delegateFailures.isEmpty(zone: zone) { return [] }
    return try Set(operations.compactMap(\.node)).filter { id in try nodes.node(id: id).map(isUnread) ?? false }
  }

  /// Returns whether the log has a node at or below a deleted one that this device still shows elsewhere, and whose
  /// newest record has not been read. Another device has moved it there. The delete waits, because once the record is
  /// here, the node is taken out first.
  func hasUnreadArrival(atOrBelow deleted: NodeID, zone: Int64) throws -> Bool {
    let leaves = leaves(zone: zone)
    // Usually everything has been read.
    if try leaves.pendingLeaves(limit: 1)?.isEmpty == true { return false }
    return try leaves.pendingNodes(atOrBelow: deleted).contains { node in
      try nodes.node(zone: zone, nodeID: node) != nil
    }
  }
}
