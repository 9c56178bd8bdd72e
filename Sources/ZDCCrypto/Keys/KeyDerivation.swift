internal import Crypto
internal import ZDCProtocol

/// HKDF-Expand, always without extract: every key here is uniform.
enum KeyDerivation {
  /// `D(key, label) = HKDF-Expand-SHA256(key, "zdc1/" ‖ label, 32)`.
  static func derive(_ key: SymmetricKey, label: StaticString) -> SymmetricKey {
    expand256(key, info: Array(labelPrefix(label).dropLast()), count: 32)
  }

  static func expand256(_ key: SymmetricKey, info: [UInt8], count: Int) -> SymmetricKey {
    expand(HMAC<SHA256>.self, key, info: info, count: count)
  }

  static func expand512(_ key: SymmetricKey, info: [UInt8], count: Int) -> SymmetricKey {
    expand(HMAC<SHA512>.self, key, info: info, count: count)
  }

  /// RFC 5869, 2.3. Written out, because the platform's call copies each block several times and records take six of
  /// these each way.
  private static func expand<H: HashFunction>(
    _: HMAC<H>.Type, _ key: SymmetricKey, info: [UInt8], count: Int
  ) -> SymmetricKey {
    var output: [UInt8] = []
    var block: [UInt8] = []
    var index: UInt8 = 1
    while output.count < count {
      block += info
      block.append(index)
      block = HMAC<H>.authenticationCode(for: block, using: key).withUnsafeBytes { Array($0) }
      output += block
      index &+= 1
    }
    return SymmetricKey(data: output.prefix(count))
  }

  static func authenticate(_ key: SymmetricKey, _ message: [UInt8]) -> [UInt8] {
    Array(HMAC<SHA256>.authenticationCode(for: message, using: key))
  }
}
