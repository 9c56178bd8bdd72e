internal import Foundation
internal import ZDCAccounts
package import ZDCClientStore
internal import ZDCCrypto
package import ZDCProtocol
internal import ZDCSupport

/// Applies verified records to the local tree and notifies the app, inside one transaction.
///
/// The local tree is optimistic: it shows the app's changes while they are still queued. Each record is therefore
/// compared with the previous state of the cloud (`NodeRow.cloud`), not with the state that the app sees. A queued move
/// keeps its place until the place in the cloud changes.
package struct ChangeApplier {
  package let session: SyncSession
  package let transaction: ZDCReadWriteTransaction
  package let zoneRow: ZoneRow
  package let leaves: LogNodeStore
  package let nodes: NodeStore
  package let places: LocalTreeResolver
  /// The number of callbacks to the app.
  package internal(set) var announced = 0
  /// Senders of messages that wait because this device has not met them.
  var unmet: Set<UserID> = []
  /// Senders whose messages wait no longer: the server was asked for their chains.
  var asked: Set<UserID> = []
  /// The deleted folders whose keys open nodes that other devices have moved into them.
  var folders = DeletedFolders()
  private let queuedDeletes: Set<NodeID>
  private let duplicates: DuplicateNames
  private let claims: MoveClaims
  let quarantine: Quarantine

  package init(session: SyncSession, zone: Int64, transaction: ZDCReadWriteTransaction) throws {
    guard let row = try transaction.zones.zone(id: zone) else { throw ZDCError(.corruptDatabase) }
    self.session = session
    self.transaction = transaction
    zoneRow = row
    leaves = LogNodeStore(db: transaction.database, zone: zone)
    nodes = transaction.nodes
    places = LocalTreeResolver(session: session, transaction: transaction)
    queuedDeletes = Set(try transaction.operations.deletes(zone: zone).map(\.nodeID))
    claims = MoveClaims(transaction, localUser: session.localUser)
    quarantine = Quarantine(session: session, transaction: transaction, zoneRow: row, leaves: leaves)
    duplicates = DuplicateNames(session: session, transaction: transaction, places: places, leaves: leaves)
  }

  /// Applies a record if its leaf is still pending and its parent exists.
  ///
  /// - Returns: Whether the node needs no further work (applied, hidden below a queued delete, or quarantined).
  /// - Throws: A class 1 `ZDCSecurityError`, or the delegate's error.
  package mutating func apply(_ item: PageContents.Record, node: NodeID) throws -> Bool {
    guard let expected = try leaves.pendingLeaf(node), expected.leaf.record == item.record.hash else { return false }
    let leaf = expected.leaf
    try expected.check(item.record, in: zoneRow.zone)
    if queuedDeletes.contains(node) {
      try recordDeletion(of: node, by: node, item)
      return try finish(node)
    }
    if node == zoneRow.zone.root { return try applyRoot(item) }
    guard let parent = try nodes.parent(zone: zoneRow.id, nodeID: leaf.parent) else {
      return try applyBelowMissingParent(node, parent: leaf.parent, item: item)
    }
    // The parent's newest key has not been read yet, so the node waits.
    guard leaf.parentKeyGen <= parent.keyGen else { return false }
    // The row of this node is in its old zone until its move resumes.
    guard try !transaction.moves.isHeldCopy(zone: zoneRow.id, node) else { return false }
    let known = try nodes.node(zone: zoneRow.id, nodeID: node)
    try checkAgainstPin(item.record, known)
    guard let opened = try quarantine.open(item.record, parent: parent) else { return true }
    if known == nil, let sender = unmetSender(of: opened) {
      unmet.insert(sender)
      return false
    }
    if let known {
      try update(known, opened, item, parent: parent)
    } else {
      try insert(opened, item, parent: parent)
    }
    let isFinished = try finish(node)
    try quarantine.addUnknown(opened)
    return isFinished
  }

  private mutating func applyRoot(_ item: PageContents.Record) throws -> Bool {
    let known = try nodes.root(zone: zoneRow.id)
    try checkAgainstPin(item.record, known)
    let root = RootApplier(
      session: session, transaction: transaction, zoneRow: zoneRow, leaves: leaves, places: places,
      quarantine: quarantine)
    guard let callbacks = try root.apply(item, known) else { return true }
    announced += callbacks
    return try finish(zoneRow.zone.root)
  }

  package func finish(_ node: NodeID) throws -> Bool {
    try leaves.set(.applied, node)
    if try !transaction.unreadable.isEmpty(zone: zoneRow.id) { try quarantine.end(of: node) }
    try transaction.delegateFailures.forget(zone: zoneRow.id, node: node, isPulled: true)
    return true
  }

  /// Checks the record against the pin. Otherwise a writer could restart its version numbers, and the server could show
  /// the same node in two orders.
  private func checkAgainstPin(_ record: NodeRecord, _ known: NodeRow?) throws {
    guard let row = known, let cloud = row.cloud, cloud.recordHash != record.hash else { return }
    do {
      let pin = RecordPin(
        recordVersion: cloud.recordVersion, content: row.content?.content, record: cloud.recordHash)
      try RecordRules.check(record, after: pin)
    } catch {
      // The user has accepted a server that went back. The data that it lost is about to be sent again.
      // Or a user has restored earlier content, and the row's version of it is not in the cloud yet.
      guard try Resending(row, transaction) == nil, try QueuedRestoration(row, transaction) == nil else { return }
      throw error
    }
  }

  /// Gives freed names back to their nodes. Call this after each batch.
  package mutating func finishBatch() throws {
    announced += try duplicates.release()
  }

  // MARK: Changes below a deleted node

  /// Applies a record whose parent row is missing, because the parent was deleted here and the delete is still queued,
  /// or because it has not arrived yet.
  private mutating func applyBelowMissingParent(
    _ node: NodeID, parent: NodeID, item: PageContents.Record
  ) throws -> Bool {
    let above = try leaves.ancestors(of: node)
    guard let deleted = above.first(where: queuedDeletes.contains) else {
      // Read a branch without rows again.
      if let lost = try above.last(where: { try nodes.node(zone: zoneRow.id, nodeID: $0) == nil }) {
        try leaves.requeueLost(below: lost)
      }
      return false
    }
    guard let row = try nodes.node(zone: zoneRow.id, nodeID: node) else {
      try recordDeletion(of: node, by: deleted, item)
      return try finish(node)
    }
    // The node was moved into the branch after the delete was queued. Take it out before the delete is sent.
    let place = try item.record.fields.keyGen == row.keyGen ? nil : deletedPlace(of: node)
    if let place, try isEarly(below: place) { return false }
    guard let opened = try open(item.record, row, in: place) else {
      // The node goes with the branch, because no place can be sent for it.
      try recordDeletion(of: node, by: deleted, item)
      return true
    }
    try rescue(row, from: deleted, opened, item)
    return try finish(node)
  }

  /// Records that a deletion on this device discards other devices' changes.
  private func recordDeletion(of node: NodeID, by deleted: NodeID, _ item: PageContents.Record) throws {
    let fields = item.record.fields
    guard let delete = try transaction.operations.operations(zone: zoneRow.id, nodeID: deleted).last else { return }
    try transaction.record(.deletedHere, nodeID: delete.nodeUUID, cloudID: node.text, zone: zoneRow.id) { entry in
      entry.mine.isDeleted = true
      entry.theirs.eTag = fields.content?.eTag
      entry.result.isDeleted = true
      entry.cloudWriterID = fields.writer.text
    }
  }

  /// Takes a node out of a branch that this device deletes.
  private mutating func rescue(
    _ before: NodeRow, from deleted: NodeID, _ opened: OpenedRecord, _ item: PageContents.Record
  ) throws {
    guard let above = try firstLocalAncestor(of: deleted) else { return }
    let old = try places.path(before)
    let change = RemoteChange(before: before, after: opened)
    var row = before
    row.absorb(opened, item, user: session.user)
    if try !change.moved && isMoving(row) {
      // The app moved the node out before it deleted the folder, so it stays where the app put it.
      try nodes.update(row)
    } else {
      try takeOut(&row, named: opened.secrets.name, to: above, from: deleted)
    }
    announced += try places.announce(change, row, oldPath: old)
  }

  private func isMoving(_ row: NodeRow) throws -> Bool {
    try transaction.operations.operations(node: row.id).contains { $0.kind == .move }
  }

  private mutating func takeOut(
    _ row: inout NodeRow, named wanted: [UInt8], to above: NodeRow, from deleted: NodeID
  ) throws {
    // A queued move may have placed the new parent below the node.
    announced += try places.breakCycle(of: row, under: above)
    guard let grandparent = try nodes.node(id: above.id) else { return }
    let name = try places.freeName(wanted, under: grandparent, except: row.id)
    try places.place(&row, under: grandparent, name: name)
    let move = try places.queueMove(row)
    for delete in try transaction.operations.operations(zone: zoneRow.id, nodeID: deleted) {
      try transaction.operations.addDependency(of: delete.id, on: move)
    }
  }

  private func firstLocalAncestor(of node: NodeID) throws -> NodeRow? {
    for ancestor in try leaves.ancestors(of: node) {
      if let row = try nodes.node(zone: zoneRow.id, nodeID: ancestor) { return row }
    }
    return nil
  }

  // MARK: New nodes

  /// Returns the sender of a message if this device has not met them: the callback that announces the message finds them.
  private func unmetSender(of opened: OpenedRecord) -> UserID? {
    guard zoneRow.owner == nil, opened.record.fields.writer == session.user, opened.secrets.profile == nil,
      let received = opened.secrets.received, !received.isPlaceholder, received.sender != session.user,
      !asked.contains(received.sender)
    else { return nil }
    return session.identities.strangers(among: [received.sender]).first
  }

  private mutating func insert(_ opened: OpenedRecord, _ item: PageContents.Record, parent: NodeRow) throws {
    if MessageGaps.concern(zoneRow), try applyMessage(opened) { return }
    var row = NodeRow(
      opened, item, uuid: UUIDv7.make(atMs: session.now()), zone: zoneRow.id, parent: parent.id,
      depth: parent.depth + 1)
    row.keepOwnWord(opened, user: session.user)
    row.nameTag = try localTag(opened, below: parent)
    announced += try places.makeRoom(for: row, under: parent, leaves: leaves)
    let shown = try duplicates.settle(&row, name: row.name, under: parent, before: nil)
    announced += shown.callbacks
    if shown.name != row.name {
      row.name = shown.name
      row.nameTag = try nodes.nameKeys(of: parent).nameTag(folded: shown.name)
    }
    try nodes.insert(&row)
    try outgoing.noteRecipients(of: row, in: zoneRow)
    try outgoing.note(row, of: zoneRow)
    try claims.note(opened, row)
    if try mount(row) { return }
    announced += try places.announceNew(row)
  }

  /// Applies what a record of the inbox says about a message.
  ///
  /// - Returns: Whether apps do not see the node: it has a profile, or is a placeholder.
  private func applyMessage(_ opened: OpenedRecord) throws -> Bool {
    try MessageGaps(session: session, transaction: transaction, zone: zoneRow).note(opened)
    if try ProfileChange(session: session, transaction: transaction, zone: zoneRow).apply(opened) { return true }
    guard opened.secrets.received?.isPlaceholder ?? false else {
      try noteSender(opened)
      return false
    }
    try deletePlaceholder(opened.record.fields.node)
    return true
  }

  /// Another device has taken the message over, because the user knows its sender. If this device has decided otherwise
  /// before, that stays.
  private func noteSender(_ opened: OpenedRecord) throws {
    guard let sender = opened.secrets.received?.sender, opened.record.fields.writer == session.user else { return }
    try transaction.messages.noteKnown([sender], localUser: session.localUser, tree: session.appTreeID)
  }

  /// Deletes the placeholder of a burned message, which apps do not see. The device that put it has not deleted it yet.
  private func deletePlaceholder(_ node: NodeID) throws {
    let now = session.now()
    var operation = OperationRow(
      uuid: UUIDv7.make(atMs: now), zone: zoneRow.id, kind: .delete, nodeUUID: UUIDv7.make(atMs: now), nodeID: node,
      createdMs: now)
    try transaction.operations.insert(&operation)
    transaction.signal(.queue(localUser: session.localUser))
  }

  /// Whether a change of a message's state is queued.
  private func isChangedHere(_ row: NodeRow) throws -> Bool {
    guard MessageGaps.concern(zoneRow) else { return false }
    return try transaction.operations.operations(node: row.id).contains { $0.kind == .modify }
  }

  private var outgoing: OutgoingMessages { OutgoingMessages(session: session, transaction: transaction) }

  /// Shows the zone that a new pointer names in its place, if this device follows the zone.
  ///
  /// - Returns: Whether the app has been notified, or will be when the zone's root is read.
  private mutating func mount(_ row: NodeRow) throws -> Bool {
    guard row.pointer != nil else { return false }
    let mounting = Mounting(session: session, transaction: transaction)
    if let other = try mounting.otherGraft(row) {
      try keepOne(of: row, other)
      return true
    }
    guard let zone = try mounting.zone(for: row) else { return false }
    let other = try transaction.mounts.pointer(ofZone: zone).flatMap(nodes.node(id:))
    try show(zone, at: row)
    // A pointer in another user's branch, which is a leaf from now on.
    if let other { announced += try places.announceNew(other) }
    return try transaction.mounts.zone(at: row.id) == zone
  }

  private mutating func show(_ zone: Int64, at row: NodeRow) throws {
    let (mounting, before) = (Mounting(session: session, transaction: transaction), try transaction.mounts.circular)
    let roots = try mounting.roots(of: zone, shownAt: row).map { (row: $0, path: try places.path($0)) }
    try transaction.mounts.set(zone: zone, at: row.id)
    try mounting.remountHidden(places)
    for root in roots { announced += try places.announceMove(root.row, from: root.path) }
    for (zone, pointer) in try transaction.mounts.circular where before[zone] == nil && pointer != row.id {
      if let leaf = try nodes.node(id: pointer) { announced += try places.announceNew(leaf) }
    }
  }

  /// Deletes one of two pointers with which the user has grafted the same branch on two devices. All of them keep the one
  /// with the smaller ID, unless the other devices do not have the first one yet.
  private mutating func keepOne(of row: NodeRow, _ first: NodeRow) throws {
    let change = GraftChange(transaction, localUser: session.localUser, user: session.user)
    let isKept = first.isUploaded && first.nodeID < row.nodeID
    if !isKept, let zone = try transaction.mounts.zone(at: first.id) { try show(zone, at: row) }
    try change.delete(isKept ? row : first)
  }

  // MARK: Known nodes

  private mutating func update(
    _ before: NodeRow, _ opened: OpenedRecord, _ item: PageContents.Record, parent: NodeRow
  ) throws {
    if let resending = try Resending(before, transaction) {
      return try settle(resending, before, opened, item, parent: parent)
    }
    var row = before
    let oldPath = try places.path(before)
    var change = RemoteChange(before: before, after: opened)
    row.absorb(opened, item, user: session.user)
    if try QueuedRestoration.keep(&row, before: before, transaction) { change.data = false }
    try outgoing.keepServed(&row, before: before, of: zoneRow)
    if try isChangedHere(before) { row.unused?.isRead = before.unused?.isRead ?? false }
    try outgoing.note(row, of: zoneRow)
    // The request in flight of another zone, to which the node moves, has moves of its own.
    let localMoves = try transaction.operations.operations(node: row.id)
      .filter { $0.kind == .move && $0.zone == row.zone }
    if change.moved || localMoves.isEmpty {
      try transaction.operations.drop(localMoves, of: row)
      if try isInCloudPlace(row, opened, parent: parent) {
        try nodes.updateCloud(row)
      } else {
        try moveToCloudPlace(&row, opened, parent: parent)
      }
      if !localMoves.isEmpty { try places.recordDroppedMove(row, wanted: oldPath, writer: opened.record.fields.writer) }
    } else {
      try nodes.update(row)
    }
    announced += try places.announce(change, row, oldPath: oldPath)
  }

  /// Whether a node that is no pointer has the name and the place of its record already, and shares the name with no other.
  private func isInCloudPlace(_ row: NodeRow, _ opened: OpenedRecord, parent: NodeRow) throws -> Bool {
    guard row.parent == parent.id, row.name == opened.secrets.name, row.pointer == nil,
      row.nameTag == (try localTag(opened, below: parent))
    else { return false }
    return try !nodes.hasChild(of: parent.id, tag: row.nameTag, except: row.id)
  }

  mutating func moveToCloudPlace(_ row: inout NodeRow, _ opened: OpenedRecord, parent: NodeRow) throws {
    announced += try places.breakCycle(of: row, under: parent)
    guard let parent = try nodes.node(id: parent.id) else { return }
    let tag = try localTag(opened, below: parent)
    announced += try places.makeRoom(for: row, tag: tag, under: parent, leaves: leaves)
    let before = try nodes.node(id: row.id)
    let shown = try duplicates.settle(&row, name: opened.secrets.name, under: parent, before: before)
    announced += shown.callbacks
    let isItsOwn = shown.name == opened.secrets.name
    try places.place(&row, under: parent, name: shown.name, tag: isItsOwn ? tag : nil)
  }

  /// Returns the tag under which the local tree finds the node. It is mostly that of the record.
  private func localTag(_ opened: OpenedRecord, below parent: NodeRow) throws -> NameTag {
    let fields = opened.record.fields
    if parent.firstKey == nil, fields.parentKeyGen == parent.keyGen { return fields.nameTag }
    return try nodes.nameKeys(of: parent).nameTag(folded: opened.secrets.name)
  }
}

extension NodeRow {
  mutating func absorb(_ opened: OpenedRecord, _ item: PageContents.Record, user: UserID) {
    absorb(opened, item)
    keepOwnWord(opened, user: user)
  }

  /// Only the user's own devices, which have verified a message, say where it comes from. Other members of a shared branch
  /// can write anything.
  fileprivate mutating func keepOwnWord(_ opened: OpenedRecord, user: UserID) {
    if unused?.received != nil, opened.record.fields.writer != user { unused?.received = nil }
  }
}
