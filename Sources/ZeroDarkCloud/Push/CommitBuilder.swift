internal import Foundation
internal import ZDCCrypto
internal import ZDCProtocol

/// Makes one signed commit out of the operations that may run now, inside the transaction that stores it as in flight.
///
/// Everything is read again here: what the app changed since the operations were chosen is what is sent.
struct CommitBuilder {
  let session: SyncSession
  let zoneRow: ZoneRow
  let head: ZoneHead
  let transaction: ZDCReadWriteTransaction
  /// Records that were sealed while the commit before was on its way, by node row.
  let ahead: [Int64: SealedAhead]
  private let leaves: LeafStore
  private let nodes: NodeStore
  private let drafts: RecordDrafts

  private var operations: [ZoneOperation] = []
  private var records: [NodeRecord] = []
  private var contents: [(BlobID, [UInt8])] = []
  private var outcomes: [InFlightStore.Outcome] = []
  /// Records of this commit by node: a child's parent may be among them.
  private var putNodes: Set<NodeID> = []
  /// How many nodes this commit already removes below a node.
  private var removedBelow: [NodeID: UInt64] = [:]
  /// Everything in the cloud that has a surviving node below it.
  private var aboveSurvivors: Set<NodeID>?
  private var size = 0

  /// Headroom below the limit of a request for the commit itself and the bundle's frames.
  private static let requestBytes = Limits.commitRequestBytes - (1 << 20)

  init(
    session: SyncSession, zoneRow: ZoneRow, head: ZoneHead, ahead: [Int64: SealedAhead],
    transaction: ZDCReadWriteTransaction
  ) {
    self.session = session
    self.zoneRow = zoneRow
    self.head = head
    self.transaction = transaction
    leaves = LeafStore(db: transaction.database, zone: zoneRow.id)
    nodes = transaction.nodes
    self.ahead = ahead
    drafts = RecordDrafts(session: session, zone: zoneRow, transaction: transaction)
  }

  var isFull: Bool { operations.count >= Limits.commitOperations || size >= Self.requestBytes }
  var isEmpty: Bool { operations.isEmpty }

  // MARK: Puts

  /// Adds the node's next record, which satisfies `done`.
  ///
  /// - Returns: false if the node cannot be put in this commit (its parent is not in the cloud yet, or no room is
  ///   left).
  mutating func put(_ id: Int64, content: SuppliedContent?, done: [Int64]) throws -> Bool {
    guard let row = try nodes.node(id: id), let parent = try row.parent.flatMap({ try nodes.parent(id: $0) }) else {
      return false
    }
    let isParentThere = try putNodes.contains(parent.nodeID) || leaves.leaf(parent.nodeID) != nil
    guard isParentThere, hasRoom(for: content) else { return false }
    // The plan left these out, but a pull may have come in between.
    guard try !transaction.isUnread(row) else { return false }
    let record = try seal(row, parent: parent, content: content)
    aboveSurvivors = nil
    operations.append(.put(ZoneOperation.Put(record)))
    records.append(record)
    putNodes.insert(row.nodeID)
    size += record.bytes.count
    if let inline = content?.inlineBytes, let blob = record.fields.content?.blobID {
      contents.append((blob, inline))
      size += inline.count
    }
    addOutcomes(row, record, content, done: done)
    return true
  }

  private func hasRoom(for content: SuppliedContent?) -> Bool {
    let needed = 2_048 + (content?.inlineBytes?.count ?? 0)
    return operations.count < Limits.commitOperations && (operations.isEmpty || size + needed <= Self.requestBytes)
  }

  private func seal(_ row: NodeRow, parent: NodeRow, content: SuppliedContent?) throws -> NodeRecord {
    let draft = try drafts.draft(row, parent: parent, content: content)
    return try ahead[row.id]?.record(for: draft) ?? RecordSealer.seal(draft)
  }

  private mutating func addOutcomes(
    _ row: NodeRow, _ record: NodeRecord, _ content: SuppliedContent?, done: [Int64]
  ) {
    var facts = InFlightStore.Outcome.Facts(
      recordVersion: record.fields.recordVersion, recordHash: record.hash, parent: record.fields.parent,
      nameTag: record.fields.nameTag, name: row.name, keyGen: record.fields.keyGen)
    if let content, let fields = record.fields.content {
      facts.content = (fields, content.secrets, record.fields.timeMs)
    }
    for (index, operation) in done.enumerated() {
      outcomes.append(
        InFlightStore.Outcome(operation: operation, node: row.id, facts: index == 0 ? facts : nil))
    }
  }

  // MARK: Deletes

  enum DeleteResult {
    case added
    /// Something that lives on is still below it in the cloud; its move goes first.
    case later
    /// The cloud does not have the node (any more).
    case nothingToDo
  }

  mutating func delete(_ operation: OperationRow) throws -> DeleteResult {
    guard let leaf = try leaves.leaf(operation.nodeID) else { return .nothingToDo }
    guard operations.count < Limits.commitOperations, try !hasSurvivors(below: operation.nodeID) else { return .later }
    let below = try leaves.descendantCount(of: operation.nodeID, upTo: .max) - (removedBelow[operation.nodeID] ?? 0)
    for ancestor in try leaves.ancestors(of: operation.nodeID) { removedBelow[ancestor, default: 0] += below + 1 }
    operations.append(.delete(node: operation.nodeID, record: leaf.record, liveDescendants: below))
    outcomes.append(InFlightStore.Outcome(operation: operation.id, node: nil, facts: nil))
    return .added
  }

  /// Whether a node that the app still has lies below, as the cloud sees it: it was moved out here, and that has not
  /// been sent.
  ///
  /// Counts are taken of the table, so a put of this commit that moves one out is too late for this commit as well.
  private mutating func hasSurvivors(below top: NodeID) throws -> Bool {
    if let aboveSurvivors { return aboveSurvivors.contains(top) }
    var above: Set<NodeID> = []
    for node in putNodes.union(try transaction.operations.movedNodes(zone: zoneRow.id)) {
      above.formUnion(try leaves.ancestors(of: node))
    }
    aboveSurvivors = above
    return above.contains(top)
  }

  // MARK: The request

  struct Built {
    var commit: ZoneCommit
    var request: [UInt8]
    var outcomes: [InFlightStore.Outcome]
  }

  func build() throws -> Built {
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
    return Built(commit: commit, request: bundle.bytes, outcomes: outcomes)
  }
}
