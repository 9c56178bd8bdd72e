/// An element of an object store's answer. Attributes and comments are ignored, document types are refused.
struct XMLNode {
  var name: String
  var text = ""
  var children: [XMLNode] = []

  struct Malformed: Error {}

  private static let deepest = 16

  init(_ bytes: [UInt8]) throws {
    var scanner = Scanner(bytes: bytes)
    self = try scanner.root(deepest: Self.deepest)
  }

  fileprivate init(name: String) { self.name = name }

  func all(_ name: String) -> [XMLNode] { children.filter { $0.name == name } }

  /// The text of the first child with that name.
  subscript(name: String) -> String? { children.first { $0.name == name }?.text }
}

private struct Scanner {
  let bytes: [UInt8]
  private var position = 0

  init(bytes: [UInt8]) { self.bytes = bytes }

  mutating func root(deepest: Int) throws -> XMLNode {
    while true {
      _ = try take(until: "<")
      let tag = try take(until: ">")
      if tag.hasPrefix("?") || tag.hasPrefix("!--") { continue }
      return try element(tag, deepest: deepest)
    }
  }

  /// Reads the rest of an element whose opening tag was read.
  private mutating func element(_ tag: String, deepest: Int) throws -> XMLNode {
    guard deepest > 0, let first = tag.first, first.isLetter else { throw XMLNode.Malformed() }
    var node = XMLNode(name: String(tag.prefix { !$0.isWhitespace && $0 != "/" }))
    if tag.hasSuffix("/") { return node }
    while true {
      node.text += try take(until: "<")
      let inner = try take(until: ">")
      if inner.hasPrefix("!--") { continue }
      if inner.hasPrefix("/") {
        guard inner.dropFirst() == node.name else { throw XMLNode.Malformed() }
        node.text = Self.decoded(node.text)
        return node
      }
      node.children.append(try element(inner, deepest: deepest - 1))
    }
  }

  private mutating func take(until end: Unicode.Scalar) throws -> String {
    guard let found = bytes[position...].firstIndex(of: UInt8(ascii: end)) else { throw XMLNode.Malformed() }
    defer { position = found + 1 }
    return String(decoding: bytes[position..<found], as: UTF8.self)
  }

  private static func decoded(_ text: String) -> String {
    guard text.contains("&") else { return text }
    let named = ["lt": "<", "gt": ">", "amp": "&", "quot": "\"", "apos": "'", "#34": "\"", "#39": "'"]
    var pieces = text.split(separator: "&", omittingEmptySubsequences: false)
    var decoded = String(pieces.removeFirst())
    for piece in pieces {
      let parts = piece.split(separator: ";", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2, let character = named[String(parts[0])] else {
        decoded += "&" + piece
        continue
      }
      decoded += character + parts[1]
    }
    return decoded
  }
}
