package import ZDCProtocol

/// The name and the avatar that a user shows to the people with whom they share (PROTOCOL 3.11, "Profiles").
///
/// It is the payload of a message of kind `profile`, and an extra of the record that keeps it in an inbox.
package struct UserProfile: Sendable, Hashable {
  package let name: String
  /// The bytes of an image, which only the app decodes. Empty for none.
  package let avatar: [UInt8]

  /// - Throws: `limitExceeded` for a name or an avatar beyond its limit, `nonCanonicalEncoding` for a name with a
  ///   character that could forge a line or change the direction of the text around it.
  package init(name: String, avatar: [UInt8] = []) throws(ZDCSecurityError) {
    try require(
      name.utf8.count <= Limits.profileNameBytes && avatar.count <= Limits.profileAvatarBytes, .limitExceeded)
    try require(!name.unicodeScalars.contains(where: Self.isRefused), .nonCanonicalEncoding)
    self.name = name
    self.avatar = avatar
  }

  package init(_ bytes: some Collection<UInt8>) throws(ZDCSecurityError) {
    var reader = ByteReader(Array(bytes))
    try require(try reader.readUInt8() == 1, .unsupportedVersion)
    let name = try reader.readVariable16(limit: Limits.profileNameBytes)
    let avatar = Array(try reader.readVariable16(limit: Limits.profileAvatarBytes))
    try reader.finish()
    guard let text = String(validating: name, as: UTF8.self) else { throw ZDCSecurityError(.nonCanonicalEncoding) }
    try self.init(name: text, avatar: avatar)
  }

  package var bytes: [UInt8] {
    var out = ByteWriter(capacity: 5 + name.utf8.count + avatar.count)
    out.append(UInt8(1))
    out.append16(Array(name.utf8))
    out.append16(avatar)
    return out.bytes
  }

  private static func isRefused(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0..<0x20, 0x7F...0x9F, 0x61C, 0x200B, 0x200E, 0x200F, 0x2028...0x202E, 0x2060, 0x2066...0x2069, 0xFEFF: true
    default: false
    }
  }
}

extension UserProfile: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  package var description: String { "<profile>" }
  package var debugDescription: String { description }
  package var customMirror: Mirror { Mirror(self, children: []) }
}

extension MessageID {
  /// The ID of the message that brings one version of a user's profile to one recipient. Several devices of the user may
  /// send it; the server keeps one.
  package init(profileVersion version: UInt64, from sender: UserID, to recipient: UserID) {
    let number = withUnsafeBytes(of: version.bigEndian, Array.init)
    self.init(prefixOf: RecordHash(labelledHash: "profile-message", sender.bytes, recipient.bytes, number))
  }
}
