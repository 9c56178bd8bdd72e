internal import Foundation

/// Paths that stay true in another process.
package enum AbsolutePath {
  /// The path below the current folder, if it is not absolute. Links are left as they are.
  package static func of(_ path: String) -> String {
    if path.hasPrefix("/") { return path }
    let folder = FileManager.default.currentDirectoryPath
    return path == "." ? folder : folder + (folder.hasSuffix("/") ? "" : "/") + path
  }

  /// The same, with a link that the user named replaced by what it leads to.
  package static func followed(_ path: String) throws(CommandError) -> String {
    let absolute = of(path)
    guard try FileFacts.of(absolute)?.kind == .link else { return absolute }
    return URL(fileURLWithPath: absolute).resolvingSymlinksInPath().path
  }

  /// The last name of a path; empty for `/`, `.`, `..` and for what ends with them.
  package static func name(of path: String) -> String {
    guard let last = path.split(separator: "/").last, last != ".", last != ".." else { return "" }
    return String(last)
  }

  /// The folder that a path is in.
  package static func folder(of path: String) -> String {
    var bytes = Array(path.utf8)
    while bytes.count > 1, bytes.last == 0x2F { bytes.removeLast() }
    guard let slash = bytes.lastIndex(of: 0x2F) else { return "." }
    return slash == 0 ? "/" : String(decoding: bytes[..<slash], as: UTF8.self)
  }
}
