internal import GRDB
package import ZDCClientStore

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
}
