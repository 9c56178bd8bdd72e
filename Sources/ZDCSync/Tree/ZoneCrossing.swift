internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport

/// Moves rows between zones: a branch that the app has moved to another zone is copied there, and deleted at its old place
/// once all copies are in the cloud (PROTOCOL 3.7 "Moves to another zone").
///
/// While a copy is made, the rows have their identities in the new zone. If another device changes the branch at its old
/// place in the meantime, the rows return to their old identities (``hold(from:)``), so that such a change is applied like
/// any other, and the move resumes after it. Copies that are in the cloud already are used again.
struct ZoneCrossing {
  let session: SyncSession
  let transaction: ZDCReadWriteTransaction

  private var nodes: NodeStore { transaction.nodes }
  private var operations: OperationStore { transaction.operations }
  private var moves: MoveStore { transaction.moves }

  // MARK: Beginning

  /// Gives the nodes of a branch their identities in the zone of its new parent, and queues the copies, parents first, and
  /// the deletion at the old place.
  func begin(_ top: NodeRow, below parent: NodeRow) throws {
    var start = CrossingStart(self, from: top.zone, to: parent.zone)
    for row in try nodes.subtree(of: top.id) { try start.add(row) }
    try moves.setCrossing(top.id, false)
    try start.queueDeletes()
    transaction.signal(.queue(localUser: session.localUser))
  }

  /// Moves the row's queued changes of content, and those of the list that it is to get, to its zone. Another user's tree is
  /// shared by its owner alone.
  func requeueContent(of row: NodeRow) throws {
    let isOwn = try transaction.zones.zone(id: row.zone)?.owner == nil
    for var operation in try operations.operations(node: row.id) where !operation.kind.isRecord {
      guard operation.kind == .putData || isOwn else {
        try operations.delete(id: operation.id)
        continue
      }
      (operation.zone, operation.nodeID) = (row.zone, row.nodeID)
      if operation.state != .inFlight { (operation.state, operation.reason) = (.pending, .ready) }
      try operations.update(operation)
    }
  }

  /// Makes the row's queued record one of its zone, or queues one.
  ///
  /// - Parameter kind: Nil if the row needs none.
  /// - Returns: The operation.
  func requeueRecord(of row: NodeRow, as kind: OperationRow.Kind?) throws -> Int64? {
    var queued = try operations.operations(node: row.id).filter { $0.kind.isRecord && $0.state != .inFlight }
    defer { operations.invalidate() }
    guard let kind else {
      for operation in queued { try operations.delete(id: operation.id) }
      return nil
    }
    guard !queued.isEmpty else { return try queueRecord(of: row, as: kind) }
    var first = queued.removeFirst()
    for operation in queued { try operations.delete(id: operation.id) }
    // Carried content of a copy. It is queued again when it is known what the copy needs.
    if first.isRestoration { (first.resend, first.baseETag) = (nil, nil) }
    (first.zone, first.nodeID, first.kind) = (row.zone, row.nodeID, kind)
    (first.reason, first.reasonDetail, first.notBeforeMs) = (.ready, nil, 0)
    try operations.update(first)
    return first.id
  }

  func queueRecord(of row: NodeRow, as kind: OperationRow.Kind) throws -> Int64 {
    var operation = OperationRow(
      uuid: UUIDv7.make(atMs: session.now()), zone: row.zone, kind: kind, node: row.id, nodeUUID: row.uuid,
      nodeID: row.nodeID, createdMs: session.now())
    let inFlight = try operations.operations(node: row.id).filter(\.kind.isRecord)
    try operations.insert(&operation, dependsOn: inFlight.map(\.id))
    return operation.id
  }

  /// Keeps a node that the app has restored in its zone, which alone has its content, until that is sent. Then it moves to
  /// the zone of its parent.
  func moveOnceRestored(_ row: NodeRow) throws {
    try moves.setCrossing(row.id, true)
    _ = try queueRecord(of: row, as: .move)
  }

  // MARK: Holding

  /// Holds the moves out of a zone if a commit changes a branch there that is being moved. Call this before the commit is
  /// replayed.
  func prepare(for commit: ZoneCommit, in zone: Int64) throws {
    guard try !moves.isEmpty else { return }
    if try commit.fields.operations.contains(where: { try touches($0, zone) }) { try hold(from: zone) }
    // A branch that is shared separately moves with its pointer, and that stays in the tree.
    guard let split = commit.fields.split, let top = try nodes.node(zone: zone, nodeID: split.node),
      try moves.crossings(from: zone).contains(top.id)
    else { return }
    try drop(top)
  }

  private func touches(_ operation: ZoneOperation, _ zone: Int64) throws -> Bool {
    switch operation {
    case .put(let put): try moves.isMoved(zone: zone, put.node) || moves.isMoved(zone: zone, put.parent)
    case .delete(let node, _, _), .split(let node, _, _): try moves.hasCopies(atOrBelow: node, zone: zone)
    default: false
    }
  }

  /// Returns the rows of all nodes that are being moved out of a zone to their old identities. Their places stay.
  func hold(from zone: Int64) throws {
    let copies = try moves.copies(from: zone).filter { !$0.isHeld }
    guard !copies.isEmpty else { return }
    var held: [(copy: MovedCopy, row: NodeRow)] = []
    for copy in copies {
      try dropDelete(of: copy)
      if let row = try copy.row.flatMap({ try nodes.node(id: $0) }) {
        held.append((copy, row))
      } else {
        try deleteSource(of: copy)
      }
    }
    for (copy, row) in held.sorted(by: { $0.row.depth < $1.row.depth }) { try hold(copy, row) }
    transaction.signal(.queue(localUser: session.localUser))
  }

  private func hold(_ before: MovedCopy, _ current: NodeRow) throws {
    var (copy, row) = (before, current)
    (copy.other, copy.isHeld) = (current.identity, true)
    // It belongs to the copy. When the move resumes, what is newest then is queued again.
    if let carried = try QueuedRestoration(current, transaction)?.operation {
      copy.other.replaced = carried.baseETag
      if carried.state != .inFlight { try operations.delete(id: carried.id) }
    }
    row.identity = before.other
    try nodes.update(row)
    try moves.insert(copy)
    let parent = try row.parent.flatMap { try nodes.node(id: $0) }
    let isCrossing = parent?.zone != row.zone
    let isElsewhere = row.cloud?.parent != parent?.nodeID || row.cloud?.name != row.name
    try requeueContent(of: row)
    let isMoved = isCrossing || isElsewhere
    _ = try requeueRecord(of: row, as: isMoved ? .move : row.isBurnDateChanged ? .modify : nil)
    try moves.setCrossing(row.id, isCrossing)
  }

  /// Drops the deletion that ends a move. It is queued again when the move resumes.
  private func dropDelete(of copy: MovedCopy) throws {
    guard copy.row != nil else { return }
    for operation in try operations.operations(zone: copy.zone, nodeID: copy.node) where operation.kind == .delete {
      try operations.delete(id: operation.id)
    }
  }

  /// The app has deleted the node at its new place: it is not read again at the old one.
  private func deleteSource(of copy: MovedCopy) throws {
    try moves.remove(copy)
    let queued = try operations.operations(zone: copy.zone, nodeID: copy.node)
    guard !queued.contains(where: { $0.kind == .delete }) else { return }
    let now = session.now()
    var operation = OperationRow(
      uuid: UUIDv7.make(atMs: now), zone: copy.zone, kind: .delete, node: nil, nodeUUID: UUIDv7.make(atMs: now),
      nodeID: copy.node, createdMs: now)
    try operations.insert(&operation)
  }

  // MARK: Giving up

  /// Ends the move of a branch whose top is back in its old zone.
  func end(_ top: NodeRow) throws {
    try moves.setCrossing(top.id, false)
    try transaction.dropSplits(atOrBelow: top)
  }

  /// Holds the moves of nodes into a branch. They resume after the branch has moved.
  func holdInner(of top: NodeRow) throws {
    for zone in try BranchToMove(transaction, top: top).sources { try hold(from: zone) }
  }

  /// Gives up moves into a zone, or out of it: it ends for this user.
  func cancel(with zone: Int64) throws {
    for source in try moves.zones(with: zone) { try hold(from: source) }
    for id in try moves.crossings() {
      guard let row = try nodes.node(id: id) else { continue }
      let parent = try row.parent.flatMap { try nodes.node(id: $0) }
      if row.zone == zone || parent?.zone == zone { try drop(row) }
    }
  }

  /// Gives up moves to places at or below nodes that a zone's log has deleted.
  func cancel(below gone: Set<NodeID>, in zone: Int64) throws {
    guard try !moves.isEmpty else { return }
    for source in try moves.zones(with: zone) where source != zone {
      let isTopGone = try moves.copies(from: source).contains { copy in
        guard !copy.isHeld, let row = try copy.row.flatMap({ try nodes.node(id: $0) }) else { return false }
        let deletes = try operations.operations(zone: source, nodeID: copy.node)
        return try deletes.contains { $0.kind == .delete } && isBelow(row, gone, in: zone)
      }
      if isTopGone { try hold(from: source) }
    }
    for id in try moves.crossings() {
      guard let row = try nodes.node(id: id), row.zone != zone, try isBelow(row, gone, in: zone) else { continue }
      try drop(row)
    }
  }

  private func isBelow(_ row: NodeRow, _ gone: Set<NodeID>, in zone: Int64) throws -> Bool {
    var next: NodeRow? = row
    while let node = next {
      if node.zone == zone, gone.contains(node.nodeID) { return true }
      next = try node.parent.flatMap { try nodes.parent(id: $0) }
    }
    return false
  }

  /// Returns a branch to its old zone, deletes what was copied, and adds an entry to the journal.
  func drop(_ top: NodeRow) throws {
    try transaction.dropSplits(atOrBelow: top)
    for row in try nodes.subtree(of: top.id) {
      if row.zone != top.zone {
        // Created below the copy: it moves to where the branch is.
        let parent = try row.parent.flatMap { try nodes.node(id: $0) }
        try moves.setCrossing(row.id, parent?.zone != row.zone)
      } else if let copy = try moves.copy(zone: row.zone, row.nodeID) {
        try CopyRemoval(transaction).remove(copy, uuid: row.uuid)
      }
    }
    try moves.setCrossing(top.id, false)
    let places = LocalTreeResolver(session: session, transaction: transaction)
    if try transaction.leaves(zone: top.zone).leaf(top.nodeID) != nil {
      _ = try places.returnToCloudPlace(top)
    } else if let root = try nodes.root(zone: top.zone) {
      try place(top, under: root, places)
    }
    transaction.signal(.queue(localUser: session.localUser))
  }

  /// Places a node that the cloud does not have at the top of its zone.
  private func place(_ top: NodeRow, under root: NodeRow, _ places: LocalTreeResolver) throws {
    let old = try places.path(top)
    var row = top
    try places.place(&row, under: root, name: try places.freeName(row.name, under: root, except: row.id))
    try places.recordDroppedMove(row, wanted: old, writer: nil)
    _ = try places.announceMove(row, from: old)
  }

  /// Forgets the moves of nodes that a zone's log has deleted, and removes copies that are not needed.
  func forget(_ removed: [NodeID], in zone: Int64) throws {
    guard try !moves.isEmpty else { return }
    for node in removed {
      guard let copy = try moves.copy(zone: zone, node) else { continue }
      if copy.isHeld {
        try CopyRemoval(transaction).remove(copy, uuid: UUIDv7.make(atMs: session.now()))
      } else {
        try moves.remove(copy)
      }
    }
  }
}

/// Gives rows of a branch their identities in the new zone, the shallow ones first.
private struct CrossingStart {
  private let crossing: ZoneCrossing
  private let source: Int64
  private let destination: Int64
  private var nodeIDs = NodeIDRun()
  /// The nodes that the old zone has, with their parents there.
  private var uploaded: [(row: NodeRow, parent: NodeID)] = []
  private var records: [Int64] = []

  private var transaction: ZDCReadWriteTransaction { crossing.transaction }
  private var session: SyncSession { crossing.session }

  init(_ crossing: ZoneCrossing, from source: Int64, to destination: Int64) {
    (self.crossing, self.source, self.destination) = (crossing, source, destination)
  }

  mutating func add(_ before: NodeRow) throws {
    guard before.zone == source else { return }
    var row = before
    let held = try transaction.moves.copy(zone: source, row.nodeID)
    row.identity = try identity(of: before, held)
    try transaction.nodes.update(row)
    if let cloud = before.cloud { try note(before, cloud, copyID: row.nodeID) }
    try crossing.requeueContent(of: row)
    if let record = try requeue(row, before, held) { records.append(record) }
    if let held { try carryContent(of: row, over: held) }
  }

  /// Content that was put at the old place replaces that of a copy that is in the cloud already, unless the copy gets other
  /// content first. This device has not read the copy's changes while the row was at its old place.
  private mutating func carryContent(of row: NodeRow, over held: MovedCopy) throws {
    guard row.isUploaded, row.nodeID == held.copyID, let copied = held.other.content?.content else { return }
    let isCarried = held.other.replaced != nil || row.content?.content.blobID != copied.blobID
    guard isCarried else { return }
    let replaced = held.other.replaced ?? copied.eTag
    records.append(try QueuedRestoration.queue(for: row, over: replaced, at: session.now(), transaction))
  }

  private mutating func note(_ before: NodeRow, _ cloud: NodeRow.RemoteState, copyID: NodeID) throws {
    uploaded.append((before, cloud.parent))
    try transaction.moves.insert(
      MovedCopy(
        zone: source, node: before.nodeID, record: cloud.recordHash, row: before.id, copyZone: destination,
        copyID: copyID, isHeld: false, other: before.identity))
  }

  private mutating func identity(of row: NodeRow, _ held: MovedCopy?) throws -> NodeIdentity {
    guard row.isUploaded, let tree = try transaction.zones.zone(id: source)?.zone.tree else {
      return NodeIdentity(newIn: destination, nodeID: nodeIDs.next(), content: nil, unused: row.unused)
    }
    var extras = row.unused ?? RecordPrivate(name: nil, createdMs: 0)
    extras.movedFrom = MovedNode(tree: tree, node: row.nodeID)
    if let held, try isUsable(held) {
      var known = held.other
      known.unused = extras
      known.content = try newest(row, held)
      return known
    }
    if let held { try CopyRemoval(transaction).remove(held, uuid: row.uuid) }
    return NodeIdentity(newIn: destination, nodeID: nodeIDs.next(), content: row.content, unused: extras)
  }

  /// Whether a copy that was made before, or is in flight, is still there.
  private func isUsable(_ held: MovedCopy) throws -> Bool {
    guard held.copyZone == destination else { return false }
    return try held.other.cloud == nil || transaction.leaves(zone: destination).leaf(held.copyID) != nil
  }

  /// Returns the content that the copy gets. If both zones have got other content in the meantime, that of the new zone
  /// stays.
  private func newest(_ row: NodeRow, _ held: MovedCopy) throws -> NodeRow.RemoteContent? {
    guard held.other.cloud != nil, let copied = held.other.content else { return row.content }
    guard let content = row.content, content.content.blobID != copied.content.blobID else { return copied }
    if content.content.dataVersion > copied.content.dataVersion { return content }
    guard row.cloud?.recordHash != held.record else { return copied }
    try transaction.record(.deletedHere, row) { entry in
      entry.mine.isDeleted = true
      entry.theirs.eTag = content.content.eTag
      entry.result.eTag = copied.content.eTag
      entry.cloudWriterID = content.writer.text
    }
    return copied
  }

  /// Queues the record that the new zone needs.
  private func requeue(_ row: NodeRow, _ before: NodeRow, _ held: MovedCopy?) throws -> Int64? {
    let queued = try transaction.operations.operations(node: row.id).filter(\.kind.isRecord)
    let isInFlight = queued.contains { $0.state == .inFlight }
    let isChanged = queued.contains { $0.state != .inFlight } || held?.record != before.cloud?.recordHash
    let isThere = row.isUploaded || isInFlight
    guard let record = try crossing.requeueRecord(of: row, as: isThere ? (isChanged ? .move : nil) : .create) else {
      return queued.first { $0.state == .inFlight }?.id
    }
    guard let above = try row.parent.flatMap({ try transaction.operations.create(ofNode: $0) }), above != record else {
      return record
    }
    // Only an operation that was queued before can have others that wait for it.
    if try queued.isEmpty || !transaction.operations.closesCircle(record, waitingFor: above) {
      try transaction.operations.addDependency(of: record, on: above)
    }
    return record
  }

  /// Queues the deletion of the nodes in the old zone, after all copies.
  func queueDeletes() throws {
    let nodeIDs = Set(uploaded.map(\.row.nodeID))
    for (row, parent) in uploaded where !nodeIDs.contains(parent) {
      var operation = OperationRow(
        uuid: UUIDv7.make(atMs: session.now()), zone: source, kind: .delete, node: nil, nodeUUID: row.uuid,
        nodeID: row.nodeID, changeset: row.nameInCloud, createdMs: session.now())
      try transaction.operations.insert(&operation, dependsOn: records)
    }
  }
}
