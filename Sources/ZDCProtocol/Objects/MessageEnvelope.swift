package enum MessageRole {}
/// 16 bytes chosen by the sender's client. Together with the sender it names a message.
package typealias MessageID = Bytes16<MessageRole>

/// A message on its way to one recipient, sealed for them (PROTOCOL 3.11).
package struct MessageEnvelope: Sendable, Hashable {
  package let id: MessageID
  package let recipient: UserID
  /// The recipient's inbox in the app's tree.
  package let inbox: TreeID
  package let recipientEncGen: UInt32
  package let sealed: [UInt8]
  /// The content that the recipient may read in the sender's outbox; nil for a message that is complete without.
  package let attachment: Attachment?
  package let bytes: [UInt8]

  package init(
    id: MessageID, recipient: UserID, inbox: TreeID, recipientEncGen: UInt32, sealed: [UInt8],
    attachment: Attachment? = nil
  ) {
    self.id = id
    self.recipient = recipient
    self.inbox = inbox
    self.recipientEncGen = recipientEncGen
    self.sealed = sealed
    self.attachment = attachment
    var out = ByteWriter(magic: "ZDME", capacity: 94 + sealed.count)
    out.append(contentsOf: Self.context(id: id, recipient: recipient, inbox: inbox, encGen: recipientEncGen))
    out.append32(sealed)
    if let attachment { out.append(contentsOf: attachment.bytes) }
    bytes = out.bytes
  }

  package init(_ bytes: [UInt8]) throws(ZDCSecurityError) {
    try require(bytes.count <= Limits.envelopeBytes, .limitExceeded)
    var reader = ByteReader(bytes)
    try reader.readPreamble(magic: "ZDME")
    id = try reader.read16()
    recipient = try reader.read32()
    inbox = try reader.read32()
    recipientEncGen = try reader.readUInt32()
    try require(recipientEncGen >= 1, .nonCanonicalEncoding)
    sealed = Array(try reader.readVariable32(limit: Limits.envelopeBytes))
    attachment = reader.remaining == 0 ? nil : try Attachment(&reader)
    try reader.finish()
    self.bytes = bytes
  }

  /// The content of the sender's outbox node that has the message's ID.
  package struct Attachment: Sendable, Hashable {
    package var blobID: BlobID
    package var cipherLength: UInt64
    package var contentRoot: ContentRoot

    package init(_ content: NodeRecord.Content) {
      (blobID, cipherLength, contentRoot) = (content.blobID, content.cipherLength, content.contentRoot)
    }

    package init(_ reader: inout ByteReader) throws(ZDCSecurityError) {
      blobID = try reader.read16()
      cipherLength = try reader.readUInt64()
      contentRoot = try reader.read32()
    }

    package var bytes: [UInt8] {
      var out = ByteWriter(capacity: 56)
      out.append(blobID)
      out.append(cipherLength)
      out.append(contentRoot)
      return out.bytes
    }

    /// The fields of the first record of a node that has the content.
    package var firstVersion: NodeRecord.Content {
      NodeRecord.Content(dataVersion: 1, blobID: blobID, cipherLength: cipherLength, contentRoot: contentRoot)
    }
  }

  /// The context that the seal is bound to.
  package var context: [UInt8] {
    Self.context(id: id, recipient: recipient, inbox: inbox, encGen: recipientEncGen)
  }

  package static func context(id: MessageID, recipient: UserID, inbox: TreeID, encGen: UInt32) -> [UInt8] {
    var out = ByteWriter(capacity: 84)
    out.append(id)
    out.append(recipient)
    out.append(inbox)
    out.append(encGen)
    return out.bytes
  }
}

extension NodeID {
  /// The inbox node of a message: only the sender can name one that becomes this node.
  package init(message: MessageID, from sender: UserID) {
    self.init(prefixOf: RecordHash(labelledHash: "message-node", sender.bytes, message.bytes))
  }
}
