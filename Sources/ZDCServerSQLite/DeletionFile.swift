internal import Synchronization
package import ZDCProtocol
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

  private let path: String
  /// Lines are appended one write after the other.
  private let turn = Mutex(())

  package init(path: String) { self.path = path }

  package func note(_ deletions: [Deletion]) async throws {
    guard !deletions.isEmpty else { return }
    let text = deletions.map { Self.line($0) + "\n" }.joined()
    try turn.withLock { _ in
      let isNew = !FileManager.default.fileExists(atPath: path)
      let file = try OpenFile(path, .create)
      try file.write(Array(text.utf8), at: try file.size())
      try file.synchronize()
      if isNew { try OpenFile(URL(fileURLWithPath: path).deletingLastPathComponent().path, .folder).synchronize() }
    }
  }

  /// Calls `body` with all deletions in order. A last line that a crash has cut is left out.
  ///
  /// - Throws: ``StoreOpenError`` if the file is not a ledger.
  package static func forEach(in path: String, _ body: (Deletion) async throws -> Void) async throws {
    guard FileManager.default.fileExists(atPath: path) else { throw StoreOpenError(.missing, path: path) }
    let file = try OpenFile(path, .read)
    var (rest, offset): ([UInt8], UInt64) = ([], 0)
    let size = try file.size()
    while offset < size {
      let count = Int(min(size - offset, 1 << 20))
      rest += try file.read(at: offset, count: count)
      offset += UInt64(count)
      while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
        guard let deletion = deletion(String(decoding: rest[..<end], as: UTF8.self)) else {
          throw StoreOpenError(.damaged, path: path)
        }
        rest.removeFirst(end + 1)
        try await body(deletion)
      }
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
