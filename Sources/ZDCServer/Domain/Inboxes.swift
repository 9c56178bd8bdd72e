package import ZDCProtocol

/// Messages that wait for their recipients (PROTOCOL 3.11, 4.4).
///
/// An inbox's envelopes are a bounded queue. A commit that puts a message's node into the inbox's zone removes its
/// envelope.
enum Inboxes {
  // MARK: Delivering

  /// Decodes the envelopes of a request.
  static func envelopes(_ body: [UInt8]) throws -> [MessageEnvelope] {
    var envelopes: [MessageEnvelope] = []
    var reader = Bundle.Reader(body)
    while let item = try reader.next() {
      guard case .envelope(let envelope) = item else {
        throw ServerError(.invalidRequest, "expected envelopes and nothing else")
      }
      envelopes.append(envelope)
    }
    guard 1...Limits.envelopesPerRequest ~= envelopes.count else {
      throw ServerError(.invalidRequest, "a request has 1 to \(Limits.envelopesPerRequest) envelopes")
    }
    return envelopes
  }

  /// Stores an envelope if all rules allow it.
  static func deliver(
    _ envelope: MessageEnvelope, from sender: UserID, bounds: InboxBounds, now: UInt64, in tx: any MetadataTransaction
  ) throws -> DeliveryResult {
    guard let inbox = try inbox(envelope.inbox, of: envelope.recipient, in: tx),
      let recipient = try tx.user(envelope.recipient)
    else { return .notFound }
    if let known = try stored(envelope, from: sender, in: inbox, tx) { return known }
    if recipient.isClosed { return .accountClosed }
    guard recipient.encGen == envelope.recipientEncGen else { return .recipientKeyStale }
    let state = try tx.sender(sender, of: inbox.key)
    guard !state.contains(.blocked) else { return .blocked }
    guard try Attachments.exists(for: envelope, from: sender, appTreeID: inbox.appTreeID, in: tx) else {
      return .attachmentMissing
    }
    let isRequest = try !isKnown(sender, state, in: inbox, tx)
    let usage = try tx.inboxUsage(of: inbox.key, sender: sender)
    guard usage.admits(envelope.bytes.count, isRequest: isRequest, bounds) else { return .mailboxFull }
    let row = WaitingMessage(
      cursor: 0, sender: sender, messageID: envelope.id, length: envelope.bytes.count, receivedMs: now,
      isRequest: isRequest)
    try tx.insertEnvelope(envelope, row: row, in: inbox.key)
    if !state.contains(.hasWritten) { try tx.setSender(sender, to: state.union(.hasWritten), of: inbox.key) }
    return .delivered
  }

  /// The answer for a message that is there already: waiting, or taken over.
  private static func stored(
    _ envelope: MessageEnvelope, from sender: UserID, in inbox: Inbox, _ tx: any MetadataReader
  ) throws -> DeliveryResult? {
    if let bytes = try tx.envelope(envelope.id, from: sender, in: inbox.key) {
      return bytes == envelope.bytes ? .delivered : .exists
    }
    let node = NodeID(message: envelope.id, from: sender)
    return try tx.zone(ofNode: node, tree: envelope.inbox) == nil ? nil : .exists
  }

  private static func isKnown(
    _ sender: UserID, _ state: SenderState, in inbox: Inbox, _ reader: any MetadataReader
  ) throws -> Bool {
    if state.contains(.accepted) { return true }
    let other = TreeID.derive(owner: sender, trunk: .inbox, appTreeID: inbox.appTreeID)
    // The sender may accept or block the owner, so only what the owner has delivered counts.
    if let zone = try reader.zone(ZoneID(trunkOf: other)),
      try reader.sender(inbox.owner, of: zone.key).contains(.hasWritten)
    {
      return true
    }
    return try reader.shares(inbox.owner, aZoneWith: sender)
  }

  // MARK: The owner's side

  struct Inbox {
    var key: ZoneKey
    var owner: UserID
    var appTreeID: String
  }

  /// Returns the inbox if this is one of the user's.
  static func inbox(_ tree: TreeID, of user: UserID, in reader: any MetadataReader) throws -> Inbox? {
    guard let zone = try reader.zone(ZoneID(trunkOf: tree)) else { return nil }
    let list = try ZoneACL(zone.acl).fields
    guard list.owner == user, list.trunk == .inbox else { return nil }
    return Inbox(key: zone.key, owner: user, appTreeID: list.appTreeID)
  }

  static func ownInbox(_ tree: TreeID, of user: UserID, in reader: any MetadataReader) throws -> ZoneKey {
    guard let inbox = try inbox(tree, of: user, in: reader) else { throw ServerError(.notFound, "no such inbox") }
    return inbox.key
  }

  private static let pageCount = 250

  static func list(
    _ tree: TreeID, of user: UserID, after cursor: UInt64, in reader: any MetadataReader
  ) throws -> MessageList {
    let inbox = try ownInbox(tree, of: user, in: reader)
    let rows = try reader.envelopes(in: inbox, after: cursor, limit: pageCount)
    return MessageList(messages: rows, next: rows.count == pageCount ? rows.last?.cursor : nil)
  }

  /// Returns envelopes in the order asked, without those that are not there, up to the length of a page.
  static func read(
    _ names: [MessageName], _ tree: TreeID, of user: UserID, in reader: any MetadataReader
  ) throws -> [UInt8] {
    let inbox = try ownInbox(tree, of: user, in: reader)
    let nodes = names.map { NodeID(message: $0.id, from: $0.sender) }
    let page = page(of: nodes, lengths: try reader.envelopeLengths(ofNodes: nodes, in: inbox))
    let envelopes = try reader.envelopes(ofNodes: page, in: inbox)
    var writer = Bundle.Writer()
    for node in page { if let bytes = envelopes[node] { writer.append(envelope: bytes) } }
    return writer.bytes
  }

  /// Returns the first of these nodes whose envelopes fit into a page, and at least one that has an envelope.
  private static func page(of nodes: [NodeID], lengths: [NodeID: Int]) -> [NodeID] {
    var page: [NodeID] = []
    var bytes = 0
    for node in nodes {
      guard let length = lengths[node] else { continue }
      bytes += length + 5
      guard page.isEmpty || bytes <= Limits.pageBytes else { break }
      page.append(node)
    }
    return page
  }

  /// Drops the envelopes of messages that a commit takes over.
  static func takeOver(_ delta: CommitDelta, in tx: any MetadataTransaction) throws {
    for zone in delta.zones where zone.head.acl.fields.trunk == .inbox {
      guard case .existing(let key) = zone.target, !zone.puts.isEmpty else { continue }
      try tx.removeEnvelopes(ofNodes: zone.puts.map(\.leaf.node), in: key)
    }
  }
}

extension InboxUsage {
  fileprivate func admits(_ length: Int, isRequest: Bool, _ bounds: InboxBounds) -> Bool {
    all.admits(length, bounds.all) && sender.admits(length, bounds.sender)
      && (!isRequest || requests.admits(length, bounds.requests))
  }
}

extension InboxUsage.Share {
  fileprivate func admits(_ length: Int, _ limit: InboxUsage.Share) -> Bool {
    count < limit.count && bytes + length <= limit.bytes
  }
}

/// A user has a new message.
package struct MessageNotice: Sendable, Codable {
  package let recipient: UserID

  package init(recipient: UserID) {
    self.recipient = recipient
  }
}
