package import Foundation
internal import Synchronization

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  package import Musl
#elseif canImport(Darwin)
  package import Darwin
#endif

/// An advisory lock on a file of its own. The system gives it back when the process dies.
package final class FileLock: Sendable {
  private let descriptor: Mutex<Int32>

  private init(_ descriptor: Int32) {
    self.descriptor = Mutex(descriptor)
  }

  deinit { release() }

  /// Waits until nobody else holds it.
  package static func waiting(for file: URL) throws(ZDCError) -> FileLock {
    let descriptor = try open(file)
    while flock(descriptor, LOCK_EX) != 0 {
      guard errno == EINTR else { throw failure(closing: descriptor) }
    }
    return FileLock(descriptor)
  }

  /// nil if somebody else holds it.
  package static func trying(_ file: URL) throws(ZDCError) -> FileLock? {
    let descriptor = try open(file)
    while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
      if errno == EINTR { continue }
      guard errno == EWOULDBLOCK else { throw failure(closing: descriptor) }
      close(descriptor)
      return nil
    }
    return FileLock(descriptor)
  }

  /// Replaces the file's first bytes.
  ///
  /// - Returns: what was there, which may be shorter.
  package func exchange(_ bytes: [UInt8]) throws(ZDCError) -> [UInt8] {
    let (old, isWritten) = descriptor.withLock { descriptor in
      var old = [UInt8](repeating: 0, count: bytes.count)
      let count = pread(descriptor, &old, old.count, 0)
      return (Array(old.prefix(max(0, count))), pwrite(descriptor, bytes, bytes.count, 0) == bytes.count)
    }
    guard isWritten else { throw ZDCError(.databaseNotWritable, detail: "lock file: errno \(errno)") }
    return old
  }

  package func release() {
    descriptor.withLock { descriptor in
      guard descriptor >= 0 else { return }
      // A child between fork and exec still has the descriptor, and closing ours would leave the lock to it.
      flock(descriptor, LOCK_UN)
      close(descriptor)
      descriptor = -1
    }
  }

  /// Closed in child processes: a child must not keep a lock that its parent gave back.
  private static func open(_ file: URL) throws(ZDCError) -> Int32 {
    let descriptor = file.path.withCString { openFile($0, O_RDWR | O_CREAT | O_CLOEXEC, 0o600) }
    guard descriptor >= 0 else { throw ZDCError(.databaseNotWritable, detail: "lock file: errno \(errno)") }
    return descriptor
  }

  private static func failure(closing descriptor: Int32) -> ZDCError {
    let code = errno
    close(descriptor)
    return ZDCError(.databaseFailure, detail: "lock file: errno \(code)")
  }
}

/// `open(2)`; its Swift name is taken inside types that have an `open` of their own.
package func openFile(_ path: UnsafePointer<CChar>, _ flags: Int32, _ mode: mode_t) -> Int32 {
  open(path, flags, mode)
}
