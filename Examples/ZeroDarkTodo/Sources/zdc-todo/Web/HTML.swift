import Foundation

/// Text of a page. Interpolated strings are escaped, unless they are HTML, so a title cannot become markup.
///
/// ```swift
/// let row: HTML = "<li>\(task.title)</li>"
/// ```
struct HTML: ExpressibleByStringInterpolation, Sendable {
  let text: String
  /// The rows of its lists, in their order.
  fileprivate let rows: [Row]

  /// The text of an element `li` with an id.
  fileprivate struct Row: Sendable {
    var id: String
    var bytes: Range<Int>

    func moved(by count: Int) -> Row { Row(id: id, bytes: bytes.lowerBound + count..<bytes.upperBound + count) }
  }

  /// Identifies the text, in this process.
  var version: String { String(UInt(bitPattern: Self.hash(text[...])), radix: 36) }

  static let empty = HTML(stringLiteral: "")

  init(stringLiteral value: String) { (text, rows) = (value, []) }
  init(stringInterpolation: StringInterpolation) {
    (text, rows) = (stringInterpolation.text, stringInterpolation.rows)
  }

  /// A row of a list, which is sent to a page only if it has changed.
  ///
  /// - Parameter element: An element `li` with this id.
  init(row id: String, _ element: HTML) {
    (text, rows) = (element.text, [Row(id: id, bytes: 0..<element.text.utf8.count)])
  }

  struct StringInterpolation: StringInterpolationProtocol {
    fileprivate var text = ""
    fileprivate var rows: [Row] = []

    init(literalCapacity: Int, interpolationCount: Int) { text.reserveCapacity(literalCapacity * 2) }

    mutating func appendLiteral(_ literal: String) { text += literal }
    mutating func appendInterpolation(_ html: HTML) {
      if !html.rows.isEmpty { rows += html.rows.map { [count = text.utf8.count] in $0.moved(by: count) } }
      text += html.text
    }
    mutating func appendInterpolation(_ html: HTML?) { if let html { appendInterpolation(html) } }
    mutating func appendInterpolation(_ parts: [HTML]) { for part in parts { appendInterpolation(part) } }
    mutating func appendInterpolation(_ number: Int) { text += String(number) }

    mutating func appendInterpolation(_ value: String) {
      guard value.utf8.contains(where: Self.isEscaped) else {
        text += value
        return
      }
      for character in value.unicodeScalars {
        switch character {
        case "&": text += "&amp;"
        case "<": text += "&lt;"
        case ">": text += "&gt;"
        case "\"": text += "&quot;"
        case "'": text += "&#39;"
        case "\r": text += "&#13;"  // would end a line of a server-sent event
        default: text.unicodeScalars.append(character)
        }
      }
    }

    private static func isEscaped(_ byte: UInt8) -> Bool {
      switch byte {
      case UInt8(ascii: "&"), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "\""), UInt8(ascii: "'"),
        UInt8(ascii: "\r"):
        true
      default: false
      }
    }
  }
}

extension HTML {
  /// The rows of a text, by their ids: a hash of each.
  typealias RowVersions = [String: Int]

  var rowVersions: RowVersions {
    Dictionary(rows.map { ($0.id, Self.hash(self[$0.bytes])) }, uniquingKeysWith: { $1 })
  }

  /// Returns the text for a page that has these rows: an empty element with its id stands for each of them.
  func text(without known: RowVersions) -> String {
    var (result, end) = ("", 0)
    for row in rows where known[row.id] == Self.hash(self[row.bytes]) {
      let same: HTML = "<li id=\"\(row.id)\" data-same></li>"
      result += self[end..<row.bytes.lowerBound] + same.text
      end = row.bytes.upperBound
    }
    return result + self[end..<text.utf8.count]
  }

  /// Unlike the hash of a string, it needs no normal form.
  private static func hash(_ text: Substring) -> Int {
    var hasher = Hasher()
    let isHashed: Void? = text.utf8.withContiguousStorageIfAvailable {
      hasher.combine(bytes: UnsafeRawBufferPointer($0))
    }
    if isHashed == nil { hasher.combine(text) }
    return hasher.finalize()
  }

  private subscript(bytes: Range<Int>) -> Substring {
    let index = { text.utf8.index(text.startIndex, offsetBy: $0) }
    return text[index(bytes.lowerBound)..<index(bytes.upperBound)]
  }
}
