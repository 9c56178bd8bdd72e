package import Foundation
internal import ZDCSupport

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// The folder beside the database with the disk manager's files. Their names are random, so they reveal nothing and are
/// never reused.
package struct DiskFolder: Sendable {
  package let url: URL

  package func create() throws {
    do {
      try FileManager.default.createDirectory(
        at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch { throw ZDCError(.fileFailure, underlying: error) }
  }

  package func url(_ name: String) -> URL { url.appendingPathComponent(name, isDirectory: false) }

  /// Returns 128 random bits in lowercase hexadecimal.
  package static func newName() -> String {
    var generator = SystemRandomNumberGenerator()
    let halves = [generator.next(), generator.next()].map { half in
      let text = String(half, radix: 16)
      return String(repeating: "0", count: 16 - text.count) + text
    }
    return halves.joined()
  }

  package static func isName(_ text: String) -> Bool {
    text.utf8.count == 32 && text.utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
  }

  /// Returns the position of the name's byte in the lock file: 60 of the name's bits.
  static func lockPlace(_ name: String) -> Int64 { Int64(name.prefix(15), radix: 16) ?? 0 }

  package func exists(_ name: String) -> Bool { access(url(name).path, F_OK) == 0 }

  /// Syncs the folder. The names of new files are durable only after that.
  package func synchronize() throws {
    let descriptor = openFile(url.path, O_RDONLY | O_CLOEXEC, 0)
    guard descriptor >= 0 else { throw LocalFile.failure() }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw LocalFile.failure() }
  }

  /// Calls `body` with the files' names, at most `count` at a time.
  func forEachName(inPiecesOf count: Int, _ body: ([String]) throws -> Void) throws {
    guard let folder = opendir(url.path) else { throw LocalFile.failure() }
    defer { closedir(folder) }
    var piece: [String] = []
    while let entry = readdir(folder) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      guard Self.isName(name) else { continue }
      piece.append(name)
      guard piece.count == count else { continue }
      try body(piece)
      piece = []
    }
    if !piece.isEmpty { try body(piece) }
  }
}
