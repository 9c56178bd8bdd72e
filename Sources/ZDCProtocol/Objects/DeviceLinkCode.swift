package enum DeviceLinkRole {}
package enum DeviceLinkKeyRole {}

/// Names the link of a new device on the server: 16 random bytes.
package typealias DeviceLinkID = Bytes16<DeviceLinkRole>

/// The code that a new device shows and a device of the account scans (PROTOCOL 3.4).
///
/// `"zdclink:1:"` and the z-base-32 text of `b[16] linkID ‖ b[32] H("link-key", public key)`. It is not secret: a person who
/// reads it can only offer the new device another account, which its user detects by the digits.
package struct DeviceLinkCode: Sendable, Hashable {
  package static let scheme = "zdclink:"
  package static let prefix = "zdclink:1:"
  private static let byteCount = 48

  package let id: DeviceLinkID
  package let keyHash: Bytes32<DeviceLinkKeyRole>

  package init(id: DeviceLinkID, publicKey: [UInt8]) {
    self.id = id
    keyHash = Self.hash(publicKey)
  }

  package var text: String {
    var out = ByteWriter(capacity: Self.byteCount)
    out.append(id)
    out.append(keyHash)
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
      keyHash = try reader.read32()
      try reader.finish()
    } catch { return nil }
  }

  /// - Throws: `keyCommitmentMismatch` for another key than the one in the code.
  package func check(_ publicKey: [UInt8]) throws(ZDCSecurityError) {
    try require(Self.hash(publicKey) == keyHash, .keyCommitmentMismatch)
  }

  /// The six digits that both devices show: `H("link-sas", linkID ‖ public key ‖ userID)`, its first 8 bytes modulo 10^6.
  package func digits(publicKey: [UInt8], user: UserID) -> String {
    let hash = Bytes32<DeviceLinkRole>(labelledHash: "link-sas", id.bytes, publicKey, user.bytes).bytes
    return hash.prefix(8).decimalDigits(6)
  }

  private static func hash(_ publicKey: [UInt8]) -> Bytes32<DeviceLinkKeyRole> {
    Bytes32(labelledHash: "link-key", publicKey)
  }
}
