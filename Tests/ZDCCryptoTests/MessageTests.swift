import Testing
import ZDCProtocol

@testable import ZDCCrypto

@Suite struct MessageTests {
  private let sender = SigningKey.random()
  private let reader = UserID(w: 2)
  private let inbox = TreeID(3, 3, 3, 3)
  private let key: DecryptionKey

  init() throws { key = try DecryptionKey.random() }

  private func fields(_ payload: [UInt8] = [1, 2, 3]) -> MessageBody.Fields {
    MessageBody.Fields(
      id: MessageID(high: 1, low: 1), sender: UserID(w: 1), senderGen: 1, device: 5, recipient: reader, inbox: inbox,
      recipientEncGen: 1, seq: 1, timeMs: 7, kind: .message, payload: payload)
  }

  private func envelope(_ fields: MessageBody.Fields) throws -> MessageEnvelope {
    let body = try MessageBody(fields) { try sender.sign(label: "message", message: $0) }
    return try MessageEnvelope(sealing: body, encPub: key.publicKey)
  }

  @Test func aMessageIsReadByItsRecipient_andItsSignatureIsChecked() throws {
    let sent = try envelope(fields())
    let body = try MessageEnvelope(sent.bytes).open(user: reader, inbox: inbox, key: key)
    #expect(body.fields == fields())
    #expect(body.isSigned(by: sender.publicKey))
    #expect(!body.isSigned(by: SigningKey.random().publicKey))
  }

  @Test func aMessageForAnotherUserOrInboxIsRefused() throws {
    let sent = try envelope(fields())
    #expect(
      try securityCode { _ = try sent.open(user: UserID(w: 9), inbox: inbox, key: key) } == .messageWrongRecipient)
    #expect(
      try securityCode { _ = try sent.open(user: reader, inbox: TreeID(9, 9, 9, 9), key: key) }
        == .messageWrongRecipient)
    let other = try DecryptionKey.random()
    #expect(try securityCode { _ = try sent.open(user: reader, inbox: inbox, key: other) } == .messageAuthFailed)
  }

  @Test func anyChangedFieldOutsideBreaksTheSeal() throws {
    let sent = try envelope(fields())
    let other = MessageEnvelope(
      id: MessageID(high: 1, low: 2), recipient: reader, inbox: inbox, recipientEncGen: 1, sealed: sent.sealed)
    #expect(try securityCode { _ = try other.open(user: reader, inbox: inbox, key: key) } == .messageAuthFailed)
    let older = MessageEnvelope(
      id: sent.id, recipient: reader, inbox: inbox, recipientEncGen: 2, sealed: sent.sealed)
    #expect(try securityCode { _ = try older.open(user: reader, inbox: inbox, key: key) } == .messageAuthFailed)
  }

  @Test func theLengthTellsOnlyTheBucket() throws {
    let lengths = try [0, 1, 300, 700].map { try envelope(fields(pattern($0))).bytes.count }
    #expect(Set(lengths).count == 1)
    #expect(try envelope(fields(pattern(Limits.messageBytes))).bytes.count <= Limits.envelopeBytes)
    #expect(
      try securityCode { _ = try envelope(fields(pattern(Limits.messageBytes + 1))) } == .limitExceeded)
  }

  private func attachment(_ size: UInt64 = 1_000_000) throws -> MessageAttachment {
    let layout = try ContentLayout(sizes: ContentSizes(data: size), padding: .padme)
    let content = NodeRecord.Content(
      dataVersion: 4, blobID: .random(), cipherLength: layout.cipherLength, contentRoot: ContentRoot(1, 2, 3, 4))
    let secrets = ContentSecrets(key: .random(), sizes: layout.sizes, thumbnailTag: .zero)
    return try MessageAttachment(.init(content), secrets: secrets)
  }

  @Test func anAttachmentIsNamedByTheEnvelope_andDescribedInside() throws {
    let attachment = try attachment()
    var fields = fields(attachment.payload)
    fields.kind = .attached
    let sent = try MessageEnvelope(try envelope(fields).bytes)
    #expect(sent.attachment == attachment.content)
    let body = try sent.open(user: reader, inbox: inbox, key: key)
    #expect(body.attachment == attachment && body.isSigned(by: sender.publicKey))
    for other in [nil, try self.attachment().content] {
      let changed = MessageEnvelope(
        id: sent.id, recipient: reader, inbox: inbox, recipientEncGen: 1, sealed: sent.sealed, attachment: other)
      #expect(try securityCode { _ = try changed.open(user: reader, inbox: inbox, key: key) } == .messageAuthFailed)
    }
    for length in 1..<56 {
      #expect(throws: ZDCSecurityError.self) { try MessageEnvelope(Array(sent.bytes.dropLast(length))) }
    }
    #expect(throws: ZDCSecurityError.self) { try MessageEnvelope(sent.bytes + [0]) }
  }

  @Test func anAttachmentWhoseSizesDoNotFit_isRefused() throws {
    let good = try attachment()
    var secrets = good.secrets
    secrets.sizes.data = 2_000_000
    #expect(
      try securityCode { _ = try MessageAttachment(good.content, secrets: secrets) } == .contentHeaderInvalid)
    var payload = good.payload
    payload.append(0)
    #expect(throws: ZDCSecurityError.self) {
      var fields = self.fields(payload)
      fields.kind = .attached
      _ = try envelope(fields)
    }
    secrets = good.secrets
    secrets.thumbnailTag = ThumbnailTag(high: 1, low: 1)
    #expect(
      try securityCode { _ = try MessageAttachment(good.content, secrets: secrets) } == .contentHeaderInvalid)
  }

  @Test func everyOtherFormOfABodyIsRefused() throws {
    let bytes = try MessageBody(fields()) { try sender.sign(label: "message", message: $0) }.bytes
    #expect(try MessageBody(bytes).bytes == bytes)
    #expect(try securityCode { _ = try MessageBody(bytes + [0]) } == .nonCanonicalEncoding)
    #expect(try securityCode { _ = try MessageBody(Array(bytes.dropLast())) } == .nonCanonicalEncoding)
    #expect(try securityCode { _ = try MessageBody(Array(bytes.dropLast()) + [1]) } == .nonCanonicalEncoding)
    for bit in 0..<bytes.count * 8 {
      let flipped = bytes.flipping(bit: bit)
      if let other = try? MessageBody(flipped) {
        #expect(other.bytes == flipped)
        #expect(!other.isSigned(by: sender.publicKey))
      }
    }
  }

  @Test func theNodeOfAMessageDependsOnItsSender() {
    let id = MessageID(high: 4, low: 4)
    #expect(NodeID(message: id, from: UserID(w: 1)) != NodeID(message: id, from: UserID(w: 2)))
    #expect(NodeID(message: id, from: UserID(w: 1)) == NodeID(message: id, from: UserID(w: 1)))
  }
}
