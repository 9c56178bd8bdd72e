internal import Crypto
internal import Foundation

/// AES-256-GCM with a 12-byte nonce and a 16-byte tag. No other code calls it.
enum AuthenticatedCipher {
  static let nonceBytes = 12
  private static let tagBytes = 16
  static let overhead = nonceBytes + tagBytes

  /// Returns `nonce ‖ ciphertext ‖ tag`. If `nonce` is nil, a random one is used.
  static func seal<AAD: DataProtocol>(
    _ plaintext: some DataProtocol, key: SymmetricKey, nonce: [UInt8]?, aad: AAD
  ) throws(CryptoFailure) -> Data {
    guard key.bitCount == 256, nonce == nil || nonce?.count == nonceBytes else { throw .invalidParameter }
    do {
      let nonce = try nonce.map { try AES.GCM.Nonce(data: $0) }
      let box = try AES.GCM.seal(plaintext, using: key, nonce: nonce, authenticating: aad)
      if let combined = box.combined { return combined }
    } catch {}
    throw .platformFailure
  }

  /// Opens `nonce ‖ ciphertext ‖ tag`.
  static func open<AAD: DataProtocol>(_ combined: Data, key: SymmetricKey, aad: AAD) throws(CryptoFailure) -> Data {
    guard key.bitCount == 256, combined.count >= overhead else { throw .authenticationFailure }
    do {
      return try AES.GCM.open(AES.GCM.SealedBox(combined: combined), using: key, authenticating: aad)
    } catch { throw .authenticationFailure }
  }

  /// Opens `ciphertext ‖ tag`. Copies the ciphertext once less than a caller that joins it to its nonce first.
  static func open(
    _ sealed: UnsafeRawBufferPointer, nonce: [UInt8], key: SymmetricKey
  ) throws(CryptoFailure) -> Data {
    guard key.bitCount == 256, nonce.count == nonceBytes, sealed.count >= tagBytes else { throw .authenticationFailure }
    do {
      let box = try AES.GCM.SealedBox(
        nonce: AES.GCM.Nonce(data: nonce), ciphertext: UnsafeRawBufferPointer(rebasing: sealed.dropLast(tagBytes)),
        tag: UnsafeRawBufferPointer(rebasing: sealed.suffix(tagBytes)))
      return try AES.GCM.open(box, using: key)
    } catch { throw .authenticationFailure }
  }
}
