internal import Foundation

/// Paths that are also valid in another process.
package enum AbsolutePath {
  /// Returns the absolute path; a relative one starts at the current folder. Links are not resolved.
  package static func of(_ path: String) -> String {
    if path.hasPrefix("/") { return path }
    let folder = FileManager.default.currentDirectoryPath
    return path == "." ? folder : folder + (folder.hasSuffix("/") ? "" : "/") + path
  }

  /// Like ``of(_:)``, but resolves a link that the user named.
  package static func followed(_ path: String) throws(CommandError) -> String {
    let absolute = of(path)
    guard try FileAttributes.of(absolute)?.kind == .link else { return absolute }
    return URL(fileURLWithPath: absolute).resolvingSymlinksInPath().path
  }

  /// Returns the last component of a path; empty for `/`, `.`, `..` and for paths that end with them.
  package static func name(of path: String) -> String {
    guard let last = path.split(separator: "/").last, last != ".", last != ".." else { return "" }
    return String(last)
  }

  /// Returns the folder that contains a path.
  package static func folder(of path: String) -> String {
    var bytes = Array(path.utf8)
    while bytes.count > 1, bytes.last == 0x2F { bytes.removeLast() }
    guard let slash = bytes.lastIndex(of: 0x2F) else { return "." }
    return slash == 0 ? "/" : String(decoding: bytes[..<slash], as: UTF8.self)
  }
}
