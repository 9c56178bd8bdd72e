package import ZDCProtocol

/// The number that two people compare to be sure that no server stands between them: 60 digits, the same on both sides,
/// for as long as both accounts exist (PROTOCOL 3.2).
///
/// It covers both user IDs, and each user ID covers the account's first keys. Read it aloud over a channel that the
/// server does not control, or compare the digits side by side.
///
/// ```swift
/// let number = try session.userManager.safetyNumber(of: user.uuid, and: bobsUserID)
/// print(number)  // twelve groups of five digits
/// ```
public struct ZDCSafetyNumber: Sendable, Hashable, CustomStringConvertible {
  /// Twelve groups of five digits.
  public let groups: [String]

  init(_ a: UserID, _ b: UserID) {
    groups = [a, b].sorted().flatMap(Self.groups)
  }

  /// The groups, separated by spaces.
  public var description: String { groups.joined(separator: " ") }

  /// Six groups: the first 30 bytes of `H("safety", userID)`, five at a time, modulo 100,000.
  private static func groups(_ user: UserID) -> [String] {
    let hash = Bytes32<SafetyRole>(labelledHash: "safety", user.bytes).bytes
    return (0..<6).map { hash[$0 * 5..<$0 * 5 + 5].decimalDigits(5) }
  }
}

private enum SafetyRole {}

/// The text of a code that a user shows and another one scans. It names the user and the end of their chain.
///
/// `"zdcid:1:"` and the z-base-32 text of `b[32] userID ‖ u32 seq ‖ b[32] link hash`.
package struct IdentityCode: Sendable, Hashable {
  package static let prefix = "zdcid:1:"
  private static let byteCount = 68

  package let user: UserID
  package let seq: UInt32
  package let hash: LinkHash

  package init(user: UserID, seq: UInt32, hash: LinkHash) { (self.user, self.seq, self.hash) = (user, seq, hash) }

  package var text: String {
    var out = ByteWriter(capacity: Self.byteCount)
    out.append(user)
    out.append(seq)
    out.append(hash)
    return Self.prefix + ZBase32.encode(out.bytes)
  }

  /// Returns nil for any other text.
  package init?(_ text: String) {
    guard text.hasPrefix(Self.prefix),
      let bytes = ZBase32.decode(text.dropFirst(Self.prefix.count), byteCount: Self.byteCount)
    else { return nil }
    var reader = ByteReader(bytes)
    do throws(ZDCSecurityError) {
      user = try reader.read32()
      seq = try reader.readUInt32()
      hash = try reader.read32()
      try reader.finish()
    } catch { return nil }
  }

  /// Checks that the user's verified chain has the link that the code names.
  ///
  /// - Throws: `identityChainRollback` for a shorter chain, `identityChainInvalid` for another link in that place.
  package func check(_ links: [IdentityLink]) throws(ZDCSecurityError) {
    guard Int(seq) < links.count else { throw ZDCSecurityError(.identityChainRollback, user: user) }
    guard links[Int(seq)].hash == hash else { throw ZDCSecurityError(.identityChainInvalid, user: user) }
  }
}
