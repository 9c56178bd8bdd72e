internal import Foundation
internal import ZDCAccounts
internal import ZDCClientAPI
package import ZDCClientStore
internal import ZDCCrypto
package import ZDCProtocol
internal import ZDCSupport
internal import ZDCTransfers

/// Takes messages over from the mailbox into the inbox, an ordinary zone.
///
/// It writes no messages to the database, only the heads that they name: a commit puts the messages' nodes, and the
/// server drops the envelopes with it. If the process ends in between, the envelopes are still in the mailbox, or the
/// nodes are in the log. The pull that follows announces them.
struct MessageReceiver: Sendable {
  let session: SyncSession
  let zone: Int64

  /// The most messages, and bytes of content, that one commit takes over.
  private static let commitMessages = 100
  private static let commitBytes = 4 << 20

  struct Taken: Sendable {
    var pulled = ZonePuller.Pulled()
    /// Messages that do not open. They stay in the mailbox.
    var refused: Set<MessageName> = []
    /// Messages that may open after the next pull: a key or a sender's chain is missing.
    var skipped: Set<MessageName> = []
    /// Whether another attempt may take more.
    var hasMore = false
  }

  /// - Parameter refused: Messages to leave alone.
  func take(except refused: Set<MessageName>) async throws -> Taken {
    var taken = Taken()
    guard let inbox = try await inbox() else { return taken }
    let waiting = try await waiting(inbox, except: refused)
    guard !waiting.isEmpty else { return taken }
    let names = Array(waiting.prefix(Self.commitMessages))
    let (messages, count) = try await open(names, inbox, &taken)
    let opened = try await withoutOldProfiles(messages, inbox)
    taken.hasMore = count > 0 && (waiting.count > count || count < names.count)
    guard !opened.isEmpty else { return taken }
    let letters = opened.filter { $0.zoneKey != nil }
    guard letters.isEmpty else {
      try await take(zoneKeys: letters, inbox)
      taken.hasMore = true
      return taken
    }
    let burns = opened.filter { $0.burned != nil }
    guard burns.isEmpty else {
      try await burn(burns, inbox, &taken)
      taken.hasMore = true
      return taken
    }
    try await take(headsOf: opened)
    try await commit(opened, inbox, &taken)
    return taken
  }

  // MARK: The mailbox

  /// Nil before the first pull of the inbox.
  private func inbox() async throws -> InboxWriter? {
    try await session.database.asyncRead { [session, zone] in try InboxWriter(session: session, zone: zone, $0) }
  }

  /// Returns the pending messages of known senders, without those that wait for the user. Messages whose node the log has
  /// ever had are deleted: they are replays, or were sent twice.
  private func waiting(_ inbox: InboxWriter, except refused: Set<MessageName>) async throws -> [MessageName] {
    let all = try await session.waitingMessages(in: inbox.tree)
    let held = try await held(among: all)
    let (wanted, doubled) = try await session.database.asyncRead { [session, zone] transaction in
      let known = try session.knownSenders(among: Set(all.map(\.sender)), transaction)
      var (wanted, doubled): ([MessageName], [MessageName]) = ([], [])
      for message in all where known.contains(message.sender) && !refused.contains(message.name) {
        guard held[message.name] != false else { continue }
        let node = NodeID(message: message.messageID, from: message.sender)
        if try transaction.messages.isSeen(node, zone: zone) {
          doubled.append(message.name)
        } else {
          wanted.append(message.name)
        }
      }
      return (wanted, doubled)
    }
    for name in doubled { try await session.api.deleteMessage(name, in: inbox.tree) }
    return wanted
  }

  /// Returns the messages that are held back, and whether the user has accepted them. Forgets those that are in the
  /// mailbox no longer.
  private func held(among waiting: [WaitingMessage]) async throws -> [MessageName: Bool] {
    let held = try await session.database.asyncRead { [zone] in try HeldMessageStore($0, inbox: zone).all() }
    let gone = Set(held.keys).subtracting(waiting.map(\.name))
    if !gone.isEmpty {
      try await session.database.asyncReadWrite { [zone] in try HeldMessageStore($0, inbox: zone).remove(gone) }
    }
    return held
  }

  /// Fetches envelopes. The server leaves out what is gone, and keeps the order.
  ///
  /// Only the order says which of several senders an envelope with their common message ID is from. If one of those is gone,
  /// the others are left for the next list.
  private func envelopes(
    _ names: [MessageName], _ inbox: InboxWriter
  ) async throws -> [(name: MessageName, envelope: MessageEnvelope)] {
    var reader = Bundle.Reader(try await session.api.envelopes(names, in: inbox.tree))
    var answered: [MessageID: [MessageEnvelope]] = [:]
    while let item = try reader.next() {
      guard case .envelope(let envelope) = item else { throw ZDCSecurityError(.nonCanonicalEncoding) }
      answered[envelope.id, default: []].append(envelope)
    }
    let asked = Dictionary(grouping: names, by: \.id)
    return names.compactMap { name in
      guard let senders = asked[name.id], let envelopes = answered[name.id], senders.count == envelopes.count,
        let index = senders.firstIndex(of: name)
      else { return nil }
      return (name, envelopes[index])
    }
  }

  /// Fetches new links of the senders' chains, and opens the envelopes. A sender may have declared a key compromised
  /// since.
  private func open(
    _ names: [MessageName], _ inbox: InboxWriter, _ taken: inout Taken
  ) async throws -> (messages: [MessageBody], envelopes: Int) {
    async let refused = refresh(Set(names.map(\.sender)))
    let envelopes = try await envelopes(names, inbox)
    let opener = MessageOpener(session: session, inbox: inbox)
    for error in try await refused { try await opener.report(error) }
    let opened = try await opener.open(envelopes)
    taken.refused.formUnion(opened.refused)
    taken.skipped.formUnion(opened.skipped)
    return (opened.messages, envelopes.count)
  }

  /// A server that refuses to show chains withholds only messages under keys that are not pinned.
  ///
  /// - Returns: The errors of chains that do not verify.
  private func refresh(_ senders: Set<UserID>) async throws -> [ZDCSecurityError] {
    do { return try await session.identities.refresh(Array(senders)) } catch let error as ServerError {
      guard !error.retryable else { throw error }
      session.events.report(error)
      return []
    }
  }

  /// Compares the heads that the senders name with the verified logs. The server drops the envelopes with the commit
  /// that follows, so the heads are stored before.
  private func take(headsOf messages: [MessageBody]) async throws {
    guard messages.contains(where: { !$0.fields.heads.isEmpty }) else { return }
    try await session.database.asyncReadWrite { [session] transaction in
      let members = MemberHeads(session: session, transaction: transaction)
      for fields in messages.map(\.fields) {
        for head in fields.heads { try members.take(head.seq, head.hash, of: head.zone, from: fields.sender) }
      }
    }
  }

  // MARK: Committing

  /// Takes over as many messages as fit into a commit. If the server refuses content beside a message, only that message
  /// is affected.
  private func commit(_ messages: [MessageBody], _ inbox: InboxWriter, _ taken: inout Taken) async throws {
    do {
      try await push(messages, inbox, &taken)
    } catch let error as ServerError where [.blobGone, .quotaExceeded].contains(error.code) {
      let attached = messages.filter { $0.attachment != nil }
      guard let first = attached.first else { throw error }
      guard messages.count == 1 else {
        taken.hasMore = true
        let others = messages.filter { $0.attachment == nil }
        return try await commit(others.isEmpty ? [first] : others, inbox, &taken)
      }
      try await take(first, refused: error, inbox, &taken)
    }
  }

  /// Takes a message over without the content that its sender no longer keeps. One for which the user has no room waits.
  private func take(
    _ message: MessageBody, refused error: ServerError, _ inbox: InboxWriter, _ taken: inout Taken
  ) async throws {
    session.events.report(error)
    guard error.code == .blobGone else {
      taken.skipped.insert(MessageName(sender: message.fields.sender, id: message.fields.id))
      return
    }
    try await push([message], inbox, withAttachments: false, &taken)
  }

  private func push(
    _ messages: [MessageBody], _ inbox: InboxWriter, withAttachments: Bool = true, _ taken: inout Taken
  ) async throws {
    var request = Bundle.Writer()
    var records: [NodeRecord] = []
    for message in messages {
      guard records.isEmpty || request.count + message.fields.payload.count < Self.commitBytes else {
        taken.hasMore = true
        break
      }
      let content = try await content(of: message, inbox, &request, withAttachments: withAttachments)
      let record = try inbox.record(
        of: ReceivedMessage(message.fields), timeMs: message.fields.timeMs, content: content, profile: message.profile)
      request.append(record: record.bytes)
      records.append(record)
    }
    let replaced = try await nodes(ofProfilesBefore: messages.prefix(records.count))
    request.append(commit: try inbox.commit(records, replacing: replaced).bytes)
    switch try await session.api.push(request.bytes) {
    case .accepted: taken.pulled += try await ZonePuller(session: session, zone: zone).pull()
    case .headMismatch(let page):
      // Another device may have taken the same messages over.
      taken.pulled += try await ZonePuller(session: session, zone: zone).take(page)
      taken.hasMore = true
    }
    try await forgetUploads(of: records)
  }

  /// Adds small content to the request, uploads large content, and attaches content that the sender's outbox has.
  private func content(
    of message: MessageBody, _ inbox: InboxWriter, _ request: inout ZDCProtocol.Bundle.Writer, withAttachments: Bool
  ) async throws -> SuppliedContent? {
    if message.profile != nil { return nil }
    if let attachment = message.attachment {
      guard withAttachments else { return nil }
      request.append(attach: try attached(attachment, message.fields))
      return .uploaded(attachment.content.firstVersion, attachment.secrets)
    }
    let content = try await content(of: message, inbox)
    if let bytes = content.inlineBytes { request.append(content: bytes, blob: content.fields(dataVersion: 1).blobID) }
    return content
  }

  private func attached(_ attachment: MessageAttachment, _ fields: MessageBody.Fields) throws -> AttachedContent {
    guard let node = NodeID(fields.id.bytes) else { throw ZDCSecurityError(.nonCanonicalEncoding) }
    return AttachedContent(
      tree: .derive(owner: fields.sender, trunk: .outbox, appTreeID: session.appTreeID), node: node,
      blob: attachment.content.blobID)
  }

  private func content(of message: MessageBody, _ inbox: InboxWriter) async throws -> SuppliedContent {
    let payload = message.fields.payload
    let sealed = try ContentSealer.sealSmall(data: payload)
    if sealed.isInline { return .inline(sealed) }
    let node = NodeID(message: message.fields.id, from: message.fields.sender)
    let upload = ContentUpload(
      api: session.api, journal: UploadJournal(session: session, tree: inbox.tree, node: node),
      handOver: session.handOver, slots: session.uploadSlots
    ) { _, _ in }
    guard let source = try ZDCData(data: Data(payload)).immediateSource() else { throw ZDCError(.noDataFromApp) }
    return try await upload.send(source, metadata: [], thumbnail: [])
  }

  /// Uploads are kept for a later process. This one has used them, or will make new ones.
  private func forgetUploads(of records: [NodeRecord]) async throws {
    let large = records.compactMap(\.fields.content).filter { $0.cipherLength > UInt64(Limits.inlineContentBytes) }
    guard !large.isEmpty else { return }
    try await session.database.asyncReadWrite { transaction in
      for content in large { try UploadStore(transaction: transaction).remove(content.blobID) }
    }
  }
}

extension ReceivedMessage {
  fileprivate init(_ fields: MessageBody.Fields) {
    self.init(
      sender: fields.sender, senderGen: fields.senderGen, device: fields.device, seq: fields.seq, id: fields.id)
  }
}

extension SyncSession {
  /// Returns the pending messages of an inbox, oldest first, up to as many as a server keeps. An empty page ends the list,
  /// whatever it says of further ones.
  package func waitingMessages(in inbox: TreeID) async throws -> [WaitingMessage] {
    var all: [WaitingMessage] = []
    var cursor: UInt64? = 0
    while let after = cursor, all.count < Limits.inboxEnvelopes {
      let page = try await api.waitingMessages(in: inbox, after: after)
      all += page.messages
      cursor = page.messages.isEmpty ? nil : page.next.flatMap { $0 > after ? $0 : nil }
    }
    return Array(all.prefix(Limits.inboxEnvelopes))
  }

  /// Returns the users whose messages are taken over: those who were written to or accepted, and those in lists of the
  /// user's zones, the own ones and the accepted ones. Blocked users are not among them.
  package func knownSenders(among senders: Set<UserID>, _ transaction: ZDCReadTransaction) throws -> Set<UserID> {
    var known = try transaction.messages.known(localUser: localUser, tree: appTreeID)
    for row in try transaction.zones.zones(localUser: localUser) where row.appTreeID == appTreeID {
      known.formUnion(row.head?.acl.fields.entries.map(\.user) ?? [])
    }
    return try known.intersection(senders).filter { try !transaction.contacts.contact(of: $0).isBlocked }
  }
}
