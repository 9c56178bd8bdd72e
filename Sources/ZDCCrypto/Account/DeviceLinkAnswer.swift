package import ZDCProtocol

/// The answer of a linking device, sealed to the new device's key (PROTOCOL 3.4).
package struct DeviceLinkAnswer: Sendable, Equatable {
  /// The newest commit of a zone that the sending device has verified.
  package struct Head: Sendable, Hashable {
    package var zone: ZoneID
    package var seq: UInt64
    package var hash: CommitHash

    package init(zone: ZoneID, seq: UInt64, hash: CommitHash) { (self.zone, self.seq, self.hash) = (zone, seq, hash) }
  }

  package var accessKey: AccessKey
  package var user: UserID
  /// The end of the identity chain that the sending device has verified.
  package var chainSeq: UInt32
  package var chainHash: LinkHash
  package var heads: [Head]

  package init(accessKey: AccessKey, user: UserID, chainSeq: UInt32, chainHash: LinkHash, heads: [Head]) {
    (self.accessKey, self.user, self.heads) = (accessKey, user, heads)
    (self.chainSeq, self.chainHash) = (chainSeq, chainHash)
  }

  /// Seals the answer to the key of the new device.
  package func seal(to publicKey: [UInt8], code: DeviceLinkCode) throws(ZDCSecurityError) -> [UInt8] {
    try code.check(publicKey)
    return try Wrap.wrap(to: publicKey, label: "device-link", context: Self.context(code), plaintext: plaintext)
  }

  /// Opens a sealed answer.
  ///
  /// - Throws: `messageAuthFailed` if it was not sealed to this key for this code; `nonCanonicalEncoding`,
  ///   `unsupportedVersion`, `limitExceeded`.
  package init(opening sealed: [UInt8], key: DecryptionKey, code: DeviceLinkCode) throws(ZDCSecurityError) {
    try require(sealed.count <= Limits.deviceLinkAnswerBytes, .limitExceeded)
    let plaintext: [UInt8]
    do {
      plaintext = try key.unwrap(label: "device-link", context: Self.context(code), sealed)
    } catch { throw ZDCSecurityError(.messageAuthFailed) }
    var reader = ByteReader(plaintext)
    try reader.readPreamble(magic: "ZDLK")
    guard let accessKey = AccessKey(try reader.read(count: 32)) else { throw ZDCSecurityError(.nonCanonicalEncoding) }
    self.accessKey = accessKey
    user = try reader.read32()
    chainSeq = try reader.readUInt32()
    chainHash = try reader.read32()
    heads = try Self.heads(&reader)
    try reader.finish()
  }

  private static func heads(_ reader: inout ByteReader) throws(ZDCSecurityError) -> [Head] {
    let count = Int(try reader.readUInt16())
    try require(count <= Limits.deviceLinkHeads, .limitExceeded)
    var heads: [Head] = []
    for _ in 0..<count {
      let zone = ZoneID(tree: try reader.read32(), root: try reader.read16())
      heads.append(Head(zone: zone, seq: try reader.readUInt64(), hash: try reader.read32()))
    }
    return heads
  }

  private var plaintext: [UInt8] {
    var out = ByteWriter(capacity: 128 + 88 * heads.count)
    out.append(contentsOf: Array("ZDLK".utf8) + [1, 1])
    out.append(contentsOf: accessKey.exportBytes())
    out.append(user)
    out.append(chainSeq)
    out.append(chainHash)
    out.append(UInt16(heads.count))
    for head in heads {
      out.append(head.zone.tree)
      out.append(head.zone.root)
      out.append(head.seq)
      out.append(head.hash)
    }
    return out.bytes
  }

  private static func context(_ code: DeviceLinkCode) -> [UInt8] { code.id.bytes + code.keyHash.bytes }
}
