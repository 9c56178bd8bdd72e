import ZDCProtocol

@testable import ZDCCrypto

/// Messages from Bob to the owner of the frozen account.
extension VectorCases {
  private struct Exchange {
    let sender: FrozenMember
    let user: UserID
    let inbox: TreeID
    let key: DecryptionKey
  }

  mutating func addMessages() throws {
    let exchange = Exchange(
      sender: try FrozenMember("bob"), user: world.birth.userID, inbox: world.birth.trunks[3].zone.tree,
      key: try DecryptionKey(seed: world.birth.decryptionKey.seed))
    try add("message", "a message of 40 bytes", exchange, world.fields(exchange.sender, exchange.inbox))
    var full = world.fields(exchange.sender, exchange.inbox)
    (full.kind, full.seq, full.payload) = (.signal, 7, pattern(5_000))
    full.heads = [VerifiedHead(zone: world.home.zone, seq: 3, hash: CommitHash(1, 2, 3, 4))]
    try add("message-signal", "a signal with a zone's head, padded", exchange, full)
    try addAttachedMessages(exchange)
    try addMessageFailures(exchange)
    try addProfiles(exchange)
    try addReceivedRecord(exchange)
  }

  private mutating func addAttachedMessages(_ exchange: Exchange) throws {
    var fields = world.fields(exchange.sender, exchange.inbox)
    let content = NodeRecord.Content(
      dataVersion: 1, blobID: BlobID(high: 5, low: 6), cipherLength: 1_064_944, contentRoot: ContentRoot(1, 2, 3, 4))
    var source = SeededSource("zdc1 vectors attached message")
    let secrets = ContentSecrets(
      key: .random(&source), sizes: ContentSizes(data: 1_000_000), thumbnailTag: .zero)
    (fields.kind, fields.seq) = (.attached, 2)
    fields.payload = try MessageAttachment(.init(content), secrets: secrets).payload
    try add("message-attached", "a message whose data is in the sender's outbox", exchange, fields)
    var other = content
    other.blobID = BlobID(high: 5, low: 7)
    try add(
      "message-attached-other", "the envelope names other content than the body", exchange, fields,
      attachment: .init(other), expect: .messageAuthFailed)
    try add(
      "message-attached-none", "a message without content beside it, in an envelope that names some", exchange,
      world.fields(exchange.sender, exchange.inbox), attachment: .init(content), expect: .messageAuthFailed)
  }

  private mutating func addMessageFailures(_ exchange: Exchange) throws {
    let fields = world.fields(exchange.sender, exchange.inbox)
    var other = fields
    other.recipient = exchange.sender.user
    try add(
      "message-other-recipient", "the body was signed for somebody else", exchange, other,
      expect: .messageWrongRecipient)
    other = fields
    other.recipientEncGen = 2
    try add(
      "message-other-generation", "the body names another key generation", exchange, other,
      expect: .messageWrongRecipient)
    other = fields
    other.id = MessageID(high: 9, low: 9)
    try add("message-other-id", "the body is another message", exchange, other, expect: .messageAuthFailed)
    other = fields
    other.seq = 0
    try add("message-seq-zero", "numbers begin with 1", exchange, other, expect: .nonCanonicalEncoding)
    other = fields
    other.heads = [2, 1].map { VerifiedHead(zone: ZoneID(trunkOf: TreeID($0, 0, 0, 0)), seq: 0, hash: .zero) }
    try add("message-heads-order", "heads in descending order", exchange, other, expect: .nonCanonicalEncoding)
    try add(
      "message-signature", "signed by another user's key", exchange, fields, signedBy: try FrozenMember("carol"),
      expect: .messageAuthFailed)
  }

  private mutating func addProfiles(_ exchange: Exchange) throws {
    var fields = world.fields(exchange.sender, exchange.inbox)
    let profile = try UserProfile(name: "Bób", avatar: pattern(600))
    (fields.kind, fields.seq, fields.payload) = (.profile, 3, profile.bytes)
    try add("message-profile", "a name and an avatar", exchange, fields)
    try addBurns(exchange)
  }

  private mutating func addBurns(_ exchange: Exchange) throws {
    var fields = world.fields(exchange.sender, exchange.inbox)
    let burned = fields.id
    fields.id = MessageID(burning: burned, from: fields.sender, to: fields.recipient)
    (fields.kind, fields.payload) = (.burn, burned.bytes)
    try add("message-burn", "the sender burns a message", exchange, fields)
    try addZoneKeys(exchange)
  }

  private mutating func addZoneKeys(_ exchange: Exchange) throws {
    var fields = world.fields(exchange.sender, exchange.inbox)
    let key = NodeKey(pattern(32))
    let zone = ZoneID(tree: exchange.inbox, root: NodeID(fields.id.bytes) ?? .zero)
    for (kind, key, name) in [
      (MessageBody.Kind.keyRequest, nil, "message-key-request"), (.keyAnswer, key, "message-key-answer"),
    ] {
      let letter = ZoneKeyLetter(zone: zone, zoneKeyGen: 2, key: key)
      fields.id = letter.messageID(from: fields.sender, to: fields.recipient)
      (fields.kind, fields.payload) = (kind, letter.payload)
      try add(name, kind == .keyRequest ? "a request for a zone's key" : "a zone's key", exchange, fields)
    }
  }

  private mutating func addReceivedRecord(_ exchange: Exchange) throws {
    var source = SeededSource("zdc1 vectors received message")
    let fields = world.fields(exchange.sender, exchange.inbox)
    let received = ReceivedMessage(
      sender: fields.sender, senderGen: 1, device: fields.device, seq: fields.seq, id: fields.id)
    let inbox = world.birth.trunks[3]
    var draft = RecordDraft(
      tree: inbox.zone.tree, node: received.node, parent: inbox.zone.root, key: .random(&source),
      parentLink: .keys(ParentKeys(inbox.key, keyGen: 1)),
      secrets: RecordPrivate(name: try FoldedName(received.node.text), createdMs: fields.timeMs),
      writer: exchange.user, writerGen: 1, timeMs: FrozenWorld.timeMs)
    draft.secrets.received = received
    let record = try RecordSealer.seal(draft, random: &source)
    var members: [String: VectorValue] = [
      "record": VectorValue(record.bytes), "parentKey": VectorValue(inbox.key.exportBytes()), "parentKeyGen": 1,
    ]
    add(
      "record-received", "record", "a message in the inbox",
      members.merging([
        "recordHash": VectorValue(record.hash.bytes), "nodeKey": VectorValue(draft.key.exportBytes()),
        "name": VectorValue(draft.secrets.name), "createdMs": VectorValue(draft.secrets.createdMs),
      ]) { $1 })
    try addProfileRecord(draft, members)
    draft.secrets.received?.seq += 1
    draft.secrets.received?.id = MessageID(high: 9, low: 9)
    members["record"] = VectorValue(try RecordSealer.seal(draft, random: &source).bytes)
    add(
      "record-received-other", "record", "a message in the place of another", expect: .recordBindingMismatch, members)
    draft.secrets.movedFrom = MovedNode(tree: inbox.zone.tree, node: received.node)
    let moved = try RecordSealer.seal(draft, random: &source)
    members["record"] = VectorValue(moved.bytes)
    add(
      "record-received-moved", "record", "a message that was moved to another place",
      members.merging([
        "recordHash": VectorValue(moved.hash.bytes), "nodeKey": VectorValue(draft.key.exportBytes()),
        "name": VectorValue(draft.secrets.name), "createdMs": VectorValue(draft.secrets.createdMs),
      ]) { $1 })
  }

  private mutating func addProfileRecord(_ received: RecordDraft, _ others: [String: VectorValue]) throws {
    var (draft, members) = (received, others)
    var source = SeededSource("zdc1 vectors profile")
    draft.secrets.profile = try UserProfile(name: "Bób", avatar: pattern(600))
    let record = try RecordSealer.seal(draft, random: &source)
    members["record"] = VectorValue(record.bytes)
    add(
      "record-profile", "record", "a profile in the inbox",
      members.merging([
        "recordHash": VectorValue(record.hash.bytes), "nodeKey": VectorValue(draft.key.exportBytes()),
        "name": VectorValue(draft.secrets.name), "createdMs": VectorValue(draft.secrets.createdMs),
      ]) { $1 })
    draft.secrets.received = nil
    members["record"] = VectorValue(try RecordSealer.seal(draft, random: &source).bytes)
    add(
      "record-profile-of-nobody", "record", "a profile that does not say whose it is", expect: .recordBindingMismatch,
      members)
  }

  /// The envelope is that of the frozen message; only the body differs. Wraps come from the stored file, because the
  /// platform's HPKE takes no seed.
  private mutating func add(
    _ name: String, _ about: String, _ exchange: Exchange, _ fields: MessageBody.Fields,
    signedBy signer: FrozenMember? = nil, attachment: MessageEnvelope.Attachment? = nil,
    expect code: ZDCSecurityError.Code? = nil
  ) throws {
    let body = try MessageBody(fields, sign: (signer ?? exchange.sender).sign("message"))
    let envelope = try storedEnvelope(name) {
      let id =
        [.burn, .keyRequest, .keyAnswer].contains(fields.kind)
        ? fields.id : world.fields(exchange.sender, exchange.inbox).id
      let context = MessageEnvelope.context(id: id, recipient: exchange.user, inbox: exchange.inbox, encGen: 1)
      let sealed = try Wrap.wrap(
        to: exchange.key.publicKey, label: "message", context: context, plaintext: body.bytes)
      return MessageEnvelope(
        id: id, recipient: exchange.user, inbox: exchange.inbox, recipientEncGen: 1, sealed: sealed,
        attachment: attachment ?? body.attachment?.content)
    }
    add(
      name, "message", about, expect: code?.rawValue ?? "ok",
      [
        "envelope": VectorValue(envelope.bytes), "user": VectorValue(exchange.user.bytes),
        "inbox": VectorValue(exchange.inbox.bytes), "encSeed": VectorValue(exchange.key.seed.exportBytes()),
        "senderLink": VectorValue(exchange.sender.link.bytes), "payload": VectorValue(fields.payload),
        "nodeID": VectorValue(NodeID(message: fields.id, from: fields.sender).bytes), "seq": VectorValue(fields.seq),
      ])
  }
}

extension FrozenWorld {
  fileprivate func fields(_ sender: FrozenMember, _ inbox: TreeID) -> MessageBody.Fields {
    MessageBody.Fields(
      id: MessageID(high: 1, low: 2), sender: sender.user, senderGen: 1, device: 0x0102_0304_0506_0708,
      recipient: birth.userID, inbox: inbox, recipientEncGen: 1, seq: 1, timeMs: Self.timeMs, kind: .message,
      payload: pattern(40))
  }
}

private func storedEnvelope(_ name: String, make: () throws -> MessageEnvelope) throws -> MessageEnvelope {
  if let vector = try? Vector(contentsOf: Vector.url(name)), let bytes = try? vector.bytes("envelope") {
    return try MessageEnvelope(bytes)
  }
  return try make()
}
