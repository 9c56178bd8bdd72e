/// Checks a JSON body before it is decoded: limited nesting, and only one meaning.
///
/// Decoders disagree on the meaning of duplicate member names. Escapes in names could hide duplicates, and no valid
/// body has any.
package enum JSONForm {
  // Not generic: other modules would run it unspecialized, and a server runs it on bodies of unauthenticated requests.
  package static func isAcceptable(_ bytes: [UInt8], depth limit: Int = Limits.jsonDepth) -> Bool {
    var scanner = Scanner(limit: limit)
    for byte in bytes where !scanner.take(byte) { return false }
    return true
  }

  private struct Scanner {
    let limit: Int
    /// The names seen in each open object; nil for an array.
    private var open: [Set<[UInt8]>?] = []
    private var text: [UInt8] = []
    private var isString = false
    private var isEscaped = false
    private var hasEscape = false
    /// Whether a string that ends now would be a name.
    private var expectsName = false

    init(limit: Int) {
      self.limit = limit
    }

    /// - Returns: false if the body is refused.
    mutating func take(_ byte: UInt8) -> Bool {
      if isString { return takeInString(byte) }
      switch byte {
      case UInt8(ascii: "\""):
        isString = true
        hasEscape = false
        text.removeAll(keepingCapacity: true)
      case UInt8(ascii: "{"):
        open.append([])
        expectsName = true
      case UInt8(ascii: "["):
        open.append(nil)
        expectsName = false
      case UInt8(ascii: "}"), UInt8(ascii: "]"): _ = open.popLast()
      case UInt8(ascii: ","): expectsName = open.last.map { $0 != nil } ?? false
      case UInt8(ascii: ":"): expectsName = false
      default: break
      }
      return open.count <= limit
    }

    private mutating func takeInString(_ byte: UInt8) -> Bool {
      if isEscaped {
        isEscaped = false
      } else if byte == UInt8(ascii: "\\") {
        (isEscaped, hasEscape) = (true, true)
      } else if byte == UInt8(ascii: "\"") {
        isString = false
        return !expectsName || endName()
      }
      // Only names are kept, because values may be long.
      if expectsName { text.append(byte) }
      return true
    }

    private mutating func endName() -> Bool {
      guard !hasEscape, var names = open.last ?? nil else { return false }
      open[open.count - 1] = nil
      defer { open[open.count - 1] = names }
      return names.insert(text).inserted
    }
  }
}
