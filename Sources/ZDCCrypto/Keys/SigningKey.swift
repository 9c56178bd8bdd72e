internal import Crypto
internal import ZDCProtocol

/// An Ed25519 key that signs under a label, so the signature of one object is never valid for another (PROTOCOL 3.0).
package struct SigningKey: Sendable, Equatable {
  package let seed: SigningSeed
  /// 32 bytes.
  package let publicKey: [UInt8]
  private let key: Curve25519.Signing.PrivateKey

  package init(seed: SigningSeed) {
    self.seed = seed
    guard let key = try? Curve25519.Signing.PrivateKey(rawRepresentation: seed.exportBytes()) else {
      preconditionFailure("any 32 bytes are an Ed25519 seed, and a SecretKey has 32")
    }
    self.key = key
    publicKey = Array(key.publicKey.rawRepresentation)
  }

  package static func random() -> SigningKey { SigningKey(seed: .random()) }

  package static func random(_ source: inout some RandomSource) -> SigningKey {
    SigningKey(seed: .random(&source))
  }

  /// Returns `SIGN(sk, label, m) = Ed25519(sk, "zdc1/" ‖ label ‖ 00 ‖ m)`, 64 bytes.
  package func sign(label: StaticString, message: some Collection<UInt8>) throws(CryptoFailure) -> [UInt8] {
    do {
      return Array(try key.signature(for: labelPrefix(label) + message))
    } catch { throw .platformFailure }
  }

  package static func == (a: SigningKey, b: SigningKey) -> Bool { a.seed == b.seed }
}

extension SigningKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  package var description: String { "<signing key>" }
  package var debugDescription: String { description }
  package var customMirror: Mirror { Mirror(self, children: []) }
}
