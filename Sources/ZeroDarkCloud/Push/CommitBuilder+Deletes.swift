internal import ZDCProtocol

// Deletes, and those that are too large for one commit (PROTOCOL 3.7): what is below goes first, the top in the last one.

extension CommitBuilder {
  struct Removals {
    var nodes: Set<NodeID> = []
    /// How many nodes the commit already removes below a node.
    var below: [NodeID: UInt64] = [:]
    /// Live descendants that the commit's deletes may still name.
    var room = Limits.deletedDescendants
    /// Everything in the cloud that has a surviving node below it.
    var aboveSurvivors: Set<NodeID>?
    /// Nodes whose delete goes into the next commit, because this one moves something out of them, by parent. Their
    /// names are taken until then.
    var held: [NodeID: Set<NodeID>] = [:]
    /// The nodes that those moves bring something into, and all above: they go first.
    var aboveMoved: Set<NodeID> = []
  }

  enum DeleteResult {
    case added
    /// Not in this commit: its branch is too large for what room is left, or something that lives on is still below it in
    /// the cloud and its move goes first.
    case later
    /// The cloud does not have the node (any more).
    case nothingToDo
  }

  mutating func delete(_ operation: OperationRow) throws -> DeleteResult {
    guard let leaf = try leaves.leaf(operation.nodeID) else { return .nothingToDo }
    guard operations.count < Limits.commitOperations, try !isRemoved(operation.nodeID) else { return .later }
    guard try !hasSurvivors(below: operation.nodeID) else { return .later }
    if let count = try countBelow(operation.nodeID) {
      try remove(operation.nodeID, leaf.record, count)
      outcomes.append(InFlightStore.Outcome(operation: operation.id, node: nil, facts: nil))
      return .added
    }
    // What fits into an empty commit is not split.
    if removals.room == Limits.deletedDescendants { try removePart(below: operation.nodeID) }
    return .later
  }

  /// Finds the deletes that this commit cannot have because its own moves come first, before anything is put: a node
  /// that takes the name of one of them has to wait for it.
  ///
  /// - Parameter moving: the nodes that this commit may move. A delete that waits for others holds up nothing.
  mutating func hold(_ deletes: [NodeID], moving: Set<NodeID>) throws {
    guard !deletes.isEmpty else { return }
    var (above, aboveOthers): (Set<NodeID>, Set<NodeID>) = ([], [])
    for node in try transaction.operations.movedNodes(zone: zoneRow.id) {
      let ancestors = try leaves.ancestors(of: node)
      if moving.contains(node) { above.formUnion(ancestors) } else { aboveOthers.formUnion(ancestors) }
    }
    for node in deletes where above.contains(node) && !aboveOthers.contains(node) {
      if let leaf = try leaves.leaf(node) { removals.held[leaf.parent, default: []].insert(node) }
    }
    if !removals.held.isEmpty { for node in moving { try letPass(above: node) } }
  }

  private mutating func letPass(above node: NodeID) throws {
    var next = try nodes.node(zone: zoneRow.id, nodeID: node)?.parent
    while let id = next, let row = try nodes.node(id: id), removals.aboveMoved.insert(row.nodeID).inserted {
      next = row.parent
    }
  }

  /// Whether the node's name may still be that of a node whose delete is held. What moves out of such a node goes first.
  func mayMeetHeldName(_ node: NodeID, in parent: NodeID) throws -> Bool {
    guard let held = removals.held[parent], !removals.aboveMoved.contains(node) else { return false }
    return try leaves.ancestors(of: node).allSatisfy { !held.contains($0) }
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

  /// Whether a node that the app still has lies below, as the cloud sees it: it was moved out here, and that has not
  /// been sent.
  ///
  /// Counts are taken of the table, so a put of this commit that moves one out is too late for this commit as well.
  private mutating func hasSurvivors(below top: NodeID) throws -> Bool {
    if let above = removals.aboveSurvivors { return above.contains(top) }
    var above: Set<NodeID> = []
    for node in putNodes.union(try transaction.operations.movedNodes(zone: zoneRow.id)) {
      above.formUnion(try leaves.ancestors(of: node))
    }
    removals.aboveSurvivors = above
    return above.contains(top)
  }
}
