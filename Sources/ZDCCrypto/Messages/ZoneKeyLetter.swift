package import ZDCProtocol

/// The payload of a message about a zone's key (PROTOCOL 3.11, "Keys of zones"): a member who cannot open the own grant asks
/// others for the key, and each of them may answer with it.
package struct ZoneKeyLetter: Sendable, Equatable {
  package let zone: ZoneID
  package let zoneKeyGen: UInt32
  /// The key that an answer brings; nil in a request.
  package let key: NodeKey?

  package init(zone: ZoneID, zoneKeyGen: UInt32, key: NodeKey? = nil) {
    (self.zone, self.zoneKeyGen, self.key) = (zone, zoneKeyGen, key)
  }

  /// - Throws: `nonCanonicalEncoding`.
  package init(_ payload: [UInt8], isAnswer: Bool) throws(ZDCSecurityError) {
    var reader = ByteReader(payload)
    zone = ZoneID(tree: try reader.read32(), root: try reader.read16())
    zoneKeyGen = try reader.readUInt32()
    key = isAnswer ? NodeKey(try reader.read(count: 32)) : nil
    try reader.finish()
    try require(zoneKeyGen >= 1, .nonCanonicalEncoding)
  }

  package var payload: [UInt8] { name + (key?.exportBytes() ?? []) }

  private var name: [UInt8] {
    var out = ByteWriter(capacity: 52)
    out.append(zone.tree)
    out.append(zone.root)
    out.append(zoneKeyGen)
    return out.bytes
  }

  /// The only ID that a message of this content has between two users, so that one at most waits in a mailbox.
  package func messageID(from sender: UserID, to recipient: UserID) -> MessageID {
    let label: StaticString = key == nil ? "key-request-message" : "key-answer-message"
    return MessageID(prefixOf: RecordHash(labelledHash: label, sender.bytes, recipient.bytes, name))
  }
}
