package import ZDCClientStore
internal import ZDCProtocol

// Deletes, including those too large for one commit (PROTOCOL 3.7): descendants first, the topmost node in the last
// commit.

extension CommitBuilder {
  struct Removals {
    package var nodes: Set<NodeID> = []
    /// The number of nodes below each node that the commit already removes.
    package var below: [NodeID: UInt64] = [:]
    /// The number of live descendants that the commit's deletes may still cover.
    package var room = Limits.deletedDescendants
    /// All nodes that have a surviving node below them in the cloud after this commit's puts.
    var aboveSurvivors: Set<NodeID> = []
  }

  private enum DeleteResult {
    case added
    /// Not in this commit, because the branch exceeds the remaining room, or because a surviving node is still below it
    /// in the cloud and must be moved out first, or read first.
    case later
    /// The cloud does not have the node, or no longer has it.
    case nothingToDo
  }

  /// Adds the deletes after the puts, and counts descendants as the puts leave them. A node that this commit moves out
  /// is not deleted with its old parent.
  ///
  /// - Returns: The operations whose node the cloud does not have, or no longer has.
  package mutating func delete(_ deletes: [OperationRow]) throws -> [OperationRow] {
    guard !deletes.isEmpty else { return [] }
    var done: [OperationRow] = []
    try leaves.preview(parents) {
      removals.aboveSurvivors = try aboveSurvivors()
      for operation in deletes where try delete(operation) == .nothingToDo { done.append(operation) }
    }
    return done
  }

  private mutating func delete(_ operation: OperationRow) throws -> DeleteResult {
    guard let leaf = try leaves.leaf(operation.nodeID) else { return .nothingToDo }
    // Nodes that move to another zone are complete here until all of them are there.
    guard try !transaction.moves.isIncomplete(atOrBelow: operation.nodeID, zone: zoneRow.id) else { return .later }
    if operation.nodeID == zoneRow.zone.root { return endZone(operation, leaf) }
    guard operations.count < Limits.commitOperations, try !isRemoved(operation.nodeID),
      !removals.aboveSurvivors.contains(operation.nodeID),
      try !transaction.hasUnreadArrival(atOrBelow: operation.nodeID, zone: zoneRow.id)
    else { return .later }
    if let count = try countBelow(operation.nodeID) {
      try remove(operation.nodeID, leaf.record, count)
      outcomes.append(InFlightStore.Outcome(operation: operation.id, node: nil, facts: nil))
      return .added
    }
    // A delete that fits into an empty commit is not split.
    if removals.room == Limits.deletedDescendants { try removePart(below: operation.nodeID) }
    return .later
  }

  /// Ends the zone, with all nodes that are left in it. The commit has no other operation.
  private mutating func endZone(_ operation: OperationRow, _ root: LogNode) -> DeleteResult {
    guard operations.isEmpty else { return .later }
    removals.nodes.insert(root.node)
    operations.append(.delete(node: root.node, record: root.record, liveDescendants: 0))
    outcomes.append(InFlightStore.Outcome(operation: operation.id, node: nil, facts: nil))
    return .added
  }

  /// Deletes branches below the node while there is room. The operation stays queued for the rest.
  private mutating func removePart(below node: NodeID) throws {
    let limit = Limits.commitOperations - operations.count + removals.nodes.count
    for child in try leaves.children(of: node, limit: limit) where !removals.nodes.contains(child.node) {
      guard operations.count < Limits.commitOperations else { return }
      if let count = try countBelow(child.node) {
        try remove(child.node, child.record, count)
      } else {
        return try removePart(below: child.node)
      }
    }
  }

  /// Returns the number of live descendants that the commit does not remove yet, or nil if they exceed the remaining
  /// room.
  private func countBelow(_ node: NodeID) throws -> UInt64? {
    let removed = removals.below[node] ?? 0
    let count = try leaves.descendantCount(of: node, upTo: removals.room + removed) - removed
    return count <= removals.room ? count : nil
  }

  private mutating func remove(_ node: NodeID, _ record: RecordHash, _ count: UInt64) throws {
    for ancestor in try leaves.ancestors(of: node) { removals.below[ancestor, default: 0] += count + 1 }
    removals.nodes.insert(node)
    removals.room -= count
    operations.append(.delete(node: node, record: record, liveDescendants: count))
  }

  /// Returns whether this commit deletes an ancestor. The cloud may have moved the node there since it was deleted
  /// here.
  private func isRemoved(_ node: NodeID) throws -> Bool {
    guard !removals.nodes.isEmpty else { return false }
    return try leaves.ancestors(of: node).contains { removals.nodes.contains($0) }
  }

  /// Returns the cloud ancestors of all nodes that the app keeps: nodes whose moves have not been sent, and nodes that
  /// this commit puts.
  private func aboveSurvivors() throws -> Set<NodeID> {
    var above: Set<NodeID> = []
    for node in try transaction.operations.movedNodes(zone: zoneRow.id) + parents.keys {
      above.formUnion(try leaves.ancestors(of: node))
    }
    return above
  }
}
