package import ZDCProtocol

/// The signed and sealed body of a message to one recipient (PROTOCOL 3.11).
package struct MessageBody: Sendable, Equatable {
  package enum Kind: UInt8, Sendable {
    /// The sender keeps a copy in the outbox.
    case message = 1
    /// The sender keeps no copy.
    case signal = 2
    /// A message whose data is content of the sender's outbox. The payload is a ``MessageAttachment``.
    case attached = 3
    /// The key of a zone, for a member who asked for it. The payload is a ``ZoneKeyLetter``, and `seq` is 1.
    case keyAnswer = 5
    /// The sender cannot open the grant of a zone's key. The payload is a ``ZoneKeyLetter`` without the key, `seq` is 1.
    case keyRequest = 6
    /// The sender's name and avatar. The payload is a ``UserProfile``, and `seq` its version.
    case profile = 7
    /// The sender asks the recipient's devices to delete a message. The payload is its ID, and `seq` is 1.
    case burn = 8
  }

  package struct Fields: Sendable, Hashable {
    package var id: MessageID
    package var sender: UserID
    package var senderGen: UInt32
    /// Names the sending device to the recipient; others cannot recognise it.
    package var device: UInt64
    package var recipient: UserID
    package var inbox: TreeID
    package var recipientEncGen: UInt32
    /// 1, 2, 3, … for each sending device and recipient. The version of a profile: all devices of the user count it
    /// together.
    package var seq: UInt64
    package var timeMs: UInt64
    /// Those of zones that sender and recipient know, in the order of the zones.
    package var heads: [VerifiedHead]
    package var kind: Kind
    package var payload: [UInt8]

    package init(
      id: MessageID, sender: UserID, senderGen: UInt32, device: UInt64, recipient: UserID, inbox: TreeID,
      recipientEncGen: UInt32, seq: UInt64, timeMs: UInt64, heads: [VerifiedHead] = [], kind: Kind, payload: [UInt8]
    ) {
      self.id = id
      self.sender = sender
      self.senderGen = senderGen
      self.device = device
      self.recipient = recipient
      self.inbox = inbox
      self.recipientEncGen = recipientEncGen
      self.seq = seq
      self.timeMs = timeMs
      self.heads = heads
      self.kind = kind
      self.payload = payload
    }
  }

  package let fields: Fields
  /// The content beside a message of kind `attached`.
  package let attachment: MessageAttachment?
  /// The profile that a message of kind `profile` brings.
  package let profile: UserProfile?
  /// The message of the sender that a message of kind `burn` deletes.
  package let burned: MessageID?
  /// The payload of a message of kind `keyRequest` or `keyAnswer`.
  package let zoneKey: ZoneKeyLetter?
  package let signature: [UInt8]
  private let signedBytes: [UInt8]

  /// Signs a body.
  ///
  /// - Throws: `limitExceeded` for a payload or a list of heads beyond its limit, the errors of ``MessageAttachment`` or
  ///   ``UserProfile`` for a payload that is none, `nonCanonicalEncoding` for a burn or a letter about a key that is none,
  ///   and what `sign` throws.
  package init(_ fields: Fields, sign: ([UInt8]) throws -> [UInt8]) throws {
    try require(
      fields.payload.count <= Limits.messageBytes && fields.heads.count <= Limits.messageHeads, .limitExceeded)
    self.fields = fields
    attachment = try fields.attachment()
    profile = try fields.profile()
    burned = try fields.burned()
    zoneKey = try fields.zoneKey()
    signedBytes = fields.bytes
    signature = try sign(signedBytes)
  }

  /// Decodes the padded plaintext.
  package init(_ bytes: [UInt8]) throws(ZDCSecurityError) {
    try require(bytes.count <= Limits.envelopeBytes, .limitExceeded)
    var reader = ByteReader(bytes)
    fields = try Fields(&reader)
    attachment = try fields.attachment()
    profile = try fields.profile()
    burned = try fields.burned()
    zoneKey = try fields.zoneKey()
    signedBytes = Array(bytes.prefix(reader.offset))
    signature = Array(try reader.read(count: 64))
    let isPadded = bytes.count == Self.paddedLength(of: reader.offset)
    let isZero = try reader.read(count: reader.remaining).allSatisfy { $0 == 0 }
    try require(isPadded && isZero, .nonCanonicalEncoding)
  }

  /// The padded plaintext.
  package var bytes: [UInt8] {
    let body = signedBytes + signature
    return body + [UInt8](repeating: 0, count: Self.paddedLength(of: body.count) - body.count)
  }

  package func isSigned(by publicKey: [UInt8]) -> Bool {
    Signatures.isValid(signature, by: publicKey, label: "message", message: signedBytes)
  }

  /// Padmé, and at least 1,024 bytes: most short messages have one length.
  private static func paddedLength(of count: Int) -> Int {
    max(1_024, Int(ContentPadding.padme.paddedLength(of: UInt64(count))))
  }
}

extension MessageBody.Fields {
  fileprivate var bytes: [UInt8] {
    var out = ByteWriter(magic: "ZDMB", capacity: 256 + heads.count * VerifiedHead.byteCount + payload.count)
    out.append(id)
    out.append(sender)
    out.append(senderGen)
    out.append(device)
    out.append(recipient)
    out.append(inbox)
    out.append(recipientEncGen)
    out.append(seq)
    out.append(timeMs)
    out.append(UInt64(0))
    out.append(TransparencyRoot.zero)
    out.append(heads: heads)
    out.append(kind.rawValue)
    out.append32(payload)
    return out.bytes
  }

  fileprivate init(_ reader: inout ByteReader) throws(ZDCSecurityError) {
    try reader.readPreamble(magic: "ZDMB")
    id = try reader.read16()
    sender = try reader.read32()
    senderGen = try reader.readUInt32()
    device = try reader.readUInt64()
    recipient = try reader.read32()
    inbox = try reader.read32()
    recipientEncGen = try reader.readUInt32()
    seq = try reader.readUInt64()
    try require(seq >= 1, .nonCanonicalEncoding)
    timeMs = try reader.readUInt64()
    try Self.requireNoTransparency(&reader)
    heads = try Self.readHeads(&reader)
    guard let kind = MessageBody.Kind(rawValue: try reader.readUInt8()) else {
      throw ZDCSecurityError(.unsupportedVersion)
    }
    self.kind = kind
    payload = Array(try reader.readVariable32(limit: Limits.messageBytes))
  }

  fileprivate func attachment() throws(ZDCSecurityError) -> MessageAttachment? {
    kind == .attached ? try MessageAttachment(payload: payload) : nil
  }

  fileprivate func profile() throws(ZDCSecurityError) -> UserProfile? {
    kind == .profile ? try UserProfile(payload) : nil
  }

  fileprivate func burned() throws(ZDCSecurityError) -> MessageID? {
    guard kind == .burn else { return nil }
    guard let burned = MessageID(payload), seq == 1, heads.isEmpty,
      id == MessageID(burning: burned, from: sender, to: recipient)
    else { throw ZDCSecurityError(.nonCanonicalEncoding) }
    return burned
  }

  fileprivate func zoneKey() throws(ZDCSecurityError) -> ZoneKeyLetter? {
    guard kind == .keyRequest || kind == .keyAnswer else { return nil }
    let letter = try ZoneKeyLetter(payload, isAnswer: kind == .keyAnswer)
    let isWhole = seq == 1 && heads.isEmpty && id == letter.messageID(from: sender, to: recipient)
    try require(isWhole, .nonCanonicalEncoding)
    return letter
  }

  private static func requireNoTransparency(_ reader: inout ByteReader) throws(ZDCSecurityError) {
    let (size, root) = (try reader.readUInt64(), try reader.read32(TransparencyRoot.self))
    try require((size == 0) == (root == .zero), .nonCanonicalEncoding)
    try require(size == 0, .unsupportedVersion)
  }

  private static func readHeads(_ reader: inout ByteReader) throws(ZDCSecurityError) -> [VerifiedHead] {
    let heads = try reader.readHeads(limit: Limits.messageHeads)
    try require(zip(heads, heads.dropFirst()).allSatisfy { $0.zone < $1.zone }, .nonCanonicalEncoding)
    return heads
  }
}

extension MessageID {
  /// The ID of the message that burns another one at one recipient.
  package init(burning message: MessageID, from sender: UserID, to recipient: UserID) {
    self.init(prefixOf: RecordHash(labelledHash: "burn-message", sender.bytes, recipient.bytes, message.bytes))
  }
}

extension MessageBody: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  package var description: String { "<message>" }
  package var debugDescription: String { description }
  package var customMirror: Mirror { Mirror(self, children: []) }
}
