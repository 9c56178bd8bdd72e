internal import Foundation
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport
internal import ZDCTreesystem

/// Applies a deletion in the cloud to the local tree (PROTOCOL 3.7 "Outcomes").
///
/// A clean subtree is deleted immediately and announced by its top node. If operations are queued, the app is notified
/// first, while all nodes still exist. Then the clean branches are deleted. The dirty nodes and their ancestors stay,
/// as if they had never been uploaded.
struct RemoteRemoval {
  package let session: SyncSession
  package let zone: Int64
  package let transaction: ZDCReadWriteTransaction
  /// The time at which the server received the commit, or 0 if unknown.
  package let receivedMs: UInt64
  /// The user who deleted the nodes; nil if that is not known any more.
  private let writer: UserID?
  private let timestamp: Date?
  private let nodes: NodeStore
  private let places: LocalTreeResolver

  package init(
    session: SyncSession, zone: Int64, transaction: ZDCReadWriteTransaction, receivedMs: UInt64, writer: UserID? = nil
  ) {
    self.writer = writer
    self.session = session
    self.zone = zone
    self.transaction = transaction
    self.receivedMs = receivedMs
    timestamp = receivedMs == 0 ? nil : Date(timeIntervalSince1970: Double(receivedMs) / 1_000)
    nodes = transaction.nodes
    places = LocalTreeResolver(session: session, transaction: transaction)
  }

  /// Applies a removal. Each topmost node in the local tree is handled separately: if the app throws, that branch stays
  /// as it was.
  package func apply(_ removal: LogNodeStore.Removal) throws {
    let gone = Set(removal.all)
    for operation in try transaction.operations.deletes(zone: zone) where gone.contains(operation.nodeID) {
      // The node was deleted here too, so the delete need not be sent.
      try transaction.operations.delete(id: operation.id)
    }
    // Nodes that were moved out locally are topmost nodes themselves.
    for nodeID in removal.all {
      guard let row = try nodes.node(zone: zone, nodeID: nodeID) else { continue }
      if let parent = try row.parent.flatMap({ try nodes.nodeID(of: $0) }), gone.contains(parent) { continue }
      try removeAlone(row, gone: gone)
    }
  }

  /// Retries the removal of a node that stayed because the app threw.
  ///
  /// - Returns: False if the app threw again.
  @discardableResult
  package func retry(_ top: NodeRow) throws -> Bool {
    let leaves = transaction.leaves(zone: zone)
    let gone = try nodes.subtree(of: top.id).filter { try $0.isUploaded && leaves.leaf($0.nodeID) == nil }
    return try removeAlone(top, gone: Set(gone.map(\.nodeID)))
  }

  @discardableResult
  private func removeAlone(_ top: NodeRow, gone: Set<NodeID>) throws -> Bool {
    try session.part(.deletion, of: zone, top.nodeID, receivedMs: receivedMs, in: transaction) {
      try remove(top, gone: gone)
      try transaction.delegateFailures.forget(zone: zone, node: top.nodeID, isPulled: true)
    }
  }

  private func remove(_ top: NodeRow, gone: Set<NodeID>) throws {
    let takeOver = MoveTakeOver(session: session, zone: zone, transaction: transaction)
    guard let writer, try takeOver.run(atOrBelow: top, gone: gone, by: writer) else {
      return try removeHere(top, gone: gone)
    }
    for row in try takeOver.left(atOrBelow: top, gone: gone) { try removeHere(row, gone: gone) }
  }

  private func removeHere(_ top: NodeRow, gone: Set<NodeID>) throws {
    try returnSurvivors(below: top, gone: gone)
    let renamed = try renamedNodes(atOrBelow: top)
    try removeBranch(top, gone: gone)
    for (row, path) in renamed {
      if try nodes.node(id: row.id) == nil { try recordRenamed(row, path) }
    }
  }

  private func removeBranch(_ top: NodeRow, gone: Set<NodeID>) throws {
    let dirty = try dirtyNodes(atOrBelow: top)
    guard !dirty.isEmpty else { return try delete(top) }
    let before = try nodes.subtreeIDs(of: top.id)
    let path = try places.path(top)
    try parkAll(dirty)
    try announceDirty(top, dirty)
    let after = try nodes.node(id: top.id) == nil ? [] : Set(nodes.subtreeIDs(of: top.id))
    // Nodes that the app moved out of the branch are deleted in the cloud as well.
    let rescued = try before.filter { !after.contains($0) }.compactMap { try nodes.node(id: $0) }
    for row in rescued where gone.contains(row.nodeID) { try resetCloudFacts(row, isWanted: true) }
    if !after.isEmpty { try keepDirty(top) }
    try recordDirty(top, path)
  }

  /// Records the outcome: the node was kept for now, or the app deleted it in its callback.
  func recordDirty(_ top: NodeRow, _ path: ZDCTreesystemPath) throws {
    let kept = try nodes.node(id: top.id)
    let all = try kept.map { try nodes.subtree(of: $0.id).map(\.uuid) }
    try transaction.record(.deletedInCloud, top) { entry in
      entry.base = .init(path: path, eTag: top.content?.content.eTag)
      entry.mine.path = path
      entry.theirs.isDeleted = true
      entry.keptNodeIDs = all
      entry.result = .init(path: try kept.map(places.path), cloudID: kept?.nodeID.text, isDeleted: kept == nil)
    }
  }

  /// Moves live nodes out of the branch, each with its subtree. A queued move placed them here, or the log moved them
  /// away and their records are pending.
  func returnSurvivors(below top: NodeRow, gone: Set<NodeID>) throws {
    let leaves = transaction.leaves(zone: zone)
    var leaving: [(id: Int64, depth: Int)] = []
    for row in try survivors(below: top, gone: gone, leaves) {
      leaving.append((row.id, try leaves.ancestors(of: row.nodeID).count))
    }
    // A survivor's verified parent may be another survivor, which must be moved out first.
    for (id, _) in leaving.sorted(by: { $0.depth < $1.depth }) {
      guard let row = try nodes.node(id: id) else { continue }
      _ = try places.returnToCloudPlace(row, outside: top.id)
    }
  }

  /// Returns the topmost live nodes of the branch.
  private func survivors(
    below top: NodeRow, gone: Set<NodeID>, _ leaves: LogNodeStore
  ) throws -> [NodeStore.CloudPlace] {
    var survivors: [NodeStore.CloudPlace] = []
    // Survivors, and the nodes that leave with them.
    var alive: Set<Int64> = []
    for row in try nodes.cloudPlaces(atOrBelow: top.id, except: gone) {
      let isCarried = row.parent.map(alive.contains) ?? false
      if row.isUploaded, try leaves.leaf(row.nodeID) == nil { continue }
      guard isCarried || row.isUploaded else { continue }
      alive.insert(row.id)
      if !isCarried { survivors.append(row) }
    }
    return survivors
  }

  /// Returns rows with queued operations, parents first. Nodes that were only renamed are excluded, because the app
  /// need not be asked about them.
  func dirtyNodes(atOrBelow top: NodeRow) throws -> [NodeRow] {
    guard try transaction.operations.count(zone: zone) > 0 else { return [] }
    return try nodes.subtree(of: top.id).filter { row in
      let queued = try ownOperations(of: row)
      return try !queued.isEmpty && !isOnlyRenamed(row, queued) && !isOnlyMarked(row, queued)
    }
  }

  /// Returns whether only the state of a received message is queued, which keeps no deleted message.
  private func isOnlyMarked(_ row: NodeRow, _ queued: [OperationRow]) -> Bool {
    row.unused?.received != nil && row.unused?.movedFrom == nil && queued.allSatisfy { $0.kind == .modify }
  }

  /// Returns the node's operations in its zone. A copy that is in flight in another one is no change of the node.
  private func ownOperations(of row: NodeRow) throws -> [OperationRow] {
    try transaction.operations.operations(node: row.id).filter { $0.zone == row.zone }
  }

  /// Returns whether the node's queued operations only rename it within its old folder.
  private func isOnlyRenamed(_ row: NodeRow, _ queued: [OperationRow]) throws -> Bool {
    guard let cloud = row.cloud, queued.allSatisfy({ $0.kind == .move && $0.resend == nil }) else { return false }
    return try row.parent.flatMap { try nodes.nodeID(of: $0) } == cloud.parent
  }

  private func renamedNodes(atOrBelow top: NodeRow) throws -> [(row: NodeRow, path: ZDCTreesystemPath)] {
    guard try transaction.operations.count(zone: zone) > 0 else { return [] }
    return try nodes.subtree(of: top.id).compactMap { row in
      let queued = try ownOperations(of: row)
      guard try !queued.isEmpty && isOnlyRenamed(row, queued) else { return nil }
      return (row, try places.path(row))
    }
  }

  private func recordRenamed(_ row: NodeRow, _ path: ZDCTreesystemPath) throws {
    try transaction.record(.deletedInCloud, row) { entry in
      entry.mine.path = path
      entry.theirs.isDeleted = true
      entry.result.isDeleted = true
    }
  }

  func announceDirty(_ top: NodeRow, _ dirty: [NodeRow]) throws {
    let node = try session.node(top, in: transaction)
    try session.tell(.didDiscoverDeletedDirtyNode, top.nodeID, in: transaction) {
      try $0.didDiscoverDeletedDirtyNode(
        node, dirtyAncestors: try dirty.map { try transaction.shown($0).uuid }, timestamp: timestamp,
        transaction: transaction)
    }
  }

  /// Deletes a branch here, and notifies the app.
  ///
  /// - Parameter inner: The roots of branches inside it that the user leaves with it.
  package func delete(_ row: NodeRow, with inner: [NodeRow] = []) throws {
    let left = try (isByAnotherMember() ? [] : transaction.grafts.roots(below: row)) + inner
    let branches = try mountedBranches(below: row, except: left)
    let hidden = try Mounting(session: session, transaction: transaction).hiddenRoots()
      .map { Shown(root: $0, pointer: nil, path: try places.path($0)) }
    let isPointer = try transaction.mounts.zone(at: row.id) != nil
    let node = try session.node(row, in: transaction)
    let path = try places.path(row)
    try transaction.unlinkBeforeRemoval(of: left + [row], keepLookups: true)
    for root in left { try leave(root) }
    try nodes.deleteSubtree(of: row.id)
    try placeAgain(branches, hidden: hidden)
    // The user's own branch that was shown there has only lost its place.
    guard !isPointer || !left.isEmpty else { return try transaction.endRemoval() }
    try session.tell(.didDiscoverDeletedNode, row.nodeID, in: transaction) {
      try $0.didDiscoverDeletedNode(node, at: path, timestamp: timestamp, transaction: transaction)
    }
    try transaction.endRemoval()
  }

  /// Shows branches in other places after the deletion of pointers, and notifies the app.
  private func placeAgain(_ branches: [Shown], hidden: [Shown]) throws {
    let mounting = Mounting(session: session, transaction: transaction)
    for branch in branches + hidden { try mounting.mount(zone: branch.root.zone) }
    for branch in branches {
      if let pointer = branch.pointer { try mounting.remount(zone: branch.root.zone, inPlaceOf: pointer, places) }
    }
    try transaction.mounts.resolveCircles()
    try mounting.remountHidden(places)
    for branch in branches + hidden {
      if let root = try nodes.node(id: branch.root.id) { _ = try places.announceMove(root, from: branch.path) }
    }
  }

  /// Another member does not decide what the user follows. If the writer is unknown, any member who may write counts.
  private func isByAnotherMember() throws -> Bool {
    if let writer { return writer != session.user }
    let list = try transaction.zones.zone(id: zone)?.head?.acl.fields
    return list?.entries.contains { $0.user != session.user && $0.permissions.contains(.write) } ?? false
  }

  /// The pause before this device removes the user from a list. The device that deleted the pointer does so itself, and
  /// this one only if it does not.
  private static let leavingPauseMs = 60_000...600_000.0

  /// Ends a grafted branch whose pointer is deleted: the user has left it on another device (G-2).
  private func leave(_ root: NodeRow) throws {
    try journalUnsent(root)
    let range = Self.leavingPauseMs
    let pause = range.lowerBound + (range.upperBound - range.lowerBound) * session.time.random()
    try GraftChange(transaction, localUser: session.localUser, user: session.user)
      .leave(zone: root.zone, after: nil, notBeforeMs: session.now() + UInt64(pause))
  }

  /// Records the queued changes of a branch that the user has left, and of the branches inside of it.
  private func journalUnsent(_ root: NodeRow) throws {
    try ZoneCrossing(session: session, transaction: transaction).cancel(with: root.zone)
    try LostAccess(session: session, zone: root.zone, transaction: transaction, receivedMs: receivedMs).journal(root)
    for inner in try transaction.mounts.zones(below: root.id) {
      if let root = try nodes.root(zone: inner) { try journalUnsent(root) }
    }
  }

  /// The root of a zone, with the pointer in whose place it was shown, and its path.
  private struct Shown {
    var root: NodeRow
    var pointer: NodeRow?
    var path: ZDCTreesystemPath
  }

  /// Returns the zones that are shown below a node. The deletion of a pointer does not end the zone that it points to, unless
  /// the user has grafted it.
  private func mountedBranches(below row: NodeRow, except grafts: [NodeRow]) throws -> [Shown] {
    try transaction.mounts.zones(below: row.id).compactMap { zone in
      guard let root = try nodes.root(zone: zone), !grafts.contains(where: { $0.id == root.id }) else { return nil }
      return Shown(root: root, pointer: try transaction.place(of: root), path: try places.path(root))
    }
  }

  /// Deletes the clean branches below `top`. The remaining nodes lose their place in the cloud.
  private func keepDirty(_ top: NodeRow) throws {
    let dirty = try dirtyNodes(atOrBelow: top)
    guard !dirty.isEmpty else { return try delete(top) }
    var kept: Set<Int64> = [top.id]
    for row in dirty {
      for ancestor in try nodes.ancestry(of: row) where try nodes.isNode(ancestor.id, atOrBelow: top.id) {
        kept.insert(ancestor.id)
      }
    }
    for row in try nodes.subtree(of: top.id) where !kept.contains(row.id) {
      // Only the topmost clean nodes: the rest is deleted with them.
      if let parent = row.parent, kept.contains(parent), try nodes.node(id: row.id) != nil { try delete(row) }
    }
    let rows = try nodes.subtree(of: top.id)
    let wanted = try wantedNodes(rows)
    for row in rows { try resetCloudFacts(row, isWanted: wanted.contains(row.id)) }
  }

  // MARK: Queued operations

  /// Parks the queued operations before the app is notified. Operations that the app queues, or queues again, from then
  /// on run normally.
  func parkAll(_ dirty: [NodeRow]) throws {
    for row in dirty {
      for var operation in try ownOperations(of: row) {
        operation.state = .pending
        operation.reason = .deletedRemotely
        try transaction.operations.update(operation)
      }
    }
  }

  /// Returns nodes with an operation that the app released, and all their ancestors.
  func wantedNodes(_ rows: [NodeRow]) throws -> Set<Int64> {
    var wanted: Set<Int64> = []
    // Deepest nodes first, so that each parent knows about its children.
    for row in rows.reversed() {
      let operations = try transaction.operations.operations(node: row.id)
      guard wanted.contains(row.id) || operations.contains(where: { $0.reason != .deletedRemotely }) else { continue }
      wanted.insert(row.id)
      if let parent = row.parent { wanted.insert(parent) }
    }
    return wanted
  }

  /// Makes a kept node new to the cloud: a fresh ID, but the same UUID, links and tags. Its operations wait for the
  /// app, unless the app has already decided.
  func resetCloudFacts(_ row: NodeRow, isWanted: Bool) throws {
    var row = row
    // Otherwise devices refuse a message under another ID than its own.
    if row.unused?.received != nil, row.unused?.movedFrom == nil {
      let origin = try transaction.zones.zone(id: row.zone).map { MovedNode(tree: $0.zone.tree, node: row.nodeID) }
      row.unused?.movedFrom = origin
    }
    row.nodeID = .random()
    row.cloud = nil
    row.content = nil
    row.historyWrap = []
    try nodes.update(row)
    let operations = try ownOperations(of: row)
    for operation in operations {
      if operation.kind == .move || operation.kind == .modify {
        try transaction.operations.delete(id: operation.id)
      } else {
        try rebase(operation, onto: row, isWanted: isWanted)
      }
    }
    if !operations.contains(where: { $0.kind == .create }) { try queue(.create, row, isWanted: isWanted) }
    if row.pointer == nil, !operations.contains(where: { $0.kind == .putData }) {
      try queue(.putData, row, isWanted: isWanted)
    }
  }

  private func rebase(_ operation: OperationRow, onto row: NodeRow, isWanted: Bool) throws {
    var operation = operation
    operation.nodeID = row.nodeID
    operation.baseETag = nil
    if isWanted, operation.reason == .deletedRemotely { operation.reason = .ready }
    try transaction.operations.update(operation)
  }

  private func queue(_ kind: OperationRow.Kind, _ row: NodeRow, isWanted: Bool) throws {
    var operation = OperationRow(
      uuid: UUIDv7.make(atMs: session.now()), zone: zone, kind: kind, node: row.id, nodeUUID: row.uuid,
      nodeID: row.nodeID,
      createdMs: session.now())
    operation.reason = isWanted ? .ready : .deletedRemotely
    let holder = kind == .create ? row.parent : row.id
    let dependsOn = try holder.flatMap { try transaction.operations.create(ofNode: $0) }
    try transaction.operations.insert(&operation, dependsOn: dependsOn.map { [$0] } ?? [])
  }
}
