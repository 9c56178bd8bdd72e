internal import Foundation

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// Walks the files and folders that `put` sends, parents before children, in the order of their names.
///
/// Reads each folder when it reaches it and holds only the names on the current path, regardless of the number of
/// files.
package struct SourceWalk: Sendable {
  package struct Entry: Sendable, Hashable {
    /// Names from the source down; empty for the source itself.
    package var names: [String]
    package var path: String
    package var facts: FileAttributes
  }

  /// A file or folder that is left out, and the reason.
  package struct Skipped: Sendable, Hashable {
    package var path: String
    package var reason: String
    /// Whether the rules of `put` skip such files; then it is not an error.
    package var isByRule = false
  }

  package static let unreadable = "cannot be read"
  package static let ownFolder = "zdc's own data, with the account's keys; it is never put"
  package static let unfinished = "unfinished downloads of zdc get"
  package static let sameName = "another file in the folder has the same name, composed differently"

  /// An entered folder and its remaining names.
  private struct Level {
    var path: String
    var names: [String]
    var rest: ArraySlice<String>
    var doubles: Set<[UInt8]>
  }

  package let path: String
  private let own: FileStamp?
  private var source: Entry?
  private var levels: [Level] = []
  /// The entries skipped so far.
  package private(set) var skipped: [Skipped] = []

  /// - Parameters:
  ///   - path: A file, a folder, or a link to one. This link is followed; links below it are not.
  ///   - own: A folder to skip wherever the walk meets it below the source.
  /// - Throws: ``CommandError`` if the source itself cannot be read, or is `own` or below it. Unreadable entries below the
  ///   source are skipped and listed in ``skipped``.
  package init(_ path: String, skipping own: String? = nil) throws(CommandError) {
    guard let facts = try FileAttributes.of(path, followingLink: true) else {
      throw FileFailure.error(path, reading: true, number: ENOENT)
    }
    guard facts.kind == .file || facts.kind == .folder else {
      throw CommandError(.noInput, "notAFile", "\(ShownName.text(path)): a \(facts.kind.rawValue) cannot be put")
    }
    guard facts.kind == .folder || access(path, R_OK) == 0 else { throw FileFailure.error(path, reading: true) }
    self.path = path
    self.own = if let own { try FileAttributes.of(own, followingLink: true)?.stamp } else { nil }
    if let own = self.own, try Self.isWithin(own, path) {
      throw CommandError(.noInput, "ownFolder", "\(ShownName.text(path)): \(Self.ownFolder)")
    }
    source = Entry(names: [], path: path, facts: facts)
    if facts.kind == .folder { try enter(path, []) }
  }

  /// Whether a path leads to a folder, or to something below it.
  private static func isWithin(_ folder: FileStamp, _ path: String) throws(CommandError) -> Bool {
    var path = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
    while true {
      if let stamp = try FileAttributes.of(path, followingLink: true)?.stamp, isSame(stamp, folder) { return true }
      guard path != "/" else { return false }
      path = AbsolutePath.folder(of: path)
    }
  }

  private static func isSame(_ a: FileStamp, _ b: FileStamp) -> Bool { (a.device, a.inode) == (b.device, b.inode) }

  /// Returns the number of remaining entries. Walks through all of them.
  package func count() throws(CommandError) -> Int {
    var (walk, count) = (self, 0)
    while try walk.next() != nil { count += 1 }
    return count
  }

  /// Returns up to `count` entries; an empty array at the end.
  package mutating func next(_ count: Int) throws(CommandError) -> [Entry] {
    var entries: [Entry] = []
    while entries.count < count, let entry = try next() { entries.append(entry) }
    return entries
  }

  private mutating func next() throws(CommandError) -> Entry? {
    if let source {
      self.source = nil
      return source
    }
    while !levels.isEmpty {
      guard let name = levels[levels.count - 1].rest.popFirst() else {
        levels.removeLast()
        continue
      }
      if let entry = try entry(name, levels[levels.count - 1]) { return entry }
    }
    return nil
  }

  private mutating func entry(_ name: String, _ folder: Level) throws(CommandError) -> Entry? {
    let path = Self.path(of: name, in: folder.path)
    guard folder.doubles.isEmpty || !folder.doubles.contains(Array(name.utf8)) else {
      skipped.append(Skipped(path: path, reason: Self.sameName))
      return nil
    }
    guard let facts = facts(path) else { return nil }
    guard facts.kind != .folder || !StagingName.isOne(name) else {
      skipped.append(Skipped(path: path, reason: Self.unfinished, isByRule: true))
      return nil
    }
    let names = folder.names + [name]
    if facts.kind == .folder { try enter(path, names) }
    return Entry(names: names, path: path, facts: facts)
  }

  /// Returns nil for entries that are skipped.
  private mutating func facts(_ path: String) -> FileAttributes? {
    let facts: FileAttributes
    do throws(CommandError) {
      // The file may have been removed since its folder was listed.
      guard let found = try FileAttributes.of(path) else { return nil }
      facts = found
    } catch {
      skipped.append(Skipped(path: path, reason: Self.unreadable))
      return nil
    }
    guard facts.metadata != nil else {
      skipped.append(Skipped(path: path, reason: facts.kind.rawValue, isByRule: true))
      return nil
    }
    guard facts.kind == .folder || access(path, R_OK) == 0 else {
      skipped.append(Skipped(path: path, reason: Self.unreadable))
      return nil
    }
    if let own, let stamp = facts.stamp, Self.isSame(stamp, own) {
      skipped.append(Skipped(path: path, reason: Self.ownFolder, isByRule: true))
      return nil
    }
    return facts
  }

  private mutating func enter(_ folder: String, _ names: [String]) throws(CommandError) {
    guard let listed = try Self.names(in: folder, isSource: names.isEmpty) else {
      skipped.append(Skipped(path: folder, reason: Self.unreadable))
      return
    }
    skipped += (0..<listed.unreadable).map { _ in Skipped(path: folder, reason: "a name in it is not UTF-8") }
    levels.append(
      Level(path: folder, names: names, rest: listed.names[...], doubles: Self.doubles(listed.names)))
  }

  /// Returns names that the tree would treat as equal to another name in the folder: it stores names composed (NFC),
  /// and string comparison ignores the difference. The name that is already composed has precedence.
  private static func doubles(_ names: [String]) -> Set<[UInt8]> {
    guard Set(names).count < names.count else { return [] }
    func isComposed(_ name: String) -> Bool {
      Array(name.precomposedStringWithCanonicalMapping.utf8) == Array(name.utf8)
    }
    var taken: Set<String> = []
    var doubles: Set<[UInt8]> = []
    for name in names.filter(isComposed) + names.filter({ !isComposed($0) })
    where !taken.insert(name).inserted { doubles.insert(Array(name.utf8)) }
    return doubles
  }

  private static func path(of name: String, in folder: String) -> String {
    folder.hasSuffix("/") ? folder + name : folder + "/" + name
  }

  /// Returns the names in a folder, sorted by bytes; nil if it cannot be read.
  private static func names(
    in folder: String, isSource: Bool
  ) throws(CommandError) -> (names: [String], unreadable: Int)? {
    guard let stream = opendir(folder) else {
      if isSource { throw FileFailure.error(folder, reading: true) }
      return nil
    }
    defer { closedir(stream) }
    var names: [String] = []
    var unreadable = 0
    errno = 0
    while let entry = readdir(stream) {
      defer { errno = 0 }
      let bytes = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: UInt8.self, capacity: Int(NAME_MAX) + 1) { start in
          Array(
            UnsafeBufferPointer(
              start: start, count: strlen(UnsafeRawPointer(start).assumingMemoryBound(to: CChar.self))))
        }
      }
      if bytes == [0x2E] || bytes == [0x2E, 0x2E] { continue }
      if let name = String(validating: bytes, as: UTF8.self) { names.append(name) } else { unreadable += 1 }
    }
    guard errno == 0 else {
      if isSource { throw FileFailure.error(folder, reading: true) }
      return nil
    }
    return (names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }, unreadable)
  }
}
