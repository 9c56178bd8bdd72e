internal import Foundation

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// A file for the words of a new account.
package enum WordsFile {
  /// Fails before the account is created if the file cannot be created later.
  package static func check(_ path: String) throws(CommandError) {
    if try FileAttributes.of(path) != nil {
      throw CommandError(.cannotCreate, "fileExists", "\(ShownName.text(path)) already exists; choose another file")
    }
    guard access(AbsolutePath.folder(of: path), W_OK) == 0 else { throw FileFailure.error(path) }
  }

  /// Creates a new file with access for its owner only, and syncs it to disk.
  package static func write(_ words: [String], to path: String) throws(CommandError) {
    let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw FileFailure.error(path) }
    defer { close(file) }
    var rest = Array((words.joined(separator: " ") + "\n").utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Foundation.write(file, $0.baseAddress, $0.count) }
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { throw FileFailure.error(path) }
      rest = rest.dropFirst(count)
    }
    guard fsync(file) == 0 else { throw FileFailure.error(path) }
  }
}
