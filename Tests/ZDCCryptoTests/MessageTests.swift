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
