package import ZDCClientStore
package import ZDCProtocol

/// Names of deleted nodes that are taken until a later commit, because what is moved out of these nodes has to be sent
/// first and their deletes may not fit into the same commit.
///
/// A node that takes such a name waits for that later commit: the server would refuse it, and its whole commit.
package struct HeldNames {
  private let leaves: LeafStore
  /// Deleted nodes out of which this commit moves something, by parent.
  private var held: [NodeID: Set<NodeID>] = [:]
  /// What those moves bring something into, and all above: it goes first, and so does the delete with it if there is
  /// room.
  private var aboveMoved: Set<NodeID> = []

  /// - Parameters:
  ///   - deletes: the nodes that this commit may delete.
  ///   - moving: the nodes that this commit may move. A delete that waits for others holds up nothing.
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
      // A node that stays where the cloud has it does not have to go first.
      if row.cloud == nil || row.cloud?.parent != parent?.nodeID { aboveMoved.insert(row.nodeID) }
      next = parent
    }
  }

  /// Whether the node's name may still be that of a node whose delete is held. What moves out of such a node goes first.
  func mayMeet(_ node: NodeID, in parent: NodeID) throws -> Bool {
    guard let held = held[parent], !aboveMoved.contains(node) else { return false }
    return try leaves.ancestors(of: node).allSatisfy { !held.contains($0) }
  }
}
