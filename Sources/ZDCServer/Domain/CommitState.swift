internal import ZDCProtocol

/// A zone's live nodes in the store while one commit is replayed. What replay accepts is checked against its record and
/// stored at once.
struct CommitState: ZoneState {
  private let part: CommitRequest.ZonePart
  private let contents: [BlobID: CommitRequest.InlineContent]
  private let zone: ZoneKey
  /// The list in force after the commit.
  private let acl: ZoneACL.Fields
  private let work: SubtreeWork
  private let now: UInt64
  private let tx: any MetadataTransaction
  /// Names that could not be set at their put: a later operation of the commit may make room for them.
  private var pendingTags: [(node: NodeID, tag: NameTag)] = []
  private(set) var recordRange: ClosedRange<Int64>?
  /// The records in the order of their puts, with their times, for the event stream.
  private(set) var stored: [StoredRecord] = []
  /// Content that came with the request and is stored now.
  private(set) var addedBytes: UInt64 = 0
  private(set) var usage = ZoneUsage()
  /// Its ids: each belongs to one node.
  private var added: Set<BlobID> = []

  init(
    part: CommitRequest.ZonePart, contents: [BlobID: CommitRequest.InlineContent], zone: ZoneKey,
    acl: ZoneACL.Fields, work: SubtreeWork, now: UInt64, tx: any MetadataTransaction
  ) {
    self.part = part
    self.contents = contents
    self.zone = zone
    self.acl = acl
    self.work = work
    self.now = now
    self.tx = tx
    stored.reserveCapacity(part.records.count)
  }

  func leaf(_ node: NodeID) throws -> ZoneLeaf? { try tx.node(node, in: zone)?.leaf }

  func descendantCount(of node: NodeID, upTo limit: UInt64) throws -> UInt64 {
    UInt64(try branch(below: node, nodes: Int(clamping: limit)).nodes)
  }

  func height(of node: NodeID, upTo limit: Int) throws -> Int { try branch(below: node, levels: limit).levels }

  private func branch(below node: NodeID, levels: Int = .max, nodes: Int = .max) throws -> (levels: Int, nodes: Int) {
    let branch = try tx.branch(below: node, in: zone, levels: levels, nodes: min(nodes, work.rest))
    try work.add(branch.nodes)
    return branch
  }

  mutating func removeSubtree(_ node: NodeID) throws {
    usage.nodes -= Int64(try tx.removeSubtree(node, in: zone, now: now))
  }

  mutating func put(_ leaf: ZoneLeaf, replacing old: ZoneLeaf?) throws {
    guard let record = part.records[leaf.record] else { throw ZDCSecurityError(.objectMissing, node: leaf.node) }
    let before = old == nil ? nil : try tx.node(leaf.node, in: zone)
    let previous = try before.flatMap { try tx.record($0.record) }
    let previousRecord = try previous.map { try NodeRecord($0.bytes) }
    try RecordRules.check(
      record, put: ZoneOperation.Put(record), zone: part.commit.fields.zone, replaced: old, previous: previousRecord)
    try RecordRules.check(record, commit: part.commit.fields, acl: acl)
    let content = try content(of: record, before: before, previous: previousRecord, stored: previous)
    let key = try store(record, dataReceivedMs: content.receivedMs)
    if let before { try replace(before, keeping: content.blob) } else { usage.nodes += 1 }
    try place(leaf, tag: record.fields.nameTag, record: key, blob: content.blob, before: before)
  }

  /// Names are unique at the end of a commit, so that two nodes may swap theirs (PROTOCOL 3.7).
  mutating func finishNames() throws {
    for (node, tag) in pendingTags {
      // The node may have been deleted with its parent by a later operation.
      guard try tx.node(node, in: zone) != nil else { continue }
      try require(try tx.setTag(tag, of: node, in: zone), .duplicateName, node: node)
    }
    pendingTags = []
  }

  private mutating func store(_ record: NodeRecord, dataReceivedMs: UInt64) throws -> Int64 {
    let row = StoredRecord(bytes: record.bytes, recordReceivedMs: now, dataReceivedMs: dataReceivedMs)
    let key = try tx.insertRecord(row, hash: record.hash, in: zone)
    recordRange = (recordRange?.lowerBound ?? key)...key
    stored.append(row)
    usage.count(record: record.bytes)
    return key
  }

  private func replace(_ before: NodeRow, keeping blob: Int64?) throws {
    try tx.markReplaced(record: before.record, now: now)
    guard let old = before.blob, old != blob else { return }
    try tx.markReplaced(blob: old, now: now)
  }

  private mutating func place(
    _ leaf: ZoneLeaf, tag: NameTag, record: Int64, blob: Int64?, before: NodeRow?
  ) throws {
    let isRoot = leaf.node == part.commit.fields.zone.root
    var row = NodeRow(leaf: leaf, tag: isRoot ? nil : tag, record: record, blob: blob)
    let isSameName = before?.tag == tag && before?.leaf.parent == leaf.parent
    if try (before == nil || isSameName || isRoot) && tx.putNode(row, in: zone) { return }
    row.tag = nil
    _ = try tx.putNode(row, in: zone)
    pendingTags.append((leaf.node, tag))
  }
}

// Content: which blob a record may name (PROTOCOL 3.8, 3.12).
extension CommitState {
  /// The blob's key and the time when it was first named by a record.
  private mutating func content(
    of record: NodeRecord, before: NodeRow?, previous: NodeRecord?, stored: StoredRecord?
  ) throws -> (blob: Int64?, receivedMs: UInt64) {
    guard let content = record.fields.content else { return (nil, 0) }
    if let before, let stored, previous?.fields.content == content { return (before.blob, stored.dataReceivedMs) }
    return (try attach(content, to: record.fields.node), now)
  }

  private mutating func attach(_ content: NodeRecord.Content, to node: NodeID) throws -> Int64 {
    if let known = try tx.content(content.blobID, of: node, in: part.commit.fields.zone.tree) {
      return try attach(known, as: content, to: node)
    }
    guard let inline = contents[content.blobID] else {
      throw ServerError(.blobGone, "the content is not here (any more): send it again")
    }
    let agrees = UInt64(inline.bytes.count) == content.cipherLength && inline.root == content.contentRoot
    try require(agrees, .contentHashMismatch, node: node)
    let row = BlobRow(
      id: content.blobID, zone: zone, node: node, cipherLength: content.cipherLength, state: .attached,
      isInline: true, owner: nil, contentRoot: nil, touchedMs: now)
    try require(added.insert(content.blobID).inserted, .blobNotYours, node: node)
    addedBytes += content.cipherLength
    return try tx.insertBlob(row, content: inline.bytes)
  }

  /// Own finished ticket for this node, or a blob that was on this node before.
  private func attach(_ known: BlobRow, as content: NodeRecord.Content, to node: NodeID) throws -> Int64 {
    var blob = known
    let isTicketOfOther = blob.state != .attached && blob.owner != part.commit.fields.writer
    guard !isTicketOfOther else { throw ServerError(.blobGone, "the content is not here (any more): send it again") }
    try require(blob.node == node && blob.zone == zone, .blobNotYours, node: node)
    guard blob.state != .receiving else {
      throw ServerError(.blobIncomplete, "parts of the content are missing", retryable: true)
    }
    let root = try blob.isInline ? inlineRoot(blob) : blob.contentRoot
    try require(
      root == content.contentRoot && blob.cipherLength == content.cipherLength, .contentHashMismatch, node: node)
    blob.state = .attached
    blob.owner = nil
    blob.replacedMs = nil
    try tx.updateBlob(blob)
    return blob.key
  }

  private func inlineRoot(_ blob: BlobRow) throws -> ContentRoot? {
    try tx.inlineBytes(of: blob).map { ContentRoot(reinterpreting: MerkleTree.leafHash($0)) }
  }
}
