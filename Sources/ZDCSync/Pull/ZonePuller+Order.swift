internal import ZDCClientStore
internal import ZDCProtocol

// The order in which a pull reads records.

extension ZonePuller {
  /// Returns the nodes whose records are to be read, in the order in which the app and their age want them.
  func pendingOrder() async throws -> [NodeID] {
    let preferred = await session.delegate().preferredNodeIDsForPullingRcrds() ?? []
    return try await session.database.asyncRead { [session, zone] transaction in
      // The server serves no records to former members.
      guard let row = try transaction.zones.zone(id: zone), !row.hasLostAccess(session.user),
        try !transaction.grafts.isLeft(zone: zone)
      else { return [] }
      let leaves = LogNodeStore(db: transaction.database, zone: zone)
      guard try leaves.pendingCount() > 0 else { return [] }
      // If the root cannot be opened, neither can any node below it. If it is deleted here, nothing has to be opened.
      guard
        try transaction.nodes.root(zone: zone) != nil || leaves.pendingLeaf(row.zone.root) != nil
          || !transaction.operations.operations(zone: zone, nodeID: row.zone.root).isEmpty
      else { return [] }
      let preferredIDs = try preferred.compactMap { try transaction.nodes.node(uuid: $0)?.nodeID }
      var priority = PullPriority(preferred: Set(preferredIDs))
      try Self.addPending(leaves, below: row.zone.root, to: &priority)
      return priority.sorted().map(\.node)
    }
  }

  /// Adds pending nodes. A change of a few nodes does not require a walk through the zone.
  private static func addPending(
    _ leaves: LogNodeStore, below root: NodeID, to priority: inout PullPriority
  ) throws {
    if let few = try leaves.pendingLeaves(limit: 256) {
      for leaf in few { priority.add(leaf.node, ancestors: try leaves.ancestors(of: leaf.node), putSeq: leaf.putSeq) }
      return
    }
    try leaves.forEachByDepth(root: root) { leaf in
      priority.add(
        leaf.node, parent: leaf.parent, depth: leaf.depth, putSeq: leaf.putSeq, isPending: leaf.isPending)
    }
  }
}
