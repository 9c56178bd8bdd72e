internal import Synchronization
internal import ZDCProtocol
package import ZDCServer

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// A ledger of deletions in a file: a line each, which names an account, a device or content by its id. Chains in it are
/// public, apart from the handles that they claim it has no names, and keyrings are sealed.
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

  /// Adds what other lists have and this one has not, so that a later restore needs only this one.
  ///
  /// - Throws: ``StoreOpenError`` if a file is not a ledger, or this one cannot be written.
  package func add(from paths: [String]) async throws {
    try create()
    var known = Set<Deletion>()
    try await Self.forEach(in: path) { known.insert($0) }
    var batch: [Deletion] = []
    for path in paths {
      try await Self.forEach(in: path) { deletion in
        guard !known.contains(deletion) else { return }
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
      throw StoreOpenError(.damagedDeletions, path: path)
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
      (["account", user.text, "\(ms)"] + links.map(base64)).joined(separator: " ")
    case .link(let request, let user, let device, let ms):
      (["link", user.text, device.text, "\(ms)"] + words(of: request)).joined(separator: " ")
    case .device(let device, let user, let ms): "device \(user.text) \(device.text) \(ms)"
    case .suspension(let user, let ms, true): "suspended \(user.text) \(ms)"
    case .suspension(let user, let ms, false): "resumed \(user.text) \(ms)"
    }
  }

  private static func base64(_ bytes: [UInt8]) -> String { Data(bytes).base64EncodedString() }

  /// Stands for a field that a request does not have.
  private static let none = "-"

  private static func words(of request: AppendLinkRequest) -> [String] {
    [
      base64(request.link.bytes), request.keyring.map { base64($0.bytes) } ?? none, request.lookupID?.text ?? none,
      request.loginKey.map { base64($0.bytes) } ?? none,
    ]
  }

  private static func deletion(_ line: String) -> Deletion? {
    // An empty keyring is an empty word.
    let words = line.split(separator: " ", omittingEmptySubsequences: false)
    switch words.first {
    case "content": return words.count == 2 ? BlobID(text: words[1]).map { .content($0) } : nil
    case "account":
      guard words.count > 3, let user = UserID(text: words[1]), let ms = UInt64(words[2]) else { return nil }
      let links = words.dropFirst(3).compactMap(bytes)
      return links.count == words.count - 3 ? .account(user, ms: ms, links: links) : nil
    case "link": return words.count == 8 ? link(words) : nil
    case "device":
      guard words.count == 4, let user = UserID(text: words[1]), let device = DeviceID(text: words[2]),
        let ms = UInt64(words[3])
      else { return nil }
      return .device(device, of: user, ms: ms)
    case "suspended", "resumed":
      guard words.count == 3, let user = UserID(text: words[1]), let ms = UInt64(words[2]) else { return nil }
      return .suspension(user, ms: ms, isSuspended: words[0] == "suspended")
    default: return nil
    }
  }

  private static func bytes(_ word: Substring) -> [UInt8]? { Data(base64Encoded: String(word)).map { [UInt8]($0) } }

  private static func link(_ words: [Substring]) -> Deletion? {
    guard let user = UserID(text: words[1]), let device = DeviceID(text: words[2]), let ms = UInt64(words[3]),
      let link = bytes(words[4])
    else { return nil }
    var request = AppendLinkRequest(link: WireBytes(link))
    request.keyring = bytes(words[5]).map { WireBytes($0) }
    request.lookupID = LookupID(text: words[6])
    request.loginKey = bytes(words[7]).map { WireBytes($0) }
    let isWhole = Self.words(of: request).dropFirst().elementsEqual(words[5...].map(String.init))
    return isWhole ? .link(request, of: user, by: device, ms: ms) : nil
  }
}
