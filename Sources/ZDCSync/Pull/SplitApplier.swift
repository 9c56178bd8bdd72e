internal import ZDCAccounts
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport

/// Applies a split of the parent zone's log to this device, inside the transaction that applies its commit
/// (PROTOCOL 3.7 "Splits").
///
/// The nodes keep their rows, with links, tags, files and queued changes, and belong to the new zone. The node at the top
/// becomes that zone's root; a pointer takes its name and place. If this user is no member of the new zone, the nodes end
/// here as after any loss of access.
struct SplitApplier {
  let session: SyncSession
  /// The parent zone.
  let zone: Int64
  let transaction: ZDCReadWriteTransaction
  let writers: WriterKeys
  let split: ZoneSplit
  let origin: SplitOrigin?
  /// The new zone; nil if this device does not follow it from here on.
  let branch: Int64?
  let receivedMs: UInt64
  /// Whether this device has made the split.
  let isOwn: Bool

  var nodes: NodeStore { transaction.nodes }
  private var top: NodeID { split.zone.root }

  func apply(_ commit: ZoneCommit, _ departed: (top: LogNode, all: [NodeID])?, parentList: ZoneACL?) throws {
    guard let departed else { return }
    if let origin { try split.check(origin.genesis) }
    try compareFirstCommits()
    guard let origin, let branch else { return try endAccess(departed) }
    try begin(origin, branch)
    try move(departed, to: branch, pointer: try pointer(in: commit, below: departed.top.parent))
    guard try !transaction.grafts.isLeft(zone: zone) else { return try leave(branch) }
    try repeatListChanges(origin.acl.fields, branch)
    let isSameList = parentList.map { $0.fields.inherited().permissionsByUser == origin.acl.fields.permissionsByUser }
    guard commit.fields.writer != session.user || isSameList == false else { return }
    try AccessChange(session: session, zone: branch, transaction: transaction).announce()
  }

  /// Verifies and pins the first commit of the new zone.
  private func begin(_ origin: SplitOrigin, _ branch: Int64) throws {
    guard var row = try transaction.zones.zone(id: branch) else { return }
    let genesis = origin.genesis
    var state = LogNodeStore(db: transaction.database, zone: branch, commit: genesis, pending: true)
    row.head = try ZoneReplay(identities: writers).advance(
      genesis, acl: origin.acl, list: split.list, after: nil, to: &state
    ).head
    try CommitLogStore(db: transaction.database, zone: branch).insert(genesis, isOwn: false, raisesKeys: true)
    row.listSeq = 0
    try ZoneKeys(session: session, transaction: transaction).take(origin.acl, origin.grants, row: &row)
    try transaction.zones.update(row)
    transaction.cloudState.forget(zone: branch)
    try ProfileDeliveries(session: session, transaction: transaction).queue(for: row, before: nil, isOwn: isOwn)
    transaction.signal(.queue(localUser: session.localUser))
    transaction.afterCommit { [session] in session.newZones.withLock { _ = $0.insert(branch) } }
  }

  /// Returns the pointer that the commit puts in the branch's place: the first new node there.
  private func pointer(in commit: ZoneCommit, below parent: NodeID) throws -> NodeID? {
    let leaves = transaction.leaves(zone: zone)
    for case .put(let put) in commit.fields.operations where put.parent == parent {
      if try leaves.isNew(put.node) { return put.node }
    }
    return nil
  }

  // MARK: Members

  private func move(_ departed: (top: LogNode, all: [NodeID]), to branch: Int64, pointer: NodeID?) throws {
    let rows = BranchRows(transaction, from: zone, to: branch)
    guard let before = try nodes.node(zone: zone, nodeID: top) else {
      if try isUnread(departed.top, in: branch) { return try moveKnownNodes(departed, to: branch, rows) }
      // This device has deleted the node. Nodes that it moved out before count as deleted.
      let deletes = try isOwn ? queuedDeletes(above: departed.top) : []
      try removal.apply(LogNodeStore.Removal(top: top, all: departed.all))
      try rows.moveCloudNodes()
      if let pointer, !deletes.isEmpty { return try end(branch, pointer, deletes) }
      return try rows.readLostNodes()
    }
    // Nodes of the parent zone that this device has moved into the branch, by moves that were not sent.
    try removal.returnSurvivors(below: before, gone: Set(departed.all))
    try returnFromItself(before.id, departed)
    guard let root = try nodes.node(id: before.id) else { return }
    let mount = try pointer.map { try insertPointer($0, inPlaceOf: root) }
    let oldPath = try session.path(root, in: transaction)
    let graft = try removePlaceholder(in: branch)
    try rows.moveCloudNodes(below: try nodes.node(id: root.id) ?? root)
    try rows.makeRoot(try nodes.node(id: root.id) ?? root)
    if let mount, graft == nil { try transaction.mounts.set(zone: branch, at: mount.id) }
    try returnMovedOut(rows, below: root)
    try moveLocalNodes(below: [root], rows)
    if let mount { try rows.moveMoves(of: root, to: mount) }
    try rows.readLostNodes()
    if let graft { try announce(graft, root, from: oldPath, pointer: mount) }
  }

  /// Moves what this device has not sent to the new zone, except for nodes that the app has restored.
  private func moveLocalNodes(below tops: [NodeRow], _ rows: BranchRows) throws {
    let restored = try rows.restoredNodes()
    for top in tops { try rows.moveLocalNodes(below: top.id, except: restored.map(\.id)) }
    let crossing = ZoneCrossing(session: session, transaction: transaction)
    for row in restored { try crossing.moveOnceRestored(row) }
  }

  /// Returns the top to its place in the cloud if this device has moved it below a node of the branch that it had moved out
  /// before. That node comes back, and a branch cannot be inside of itself.
  private func returnFromItself(_ id: Int64, _ departed: (top: LogNode, all: [NodeID])) throws {
    let branch = Set(departed.all)
    guard let row = try nodes.node(id: id), try isBelow(branch, row) else { return }
    let parent = departed.top.parent
    for ancestor in [parent] + (try transaction.leaves(zone: zone).ancestors(of: parent)) {
      guard let place = try nodes.node(zone: zone, nodeID: ancestor), try !isBelow(branch, place) else { continue }
      _ = try places.returnToCloud(row, under: place)
      return
    }
  }

  /// Whether the app sees a row below one of the nodes.
  private func isBelow(_ branch: Set<NodeID>, _ row: NodeRow) throws -> Bool {
    var current = row
    while let parent = try transaction.parent(of: current) {
      if parent.zone == zone, branch.contains(parent.nodeID) { return true }
      current = parent
    }
    return false
  }

  /// Whether the branch's top came with this page, so that its record is still to be read.
  private func isUnread(_ top: LogNode, in branch: Int64) throws -> Bool {
    try transaction.leaves(zone: branch).pendingLeaf(top.node) != nil && queuedDeletes(above: top).isEmpty
  }

  /// Moves the rows of nodes that another device has moved into the branch before it was split off. They are shown where
  /// they were until the branch's records are read.
  private func moveKnownNodes(
    _ departed: (top: LogNode, all: [NodeID]), to branch: Int64, _ rows: BranchRows
  ) throws {
    let gone = Set(departed.all)
    for node in departed.all {
      guard let row = try nodes.node(zone: zone, nodeID: node) else { continue }
      try removal.returnSurvivors(below: row, gone: gone)
      try dropMoves(of: row, in: branch)
    }
    try rows.moveCloudNodes()
    try moveLocalNodes(below: try rows.nodesWithoutPlace(), rows)
    try rows.readLostNodes()
  }

  /// Drops the queued moves of a node of the branch, and reads its record again, which has its place: the app moved it
  /// inside of the parent zone, and did not decide that it leaves a shared branch.
  private func dropMoves(of row: NodeRow, in branch: Int64) throws {
    let moves = try transaction.operations.operations(node: row.id).filter { $0.kind == .move }
    guard !moves.isEmpty else { return }
    try transaction.operations.drop(moves, of: row)
    try transaction.leaves(zone: branch).set(.pending, row.nodeID)
    let wanted = try session.path(row, in: transaction)
    try transaction.record(.moveDropped, row) { $0.mine.path = wanted }
  }

  /// Returns the queued deletes of the branch's top, or of nodes above it.
  private func queuedDeletes(above top: LogNode) throws -> [OperationRow] {
    let above = Set([top.node, top.parent] + (try transaction.leaves(zone: zone).ancestors(of: top.parent)))
    return try transaction.operations.deletes(zone: zone).filter { above.contains($0.nodeID) }
  }

  /// Queues the end of the new zone. The app has deleted its top, or a node above it, while the request that split it off
  /// was in flight.
  private func end(_ branch: Int64, _ pointer: NodeID, _ deletes: [OperationRow]) throws {
    let ownDelete = deletes.first { $0.nodeID == top }
    let end = try queueDelete(of: top, in: branch, insteadOf: ownDelete, after: nil)
    try transaction.leaves(zone: branch).set(.applied, top)
    let others = deletes.filter { $0.nodeID != top }
    for delete in others { try transaction.operations.addDependency(of: delete.id, on: end) }
    if others.isEmpty { _ = try queueDelete(of: pointer, in: zone, insteadOf: ownDelete, after: end) }
  }

  private func queueDelete(
    of node: NodeID, in zone: Int64, insteadOf own: OperationRow?, after dependency: Int64?
  ) throws -> Int64 {
    let now = session.now()
    var operation = OperationRow(
      uuid: UUIDv7.make(atMs: now), zone: zone, kind: .delete, node: nil,
      nodeUUID: own?.nodeUUID ?? UUIDv7.make(atMs: now), nodeID: node, changeset: own?.changeset, createdMs: now)
    try transaction.operations.insert(&operation, dependsOn: dependency.map { [$0] } ?? [])
    transaction.signal(.queue(localUser: session.localUser))
    return operation.id
  }

  private var removal: RemoteRemoval {
    RemoteRemoval(session: session, zone: zone, transaction: transaction, receivedMs: receivedMs)
  }

  /// Inserts the pointer before its record is read, so that the branch is never without a place.
  private func insertPointer(_ node: NodeID, inPlaceOf root: NodeRow) throws -> NodeRow {
    var row = NodeRow(
      uuid: UUIDv7.make(atMs: session.now()), zone: zone, nodeID: node, parent: root.parent, depth: root.depth,
      nameTag: root.nameTag, name: root.name, key: .random(), keyGen: 1, createdMs: root.createdMs)
    row.unused = RecordPrivate(name: nil, createdMs: 0, pointer: split.pointer(owner: owner))
    try nodes.insert(&row)
    try transaction.leaves(zone: zone).set(.pending, node)
    return row
  }

  private var owner: UserID { origin?.acl.fields.owner ?? session.user }

  /// Moves nodes of the branch back that this device has moved out of it, by moves that were not sent: the app
  /// did not decide that they leave a shared branch.
  private func returnMovedOut(_ rows: BranchRows, below root: NodeRow) throws {
    for row in try rows.nodesElsewhere(than: root.id) {
      guard try !nodes.isNode(row.id, atOrBelow: root.id), let current = try nodes.node(id: row.id) else { continue }
      _ = try places.returnToCloudPlace(current)
    }
  }

  /// Queues the changes of the parent zone's list for the list of the new zone, too. The app has made them for all nodes that
  /// were below, and the branch began with the members from before.
  private func repeatListChanges(_ list: ZoneACL.Fields, _ branch: Int64) throws {
    guard let root = try transaction.zones.zone(id: zone)?.zone.root else { return }
    let store = ListChangeStore(transaction)
    var decided = Set(try store.changes(zone: branch).compactMap(\.listChange?.member))
    // The last change of a member's entry counts.
    for queued in try store.changes(zone: zone).reversed() where queued.nodeID == root {
      guard let change = queued.listChange?.inherited, let member = change.member, decided.insert(member).inserted,
        !list.has(change), list.allows(change, by: session.user)
      else { continue }
      let added = try queue(change, like: queued, in: branch)
      for id in try store.dependents(of: queued.id) { try transaction.operations.addDependency(of: id, on: added) }
    }
  }

  /// The operation belongs to the row of the parent zone's change as long as that of the new root is not read.
  private func queue(_ change: ListChange, like queued: OperationRow, in branch: Int64) throws -> Int64 {
    let root = try nodes.root(zone: branch)
    var operation = OperationRow(
      uuid: UUIDv7.make(atMs: session.now()), zone: branch, kind: .changeList, node: root?.id ?? queued.node,
      nodeUUID: root?.uuid ?? queued.nodeUUID, nodeID: top, createdMs: session.now())
    operation.listChange = change
    try transaction.operations.insert(&operation)
    transaction.signal(.queue(localUser: session.localUser))
    return operation.id
  }

  /// Leaves the new zone like the one around it: the user's removal from that one's list was not in force before the split.
  private func leave(_ branch: Int64) throws {
    let removal = try ListChangeStore(transaction).changes(zone: zone).first
    try GraftChange(transaction, localUser: session.localUser, user: session.user)
      .leave(zone: branch, after: nil, notBeforeMs: removal?.notBeforeMs ?? 0)
  }

  // MARK: Others

  /// Removes the nodes here. The owner's signature on the split is the proof that this user lost access to them.
  private func endAccess(_ departed: (top: LogNode, all: [NodeID])) throws {
    let gone = Set(departed.all)
    for operation in try transaction.operations.deletes(zone: zone) where gone.contains(operation.nodeID) {
      try transaction.operations.delete(id: operation.id)
    }
    try transaction.unreadable.forgetPast(zone: zone)
    let crossing = ZoneCrossing(session: session, transaction: transaction)
    try crossing.cancel(below: gone, in: zone)
    try crossing.forget(departed.all, in: zone)
    let lost = LostAccess(session: session, zone: zone, transaction: transaction, receivedMs: receivedMs)
    for node in departed.all {
      guard let row = try nodes.node(zone: zone, nodeID: node) else { continue }
      if let parent = try row.parent.flatMap({ try nodes.nodeID(of: $0) }), gone.contains(parent) { continue }
      try removal.returnSurvivors(below: row, gone: gone)
      try lost.remove(row)
    }
  }

  // MARK: This device's own split

  /// Applies the records of an accepted request: those of the pointer and of the new zone's root.
  func applyOwnRecords(_ page: PageContents, receivedMs: UInt64) throws {
    guard let branch else { return }
    for (zone, isRoot) in [(zone, false), (branch, true)] {
      let leaves = transaction.leaves(zone: zone)
      for var record in page.records.values.filter({ isRoot == ($0.record.fields.node == top) }) {
        let node = record.record.fields.node
        guard try leaves.pendingLeaf(node)?.leaf.record == record.record.hash else { continue }
        record.receivedMs = receivedMs
        var applier = try ChangeApplier(session: session, zone: zone, transaction: transaction)
        _ = try applier.apply(record, node: node)
        try applier.finishBatch()
      }
    }
  }
}

extension ZoneSplit {
  /// The pointer to the new zone in the owner's tree.
  func pointer(owner: UserID) -> PointerTarget {
    PointerTarget(owner: owner, zone: zone, node: zone.root, genesis: genesis, seq: 0, head: genesis)
  }
}

extension ZoneACL.Fields {
  fileprivate var permissionsByUser: [UserID: ZoneACL.Permissions] {
    Dictionary(uniqueKeysWithValues: entries.map { ($0.user, $0.permissions) })
  }
}
