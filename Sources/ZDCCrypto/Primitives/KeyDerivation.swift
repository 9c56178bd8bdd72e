internal import Crypto
internal import Foundation
internal import ZDCProtocol

/// HKDF-Expand, always without extract, because every key here is uniform.
enum KeyDerivation {
  /// `D(key, label) = HKDF-Expand-SHA256(key, "zdc1/" ‖ label, 32)`.
  static func derive(_ key: SymmetricKey, label: StaticString) -> SymmetricKey {
    expand256(key, info: Array(labelPrefix(label).dropLast()), count: 32)
  }

  static func expand256(_ key: SymmetricKey, info: [UInt8], count: Int) -> SymmetricKey {
    expand(SHA256.self, key, info: info, count: count)
  }

  static func expand512(_ key: SymmetricKey, info: [UInt8], count: Int) -> SymmetricKey {
    expand(SHA512.self, key, info: info, count: count)
  }

  static func authenticate(_ key: SymmetricKey, _ message: [UInt8]) -> [UInt8] {
    authenticate(SHA256.self, key, message)
  }

  /// RFC 5869, 2.3.
  private static func expand<H: HashFunction>(
    _ hash: H.Type, _ key: SymmetricKey, info: [UInt8], count: Int
  ) -> SymmetricKey {
    var output: [UInt8] = []
    var block: [UInt8] = []
    var index: UInt8 = 1
    while output.count < count {
      block += info
      block.append(index)
      block = authenticate(hash, key, block)
      output += block
      index &+= 1
    }
    return SymmetricKey(data: output.prefix(count))
  }

  /// RFC 2104.
  ///
  /// Reimplemented because a record takes a dozen of these each way and swift-crypto's generic HMAC costs three times
  /// as much: it runs unspecialized. Wycheproof's HMAC and HKDF cases cover this code.
  private static func authenticate<H: HashFunction>(
    _: H.Type, _ key: SymmetricKey, _ message: [UInt8]
  ) -> [UInt8] {
    var (inner, outer) = (H(), H())
    withUnsafeTemporaryAllocation(byteCount: H.blockByteCount, alignment: 8) { pad in
      fill(pad, with: key, hash: H.self)
      for index in pad.indices { pad[index] ^= 0x36 }
      inner.update(bufferPointer: UnsafeRawBufferPointer(pad))
      for index in pad.indices { pad[index] ^= 0x36 ^ 0x5c }
      outer.update(bufferPointer: UnsafeRawBufferPointer(pad))
      for index in pad.indices { pad[index] = 0 }
    }
    message.withUnsafeBytes { inner.update(bufferPointer: $0) }
    inner.finalize().withUnsafeBytes { outer.update(bufferPointer: $0) }
    return outer.finalize().withUnsafeBytes { Array($0) }
  }

  /// Fills the pad with the key, hashed if it is longer than a block, followed by zeros.
  private static func fill<H: HashFunction>(
    _ pad: UnsafeMutableRawBufferPointer, with key: SymmetricKey, hash: H.Type
  ) {
    for index in pad.indices { pad[index] = 0 }
    key.withUnsafeBytes { bytes in
      if bytes.count <= pad.count {
        pad.copyMemory(from: bytes)
      } else {
        var long = H()
        long.update(bufferPointer: bytes)
        long.finalize().withUnsafeBytes { pad.copyMemory(from: $0) }
      }
    }
  }
}
