/// A name by which people find a user: `alice`, written `@alice` where a user ID may stand too (PROTOCOL 3.2).
///
/// Only ASCII: with letters of other alphabets, two handles could look the same.
package struct Handle: Sendable, Hashable, Comparable, CustomStringConvertible {
  package static let characters = 3...32

  package let text: String

  /// Accepts the canonical form only: 3 to 32 characters, lowercase letters, digits and single separators `.`, `_` and
  /// `-`; a letter begins it, and no separator ends it.
  package init?(_ text: String) {
    guard Self.characters.contains(text.utf8.count), Self.isBeginning(text), let last = text.utf8.last,
      !Self.isSeparator(last)
    else { return nil }
    self.text = text
  }

  /// Accepts what a person types: also uppercase letters, and an `@` in front.
  package init?(typed: String) {
    self.init(Self.folded(typed))
  }

  /// Returns the beginning of a handle that a person types, in the canonical form; nil if no handle begins like that.
  package static func beginning(typed: String) -> String? {
    let text = folded(typed)
    return characters.contains(text.utf8.count) && isBeginning(text) ? text : nil
  }

  package static func < (a: Handle, b: Handle) -> Bool { a.text.utf8.lexicographicallyPrecedes(b.text.utf8) }

  package var description: String { "@" + text }

  private static func folded(_ typed: String) -> String {
    String(typed.hasPrefix("@") ? typed.dropFirst() : typed[...]).lowercased()
  }

  private static func isBeginning(_ text: String) -> Bool {
    guard let first = text.utf8.first, isLetter(first) else { return false }
    return text.utf8.allSatisfy { isLetter($0) || isDigit($0) || isSeparator($0) }
      && !zip(text.utf8, text.utf8.dropFirst()).contains { isSeparator($0) && isSeparator($1) }
  }

  private static func isLetter(_ byte: UInt8) -> Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) }
  private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
  private static func isSeparator(_ byte: UInt8) -> Bool { [UInt8](".-_".utf8).contains(byte) }
}

/// The answer to a look-up of handles, always of the same length: 20 × (`b[32]` handle, padded with zeros ‖ `b[32]`
/// userID), and zeros where there is no entry.
package enum HandleList {
  package struct Entry: Sendable, Hashable {
    package var handle: Handle
    package var user: UserID

    package init(handle: Handle, user: UserID) { (self.handle, self.user) = (handle, user) }
  }

  package static let entries = 20
  package static let byteCount = entries * entryBytes
  private static let entryBytes = 64

  package static func bytes(_ list: [Entry]) -> [UInt8] {
    var writer = ByteWriter(capacity: byteCount)
    for entry in list.prefix(entries) {
      let text = Array(entry.handle.text.utf8)
      writer.append(contentsOf: text + [UInt8](repeating: 0, count: 32 - text.count))
      writer.append(entry.user)
    }
    return writer.bytes + [UInt8](repeating: 0, count: byteCount - writer.bytes.count)
  }

  /// Decodes an answer. Handles ascend, and all begin with the text that was asked for.
  ///
  /// - Throws: `nonCanonicalEncoding`.
  package static func read(_ bytes: [UInt8], beginning: String) throws(ZDCSecurityError) -> [Entry] {
    try require(bytes.count == byteCount, .nonCanonicalEncoding)
    var reader = ByteReader(bytes)
    var list: [Entry] = []
    var isAtEnd = false
    for _ in 0..<entries {
      let field = Array(try reader.read(count: 32))
      let user: UserID = try reader.read32()
      if field.allSatisfy({ $0 == 0 }) {
        try require(user == .zero, .nonCanonicalEncoding)
        isAtEnd = true
        continue
      }
      let text = field.prefix { $0 != 0 }
      guard !isAtEnd, field.dropFirst(text.count).allSatisfy({ $0 == 0 }),
        let handle = Handle(String(decoding: text, as: UTF8.self)), handle.text.hasPrefix(beginning),
        list.last.map({ $0.handle < handle }) ?? true
      else { throw ZDCSecurityError(.nonCanonicalEncoding) }
      list.append(Entry(handle: handle, user: user))
    }
    return list
  }
}
