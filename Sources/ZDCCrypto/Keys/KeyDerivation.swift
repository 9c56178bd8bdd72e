internal import Crypto
internal import ZDCProtocol

/// HKDF-Expand, always without extract: every key here is uniform.
enum KeyDerivation {
  /// `D(key, label) = HKDF-Expand-SHA256(key, "zdc1/" ‖ label, 32)`.
  static func derive(_ key: SymmetricKey, label: StaticString) -> SymmetricKey {
    expand256(key, info: Array(labelPrefix(label).dropLast()), count: 32)
  }

  static func expand256(_ key: SymmetricKey, info: [UInt8], count: Int) -> SymmetricKey {
    HKDF<SHA256>.expand(pseudoRandomKey: key, info: info, outputByteCount: count)
  }

  static func expand512(_ key: SymmetricKey, info: [UInt8], count: Int) -> SymmetricKey {
    HKDF<SHA512>.expand(pseudoRandomKey: key, info: info, outputByteCount: count)
  }

  static func authenticate(_ key: SymmetricKey, _ message: [UInt8]) -> [UInt8] {
    Array(HMAC<SHA256>.authenticationCode(for: message, using: key))
  }
}
