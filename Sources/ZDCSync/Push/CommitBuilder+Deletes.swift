package import ZDCClientStore
internal import ZDCProtocol

// Deletes, and those that are too large for one commit (PROTOCOL 3.7): what is below goes first, the top in the last one.

extension CommitBuilder {
  struct Removals {
    package var nodes: Set<NodeID> = []
    /// How many nodes the commit already removes below a node.
    package var below: [NodeID: UInt64] = [:]
    /// Live descendants that the commit's deletes may still name.
    package var room = Limits.deletedDescendants
    /// Everything that has a surviving node below it in the cloud, as the puts of this commit leave it.
    var aboveSurvivors: Set<NodeID> = []
  }

  private enum DeleteResult {
    case added
    /// Not in this commit: its branch is too large for what room is left, or something that lives on is still below it in
    /// the cloud and its move goes first.
    case later
    /// The cloud does not have the node (any more).
    case nothingToDo
  }

  /// Adds the deletes behind the puts, and counts what is below each as those leave it: a node that this commit moves
  /// out is not deleted with its old parent.
  ///
  /// - Returns: operations of which the cloud does not have the node (any more).
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
    guard operations.count < Limits.commitOperations, try !isRemoved(operation.nodeID),
      !removals.aboveSurvivors.contains(operation.nodeID)
    else { return .later }
    if let count = try countBelow(operation.nodeID) {
      try remove(operation.nodeID, leaf.record, count)
      outcomes.append(InFlightStore.Outcome(operation: operation.id, node: nil, facts: nil))
      return .added
    }
    // What fits into an empty commit is not split.
    if removals.room == Limits.deletedDescendants { try removePart(below: operation.nodeID) }
    return .later
  }

  /// Deletes branches below the node, as long as there is room. The operation stays queued for the rest.
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

  /// The live nodes below that the commit does not remove yet; nil if they are more than there is room for.
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

  /// Whether this commit deletes a node above: the cloud may have moved the node there since it was deleted here.
  private func isRemoved(_ node: NodeID) throws -> Bool {
    guard !removals.nodes.isEmpty else { return false }
    return try leaves.ancestors(of: node).contains { removals.nodes.contains($0) }
  }

  /// Nodes that the app still has lie below all these: their moves have not been sent, or put something there.
  private func aboveSurvivors() throws -> Set<NodeID> {
    var above: Set<NodeID> = []
    for node in try transaction.operations.movedNodes(zone: zoneRow.id) + parents.keys {
      above.formUnion(try leaves.ancestors(of: node))
    }
    return above
  }
}
