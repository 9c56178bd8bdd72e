internal import ZDCProtocol

/// Determines which content a put may name, and where it is (PROTOCOL 3.8, 3.12).
struct PutContents {
  typealias Found = (place: NodePut.Content, receivedMs: UInt64)

  private let commit: ZoneCommit.Fields
  /// Nil for a zone that does not exist yet.
  private let zone: ZoneKey?
  /// The content that came with the request.
  private let inline: [BlobID: CommitRequest.InlineContent]
  /// The content of other nodes that the request attaches.
  private let sources: [BlobID: AttachedContent]
  private let reader: any MetadataReader
  private let now: UInt64
  /// The current records of nodes that are put again, by the store's internal number.
  private let records: [Int64: StoredRecord]
  private let known: [ContentName: BlobRow]
  /// New inline content: each blob belongs to one node.
  private var added: Set<BlobID> = []

  init(
    of part: CommitRequest.ZonePart, in request: CommitRequest, snapshot: ZoneSnapshot, reader: any MetadataReader,
    now: UInt64
  ) throws {
    commit = part.commit.fields
    zone = snapshot.zone
    inline = request.contents
    sources = request.sources
    self.reader = reader
    self.now = now
    records = try reader.records(part.records.values.compactMap { snapshot.node($0.fields.node)?.record })
    let names = part.records.values.compactMap { record in
      record.fields.content.map { ContentName(node: record.fields.node, blob: $0.blobID) }
    }
    known = try reader.contents(names, in: commit.zone.tree)
  }

  /// Returns the node's current record.
  func record(of node: NodeRow) -> StoredRecord? { records[node.record] }

  /// Returns where the content of a put record is, and when a record first named it.
  ///
  /// - Parameters:
  ///   - node: the node as the store has it; nil if it is new.
  ///   - previous: the node's previous record.
  mutating func content(of record: NodeRecord, node: NodeRow?, previous: NodeRecord?) throws -> Found {
    guard let content = record.fields.content else { return (.none, 0) }
    if let node, let blob = node.blob, previous?.fields.content == content {
      return (.unchanged(blob), records[node.record]?.dataReceivedMs ?? now)
    }
    return (try place(of: content, node: record.fields.node), now)
  }

  private mutating func place(of content: NodeRecord.Content, node: NodeID) throws -> NodePut.Content {
    let source = sources[content.blobID]
    if let blob = known[ContentName(node: node, blob: content.blobID)], blob.node == node || source == nil {
      return .attached(try attached(blob, as: content, to: node))
    }
    if let source { return .reference(try self.source(source, as: content, to: node)) }
    guard let inline = inline[content.blobID] else { throw ServerError.contentIsGone }
    let agrees = UInt64(inline.bytes.count) == content.cipherLength && inline.root == content.contentRoot
    try require(agrees, .contentHashMismatch, node: node)
    try require(added.insert(content.blobID).inserted, .blobNotYours, node: node)
    return .inline(content.blobID, inline.bytes)
  }

  /// Returns the writer's own complete upload for this node, or a blob that was on this node before.
  private func attached(_ blob: BlobRow, as content: NodeRecord.Content, to node: NodeID) throws -> BlobRow {
    let isTicketOfOther = blob.state != .attached && blob.owner != commit.writer
    // Content that the node had in another zone, before a split, cannot be reused here.
    let isOfOtherZone =
      try blob.state == .attached && blob.node == node && blob.zone != zone
      && reader.treeID(of: blob.zone) == commit.zone.tree
    guard !isTicketOfOther, !isOfOtherZone else { throw ServerError.contentIsGone }
    // An upload may have begun before any zone had the node: it is bound to its user and node.
    let isHere = try blob.zone == zone || (blob.state != .attached && reader.treeID(of: blob.zone) == commit.zone.tree)
    try require(blob.node == node && isHere, .blobNotYours, node: node)
    guard blob.state != .receiving else {
      throw ServerError(.blobIncomplete, "parts of the content are missing", retryable: true)
    }
    try check(blob, is: content, of: node)
    return blob
  }

  /// Returns live content of another node, which the writer may read now. All other content is answered alike.
  private func source(
    _ source: AttachedContent, as content: NodeRecord.Content, to node: NodeID
  ) throws -> BlobRow {
    let blob: BlobRow
    do {
      blob = try Access.content(source.blob, node: source.node, tree: source.tree, user: commit.writer, in: reader)
    } catch is ServerError { throw ServerError.contentIsGone }
    guard blob.replacedMs == nil else { throw ServerError.contentIsGone }
    try check(blob, is: content, of: node)
    return blob
  }

  private func check(_ blob: BlobRow, is content: NodeRecord.Content, of node: NodeID) throws {
    let root = try reader.contentRoot(of: blob)
    try require(
      root == content.contentRoot && blob.cipherLength == content.cipherLength, .contentHashMismatch, node: node)
  }
}
