internal import Crypto

extension Bytes32 {
  /// `H(label, x) = SHA-256("zdc1/" ‖ label ‖ 00 ‖ x)` (PROTOCOL 3.0).
  package init(labelledHash label: StaticString, _ parts: [UInt8]...) {
    var hash = SHA256()
    hash.update(label: label)
    for part in parts { hash.update(part) }
    self.init(digest: hash.finalize())
  }

  package init(labelledHash label: StaticString, slice: ArraySlice<UInt8>) {
    var hash = SHA256()
    hash.update(label: label)
    hash.update(slice)
    self.init(digest: hash.finalize())
  }

  init(digest: SHA256.Digest) {
    self = digest.withUnsafeBytes { buffer in
      Self(
        buffer.loadUnaligned(fromByteOffset: 0, as: UInt64.self).bigEndian,
        buffer.loadUnaligned(fromByteOffset: 8, as: UInt64.self).bigEndian,
        buffer.loadUnaligned(fromByteOffset: 16, as: UInt64.self).bigEndian,
        buffer.loadUnaligned(fromByteOffset: 24, as: UInt64.self).bigEndian)
    }
  }

  /// Plain SHA-256, for data without a label: parts of an upload, thumbnails.
  package init(sha256 bytes: some Collection<UInt8>) {
    var hash = SHA256()
    hash.update(bytes)
    self.init(digest: hash.finalize())
  }
}

extension SHA256 {
  mutating func update(label: StaticString) {
    update(bufferPointer: UnsafeRawBufferPointer(labelPrefixBuffer))
    label.withUTF8Buffer { update(bufferPointer: UnsafeRawBufferPointer($0)) }
    withUnsafeBytes(of: UInt8(0)) { update(bufferPointer: $0) }
  }

  /// Hashes contiguous collections in place, and others through an array.
  mutating func update(_ part: some Collection<UInt8>) {
    let done: Void? = part.withContiguousStorageIfAvailable { update(bufferPointer: UnsafeRawBufferPointer($0)) }
    if done == nil { Array(part).withUnsafeBytes { update(bufferPointer: $0) } }
  }

  private var labelPrefixBuffer: UnsafeBufferPointer<UInt8> {
    let prefix: StaticString = "zdc1/"
    return UnsafeBufferPointer(start: prefix.utf8Start, count: prefix.utf8CodeUnitCount)
  }
}

/// Returns `"zdc1/" ‖ label ‖ 00`, with which the context of every signature, seal, wrap and derivation begins.
package func labelPrefix(_ label: StaticString) -> [UInt8] {
  var prefix = Array("zdc1/".utf8)
  label.withUTF8Buffer { prefix.append(contentsOf: $0) }
  prefix.append(0)
  return prefix
}
