internal import Foundation

/// A source of keys, salts and IDs.
///
/// The public API always uses ``SystemRandomSource``. The package's tests pass another one, to reproduce frozen vectors
/// byte by byte.
package protocol RandomSource {
  mutating func bytes(_ count: Int) -> [UInt8]
}

/// The system's generator.
package struct SystemRandomSource: RandomSource {
  /// Maximum number of bytes that the system returns per call. It is stored because a zero-size value has no address,
  /// and ThreadSanitizer tracks the address of `inout` arguments.
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
