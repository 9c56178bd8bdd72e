internal import Crypto
internal import Foundation
internal import ZDCProtocol

/// C2SP chunked-encryption v1 with AES-256-GCM and SHA-512 ("Cobblestone-256"), chunk by chunk (PROTOCOL 3.0).
struct ChunkedCipher: Sendable {
  static let saltBytes = 24
  static let commitmentBytes = 32
  private static let prefix = Array("c2sp.org/chunked-encryption@v1+AEAD_AES_256_GCM".utf8) + [0]

  let salt: [UInt8]
  let commitment: [UInt8]
  private let key: SymmetricKey
  private let baseNonce: [UInt8]

  /// Derives the keys. `key` has 32 bytes and `salt` 24.
  init(key: SymmetricKey, salt: [UInt8], context: [UInt8]) {
    let material = KeyDerivation.expand512(key, info: Self.prefix + salt + context, count: 76)
    self.salt = salt
    self.key = material.withUnsafeBytes { SymmetricKey(data: UnsafeRawBufferPointer(rebasing: $0[0..<32])) }
    baseNonce = material.withUnsafeBytes { Array($0[32..<44]) }
    commitment = material.withUnsafeBytes { Array($0[44..<76]) }
  }

  /// Creates the cipher for sealed bytes that begin with `prefix`. Returns nil if the key or the context is wrong.
  init?(key: SymmetricKey, prefix: some Collection<UInt8>, context: [UInt8]) {
    guard prefix.count == ContentGeometry.prefixBytes else { return nil }
    self.init(key: key, salt: Array(prefix.prefix(Self.saltBytes)), context: context)
    guard constantTimeEqual(commitment, Array(prefix.dropFirst(Self.saltBytes))) else { return nil }
  }

  /// Appends chunk `index` and its tag. Each index must be sealed only once per salt.
  func seal(_ chunk: UnsafeRawBufferPointer, index: UInt64, into output: inout [UInt8]) throws(CryptoFailure) {
    let combined = try AuthenticatedCipher.seal(chunk, key: key, nonce: nonce(index), aad: [UInt8]())
    combined.withUnsafeBytes { output.append(contentsOf: $0.dropFirst(AuthenticatedCipher.nonceBytes)) }
  }

  /// Appends the plaintext of sealed chunk `index`. Appends nothing if its tag does not match.
  func open(_ chunk: UnsafeRawBufferPointer, index: UInt64, into output: inout [UInt8]) throws(CryptoFailure) {
    let plaintext = try AuthenticatedCipher.open(chunk, nonce: nonce(index), key: key)
    plaintext.withUnsafeBytes { output.append(contentsOf: $0) }
  }

  /// Returns the base nonce XOR the index as a 96-bit big-endian number.
  private func nonce(_ index: UInt64) -> [UInt8] {
    var nonce = baseNonce
    for position in 0..<8 { nonce[11 - position] ^= UInt8(truncatingIfNeeded: index >> UInt64(8 * position)) }
    return nonce
  }
}

/// Compares secrets without revealing where they differ.
func constantTimeEqual(_ a: [UInt8], _ b: [UInt8]) -> Bool {
  guard a.count == b.count else { return false }
  var difference: UInt8 = 0
  for index in a.indices { difference |= a[index] ^ b[index] }
  return difference == 0
}
