import Foundation

/// The tree that a series of commands creates, one after the other.
struct FileTreeModel: Equatable {
  enum Entry: Equatable {
    case folder
    case file(Data)
  }

  /// By path without a leading slash. The top is always present.
  private(set) var entries: [String: Entry] = [:]

  var paths: [String] { entries.keys.sorted() }

  func isFolder(_ path: String) -> Bool { path.isEmpty || entries[path] == .folder }

  /// The outcome of `zdc put --overwrite`, which never replaces a folder with a file, nor a file with a folder.
  enum Put {
    case whole
    /// Nodes of the other kind inside the folder are left alone.
    case partial
    /// The node itself is of the other kind.
    case refused
  }

  mutating func putFile(_ path: String, _ bytes: Data) -> Put {
    if entries[path] == .folder { return .refused }
    entries[path] = .file(bytes)
    return .whole
  }

  /// - Parameter files: by path below the folder; other entries of the folder stay.
  mutating func putFolder(_ path: String, folders: [String], files: [String: Data]) -> Put {
    guard putOneFolder(path) else { return .refused }
    var isWhole = true
    for folder in folders { isWhole = putOneFolder("\(path)/\(folder)") && isWhole }
    for (name, bytes) in files {
      let file = "\(path)/\(name)"
      let isPut = isFolder(Self.parent(of: file)) && putFile(file, bytes) == .whole
      isWhole = isPut && isWhole
    }
    return isWhole ? .whole : .partial
  }

  private mutating func putOneFolder(_ path: String) -> Bool {
    if case .file = entries[path] { return false }
    entries[path] = .folder
    return true
  }

  /// - Returns: false if the move is not possible.
  mutating func move(_ path: String, to new: String) -> Bool {
    guard entries[path] != nil, entries[new] == nil, isFolder(Self.parent(of: new)) else { return false }
    guard !"\(new)/".hasPrefix("\(path)/") else { return false }
    for old in branch(path) {
      entries[new + old.dropFirst(path.count)] = entries[old]
      entries[old] = nil
    }
    return true
  }

  mutating func remove(_ path: String) {
    for old in branch(path) { entries[old] = nil }
  }

  private func branch(_ path: String) -> [String] {
    paths.filter { $0 == path || $0.hasPrefix("\(path)/") }
  }

  static func parent(of path: String) -> String {
    path.lastIndex(of: "/").map { String(path[..<$0]) } ?? ""
  }

  /// Reads the tree of a folder on disk.
  init(readingFrom folder: URL) throws {
    for path in try FileManager.default.subpathsOfDirectory(atPath: folder.path) {
      let url = folder.appendingPathComponent(path)
      var isFolder: ObjCBool = false
      guard FileManager.default.fileExists(atPath: url.path, isDirectory: &isFolder) else { continue }
      entries[path] = isFolder.boolValue ? .folder : .file(try Data(contentsOf: url))
    }
  }

  init() {}

  /// Returns the differences between two trees.
  func differences(from other: FileTreeModel) -> [String] {
    Set(entries.keys).union(other.entries.keys).sorted().compactMap { path in
      entries[path] == other.entries[path]
        ? nil : "\(path): \(Self.shown(entries[path])) against \(Self.shown(other.entries[path]))"
    }
  }

  private static func shown(_ entry: Entry?) -> String {
    switch entry {
    case nil: "nothing"
    case .folder: "a folder"
    case .file(let bytes): "\(bytes.count) bytes"
    }
  }
}
