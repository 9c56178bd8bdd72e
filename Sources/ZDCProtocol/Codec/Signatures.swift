internal import Crypto

/// Ed25519 verification with checks that libraries omit (PROTOCOL 3.2, SECURITY A9).
package enum Signatures {
  /// Verifies `SIGN(sk, label, m) = Ed25519(sk, "zdc1/" ‖ label ‖ 00 ‖ m)`. Returns false for both a wrong signature
  /// and a weak key.
  package static func isValid(
    _ signature: some Collection<UInt8>, by publicKey: [UInt8], label: StaticString, message: some Collection<UInt8>
  ) -> Bool {
    isValid(signature, by: publicKey, signed: labelPrefix(label) + message)
  }

  /// Verifies a signature over exactly these bytes, because published vectors have no label.
  package static func isValid(
    _ signature: some Collection<UInt8>, by publicKey: [UInt8], signed message: [UInt8]
  ) -> Bool {
    guard !isWeak(publicKey), let key = try? Curve25519.Signing.PublicKey(rawRepresentation: publicKey) else {
      return false
    }
    return key.isValidSignature(Array(signature), for: message)
  }

  /// Returns true for keys that are not 32 bytes, not canonical, or one of the small-order points. For those points,
  /// one signature is valid for many messages.
  package static func isWeak(_ publicKey: [UInt8]) -> Bool {
    guard publicKey.count == 32 else { return true }
    var point = publicKey
    point[31] &= 0x7f
    return smallOrderPoints.contains(point) || !isCanonical(point)
  }

  /// Returns whether y < 2^255 − 19, with the sign bit cleared.
  private static func isCanonical(_ point: [UInt8]) -> Bool {
    let isLarge = point[31] == 0x7f && point[1..<31].allSatisfy { $0 == 0xff }
    return !(isLarge && point[0] >= 0xed)
  }

  /// The y coordinates of the points of order 1, 2, 4 and 8. The sign bit is ignored, because both signs are weak.
  private static let smallOrderPoints: Set<[UInt8]> = [
    [0x00] + [UInt8](repeating: 0, count: 31),
    [0x01] + [UInt8](repeating: 0, count: 31),
    [0xec] + [UInt8](repeating: 0xff, count: 30) + [0x7f],
    [
      0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0,
      0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05,
    ],
    [
      0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f,
      0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a,
    ],
  ]
}
