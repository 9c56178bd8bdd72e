/// A string literal of a Swift source file.
struct SwiftLiteral: Hashable {
  /// The text, with each interpolation as `«expression»`.
  var text: String
  /// The code between the literal before it and this one: without comments, each run of spaces as one space.
  var codeBefore: String
}

/// Finds the string literals of a Swift source file. Literals that a `+` joins are one literal.
struct SwiftLiterals {
  private(set) var literals: [SwiftLiteral] = []
  /// The code after the last literal.
  private(set) var codeAfter = ""
  private let source: [UInt8]
  private var index = 0
  private var code: [UInt8] = []

  init(_ text: String) {
    source = Array(text.utf8)
    while index < source.count { scan() }
    codeAfter = Self.squeezed(code)
  }

  private mutating func scan() {
    if starts("//") {
      while index < source.count, source[index] != UInt8(ascii: "\n") { index += 1 }
    } else if starts("/*") {
      skipComment()
    } else if let quote = openingQuote() {
      append(string(quote))
    } else if isRegularExpression {
      skipRegularExpression()
    } else {
      code.append(source[index])
      index += 1
    }
  }

  private mutating func append(_ text: String) {
    let before = Self.squeezed(code)
    code = []
    if before == "+", let last = literals.indices.last {
      literals[last].text += text
    } else {
      literals.append(SwiftLiteral(text: text, codeBefore: before))
    }
  }

  private func starts(_ text: StaticString) -> Bool {
    source[index...].starts(with: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  private func starts(_ bytes: [UInt8]) -> Bool { source[index...].starts(with: bytes) }

  private static func squeezed(_ bytes: [UInt8]) -> String {
    String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isWhitespace).joined(separator: " ")
  }
}

// MARK: Comments and regular expressions

extension SwiftLiterals {
  /// Skips a comment in `/*` and `*/`, which may hold others.
  private mutating func skipComment() {
    var depth = 0
    repeat {
      if starts("/*") {
        depth += 1
        index += 2
      } else if starts("*/") {
        depth -= 1
        index += 2
      } else {
        index += 1
      }
    } while depth > 0 && index < source.count
  }

  /// A slash where an operand is expected, followed by something other than a space, begins a regular expression.
  private var isRegularExpression: Bool {
    let space = UInt8(ascii: " ")
    guard source[index] == UInt8(ascii: "/"), index + 1 < source.count, source[index + 1] > space else { return false }
    return code.last { $0 > space }.map("=(,:[{".utf8.contains) ?? false
  }

  private mutating func skipRegularExpression() {
    repeat {
      index += source[index] == UInt8(ascii: "\\") ? 2 : 1
    } while index < source.count && source[index] != UInt8(ascii: "/")
    index += 1
    code += "regex".utf8
  }
}

// MARK: Strings

extension SwiftLiterals {
  private struct Quote {
    let end: [UInt8]
    let escape: [UInt8]
    let isMultiline: Bool

    init(hashes: Int, isMultiline: Bool) {
      let hashes = String(repeating: "#", count: hashes)
      end = Array((isMultiline ? "\"\"\"" : "\"").utf8) + Array(hashes.utf8)
      escape = Array("\\\(hashes)".utf8)
      self.isMultiline = isMultiline
    }
  }

  private func openingQuote() -> Quote? {
    guard source[index] == UInt8(ascii: "\"") || source[index] == UInt8(ascii: "#") else { return nil }
    let hashes = source[index...].prefix { $0 == UInt8(ascii: "#") }.count
    let rest = source[(index + hashes)...]
    guard rest.first == UInt8(ascii: "\"") else { return nil }
    return Quote(hashes: hashes, isMultiline: rest.starts(with: "\"\"\"".utf8))
  }

  private mutating func string(_ quote: Quote) -> String {
    index += quote.end.count
    var text: [UInt8] = []
    while index < source.count, !starts(quote.end) {
      guard starts(quote.escape) else {
        text.append(source[index])
        index += 1
        continue
      }
      index += quote.escape.count
      text += (starts("(") ? "«\(Self.squeezed(interpolation()))»" : escaped()).utf8
    }
    index += quote.end.count
    let all = String(decoding: text, as: UTF8.self)
    return quote.isMultiline ? Self.unindented(all) : all
  }

  /// Returns the expression between the parentheses, which may contain strings and other parentheses.
  private mutating func interpolation() -> [UInt8] {
    var text: [UInt8] = []
    var depth = 0
    repeat {
      if let quote = openingQuote() {
        text += "\"\(string(quote))\"".utf8
        continue
      }
      if source[index] == UInt8(ascii: "(") { depth += 1 }
      if source[index] == UInt8(ascii: ")") { depth -= 1 }
      text.append(source[index])
      index += 1
    } while depth > 0 && index < source.count
    return Array(text.dropFirst().dropLast())
  }

  /// Reads the rest of an escape sequence. An escaped line feed becomes `⏎`; other control characters stay as they are
  /// written.
  private mutating func escaped() -> String {
    let character = Character(UnicodeScalar(source[index]))
    index += 1
    switch character {
    case "n": return "⏎"
    case "\"", "\\", "'": return String(character)
    // In a string of several lines, it joins two lines.
    case "\n": return "\u{0}"
    default: return "\\\(character)"
    }
  }

  /// Removes the indentation of the closing quotes, and joins the lines that a backslash joins.
  private static func unindented(_ text: String) -> String {
    var lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropFirst()
    let indentation = lines.popLast()?.count ?? 0
    return lines.map { $0.dropFirst(min(indentation, $0.prefix { $0 == " " }.count)) }.joined(separator: "\n")
      .replacing(/\u{0} */, with: "")
  }
}
