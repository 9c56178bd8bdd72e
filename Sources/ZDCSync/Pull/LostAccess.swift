internal import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport

/// Ends the local copy of a zone, after its verified log says that this user is no longer a member, or that the owner has
/// ended the zone. No other answer of a server does that (K-14).
struct LostAccess {
  package let session: SyncSession
  package let zone: Int64
  package let transaction: ZDCReadWriteTransaction
  package let receivedMs: UInt64
  /// Whether the owner has ended the zone. This may be one of the local user's own zones.
  var isEnd = false

  /// Removes the nodes and notifies the app of each branch below the root, or of the root of a shared branch. Queued
  /// changes end in the merge journal; links, tags and files go with their nodes. If the app throws, its branch stays until
  /// the next pull.
  ///
  /// - Parameter isOwnDecision: Whether the user left on another device. Otherwise a conflict is reported first if the user
  ///   has grafted the branch.
  package func settle(isOwnDecision: Bool = false) throws {
    guard let row = try transaction.zones.zone(id: zone), isEnd || row.owner != nil else { return }
    try ZoneCrossing(session: session, transaction: transaction).cancel(with: zone)
    if !row.isTrunk, let root = try transaction.nodes.root(zone: zone) {
      try removeGraft(root, isOwnDecision ? nil : isEnd ? .graft_DstNodeNotFound : .graft_DstNodeNotReadable)
      guard try transaction.nodes.root(zone: zone) == nil else { return }
    } else if let root = try transaction.nodes.root(zone: zone) {
      for child in try transaction.nodes.children(of: root.id) { try remove(child) }
      guard try transaction.nodes.children(of: root.id).isEmpty else { return }
    }
    if isEnd { try removePointer(to: row) }
    try transaction.zones.delete(row)
    transaction.cloudState.forget(zone: zone)
    transaction.nodes.invalidate()
    transaction.operations.invalidate()
    try transaction.mounts.resolveCircles()
  }

  /// Removes a branch with the pointer to it, if the user has grafted it.
  private func removeGraft(_ root: NodeRow, _ conflict: ZDCNodeConflict?) throws {
    guard let pointer = try transaction.grafts.pointer(to: root) else { return try remove(root) }
    try session.part(.deletion, of: zone, root.nodeID, receivedMs: receivedMs, in: transaction) {
      if let conflict { try announce(conflict, root) }
      // The app may have deleted it in that call.
      guard try transaction.nodes.node(id: root.id) != nil else { return }
      // A user who leaves a branch also leaves the branches inside it, whose logs this device may read later.
      try end(root, with: conflict == nil ? innerBranches(of: root) : [])
      guard let pointer = try transaction.nodes.node(id: pointer.id) else { return }
      try GraftChange(transaction, localUser: session.localUser, user: session.user).delete(pointer)
    }
  }

  private func announce(_ conflict: ZDCNodeConflict, _ root: NodeRow) throws {
    let (node, path) = (try session.node(root, in: transaction), try session.path(root, in: transaction))
    try session.tell(.didDiscoverConflict, root.nodeID, in: transaction) {
      try $0.didDiscoverConflict(conflict, forNode: node, atPath: path, transaction: transaction)
    }
  }

  /// Removes a branch that this user can no longer read, and notifies the app.
  func remove(_ top: NodeRow) throws {
    try session.part(.deletion, of: zone, top.nodeID, receivedMs: receivedMs, in: transaction) {
      try end(top)
    }
  }

  private func end(_ top: NodeRow, with inner: [NodeRow] = []) throws {
    if isEnd, try KeptNodes(lost: self).keep(top) { return }
    try journal(top)
    try removal.delete(top, with: inner)
  }

  private func innerBranches(of root: NodeRow) throws -> [NodeRow] {
    try transaction.mounts.zones(below: root.id).compactMap(transaction.nodes.root)
  }

  var removal: RemoteRemoval {
    get throws {
      // Only the owner ends a zone.
      let isOwn = try isEnd && transaction.zones.zone(id: zone)?.owner == nil
      return RemoteRemoval(
        session: session, zone: zone, transaction: transaction, receivedMs: receivedMs,
        writer: isOwn ? session.user : nil)
    }
  }

  /// Records the queued changes of a branch that can no longer be sent.
  func journal(_ top: NodeRow) throws {
    let place = try transaction.place(of: top)
    for row in try transaction.nodes.subtree(of: top.id) {
      var queued = try transaction.operations.operations(node: row.id)
      if isEnd, row.id == top.id, place.id != top.id { queued += try transaction.operations.operations(node: place.id) }
      guard !queued.isEmpty else { continue }
      let path = try session.path(row, in: transaction)
      try transaction.record(isEnd ? .deletedInCloud : .accessLost, row) { entry in
        entry.base = .init(path: path, eTag: row.content?.content.eTag)
        entry.mine.path = path
        entry.theirs.isDeleted = true
        entry.result.isDeleted = true
      }
    }
  }

  // MARK: The pointer

  /// Removes the pointer to an ended zone. It is a node of the zone around it, and the device that has ended the zone
  /// deletes it there next. The owner's other devices do that as well, in case that device never does.
  private func removePointer(to ended: ZoneRow) throws {
    guard let id = try transaction.mounts.pointer(ofZone: ended.id), let pointer = try transaction.nodes.node(id: id)
    else { return }
    let leaves = transaction.leaves(zone: pointer.zone)
    let isInCloud =
      try leaves.leaf(pointer.nodeID) != nil
      || transaction.operations.nodesInFlight(zone: pointer.zone).contains(id)
    try transaction.nodes.deleteSubtree(of: id)
    guard isInCloud else { return }
    try leaves.set(.hidden, pointer.nodeID)
    if ended.owner == nil { try queueDelete(of: pointer) }
  }

  private func queueDelete(of pointer: NodeRow) throws {
    let queued = try transaction.operations.operations(zone: pointer.zone, nodeID: pointer.nodeID)
    guard !queued.contains(where: { $0.kind == .delete }) else { return }
    var operation = OperationRow(
      uuid: UUIDv7.make(atMs: session.now()), zone: pointer.zone, kind: .delete, node: nil, nodeUUID: pointer.uuid,
      nodeID: pointer.nodeID, changeset: pointer.nameInCloud, createdMs: session.now())
    try transaction.operations.insert(&operation)
    transaction.signal(.queue(localUser: session.localUser))
  }
}
