internal import ZDCProtocol

/// Uploads of large content: tickets, parts, completion (PROTOCOL 3.8).
enum Blobs {
  struct Ticket: Sendable {
    var status: BlobStatus
    var isNew = false
    /// Retained blobs that were removed to make room for this one.
    var released: [BlobID] = []
  }

  /// Issues a ticket, which binds a blob's id to the user, the node and the length. Repeated requests get the same
  /// ticket.
  static func ticket(
    _ request: BlobTicketRequest, user: UserID, limit: UInt64, quotas: Quotas, now: UInt64,
    in tx: any MetadataTransaction
  ) throws -> Ticket {
    try checkLength(request.cipherLength, limit: limit)
    if try tx.user(user)?.isClosed == true { throw ServerError(.accountClosed, "the account is closed") }
    let zone = try zone(for: request, user: user, in: tx)
    if let known = try tx.file(request.blobID) {
      let isSame =
        known.owner == user && known.state != .attached && known.node == request.nodeID
        && known.cipherLength == request.cipherLength
      guard isSame, try tx.treeID(of: known.zone) == request.treeID else {
        throw ServerError(.conflict, "the blob's id is taken: choose another one")
      }
      return Ticket(status: try status(of: known, in: tx))
    }
    var row = BlobRow(
      id: request.blobID, zone: zone.key, node: request.nodeID, cipherLength: request.cipherLength, state: .receiving,
      isInline: false, owner: user, contentRoot: nil, touchedMs: now)
    let released = try room(for: request.cipherLength, of: user, in: zone, quotas, tx)
    try tx.removeBlobs(released)
    row.key = try tx.insertTicket(row)
    return Ticket(
      status: try status(of: row, in: tx), isNew: true, released: released.filter { !$0.isInline }.map(\.id))
  }

  private static func checkLength(_ length: UInt64, limit: UInt64) throws {
    guard length <= limit else { throw ServerError(.limitExceeded, "content may have at most \(limit) bytes") }
    guard length > UInt64(Limits.inlineContentBytes) else {
      throw ServerError(.invalidRequest, "content of this size belongs in the commit request")
    }
  }

  /// Returns the zone that holds the node. If it does not exist yet, that is the zone that the request names, or any
  /// zone of the tree in which the user may write: the commit decides which one gets the node.
  private static func zone(
    for request: BlobTicketRequest, user: UserID, in tx: any MetadataTransaction
  ) throws -> ZoneRow {
    let home = try tx.zone(ofNode: request.nodeID, tree: request.treeID)
    if let home, home.isClosed { throw ServerError.nodeIsLeaving }
    guard let zone = try home ?? newZone(request, user, in: tx), !zone.isClosed,
      try Access.holds(.write, user: user, zone: zone.key, in: tx)
    else { throw ServerError(.notFound, "no such tree") }
    return zone
  }

  private static func newZone(
    _ request: BlobTicketRequest, _ user: UserID, in tx: any MetadataTransaction
  ) throws -> ZoneRow? {
    if let root = request.zoneRoot { return try tx.zone(ZoneID(tree: request.treeID, root: root)) }
    return try tx.zone(of: request.treeID, where: user, holds: .write)
  }

  /// Finds room for an upload, which counts for the user who sends it. The tree's owner must also have room for it now,
  /// so that the user does not send content that a commit could not attach. It counts for the owner, and replaces
  /// retained blobs, only when a commit attaches it.
  private static func room(
    for length: UInt64, of user: UserID, in zone: ZoneRow, _ quotas: Quotas, _ reader: any MetadataReader
  ) throws -> [BlobRow] {
    let owner = try ZoneACL(zone.acl).fields.owner
    for id in [user, owner] where try reader.user(id)?.isClosed == true {
      throw ServerError(.accountClosed, "the account is closed").with(user: id)
    }
    if owner != user { _ = try quotas.room(for: ContentChange(owner: owner, addedBytes: length), by: user, reader) }
    return try quotas.room(for: ContentChange(owner: user, addedBytes: length), by: user, reader)
  }

  /// Returns the caller's own ticket; the tickets of other users are reported as not found.
  static func own(_ id: BlobID, user: UserID, in reader: any MetadataReader) throws -> BlobRow {
    guard let row = try reader.file(id), row.owner == user, row.state != .attached else {
      throw ServerError(.notFound, "no such upload")
    }
    return row
  }

  static func status(of row: BlobRow, in reader: any MetadataReader) throws -> BlobStatus {
    BlobStatus(
      blobID: row.id, cipherLength: row.cipherLength, isComplete: row.state != .receiving,
      contentRoot: row.contentRoot, parts: try reader.parts(of: row))
  }

  /// The response to an offered part.
  enum PartDecision: Sendable {
    case take(cipherLength: UInt64, range: Range<UInt64>)
    case alreadyThere
  }

  static func offer(
    _ index: Int, hash: [UInt8], of id: BlobID, user: UserID, in reader: any MetadataReader
  ) throws -> PartDecision {
    let row = try own(id, user: user, in: reader)
    guard index >= 0, index < ContentGeometry.partCount(cipherLength: row.cipherLength) else {
      throw ServerError(.invalidRequest, "the content has no such part")
    }
    if let part = try reader.parts(of: row).first(where: { $0.index == index }) {
      guard part.hash.bytes == hash else { throw ServerError(.conflict, "the part was uploaded with different bytes") }
      return .alreadyThere
    }
    let range = ContentGeometry.partRange(index, cipherLength: row.cipherLength)
    return .take(cipherLength: row.cipherLength, range: range)
  }

  /// Stores the record of a part whose bytes are durable.
  static func record(
    _ index: Int, hash: [UInt8], of id: BlobID, user: UserID, now: UInt64, in tx: any MetadataTransaction
  ) throws {
    var row = try own(id, user: user, in: tx)
    row.touchedMs = now
    try tx.insertPart(index, hash: hash, of: row, now: now)
    try tx.updateTicket(row)
  }

  /// Returns the ticket, if all parts are present.
  static func ready(_ id: BlobID, user: UserID, in reader: any MetadataReader) throws -> BlobRow {
    let row = try own(id, user: user, in: reader)
    let count = ContentGeometry.partCount(cipherLength: row.cipherLength)
    guard try row.state == .complete || reader.parts(of: row).count == count else {
      throw ServerError(.blobIncomplete, "parts are missing", retryable: true)
    }
    return row
  }

  static func complete(
    _ id: BlobID, root: ContentRoot, user: UserID, now: UInt64, in tx: any MetadataTransaction
  ) throws -> BlobStatus {
    var row = try own(id, user: user, in: tx)
    row.state = .complete
    row.contentRoot = root
    row.touchedMs = now
    try tx.updateTicket(row)
    return try status(of: row, in: tx)
  }

  static func abort(_ id: BlobID, user: UserID, in tx: any MetadataTransaction) throws {
    try tx.removeBlobs([try own(id, user: user, in: tx)])
  }
}
