package import Foundation
package import ZDCSupport

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// An open file: plain reads and writes of byte arrays, closed with the last reference.
package final class LocalFile: Sendable {
  private let descriptor: CInt

  private init(_ descriptor: CInt) throws {
    guard descriptor >= 0 else { throw Self.failure() }
    self.descriptor = descriptor
  }

  /// A new file, readable by its owner only. Fails if there is one.
  package static func create(_ url: URL) throws -> LocalFile {
    try LocalFile(open(url.path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0o600))
  }

  package static func read(_ url: URL) throws -> LocalFile {
    try LocalFile(open(url.path, O_RDONLY | O_CLOEXEC))
  }

  /// A file to go on with, new if there is none; nil while somebody else has it.
  package static func resume(_ url: URL) throws -> LocalFile? {
    let file = try LocalFile(open(url.path, O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0o600))
    guard flock(file.descriptor, LOCK_EX | LOCK_NB) == 0 else { return nil }
    // Finished and renamed between the two calls: it is somebody's result now.
    var (own, named) = (stat(), stat())
    guard fstat(file.descriptor, &own) == 0, lstat(url.path, &named) == 0, own.st_ino == named.st_ino else {
      return nil
    }
    return file
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

  /// Cuts the file and goes on behind what is left.
  package func truncate(to length: UInt64) throws {
    guard ftruncate(descriptor, off_t(length)) == 0, lseek(descriptor, off_t(length), SEEK_SET) >= 0 else {
      throw Self.failure()
    }
  }

  /// Fills the buffer from that offset.
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

  /// Returns when the bytes are on disk.
  package func synchronize() throws {
    guard fsync(descriptor) == 0 else { throw Self.failure() }
  }

  /// What the last system call complained of. To its caller a quota and a limit are a full disk too.
  package static func failure() -> ZDCError {
    let isFull = [ENOSPC, EDQUOT, EFBIG].contains(errno)
    return ZDCError(isFull ? .diskFull : .fileFailure, detail: String(cString: strerror(errno)))
  }

  /// Replaces what is at `target`, in one step; between two file systems it is copied.
  package static func rename(_ source: URL, to target: URL) throws {
    guard systemRename(source.path, target.path) != 0 else { return }
    guard errno == EXDEV else { throw failure() }
    do {
      try FileManager.default.moveItem(at: source, to: target)
    } catch { throw ZDCError(.fileFailure, underlying: error) }
  }

  /// The same bytes under another path, without a copy where the file system can.
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

  /// The next bytes, empty at the end.
  package func read(upTo count: Int) throws -> [UInt8] {
    try [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      var got = systemRead(descriptor, buffer.baseAddress, count)
      while got < 0 && errno == EINTR { got = systemRead(descriptor, buffer.baseAddress, count) }
      guard got >= 0 else { throw ZDCError(.fileFailure, detail: String(cString: strerror(errno))) }
      filled = got
    }
  }
}

// The methods above have the system calls' names.
private func systemWrite(_ descriptor: CInt, _ buffer: UnsafeRawPointer?, _ count: Int) -> Int {
  write(descriptor, buffer, count)
}

private func systemRead(_ descriptor: CInt, _ buffer: UnsafeMutableRawPointer?, _ count: Int) -> Int {
  read(descriptor, buffer, count)
}

private func systemRename(_ source: String, _ target: String) -> CInt {
  rename(source, target)
}

/// Where downloads are kept until their caller has them: a folder of this process, for its owner only.
package struct DownloadFolder: Sendable {
  package let url: URL

  package init(below parent: URL = FileManager.default.temporaryDirectory) {
    url = parent.appendingPathComponent("zdc-\(UUID().uuidString)", isDirectory: true)
  }

  /// A path that nothing has yet.
  func newURL() throws -> URL {
    do {
      try FileManager.default.createDirectory(
        at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch { throw ZDCError(.fileFailure, underlying: error) }
    return url.appendingPathComponent(UUID().uuidString, isDirectory: false)
  }

  /// Only for files that this process made and nobody else has.
  package static func remove(_ url: URL) {
    unlink(url.path)
  }

  /// Files that still lie here belong to their callers.
  func removeIfEmpty() {
    rmdir(url.path)
  }

  /// The same bytes under another path, without a copy where the file system can.
  package func duplicate(_ file: URL) throws -> URL {
    let copy = try newURL()
    try LocalFile.duplicate(file, to: copy)
    return copy
  }
}
