internal import ZDCClientStore
internal import ZDCProtocol
internal import ZDCTreesystem

// Branches that the user has grafted before this device read their split.

extension SplitApplier {
  struct Graft {
    /// The node that the app got from its call.
    var node: ZDCNode
    var path: ZDCTreesystemPath
  }

  var places: LocalTreeResolver { LocalTreeResolver(session: session, transaction: transaction) }

  /// Removes the row that stands for the root of a grafted branch. The rows that the parent zone has take its place, with
  /// their queued changes.
  ///
  /// - Returns: Nil if the user has not grafted the branch.
  func removePlaceholder(in branch: Int64) throws -> Graft? {
    guard let placeholder = try nodes.root(zone: branch) else { return nil }
    let graft = Graft(node: try session.node(placeholder, in: transaction), path: try places.path(placeholder))
    try transaction.unlinkBeforeRemoval(of: [placeholder], keepLookups: true)
    try nodes.deleteSubtree(of: placeholder.id)
    return graft
  }

  /// The branch is shown where the user has put it, and the pointer in the parent zone is a leaf.
  func announce(_ graft: Graft, _ root: NodeRow, from oldPath: ZDCTreesystemPath, pointer: NodeRow?) throws {
    try announceEnd(of: graft)
    if let row = try nodes.node(id: root.id) { _ = try places.announceMove(row, from: oldPath) }
    try announceLeaf(pointer)
  }

  private func announceEnd(of graft: Graft) throws {
    try session.tell(.didDiscoverDeletedNode, split.zone.root, in: transaction) {
      try $0.didDiscoverDeletedNode(graft.node, at: graft.path, timestamp: nil, transaction: transaction)
    }
    try transaction.endRemoval()
  }

  private func announceLeaf(_ pointer: NodeRow?) throws {
    guard let pointer, let row = try nodes.node(id: pointer.id) else { return }
    let (node, path) = (try session.node(row, in: transaction), try places.path(row))
    try session.tell(.didDiscoverNewNode, row.nodeID, in: transaction) {
      try $0.didDiscoverNewNode(node, at: path, transaction: transaction)
    }
  }

  // MARK: Another first commit

  /// Compares the first commit that the split names with the one that this device knows from the zone's log, or from an
  /// invitation. Two of them are two histories.
  func compareFirstCommits() throws {
    guard let row = try transaction.zones.zone(localUser: session.localUser, split.zone),
      try !row.begins(with: split.genesis, transaction)
    else { return }
    if row.head == nil { try dropGraft(row) } else { try freeze(row) }
    guard row.frozen != .zoneForkDetected else { return }
    let error = ZDCSecurityError(.zoneForkDetected, zone: split.zone, user: row.owner)
    try transaction.record(error, localUser: session.localUser, zone: row.id, atMs: session.now())
    transaction.afterCommit { [events = session.events] in events.report(error) }
  }

  /// The owner has signed both: the split, and the first commit of the log that this device has read.
  private func freeze(_ row: ZoneRow) throws {
    var row = row
    (row.frozen, row.isProven, row.doubt) = (.zoneForkDetected, true, nil)
    try transaction.zones.update(row)
  }

  /// Anyone can write an invitation, so the owner's split decides which zone this is. The pointer of the graft names another
  /// one, and is a leaf (PROTOCOL 3.7 "Splits in a client").
  private func dropGraft(_ row: ZoneRow) throws {
    guard row.id == branch else { return }
    let pointer = try transaction.grafts.pointer(toZone: row.id)
    let graft = try removePlaceholder(in: row.id)
    var row = row
    (row.genesis, row.frozen, row.isProven, row.doubt) = (split.genesis, nil, false, nil)
    try transaction.zones.update(row)
    try transaction.mounts.set(zone: row.id, at: nil)
    if let graft { try announceEnd(of: graft) }
    try announceLeaf(pointer)
  }
}
