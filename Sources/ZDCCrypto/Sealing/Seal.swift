internal import Crypto
package import ZDCProtocol

/// `SEAL`: all symmetric encryption of the protocol, one-shot (PROTOCOL 3.0). Content streams use the same
/// construction.
package enum Seal {
  /// The bytes that sealing adds to a plaintext below 16 KiB.
  package static let overhead = ContentGeometry.prefixBytes + ContentGeometry.tagBytes

  /// Seals with a fresh salt.
  package static func seal<Role>(
    key: SecretKey<Role>, label: StaticString, context: some Collection<UInt8>, _ plaintext: [UInt8]
  ) throws(CryptoFailure) -> [UInt8] {
    var source = SystemRandomSource()
    return try seal(key: key, label: label, context: context, plaintext, random: &source)
  }

  package static func seal<Role>(
    key: SecretKey<Role>, label: StaticString, context: some Collection<UInt8>, _ plaintext: [UInt8],
    random: inout some RandomSource
  ) throws(CryptoFailure) -> [UInt8] {
    let salt = random.bytes(ChunkedCipher.saltBytes)
    let cipher = ChunkedCipher(key: key.symmetric, salt: salt, context: labelPrefix(label) + context)
    return try seal(plaintext, with: cipher)
  }

  /// Opens the output of ``seal(key:label:context:_:)`` with the same key, label and context.
  ///
  /// - Throws: `commitmentMismatch` for a wrong key or context, `contentTruncated` for a length that no plaintext has,
  ///   `chunkAuthFailed` for altered bytes. Nothing is returned unless all of it is authentic.
  package static func open<Role>(
    key: SecretKey<Role>, label: StaticString, context: some Collection<UInt8>, _ sealed: some Collection<UInt8>
  ) throws(ZDCSecurityError) -> [UInt8] {
    try open(key: key, rawContext: labelPrefix(label) + context, Array(sealed))
  }

  /// Opens with the context exactly as given, because published vectors have no label.
  package static func open<Role>(
    key: SecretKey<Role>, rawContext: [UInt8], _ sealed: [UInt8]
  ) throws(ZDCSecurityError) -> [UInt8] {
    guard sealed.count >= ContentGeometry.prefixBytes else { throw ZDCSecurityError(.contentTruncated) }
    let prefix = sealed.prefix(ContentGeometry.prefixBytes)
    guard let cipher = ChunkedCipher(key: key.symmetric, prefix: prefix, context: rawContext) else {
      throw ZDCSecurityError(.commitmentMismatch)
    }
    return try open(sealed, with: cipher)
  }

  private static func seal(_ plaintext: [UInt8], with cipher: ChunkedCipher) throws(CryptoFailure) -> [UInt8] {
    var output: [UInt8] = []
    output.reserveCapacity(Int(ContentGeometry.sealedLength(of: UInt64(plaintext.count))))
    output += cipher.salt
    output += cipher.commitment
    // The last chunk is always short, so there is one more than there are full ones. It may be empty.
    for index in 0...plaintext.count / ContentGeometry.chunkBytes {
      let start = index * ContentGeometry.chunkBytes
      let end = min(start + ContentGeometry.chunkBytes, plaintext.count)
      try withBytes(of: plaintext, start..<end) { (chunk) throws(CryptoFailure) in
        try cipher.seal(chunk, index: UInt64(index), into: &output)
      }
    }
    return output
  }

  private static func open(_ sealed: [UInt8], with cipher: ChunkedCipher) throws(ZDCSecurityError) -> [UInt8] {
    let body = sealed.count - ContentGeometry.prefixBytes
    let last = body % ContentGeometry.sealedChunkBytes
    guard last >= ContentGeometry.tagBytes else { throw ZDCSecurityError(.contentTruncated) }
    var output: [UInt8] = []
    output.reserveCapacity(body)
    for index in 0...body / ContentGeometry.sealedChunkBytes {
      let start = ContentGeometry.prefixBytes + index * ContentGeometry.sealedChunkBytes
      let end = min(start + ContentGeometry.sealedChunkBytes, sealed.count)
      do throws(CryptoFailure) {
        try withBytes(of: sealed, start..<end) { (chunk) throws(CryptoFailure) in
          try cipher.open(chunk, index: UInt64(index), into: &output)
        }
      } catch { throw ZDCSecurityError(.chunkAuthFailed) }
    }
    return output
  }
}

/// Calls a closure with a part of an array, in place.
func withBytes<Result, Failure: Error>(
  of array: [UInt8], _ range: Range<Int>, _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
) throws(Failure) -> Result {
  let result = array.withUnsafeBytes { buffer -> Swift.Result<Result, Failure> in
    do throws(Failure) {
      return .success(try body(UnsafeRawBufferPointer(rebasing: buffer[range])))
    } catch { return .failure(error) }
  }
  return try result.get()
}
