package import Foundation
internal import Synchronization

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  package import Musl
#elseif canImport(Darwin)
  package import Darwin
#endif

/// An advisory lock on a dedicated file. The system releases it when the process dies.
package final class FileLock: Sendable {
  private let descriptor: Mutex<Int32>

  private init(_ descriptor: Int32) {
    self.descriptor = Mutex(descriptor)
  }

  deinit { release() }

  /// Acquires the lock, waiting until no one else holds it.
  package static func waiting(for file: URL) throws(ZDCError) -> FileLock {
    let descriptor = try open(file)
    while flock(descriptor, LOCK_EX) != 0 {
      guard errno == EINTR else { throw failure(closing: descriptor) }
    }
    return FileLock(descriptor)
  }

  /// Acquires the lock, or returns nil if it is already held.
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
  /// - Returns: The previous bytes, which may be fewer.
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
      // A child between fork and exec still holds the descriptor; without an explicit unlock it would keep the lock.
      flock(descriptor, LOCK_UN)
      close(descriptor)
      descriptor = -1
    }
  }

  /// `O_CLOEXEC`: a child process must not keep a lock that its parent released.
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

/// Calls `open(2)`. Types with an `open` member of their own cannot name it directly.
package func openFile(_ path: UnsafePointer<CChar>, _ flags: Int32, _ mode: mode_t) -> Int32 {
  open(path, flags, mode)
}
