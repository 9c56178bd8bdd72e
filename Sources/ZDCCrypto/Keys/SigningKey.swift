internal import Crypto
internal import ZDCProtocol

/// An Ed25519 key that signs under a label, so the signature of one object is never valid for another (PROTOCOL 3.0).
public struct SigningKey: Sendable, Equatable {
  public let seed: SigningSeed
  /// 32 bytes.
  public let publicKey: [UInt8]
  private let key: Curve25519.Signing.PrivateKey

  public init(seed: SigningSeed) {
    self.seed = seed
    guard let key = try? Curve25519.Signing.PrivateKey(rawRepresentation: seed.exportBytes()) else {
      preconditionFailure("any 32 bytes are an Ed25519 seed, and a SecretKey has 32")
    }
    self.key = key
    publicKey = Array(key.publicKey.rawRepresentation)
  }

  public static func random() -> SigningKey { SigningKey(seed: .random()) }

  package static func random(_ source: inout some RandomSource) -> SigningKey {
    SigningKey(seed: .random(&source))
  }

  /// Returns `SIGN(sk, label, m) = Ed25519(sk, "zdc1/" ‖ label ‖ 00 ‖ m)`, 64 bytes.
  public func sign(label: StaticString, message: some Collection<UInt8>) throws(CryptoFailure) -> [UInt8] {
    do {
      return Array(try key.signature(for: labelPrefix(label) + message))
    } catch { throw .platformFailure }
  }

  public static func == (a: SigningKey, b: SigningKey) -> Bool { a.seed == b.seed }
}

extension SigningKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String { "<signing key>" }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: []) }
}
