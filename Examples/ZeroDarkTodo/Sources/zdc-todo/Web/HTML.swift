import Foundation

/// Text of a page. Interpolated strings are escaped, unless they are HTML, so a title cannot become markup.
///
/// ```swift
/// let row: HTML = "<li>\(task.title)</li>"
/// ```
struct HTML: ExpressibleByStringInterpolation, Sendable {
  let text: String

  /// Identifies the text, in this process.
  var version: String { String(UInt(bitPattern: text.hashValue), radix: 36) }

  static let empty = HTML(stringLiteral: "")

  init(stringLiteral value: String) { text = value }
  init(stringInterpolation: StringInterpolation) { text = stringInterpolation.text }

  struct StringInterpolation: StringInterpolationProtocol {
    fileprivate var text = ""

    init(literalCapacity: Int, interpolationCount: Int) { text.reserveCapacity(literalCapacity * 2) }

    mutating func appendLiteral(_ literal: String) { text += literal }
    mutating func appendInterpolation(_ html: HTML) { text += html.text }
    mutating func appendInterpolation(_ html: HTML?) { text += html?.text ?? "" }
    mutating func appendInterpolation(_ parts: [HTML]) { for part in parts { text += part.text } }
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
