package import Foundation
package import ZDCSupport

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// An open file that reads and writes byte arrays. It is closed when the last reference to it is released.
package final class LocalFile: Sendable {
  private let descriptor: CInt

  private init(_ descriptor: CInt) throws {
    guard descriptor >= 0 else { throw Self.failure() }
    self.descriptor = descriptor
  }

  /// Creates a file that only its owner can read and write. Fails if the file exists.
  package static func create(_ url: URL) throws -> LocalFile {
    try LocalFile(open(url.path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0o600))
  }

  package static func read(_ url: URL) throws -> LocalFile {
    try LocalFile(open(url.path, O_RDONLY | O_CLOEXEC))
  }

  /// Opens a file to continue writing it, or creates it. Returns nil if another transfer holds it or has finished it, and
  /// for anything that this user's transfers have not made: in a folder that others can write, a file that waits for
  /// cleartext under a known name would belong to them.
  package static func resume(_ url: URL) throws -> LocalFile? {
    let file = try LocalFile(open(url.path, O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600))
    guard flock(file.descriptor, LOCK_EX | LOCK_NB) == 0 else { return nil }
    // The other transfer finished and renamed the file between the two calls: the file is a result now.
    var (own, named) = (stat(), stat())
    guard fstat(file.descriptor, &own) == 0, lstat(url.path, &named) == 0, own.st_ino == named.st_ino else {
      return nil
    }
    let isOwn = own.st_mode & S_IFMT == S_IFREG && own.st_uid == geteuid() && own.st_nlink == 1
    return isOwn ? file : nil
  }

  deinit {
    close(descriptor)
  }

  package func size() throws -> UInt64 {
    let end = lseek(descriptor, 0, SEEK_END)
    guard end >= 0, lseek(descriptor, 0, SEEK_SET) >= 0 else { throw Self.failure() }
    return UInt64(end)
  }

  func seekToStart() throws {
    guard lseek(descriptor, 0, SEEK_SET) >= 0 else { throw Self.failure() }
  }

  /// Truncates the file and moves the position to its new end.
  package func truncate(to length: UInt64) throws {
    guard ftruncate(descriptor, off_t(length)) == 0, lseek(descriptor, off_t(length), SEEK_SET) >= 0 else {
      throw Self.failure()
    }
  }

  /// Fills the buffer with bytes from `offset`.
  package func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws {
    var done = 0
    while done < buffer.count {
      let got = pread(
        descriptor, buffer.baseAddress.map { $0 + done }, buffer.count - done, off_t(offset) + off_t(done))
      if got < 0, errno == EINTR { continue }
      guard got > 0 else { throw Self.failure() }
      done += got
    }
  }

  /// Returns exactly `count` bytes from `offset`.
  package func read(at offset: UInt64, count: Int) throws -> [UInt8] {
    try [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      try read(at: offset, into: UnsafeMutableRawBufferPointer(buffer))
      filled = count
    }
  }

  /// Waits until the bytes are on disk.
  package func synchronize() throws {
    guard fsync(descriptor) == 0 else { throw Self.failure() }
  }

  /// Returns the error of the last system call. An exceeded quota or file size limit counts as a full disk.
  package static func failure() -> ZDCError {
    let isFull = [ENOSPC, EDQUOT, EFBIG].contains(errno)
    return ZDCError(isFull ? .diskFull : .fileFailure, detail: String(cString: strerror(errno)))
  }

  /// Replaces the file at `target` in one step. Between two file systems, the file is copied.
  package static func rename(_ source: URL, to target: URL) throws {
    guard systemRename(source.path, target.path) != 0 else { return }
    guard errno == EXDEV else { throw failure() }
    do {
      try FileManager.default.moveItem(at: source, to: target)
    } catch { throw ZDCError(.fileFailure, underlying: error) }
  }

  /// Duplicates a file under another path, without a copy where the file system supports links.
  package static func duplicate(_ file: URL, to copy: URL) throws {
    guard link(file.path, copy.path) != 0 else { return }
    let source = try read(file)
    let target = try create(copy)
    do {
      while case let bytes = try source.read(upTo: 1 << 20), !bytes.isEmpty { try target.write(bytes) }
    } catch {
      unlink(copy.path)
      throw error
    }
  }

  package func write(_ bytes: some Collection<UInt8>) throws {
    let done: Void? = try bytes.withContiguousStorageIfAvailable { try write(UnsafeRawBufferPointer($0)) }
    if done == nil { try Array(bytes).withUnsafeBytes(write) }
  }

  private func write(_ buffer: UnsafeRawBufferPointer) throws {
    var rest = buffer[...]
    while !rest.isEmpty {
      let part = UnsafeRawBufferPointer(rebasing: rest)
      let count = systemWrite(descriptor, part.baseAddress, part.count)
      if count < 0 {
        if errno == EINTR { continue }
        throw Self.failure()
      }
      rest = rest.dropFirst(count)
    }
  }

  /// Returns the next bytes; empty at the end of the file.
  package func read(upTo count: Int) throws -> [UInt8] {
    try [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      var got = systemRead(descriptor, buffer.baseAddress, count)
      while got < 0 && errno == EINTR { got = systemRead(descriptor, buffer.baseAddress, count) }
      guard got >= 0 else { throw ZDCError(.fileFailure, detail: String(cString: strerror(errno))) }
      filled = got
    }
  }
}

// Wrappers, because the methods above have the names of the system calls.
private func systemWrite(_ descriptor: CInt, _ buffer: UnsafeRawPointer?, _ count: Int) -> Int {
  write(descriptor, buffer, count)
}

private func systemRead(_ descriptor: CInt, _ buffer: UnsafeMutableRawPointer?, _ count: Int) -> Int {
  read(descriptor, buffer, count)
}

private func systemRename(_ source: String, _ target: String) -> CInt {
  rename(source, target)
}

/// A folder of this process that keeps downloads until their callers take them. Only its owner has access.
package struct DownloadFolder: Sendable {
  package let url: URL

  package init(below parent: URL = FileManager.default.temporaryDirectory) {
    url = parent.appendingPathComponent("zdc-\(UUID().uuidString)", isDirectory: true)
  }

  package init(existing url: URL) {
    self.url = url
  }

  /// Returns a path that no file uses yet.
  func newURL() throws -> URL {
    do {
      try FileManager.default.createDirectory(
        at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch { throw ZDCError(.fileFailure, underlying: error) }
    return url.appendingPathComponent(UUID().uuidString, isDirectory: false)
  }

  /// Removes a file. Use it only for files that this process created and that nothing else uses.
  package static func remove(_ url: URL) {
    unlink(url.path)
  }

  /// Removes the folder unless it still holds files, which belong to their callers.
  func removeIfEmpty() {
    rmdir(url.path)
  }

  /// Duplicates a file under a new path in this folder, without a copy where the file system supports links.
  package func duplicate(_ file: URL) throws -> URL {
    let copy = try newURL()
    try LocalFile.duplicate(file, to: copy)
    return copy
  }
}
