internal import Foundation

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// The files and folders that `put` is to send, parents before children, in the order of their names.
package struct SourceScan: Sendable {
  package struct Entry: Sendable, Hashable {
    /// Names from the source down; empty for the source itself.
    package var names: [String]
    package var path: String
    package var facts: FileFacts
  }

  /// What is left out, and why.
  package struct Skipped: Sendable, Hashable {
    package var path: String
    package var reason: String
    /// Whether `put` skips such files by its rules: then nothing went wrong.
    package var isByRule = false
  }

  package static let unreadable = "cannot be read"
  package static let sameName = "another file in the folder has the same name, composed differently"

  package private(set) var entries: [Entry] = []
  package private(set) var skipped: [Skipped] = []

  package var bytes: UInt64 { entries.reduce(0) { $0 + ($1.facts.kind == .file ? $1.facts.size : 0) } }

  /// - Parameter path: A file, a folder, or a link to one: the link that the user names is followed, those below it are
  ///   not.
  /// - Throws: ``CommandError`` if the source itself cannot be read. What cannot be read below it is skipped and named.
  package init(_ path: String) throws(CommandError) {
    guard let facts = try FileFacts.of(path, followingLink: true) else {
      throw FileFailure.error(path, reading: true, number: ENOENT)
    }
    guard facts.kind == .file || facts.kind == .folder else {
      throw CommandError(.noInput, "notAFile", "\(ShownName.text(path)): a \(facts.kind.rawValue) cannot be put")
    }
    guard facts.kind == .folder || access(path, R_OK) == 0 else { throw FileFailure.error(path, reading: true) }
    entries.append(Entry(names: [], path: path, facts: facts))
    if facts.kind == .folder { try list(path, []) }
  }

  private mutating func list(_ folder: String, _ names: [String]) throws(CommandError) {
    guard let listed = try Self.names(in: folder, isSource: names.isEmpty) else {
      skipped.append(Skipped(path: folder, reason: Self.unreadable))
      return
    }
    skipped += (0..<listed.unreadable).map { _ in Skipped(path: folder, reason: "a name in it is not UTF-8") }
    let doubles = Self.doubles(listed.names)
    for name in listed.names {
      if doubles.contains(Array(name.utf8)) {
        skipped.append(Skipped(path: Self.path(of: name, in: folder), reason: Self.sameName))
      } else {
        try add(folder, names, name)
      }
    }
  }

  /// Names that the tree takes for another one of the folder: it keeps them composed (NFC), and strings compare without
  /// regard to it. The one that is composed already has the name.
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

  private mutating func add(_ folder: String, _ names: [String], _ name: String) throws(CommandError) {
    let path = Self.path(of: name, in: folder)
    let facts: FileFacts
    do throws(CommandError) {
      // It may have gone since its folder was listed.
      guard let found = try FileFacts.of(path) else { return }
      facts = found
    } catch {
      return skipped.append(Skipped(path: path, reason: Self.unreadable))
    }
    guard facts.metadata != nil else {
      return skipped.append(Skipped(path: path, reason: facts.kind.rawValue, isByRule: true))
    }
    guard facts.kind == .folder || access(path, R_OK) == 0 else {
      return skipped.append(Skipped(path: path, reason: Self.unreadable))
    }
    entries.append(Entry(names: names + [name], path: path, facts: facts))
    if facts.kind == .folder { try list(path, names + [name]) }
  }

  /// Names in a folder, sorted by bytes; nil if it cannot be read.
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
    while let entry = readdir(stream) {
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
    return (names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }, unreadable)
  }
}
