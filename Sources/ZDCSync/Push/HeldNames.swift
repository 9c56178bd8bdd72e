package import ZDCClientStore
package import ZDCProtocol

/// Names of deleted nodes that stay taken until a later commit. Nodes that move out of the deleted nodes must be sent
/// first, and the deletes may not fit into the same commit.
///
/// A node that takes such a name waits for that later commit. Otherwise the server would refuse the node, and the whole
/// commit with it.
package struct HeldNames {
  private let leaves: LogNodeStore
  /// Deleted nodes that this commit moves other nodes out of, by parent.
  private var held: [NodeID: Set<NodeID>] = [:]
  /// The destinations of those moves and their ancestors, where new or moved. They are sent first, and so is the delete
  /// if there is room.
  private var aboveMoved: Set<NodeID> = []

  /// - Parameters:
  ///   - deletes: The nodes that this commit may delete.
  ///   - moving: The nodes that this commit may move. A delete that waits for other moves holds no name.
  package init(zone: ZoneRow, deletes: [NodeID], moving: Set<NodeID>, transaction: ZDCReadTransaction) throws {
    leaves = transaction.leaves(zone: zone.id)
    guard !deletes.isEmpty else { return }
    var (above, aboveOthers): (Set<NodeID>, Set<NodeID>) = ([], [])
    for node in try transaction.operations.movedNodes(zone: zone.id) {
      let ancestors = try leaves.ancestors(of: node)
      if moving.contains(node) { above.formUnion(ancestors) } else { aboveOthers.formUnion(ancestors) }
    }
    for node in deletes where above.contains(node) && !aboveOthers.contains(node) {
      if let leaf = try leaves.leaf(node) { held[leaf.parent, default: []].insert(node) }
    }
    guard !held.isEmpty else { return }
    for node in moving { try letPass(above: node, zone: zone.id, nodes: transaction.nodes) }
  }

  private mutating func letPass(above node: NodeID, zone: Int64, nodes: NodeStore) throws {
    var next = try nodes.node(zone: zone, nodeID: node)?.parent.flatMap { try nodes.node(id: $0) }
    while let row = next, !aboveMoved.contains(row.nodeID) {
      let parent = try row.parent.flatMap { try nodes.node(id: $0) }
      // A node that stays at its place in the cloud need not be sent first.
      if row.cloud == nil || row.cloud?.parent != parent?.nodeID { aboveMoved.insert(row.nodeID) }
      next = parent
    }
  }

  /// Returns whether the node's name may still belong to a node whose delete is held. Nodes that move out of such a
  /// node go first.
  func mayMeet(_ node: NodeID, in parent: NodeID) throws -> Bool {
    guard let held = held[parent], !aboveMoved.contains(node) else { return false }
    return try leaves.ancestors(of: node).allSatisfy { !held.contains($0) }
  }
}
