internal import Foundation

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// Contents that came through a pipe, until they were sent: files for their owner only.
enum Spool {
  /// Copies standard input into a new file.
  static func fill(_ paths: ProfilePaths) throws(CommandError) -> String {
    let folder = paths.spoolFolder
    do {
      try FileManager.default.createDirectory(
        atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch { throw FileFailure.error(folder) }
    let path = "\(folder)/\(UUID().uuidString.lowercased())"
    let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw FileFailure.error(path) }
    defer { close(file) }
    do throws(CommandError) {
      try copy(STDIN_FILENO, file, path)
      guard fsync(file) == 0 else { throw FileFailure.error(path) }
    } catch {
      unlink(path)
      throw error
    }
    return path
  }

  private static func copy(_ input: Int32, _ output: Int32, _ path: String) throws(CommandError) {
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = buffer.withUnsafeMutableBytes { read(input, $0.baseAddress, $0.count) }
      if count < 0 && errno == EINTR { continue }
      guard count >= 0 else { throw FileFailure.error("standard input", reading: true) }
      if count == 0 { return }
      try write(buffer[..<count], output, path)
    }
  }

  private static func write(_ bytes: ArraySlice<UInt8>, _ output: Int32, _ path: String) throws(CommandError) {
    var rest = bytes
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Foundation.write(output, $0.baseAddress, $0.count) }
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { throw FileFailure.error(path) }
      rest = rest.dropFirst(count)
    }
  }
}
