internal import Crypto

/// SHA-256 of bytes that arrive in pieces.
package struct StreamDigest {
  private var hasher = SHA256()

  package init() {}

  package mutating func update(_ bytes: [UInt8]) { hasher.update(data: bytes) }

  /// The digest in hexadecimal digits.
  package var text: String {
    hasher.finalize().map { byte in
      let digits = String(byte, radix: 16)
      return digits.count == 1 ? "0" + digits : digits
    }.joined()
  }
}
