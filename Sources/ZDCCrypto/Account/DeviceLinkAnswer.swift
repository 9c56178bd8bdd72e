package import ZDCProtocol

/// The answer of a linking device, sealed to the new device's key (PROTOCOL 3.4).
package struct DeviceLinkAnswer: Sendable, Equatable {
  package var accessKey: AccessKey
  package var user: UserID
  /// The end of the identity chain that the sending device has verified.
  package var chainSeq: UInt32
  package var chainHash: LinkHash
  package var heads: [VerifiedHead]

  package init(accessKey: AccessKey, user: UserID, chainSeq: UInt32, chainHash: LinkHash, heads: [VerifiedHead]) {
    (self.accessKey, self.user, self.heads) = (accessKey, user, heads)
    (self.chainSeq, self.chainHash) = (chainSeq, chainHash)
  }

  /// Seals the answer to the key of the new device.
  package func seal(to offer: DeviceLinkOffer, code: DeviceLinkCode) throws(ZDCSecurityError) -> [UInt8] {
    try code.check(offer)
    return try Wrap.wrap(to: offer.publicKey, label: "device-link", context: Self.context(code), plaintext: plaintext)
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
    heads = try reader.readHeads(limit: Limits.deviceLinkHeads)
    try reader.finish()
  }

  private var plaintext: [UInt8] {
    var out = ByteWriter(capacity: 128 + VerifiedHead.byteCount * heads.count)
    out.append(contentsOf: Array("ZDLK".utf8) + [1, 1])
    out.append(contentsOf: accessKey.exportBytes())
    out.append(user)
    out.append(chainSeq)
    out.append(chainHash)
    out.append(heads: heads)
    return out.bytes
  }

  private static func context(_ code: DeviceLinkCode) -> [UInt8] { code.id.bytes + code.offerHash.bytes }
}
