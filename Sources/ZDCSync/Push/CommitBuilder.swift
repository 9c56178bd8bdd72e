internal import Foundation
internal import ZDCAccounts
package import ZDCClientStore
internal import ZDCCrypto
package import ZDCProtocol

/// Makes one signed commit out of the operations that may run now, inside the transaction that stores it as in flight.
///
/// Everything is read again here: what the app changed since the operations were chosen is what is sent.
package struct CommitBuilder {
  package let session: SyncSession
  package let zoneRow: ZoneRow
  package let head: ZoneHead
  package let transaction: ZDCReadWriteTransaction
  /// Records that were sealed while the commit before was on its way, by node row.
  package let ahead: [Int64: SealedAhead]
  package let leaves: LeafStore
  package let nodes: NodeStore
  package let drafts: RecordDrafts
  private let places: LocalPlaces

  package var operations: [ZoneOperation] = []
  private var records: [NodeRecord] = []
  private var contents: [(BlobID, [UInt8])] = []
  package var outcomes: [InFlightStore.Outcome] = []
  /// The parents that this commit's puts give their nodes, by node: a child's parent may be among them.
  package private(set) var parents: [NodeID: NodeID] = [:]
  /// Nodes that get a fresh key, as this commit leaves them, by row.
  var rekeyed: [Int64: NodeRow] = [:]
  var rekeying: Rekeying
  /// Rows above which nothing needs a fresh key.
  package var fresh: Set<Int64> = []
  /// Why the last path could not be made fresh, or the last node not be put.
  var blocked: RecordDrafts.Refusal?
  package var rotations: [InFlightStore.Rotation] = []
  /// Nodes that are put under another name until theirs is free.
  package private(set) var renamed: [NodeRow] = []
  let heldNames: HeldNames
  /// What this commit deletes.
  var removals = Removals()
  private var size = 0

  /// Headroom below the limit of a request for the commit itself and the bundle's frames.
  private static let requestBytes = Limits.commitRequestBytes - (1 << 20)

  package init(
    session: SyncSession, zoneRow: ZoneRow, head: ZoneHead, ahead: [Int64: SealedAhead],
    heldNames: HeldNames, transaction: ZDCReadWriteTransaction
  ) {
    self.session = session
    self.zoneRow = zoneRow
    self.head = head
    self.transaction = transaction
    leaves = LeafStore(db: transaction.database, zone: zoneRow.id)
    nodes = transaction.nodes
    self.ahead = ahead
    self.heldNames = heldNames
    rekeying = Rekeying(leaves: leaves, tree: zoneRow.zone.tree)
    drafts = RecordDrafts(session: session, zone: zoneRow, transaction: transaction)
    places = LocalPlaces(session: session, transaction: transaction)
  }

  package var isFull: Bool { operations.count >= Limits.commitOperations || size >= Self.requestBytes }
  package var isEmpty: Bool { operations.isEmpty }

  // MARK: Puts

  package enum PutResult: Equatable {
    case added
    /// Not in this commit: its parent is not in the cloud yet or still below it, its name is not free yet, a newer version
    /// is still to be read, or no room is left.
    case later
    /// Not at all, as the node is now.
    case refused(RecordDrafts.Refusal)
  }

  /// Adds the node's next record, which satisfies `done`, behind fresh keys for the path above it where those are due.
  ///
  /// - Parameter isNameTaken: whether the server said that another node still has the name. One that is to be deleted
  ///   may be waiting for what moves into this one, so this one comes to its place under another name first.
  package mutating func put(
    _ id: Int64, content: SuppliedContent?, done: [Int64], isNameTaken: Bool
  ) throws -> PutResult {
    guard let row = try nodes.node(id: id), let parent = try row.parent.flatMap({ try nodes.parent(id: $0) }) else {
      return .later
    }
    let isParentThere = try parents[parent.nodeID] != nil || leaves.leaf(parent.nodeID) != nil
    guard isParentThere, hasRoom(for: content), parents[row.nodeID] == nil,
      try !heldNames.mayMeet(row.nodeID, in: parent.nodeID)
    else { return .later }
    let leaf = row.isUploaded ? try leaves.leaf(row.nodeID) : nil
    if let leaf, leaf.parent != parent.nodeID,
      try leaves.isNode(parent.nodeID, atOrBelow: row.nodeID, after: parents)
    {
      return .later
    }
    // The plan left these out, but a pull may have come in between.
    guard try !transaction.isUnread(row) else { return .later }
    blocked = try drafts.refusal(of: row, content: content)
    guard blocked == nil, var next = try rekeyed(row, leaf),
      let above = try refreshed(parent), hasRoom(for: content, besides: next.historyWrap.count)
    else { return blocked.map(PutResult.refused) ?? .later }
    let isRenamed = isNameTaken && leaf?.parent != parent.nodeID
    if isRenamed { next.name = try places.freeName(row.name, under: parent, except: 0) }
    guard let record = try seal(next, parent: above, content: content) else {
      return blocked.map(PutResult.refused) ?? .later
    }
    add(record)
    if isRenamed { renamed.append(row) }
    if next.key != row.key { rekeyed[row.id] = next }
    if let inline = content?.inlineBytes, let blob = record.fields.content?.blobID {
      contents.append((blob, inline))
      size += inline.count
    }
    addOutcomes(next, record, content, isRekeyed: next.key != row.key, done: done)
    return .added
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

  /// Nil if a number in the record cannot rise any more, or the record is too large: ``blocked`` says so.
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
    /// Nodes that need another put for their name.
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
    for record in records { bundle.append(record: record.bytes) }
    bundle.append(commit: commit.bytes)
    return Built(
      commit: commit, request: bundle.bytes, outcomes: outcomes, rotations: rotations,
      renamed: renamed)
  }
}
