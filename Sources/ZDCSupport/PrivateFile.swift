package import Foundation

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// Reads and writes files that only their owner may access. Writes are on disk when a call returns.
package enum PrivateFile {
  private static let mode: mode_t = 0o600

  /// Creates an empty file unless one exists.
  package static func createIfMissing(_ file: URL) throws(ZDCError) {
    let descriptor = openFile(file.path, O_RDWR | O_CREAT | O_CLOEXEC, mode)
    guard descriptor >= 0 else { throw failure(.databaseNotWritable) }
    close(descriptor)
  }

  /// Creates a file, completely or not at all.
  ///
  /// - Returns: false if the file already exists; it is left unchanged.
  package static func create(_ file: URL, _ bytes: [UInt8]) throws(ZDCError) -> Bool {
    let draft = try writeDraft(bytes, beside: file)
    defer { unlink(draft) }
    guard link(draft, file.path) == 0 else {
      if errno == EEXIST { return false }
      throw failure(.fileFailure)
    }
    try syncFolder(of: file)
    return true
  }

  /// Replaces a file atomically.
  package static func replace(_ file: URL, _ bytes: [UInt8]) throws(ZDCError) {
    let draft = try writeDraft(bytes, beside: file)
    guard rename(draft, file.path) == 0 else {
      let error = failure(.fileFailure)
      unlink(draft)
      throw error
    }
    try syncFolder(of: file)
  }

  /// Reads a file.
  ///
  /// - Returns: nil if there is no such file.
  /// - Throws: `ZDCError` with `keyFileExposed` if other users may read or write it.
  package static func read(_ file: URL, limit: Int) throws(ZDCError) -> [UInt8]? {
    let descriptor = openFile(file.path, O_RDONLY | O_CLOEXEC, 0)
    guard descriptor >= 0 else {
      if errno == ENOENT { return nil }
      throw failure(.fileFailure)
    }
    defer { close(descriptor) }
    var facts = stat()
    guard fstat(descriptor, &facts) == 0 else { throw failure(.fileFailure) }
    guard facts.st_mode & 0o077 == 0 else { throw ZDCError(.keyFileExposed) }
    return try readAll(descriptor, limit: limit)
  }

  package static func remove(_ file: URL) throws(ZDCError) {
    guard unlink(file.path) == 0 || errno == ENOENT else { throw failure(.fileFailure) }
    try syncFolder(of: file)
  }

  private static func readAll(_ descriptor: Int32, limit: Int) throws(ZDCError) -> [UInt8] {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4_096)
    while bytes.count <= limit {
      let count = buffer.withUnsafeMutableBytes { Foundation.read(descriptor, $0.baseAddress, $0.count) }
      if count < 0 && errno == EINTR { continue }
      guard count >= 0 else { throw failure(.fileFailure) }
      if count == 0 { break }
      bytes += buffer.prefix(count)
    }
    return bytes
  }

  private static func writeDraft(_ bytes: [UInt8], beside file: URL) throws(ZDCError) -> String {
    let draft = "\(file.path).\(UUID().uuidString).draft"
    let descriptor = openFile(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
    guard descriptor >= 0 else { throw failure(.fileFailure) }
    defer { close(descriptor) }
    do throws(ZDCError) {
      try writeAll(bytes, descriptor)
      guard fsync(descriptor) == 0 else { throw failure(.fileFailure) }
    } catch {
      unlink(draft)
      throw error
    }
    return draft
  }

  private static func writeAll(_ bytes: [UInt8], _ descriptor: Int32) throws(ZDCError) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { throw failure(.fileFailure) }
      rest = rest.dropFirst(count)
    }
  }

  /// A new file's name is durable only once its folder is synced.
  private static func syncFolder(of file: URL) throws(ZDCError) {
    let descriptor = openFile(file.deletingLastPathComponent().path, O_RDONLY | O_CLOEXEC, 0)
    guard descriptor >= 0 else { throw failure(.fileFailure) }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw failure(.fileFailure) }
  }

  private static func failure(_ code: ZDCError.Code) -> ZDCError {
    ZDCError(code, detail: "errno \(errno)")
  }
}
