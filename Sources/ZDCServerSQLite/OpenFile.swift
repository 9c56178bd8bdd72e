internal import ZDCServer

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

/// An open file descriptor with positioned reads and writes. There is no shared offset, so parts of one file can be
/// written concurrently.
final class OpenFile: Sendable {
  enum Mode {
    case read, write, create, folder

    fileprivate var flags: Int32 {
      switch self {
      case .read, .folder: O_RDONLY | O_CLOEXEC
      case .write: O_RDWR | O_CLOEXEC
      case .create: O_RDWR | O_CREAT | O_CLOEXEC
      }
    }
  }

  struct Failure: Error {
    var code: Int32
    var call: StaticString

    var isMissing: Bool { code == ENOENT }
    var isDenied: Bool { code == EACCES || code == EPERM }
  }

  let descriptor: Int32

  init(_ path: String, _ mode: Mode) throws {
    descriptor = open(path, mode.flags, 0o600)
    guard descriptor >= 0 else { throw Self.failure("open") }
  }

  deinit {
    // A child process that another thread has just forked shares the file until it calls exec: closing alone would
    // leave the file locked until then.
    _ = flock(descriptor, LOCK_UN)
    close(descriptor)
  }

  func write(_ bytes: [UInt8], at offset: UInt64) throws {
    try bytes.withUnsafeBytes { buffer in
      var done = 0
      while done < buffer.count {
        let count = pwrite(descriptor, buffer.baseAddress! + done, buffer.count - done, off_t(offset) + off_t(done))
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { throw Self.failure("pwrite") }
        done += count
      }
    }
  }

  /// Reads exactly `count` bytes; a file that ends earlier is damaged.
  func read(at offset: UInt64, count: Int) throws -> [UInt8] {
    try [UInt8](unsafeUninitializedCapacity: count) { buffer, done in
      done = 0
      while done < count {
        let got = pread(descriptor, buffer.baseAddress! + done, count - done, off_t(offset) + off_t(done))
        if got < 0, errno == EINTR { continue }
        guard got >= 0 else { throw Self.failure("pread") }
        guard got > 0 else { throw StoreError.damaged }
        done += got
      }
    }
  }

  func size() throws -> UInt64 {
    let end = lseek(descriptor, 0, SEEK_END)
    guard end >= 0 else { throw Self.failure("lseek") }
    return UInt64(end)
  }

  func synchronize() throws {
    #if canImport(Darwin)
      // On Apple's systems, fsync leaves data in the drive's cache.
      guard fcntl(descriptor, F_FULLFSYNC) == 0 || fsync(descriptor) == 0 else { throw Self.failure("fsync") }
    #else
      guard fsync(descriptor) == 0 else { throw Self.failure("fsync") }
    #endif
  }

  /// Locks the file for this process until it is closed; returns false if another process has locked it.
  func lock() -> Bool { flock(descriptor, LOCK_EX | LOCK_NB) == 0 }

  static func remove(_ path: String) throws {
    guard unlink(path) == 0 || errno == ENOENT else { throw failure("unlink") }
  }

  /// Gives a file a second name.
  static func link(_ path: String, to other: String) throws {
    #if canImport(Glibc)
      guard Glibc.link(path, other) == 0 else { throw failure("link") }
    #elseif canImport(Musl)
      guard Musl.link(path, other) == 0 else { throw failure("link") }
    #else
      guard Darwin.link(path, other) == 0 else { throw failure("link") }
    #endif
  }

  /// Replaces what has the other name.
  static func rename(_ path: String, to other: String) throws {
    #if canImport(Glibc)
      guard Glibc.rename(path, other) == 0 else { throw failure("rename") }
    #elseif canImport(Musl)
      guard Musl.rename(path, other) == 0 else { throw failure("rename") }
    #else
      guard Darwin.rename(path, other) == 0 else { throw failure("rename") }
    #endif
  }

  private static func failure(_ call: StaticString) -> any Error {
    isFull(errno) ? StorageFull() : Failure(code: errno, call: call)
  }

  /// Returns true for a full disk, an exceeded user quota of the host, or the process's file size limit.
  static func isFull(_ code: Int32) -> Bool { [ENOSPC, EDQUOT, EFBIG].contains(code) }
}
