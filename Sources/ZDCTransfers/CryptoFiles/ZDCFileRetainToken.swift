/// Keeps a file of the disk manager from being deleted for as long as it lives.
///
/// ``ZDCCryptoFile`` has one (seed 000: an upload from a crypto file). Whatever happens meanwhile to what the file
/// belongs to - it is deleted, replaced, evicted, expires - the file can be read.
public final class ZDCFileRetainToken: Sendable {
  package let name: String
  private let release: @Sendable () -> Void

  /// - Parameter release: called when the token is deallocated.
  package init(_ name: String, release: @escaping @Sendable () -> Void) {
    (self.name, self.release) = (name, release)
  }

  deinit { release() }
}
