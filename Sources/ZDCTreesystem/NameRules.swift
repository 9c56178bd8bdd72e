internal import ZDCProtocol

/// Names that do not clash: `Foobar.ext`, `Foobar 2.ext`, `Foobar 3.ext` (reference 1.12). Pure.
package enum NameRules {
  /// A name in the parts that a number goes between.
  private struct Parts {
    var stem: Substring
    /// With its dot; empty for none.
    var suffix: Substring
    /// The number that the name has already, else 1.
    var number: UInt64
  }

  /// The names to try when `name` is taken, in order, without end.
  ///
  /// A number that the name ends with is continued: "Foobar 7" gives "Foobar 8". Names that would be longer than
  /// `limit` bytes lose the
  /// end of their stem, never half a character.
  package static func alternatives(to name: String, limit: Int = Limits.nameBytes) -> some Sequence<String> {
    let parts = split(name)
    return sequence(state: parts.number) { number in
      guard number < UInt64.max else { return nil }
      number += 1
      return join(parts, number, limit: limit)
    }
  }

  /// `name` itself if it is free, else the first alternative that is.
  package static func conflictFree(
    _ name: String, isTaken: (String) throws -> Bool
  ) rethrows -> String {
    guard try isTaken(name) else { return name }
    for candidate in alternatives(to: name) where try !isTaken(candidate) { return candidate }
    return name
  }

  private static func split(_ name: String) -> Parts {
    let (base, suffix) = splitSuffix(name)
    guard let space = base.lastIndex(of: " "), space > base.startIndex else {
      return Parts(stem: base, suffix: suffix, number: 1)
    }
    let digits = base[base.index(after: space)...]
    guard let number = number(digits) else { return Parts(stem: base, suffix: suffix, number: 1) }
    return Parts(stem: base[..<space], suffix: suffix, number: number)
  }

  /// A dot at the beginning hides a file, one at the end is part of the name, and an extension is short and has no
  /// space.
  private static func splitSuffix(_ name: String) -> (base: Substring, suffix: Substring) {
    guard let dot = name.lastIndex(of: "."), dot > name.startIndex else { return (name[...], "") }
    let suffix = name[dot...]
    guard (2...16).contains(suffix.utf8.count), !suffix.contains(" ") else { return (name[...], "") }
    return (name[..<dot], suffix)
  }

  /// Without leading zeros, and not so long that it is something else than a count.
  private static func number(_ digits: Substring) -> UInt64? {
    guard (1...9).contains(digits.utf8.count), digits.utf8.first != UInt8(ascii: "0") else { return nil }
    guard digits.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else { return nil }
    return UInt64(digits)
  }

  private static func join(_ parts: Parts, _ number: UInt64, limit: Int) -> String {
    let tail = " \(number)\(parts.suffix)"
    var stem = parts.stem
    while stem.utf8.count + tail.utf8.count > limit, !stem.isEmpty { stem.removeLast() }
    return stem + tail
  }
}
