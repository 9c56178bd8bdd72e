internal import Crypto

/// Where keys, salts and ids come from.
///
/// The public API always uses ``SystemRandomSource``. Tests of the package give another one, so that frozen vectors can
/// be made again byte by byte.
package protocol RandomSource {
  mutating func bytes(_ count: Int) -> [UInt8]
}

/// The system's generator.
package struct SystemRandomSource: RandomSource {
  package init() {}

  package func bytes(_ count: Int) -> [UInt8] {
    SymmetricKey(size: SymmetricKeySize(bitCount: count * 8)).withUnsafeBytes { Array($0) }
  }
}
