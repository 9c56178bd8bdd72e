internal import ZDCServer

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

/// A file by its descriptor: positioned reads and writes, no shared offset, so that parts of one file are written side
/// by side.
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
  }

  let descriptor: Int32

  init(_ path: String, _ mode: Mode) throws {
    descriptor = open(path, mode.flags, 0o600)
    guard descriptor >= 0 else { throw Self.failure("open") }
  }

  deinit {
    // A child that another thread has just forked shares the file until it runs its program: closing alone would leave it
    // locked until then.
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

  /// Exactly `count` bytes; a file that ends earlier is damaged.
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
      // fsync on Apple's systems leaves data in the drive's cache.
      guard fcntl(descriptor, F_FULLFSYNC) == 0 || fsync(descriptor) == 0 else { throw Self.failure("fsync") }
    #else
      guard fsync(descriptor) == 0 else { throw Self.failure("fsync") }
    #endif
  }

  /// Takes the file for this process until it is closed; false if another one has it.
  func lock() -> Bool { flock(descriptor, LOCK_EX | LOCK_NB) == 0 }

  static func remove(_ path: String) throws {
    guard unlink(path) == 0 || errno == ENOENT else { throw failure("unlink") }
  }

  private static func failure(_ call: StaticString) -> any Error {
    isFull(errno) ? StorageFull() : Failure(code: errno, call: call)
  }

  /// No room, a user's quota on the host, or the largest file that the process may write.
  static func isFull(_ code: Int32) -> Bool { [ENOSPC, EDQUOT, EFBIG].contains(code) }
}
