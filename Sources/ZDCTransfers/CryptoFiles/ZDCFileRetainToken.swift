/// A token that keeps the disk manager from deleting a file for as long as the token lives.
///
/// ``ZDCCryptoFile`` holds one. The file stays readable even if the entry that it belongs to is deleted, replaced or
/// evicted, or expires.
public final class ZDCFileRetainToken: Sendable {
  package let name: String
  private let release: @Sendable () -> Void

  /// - Parameter release: called when the token is deallocated.
  package init(_ name: String, release: @escaping @Sendable () -> Void) {
    (self.name, self.release) = (name, release)
  }

  deinit { release() }
}
