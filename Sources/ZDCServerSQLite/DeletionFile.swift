internal import Synchronization
internal import ZDCProtocol
package import ZDCServer

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// A ledger of deletions in a file: a line each, which names an account or content by its id. It has no keys and no
/// names; the chains in it are public.
package final class DeletionFile: DeletionLedger {
  /// The name of the file in a data folder, unless another one is given.
  package static let defaultName = "deletions"

  package let path: String
  /// Lines are appended one write after the other.
  private let turn = Mutex(())

  package init(path: String) { self.path = path }

  /// Creates the file if it does not exist. A server that cannot write it learns so when it starts, not at the first
  /// deletion, and the file is there for a restore although nothing was deleted.
  ///
  /// - Throws: ``StoreOpenError``.
  package func create() throws(StoreOpenError) {
    do { _ = try turn.withLock { _ in try open() } } catch let error as OpenFile.Failure {
      throw StoreOpenError(error.isDenied ? .noPermission : .cannotCreate, path: path)
    } catch { throw StoreOpenError(.other("\(error)"), path: path) }
  }

  private func open() throws -> OpenFile {
    let isNew = !FileManager.default.fileExists(atPath: path)
    let file = try OpenFile(path, .create)
    if isNew { try OpenFile(URL(fileURLWithPath: path).deletingLastPathComponent().path, .folder).synchronize() }
    return file
  }

  private static let lineEnd = UInt8(ascii: "\n")
  /// Ends a line that a crash or a full disk has cut. If this is cut in turn, the line has it twice.
  private static let cut = UInt8(ascii: "~")

  package func note(_ deletions: [Deletion]) throws {
    guard !deletions.isEmpty else { return }
    let text = deletions.map { Self.line($0) + "\n" }.joined()
    try turn.withLock { _ in
      let file = try open()
      let size = try file.size()
      let isCut = try size > 0 && file.read(at: size - 1, count: 1) != [Self.lineEnd]
      try file.write((isCut ? [Self.cut, Self.lineEnd] : []) + Array(text.utf8), at: size)
      try file.synchronize()
    }
  }

  /// Calls `body` with all deletions in order, without lines that a crash has cut. The server had not deleted yet what they
  /// name.
  ///
  /// - Throws: ``StoreOpenError`` if the file is not a ledger.
  package static func forEach(in path: String, _ body: (Deletion) async throws -> Void) async throws {
    guard FileManager.default.fileExists(atPath: path) else { throw StoreOpenError(.missingDeletions, path: path) }
    try await forEachLine(in: path) { line in
      if line.last != cut { try await body(try parsed(line, path)) }
    }
  }

  /// Adds what other lists have, so that a later restore needs only this one.
  ///
  /// - Throws: ``StoreOpenError`` if a file is not a ledger.
  package func add(from paths: [String]) async throws {
    var batch: [Deletion] = []
    for path in paths {
      try await Self.forEach(in: path) { deletion in
        batch.append(deletion)
        guard batch.count >= 1_000 else { return }
        try note(batch)
        batch = []
      }
    }
    try note(batch)
  }

  private static func parsed(_ line: ArraySlice<UInt8>, _ path: String) throws -> Deletion {
    guard let deletion = deletion(String(decoding: line, as: UTF8.self)) else {
      throw StoreOpenError(.damaged, path: path)
    }
    return deletion
  }

  /// Calls `body` with all lines that have an end.
  private static func forEachLine(in path: String, _ body: (ArraySlice<UInt8>) async throws -> Void) async throws {
    let file = try OpenFile(path, .read)
    let size = try file.size()
    var rest: [UInt8] = []
    for offset in stride(from: 0, to: size, by: 1 << 20) {
      rest += try file.read(at: offset, count: Int(min(size - offset, 1 << 20)))
      var start = rest.startIndex
      while let end = rest[start...].firstIndex(of: lineEnd) {
        try await body(rest[start..<end])
        start = end + 1
      }
      rest.removeFirst(start)
    }
  }

  private static func line(_ deletion: Deletion) -> String {
    switch deletion {
    case .content(let blob): "content \(blob.text)"
    case .account(let user, let ms, let links):
      (["account", user.text, "\(ms)"] + links.map { Data($0).base64EncodedString() }).joined(separator: " ")
    }
  }

  private static func deletion(_ line: String) -> Deletion? {
    let words = line.split(separator: " ")
    switch words.first {
    case "content": return words.count == 2 ? BlobID(text: words[1]).map { .content($0) } : nil
    case "account":
      guard words.count > 3, let user = UserID(text: words[1]), let ms = UInt64(words[2]) else { return nil }
      let links = words.dropFirst(3).compactMap { Data(base64Encoded: String($0)).map { [UInt8]($0) } }
      return links.count == words.count - 3 ? .account(user, ms: ms, links: links) : nil
    default: return nil
    }
  }
}
