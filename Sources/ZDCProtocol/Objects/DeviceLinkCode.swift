package enum DeviceLinkRole {}
package enum DeviceLinkOfferRole {}
package enum DeviceLinkNonceRole {}

/// Names the link of a new device on the server: 16 random bytes.
package typealias DeviceLinkID = Bytes16<DeviceLinkRole>
/// The random number that a new device reveals after it has the answer to its link.
package typealias DeviceLinkNonce = Bytes32<DeviceLinkNonceRole>

/// A new device's offer for its link: the key to which the answer is sealed, and a commitment to its nonce,
/// `b[1216] public key ‖ b[32] H("link-nonce", nonce)` (PROTOCOL 3.4).
package struct DeviceLinkOffer: Sendable, Hashable {
  package static let byteCount = IdentityLink.encPubBytes + 32

  package let publicKey: [UInt8]
  private let commitment: Bytes32<DeviceLinkNonceRole>

  package init(publicKey: [UInt8], nonce: DeviceLinkNonce) {
    (self.publicKey, commitment) = (publicKey, Self.commitment(nonce))
  }

  /// - Throws: `keyCommitmentMismatch` for another length.
  package init(_ bytes: [UInt8]) throws(ZDCSecurityError) {
    guard bytes.count == Self.byteCount, let commitment = Bytes32<DeviceLinkNonceRole>(bytes.suffix(32)) else {
      throw ZDCSecurityError(.keyCommitmentMismatch)
    }
    (publicKey, self.commitment) = (Array(bytes.dropLast(32)), commitment)
  }

  package var bytes: [UInt8] { publicKey + commitment.bytes }

  /// - Throws: `keyCommitmentMismatch` for another nonce than the one that the device has committed to.
  package func check(_ nonce: DeviceLinkNonce) throws(ZDCSecurityError) {
    try require(Self.commitment(nonce) == commitment, .keyCommitmentMismatch)
  }

  private static func commitment(_ nonce: DeviceLinkNonce) -> Bytes32<DeviceLinkNonceRole> {
    Bytes32(labelledHash: "link-nonce", nonce.bytes)
  }
}

/// The code that a new device shows and a device of the account scans (PROTOCOL 3.4).
///
/// `"zdclink:1:"` and the z-base-32 text of `b[16] linkID ‖ b[32] H("link-key", offer)`. It is not secret: a person who
/// reads it can only offer the new device another account, which its user detects by the digits.
package struct DeviceLinkCode: Sendable, Hashable {
  package static let scheme = "zdclink:"
  package static let prefix = "zdclink:1:"
  private static let byteCount = 48

  package let id: DeviceLinkID
  package let offerHash: Bytes32<DeviceLinkOfferRole>

  package init(id: DeviceLinkID, offer: DeviceLinkOffer) {
    self.id = id
    offerHash = Self.hash(offer)
  }

  package var text: String {
    var out = ByteWriter(capacity: Self.byteCount)
    out.append(id)
    out.append(offerHash)
    return Self.prefix + ZBase32.encode(out.bytes)
  }

  /// Returns nil for any other text.
  package init?(_ text: String) {
    guard text.hasPrefix(Self.prefix),
      let bytes = ZBase32.decode(text.dropFirst(Self.prefix.count), byteCount: Self.byteCount)
    else { return nil }
    var reader = ByteReader(bytes)
    do throws(ZDCSecurityError) {
      id = try reader.read16()
      offerHash = try reader.read32()
      try reader.finish()
    } catch { return nil }
  }

  /// - Throws: `keyCommitmentMismatch` for another offer than the one in the code.
  package func check(_ offer: DeviceLinkOffer) throws(ZDCSecurityError) {
    try require(Self.hash(offer) == offerHash, .keyCommitmentMismatch)
  }

  /// The six digits that both devices show: `H("link-sas", linkID ‖ offer ‖ nonce ‖ userID)`, its first 8 bytes modulo 10^6.
  ///
  /// The nonce is revealed after the new device has an answer. Before that, no other person can choose an account with the
  /// digits of the right one.
  package func digits(_ offer: DeviceLinkOffer, nonce: DeviceLinkNonce, user: UserID) -> String {
    let hash = Bytes32<DeviceLinkRole>(labelledHash: "link-sas", id.bytes, offer.bytes, nonce.bytes, user.bytes)
    return hash.bytes.prefix(8).decimalDigits(6)
  }

  private static func hash(_ offer: DeviceLinkOffer) -> Bytes32<DeviceLinkOfferRole> {
    Bytes32(labelledHash: "link-key", offer.bytes)
  }
}
