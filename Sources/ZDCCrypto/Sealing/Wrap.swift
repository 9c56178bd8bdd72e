internal import Crypto
internal import Foundation
package import ZDCProtocol

/// `WRAP`: public-key encryption by HPKE with X-Wing, single-shot, with everything bound in `info` (PROTOCOL 3.0).
package enum Wrap {
  static let suite = HPKE.Ciphersuite.XWingMLKEM768X25519_SHA256_AES_GCM_256
  static let encapsulatedBytes = 1_120
  /// The bytes that a wrap adds to its plaintext: the encapsulated key and a tag.
  package static let overhead = encapsulatedBytes + 16

  /// Wraps a plaintext for the owner of an X-Wing public key of 1,216 bytes.
  ///
  /// - Throws: `weakPublicKey` if the key has a wrong length or is malformed, which its first use reveals.
  package static func wrap(
    to publicKey: [UInt8], label: StaticString, context: some Collection<UInt8>, plaintext: [UInt8]
  ) throws(ZDCSecurityError) -> [UInt8] {
    do {
      let key = try XWingMLKEM768X25519.PublicKey(rawRepresentation: publicKey)
      var sender = try HPKE.Sender(recipientKey: key, ciphersuite: suite, info: Data(labelPrefix(label) + context))
      return Array(sender.encapsulatedKey) + Array(try sender.seal(plaintext))
    } catch { throw ZDCSecurityError(.weakPublicKey) }
  }
}
