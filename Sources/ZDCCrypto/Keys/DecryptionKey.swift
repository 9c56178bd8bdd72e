internal import Crypto
internal import Foundation
internal import ZDCProtocol

/// An X-Wing key (ML-KEM-768 with X25519) that opens data that others wrapped for its owner (PROTOCOL 3.0).
package struct DecryptionKey: Sendable, Equatable {
  package let seed: DecryptionSeed
  /// 1,216 bytes.
  package let publicKey: [UInt8]
  private let key: XWingMLKEM768X25519.PrivateKey

  /// Expands a seed.
  ///
  /// - Throws: `CryptoFailure.platformFailure` if the platform cannot expand the seed.
  package init(seed: DecryptionSeed) throws(CryptoFailure) {
    do {
      key = try XWingMLKEM768X25519.PrivateKey(seedRepresentation: Data(seed.exportBytes()), publicKey: nil)
    } catch { throw .platformFailure }
    self.seed = seed
    publicKey = Array(key.publicKey.rawRepresentation)
  }

  package static func random() throws(CryptoFailure) -> DecryptionKey { try DecryptionKey(seed: .random()) }

  package static func random(_ source: inout some RandomSource) throws(CryptoFailure) -> DecryptionKey {
    try DecryptionKey(seed: .random(&source))
  }

  /// Opens the output of ``Wrap/wrap(to:label:context:plaintext:)`` for this key, label and context.
  ///
  /// - Throws: `CryptoFailure.authenticationFailure`, regardless of the reason.
  package func unwrap(
    label: StaticString, context: some Collection<UInt8>, _ wrapped: some Collection<UInt8>
  ) throws(CryptoFailure) -> [UInt8] {
    guard wrapped.count >= Wrap.overhead else { throw .authenticationFailure }
    do {
      var recipient = try HPKE.Recipient(
        privateKey: key, ciphersuite: Wrap.suite, info: Data(labelPrefix(label) + context),
        encapsulatedKey: Data(wrapped.prefix(Wrap.encapsulatedBytes)))
      return Array(try recipient.open(Data(wrapped.dropFirst(Wrap.encapsulatedBytes))))
    } catch { throw .authenticationFailure }
  }

  package static func == (a: DecryptionKey, b: DecryptionKey) -> Bool { a.seed == b.seed }
}

extension DecryptionKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  package var description: String { "<decryption key>" }
  package var debugDescription: String { description }
  package var customMirror: Mirror { Mirror(self, children: []) }
}
