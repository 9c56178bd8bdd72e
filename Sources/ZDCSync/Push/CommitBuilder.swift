internal import Foundation
internal import ZDCAccounts
package import ZDCClientStore
internal import ZDCCrypto
package import ZDCProtocol

/// Builds one signed commit from the operations that may run now, inside the transaction that stores it as in flight.
///
/// The builder reads everything again, so changes that the app made after the operations were chosen are included.
package struct CommitBuilder {
  package let session: SyncSession
  package let zoneRow: ZoneRow
  package let head: ZoneHead
  package let transaction: ZDCReadWriteTransaction
  /// Records that were sealed while the previous commit was in flight, by node row.
  package let ahead: [Int64: PresealedRecord]
  package let leaves: LogNodeStore
  package let nodes: NodeStore
  package let drafts: RecordDrafts
  let places: LocalTreeResolver

  package var operations: [ZoneOperation] = []
  private var records: [NodeRecord] = []
  private var contents: [(BlobID, [UInt8])] = []
  /// Content of nodes in other zones, from which this commit's nodes are copied.
  private var attached: [BlobID: AttachedContent] = [:]
  package var outcomes: [InFlightStore.Outcome] = []
  /// The parents that this commit's puts give their nodes, by node. A child's parent may be among them.
  package private(set) var parents: [NodeID: NodeID] = [:]
  /// Parents that the verified log has. Nothing changes it while the commit is built.
  private var parentsInLog: Set<NodeID> = []
  /// Nodes that get a fresh key in this commit, by row.
  var rekeyed: [Int64: NodeRow] = [:]
  var rekeying: Rekeying
  /// Rows whose path needs no fresh key.
  package var fresh: Set<Int64> = []
  /// The reason why the last path could not be refreshed or the last node could not be put.
  var blocked: RecordDrafts.Refusal?
  package var rotations: [InFlightStore.Rotation] = []
  /// Nodes that are put under a temporary name until their own name is free.
  package private(set) var renamed: [NodeRow] = []
  /// Nodes, by row, whose name another node of the cloud has until a later commit, which the server cannot see.
  var namesakes: Set<Int64> = []
  /// The new names and places that this commit's puts give their nodes.
  private(set) var named: [NamedPut] = []
  let heldNames: HeldNames
  /// The nodes that this commit deletes.
  var removals = Removals()
  private var size = 0

  /// The request limit, minus headroom for the commit itself and the bundle's frames.
  private static let requestBytes = Limits.commitRequestBytes - (1 << 20)

  package init(
    session: SyncSession, zoneRow: ZoneRow, head: ZoneHead, ahead: [Int64: PresealedRecord],
    heldNames: HeldNames, transaction: ZDCReadWriteTransaction
  ) {
    self.session = session
    self.zoneRow = zoneRow
    self.head = head
    self.transaction = transaction
    leaves = LogNodeStore(db: transaction.database, zone: zoneRow.id)
    nodes = transaction.nodes
    self.ahead = ahead
    self.heldNames = heldNames
    rekeying = Rekeying(leaves: leaves, tree: zoneRow.zone.tree)
    drafts = RecordDrafts(session: session, zone: zoneRow, transaction: transaction)
    places = LocalTreeResolver(session: session, transaction: transaction)
  }

  package var isFull: Bool { operations.count >= Limits.commitOperations || size >= Self.requestBytes }
  package var isEmpty: Bool { operations.isEmpty }

  // MARK: Puts

  package enum PutResult: Equatable {
    case added
    /// Not in this commit: its parent is not in the cloud yet or is still below it, its name is not free yet, a newer
    /// version has not been read yet, or there is no room left.
    case later
    /// Not possible with the node's current state.
    case refused(RecordDrafts.Refusal)
  }

  /// Adds the node's next record, which satisfies `done`, after putting fresh keys for the path above it where needed.
  ///
  /// - Parameter isNameTaken: Whether the server reported that another node still has the name. If that node is to be
  ///   deleted, it may be waiting for nodes that move into this one. This node is therefore put under another name
  ///   first.
  package mutating func put(
    _ id: Int64, content: SuppliedContent?, done: [Int64], isNameTaken: Bool
  ) throws -> PutResult {
    // A node that moves to another zone may be back in its old one.
    guard let row = try node(id: id), row.zone == zoneRow.id else { return .later }
    if row.nodeID == zoneRow.zone.root { return try putRoot(row, content: content, done: done) }
    guard let parent = try row.parent.flatMap({ try nodes.parent(id: $0) }) else { return .later }
    guard try isThere(parent.nodeID), hasRoom(for: content), parents[row.nodeID] == nil,
      try !heldNames.mayMeet(row.nodeID, in: parent.nodeID)
    else { return .later }
    let leaf = row.isUploaded ? try leaves.leaf(row.nodeID) : nil
    // A node that stays in its folder keeps its old name until the new one is free.
    if namesakes.contains(id), leaf?.parent == parent.nodeID { return .later }
    if let leaf, leaf.parent != parent.nodeID,
      try leaves.isNode(parent.nodeID, atOrBelow: row.nodeID, after: parents)
    {
      return .later
    }
    // The plan excluded unread nodes, but a pull may have run since.
    guard try !transaction.isUnread(row) else { return .later }
    blocked = try drafts.refusal(of: row, content: content)
    let source = try content == nil ? contentSource(of: row) : nil
    if let source, attached[source.blob] != nil { return .later }
    guard blocked == nil, var next = try rekeyed(row, leaf),
      let above = try refreshed(parent), hasRoom(for: content, besides: next.historyWrap.count)
    else { return blocked.map(PutResult.refused) ?? .later }
    let isRenamed = (isNameTaken || namesakes.contains(id)) && leaf?.parent != parent.nodeID
    if isRenamed { next.name = try places.freeName(row.name, under: parent, except: 0) }
    guard let record = try seal(next, parent: above, content: content) else {
      return blocked.map(PutResult.refused) ?? .later
    }
    add(record)
    if let source { attached[source.blob] = source }
    if isRenamed { renamed.append(row) }
    if leaf?.parent != parent.nodeID || row.cloud?.name != next.name {
      named.append(NamedPut(row: id, parent: parent.nodeID, name: next.name))
    }
    if next.key != row.key { rekeyed[row.id] = next }
    add(content, of: record)
    addOutcomes(next, record, content, isRekeyed: next.key != row.key, done: done)
    return .added
  }

  /// Returns whether the cloud will have the parent when it gets this commit's next put. Most puts of a commit have few
  /// parents between them.
  private mutating func isThere(_ parent: NodeID) throws -> Bool {
    if parents[parent] != nil || parentsInLog.contains(parent) { return true }
    guard try leaves.leaf(parent) != nil else { return false }
    parentsInLog.insert(parent)
    return true
  }

  /// Returns the node whose content the record names, if the node moves from another zone. The content is not sent again.
  private func contentSource(of row: NodeRow) throws -> AttachedContent? {
    guard let content = row.content?.content, let copy = try transaction.moves.copy(row: row.id), !copy.isHeld,
      let tree = try transaction.zones.zone(id: copy.zone)?.zone.tree
    else { return nil }
    return AttachedContent(tree: tree, node: copy.node, blob: content.blobID)
  }

  /// Returns the node's row. A node that is to move to another zone is put at the place that it has in this one, or at the top
  /// if it has none.
  private func node(id: Int64) throws -> NodeRow? {
    guard var row = try nodes.node(id: id) else { return nil }
    guard try transaction.moves.isCrossing(id) else { return row }
    row.parent = try nodes.parent(zone: row.zone, nodeID: row.cloud?.parent ?? zoneRow.zone.root)?.id
    if let cloud = row.cloud { (row.name, row.nameTag) = (cloud.name, cloud.nameTag) }
    return row
  }

  private mutating func add(_ content: SuppliedContent?, of record: NodeRecord) {
    guard let inline = content?.inlineBytes, let blob = record.fields.content?.blobID else { return }
    contents.append((blob, inline))
    size += inline.count
  }

  /// Adds the next record of the zone's root, with the key that it has.
  private mutating func putRoot(_ row: NodeRow, content: SuppliedContent?, done: [Int64]) throws -> PutResult {
    guard hasRoom(for: content), parents[row.nodeID] == nil, try !transaction.isUnread(row) else { return .later }
    if let refusal = try drafts.refusal(of: row, content: content) { return .refused(refusal) }
    let record: NodeRecord
    do {
      record = try RecordSealer.seal(try drafts.rootDraft(row, content: content))
    } catch let error as ZDCSecurityError where error.code == .limitExceeded {
      return .refused(RecordDrafts.Refusal(reason: .exhausted, code: error.code))
    }
    add(record)
    add(content, of: record)
    addOutcomes(row, record, content, isRekeyed: false, done: done)
    return .added
  }

  /// Adds the split of a branch, in front of all puts, and the pointer that takes its place.
  ///
  /// - Returns: False if the pointer cannot be put now; ``blocked`` then holds the reason, if there is one.
  mutating func split(_ operation: ZoneOperation, pointer: NodeRow, below parent: NodeRow) throws -> Bool {
    guard let above = try refreshed(parent), let record = try seal(pointer, parent: above, content: nil) else {
      return false
    }
    add(record)
    operations.insert(operation, at: 0)
    return true
  }

  package mutating func add(_ record: NodeRecord) {
    operations.append(.put(ZoneOperation.Put(record)))
    records.append(record)
    parents[record.fields.node] = record.fields.parent
    size += record.bytes.count
  }

  package func hasRoom(for content: SuppliedContent?, besides more: Int = 0) -> Bool {
    let needed = 2_048 + more + (content?.inlineBytes?.count ?? 0)
    return operations.count < Limits.commitOperations && (operations.isEmpty || size + needed <= Self.requestBytes)
  }

  /// Returns nil if a number in the record cannot be incremented any more, or if the record is too large. The reason is
  /// then in ``blocked``.
  package mutating func seal(_ row: NodeRow, parent: NodeRow, content: SuppliedContent?) throws -> NodeRecord? {
    do {
      let draft = try drafts.draft(row, parent: parent, content: content)
      return try ahead[row.id]?.record(for: draft) ?? RecordSealer.seal(draft)
    } catch let error as ZDCSecurityError where error.code == .limitExceeded {
      blocked = RecordDrafts.Refusal(reason: .exhausted, code: error.code)
      return nil
    }
  }

  private mutating func addOutcomes(
    _ row: NodeRow, _ record: NodeRecord, _ content: SuppliedContent?, isRekeyed: Bool, done: [Int64]
  ) {
    let facts = facts(row, record, content, isRekeyed: isRekeyed)
    for (index, operation) in done.enumerated() {
      outcomes.append(
        InFlightStore.Outcome(operation: operation, node: row.id, facts: index == 0 ? facts : nil))
    }
  }

  package func facts(
    _ row: NodeRow, _ record: NodeRecord, _ content: SuppliedContent?, isRekeyed: Bool
  ) -> InFlightStore.Outcome.Facts {
    var facts = InFlightStore.Outcome.Facts(
      recordVersion: record.fields.recordVersion, recordHash: record.hash, parent: record.fields.parent,
      nameTag: record.fields.nameTag, name: row.name, keyGen: record.fields.keyGen)
    facts.burnMs = record.fields.burnMs
    if isRekeyed { facts.rekeyed = (row.key, row.historyWrap) }
    if let content, let fields = record.fields.content {
      facts.content = (fields, content.secrets, record.fields.timeMs)
    }
    return facts
  }

  // MARK: The request

  package struct Built {
    package var commit: ZoneCommit
    package var request: [UInt8]
    package var outcomes: [InFlightStore.Outcome]
    package var rotations: [InFlightStore.Rotation]
    /// Nodes that need another put to get their own name.
    package var renamed: [NodeRow]
  }

  package func build() throws -> Built {
    let fields = ZoneCommit.Fields(
      zone: zoneRow.zone, seq: head.seq + 1, prev: head.hash, aclHash: head.acl.hash, writer: session.user,
      writerGen: session.keys.signGen, timeMs: session.now(), operations: operations)
    let commit = try ZoneCommit(fields) {
      try session.keys.signingKey.sign(label: "commit", message: $0)
    }
    var bundle = Bundle.Writer(capacity: size + operations.count * 100)
    for (blob, bytes) in contents { bundle.append(content: bytes, blob: blob) }
    for source in attached.values { bundle.append(attach: source) }
    for record in records { bundle.append(record: record.bytes) }
    bundle.append(commit: commit.bytes)
    return Built(
      commit: commit, request: bundle.bytes, outcomes: outcomes, rotations: rotations,
      renamed: renamed)
  }
}
