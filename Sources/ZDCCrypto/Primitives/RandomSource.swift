internal import Foundation

/// Where keys, salts and ids come from.
///
/// The public API always uses ``SystemRandomSource``. Tests of the package give another one, so that frozen vectors can
/// be made again byte by byte.
package protocol RandomSource {
  mutating func bytes(_ count: Int) -> [UInt8]
}

/// The system's generator.
package struct SystemRandomSource: RandomSource {
  /// What the system gives at a time. Stored: a value without a size has no address, and ThreadSanitizer follows the
  /// address of what is passed `inout`.
  private let bytesPerCall = 256

  package init() {}

  /// One system call for each 256 bytes; Swift's own generator makes one for each eight.
  package func bytes(_ count: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      while filled < count {
        let part = UnsafeMutableBufferPointer(rebasing: buffer[filled..<min(filled + bytesPerCall, count)])
        guard getentropy(part.baseAddress, part.count) == 0 else {
          preconditionFailure("the system has no randomness: no key may be made")
        }
        filled += part.count
      }
    }
  }
}
