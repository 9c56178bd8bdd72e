internal import ZDCProtocol

/// Finds names that do not clash: `Foobar.ext`, `Foobar 2.ext`, `Foobar 3.ext`. Pure.
package enum NameRules {
  /// A name, split at the position of its number.
  private struct Parts {
    var stem: Substring
    /// Includes the dot; empty if there is none.
    var suffix: Substring
    /// The number that the name already has, otherwise 1.
    var number: UInt64
  }

  /// Returns the names to try in order when `name` is taken, without end.
  ///
  /// A number at the end of the name is continued: "Foobar 7" gives "Foobar 8". Names longer than `limit` bytes lose
  /// the end of their stem, never half a character.
  package static func alternatives(to name: String, limit: Int = Limits.nameBytes) -> some Sequence<String> {
    let parts = split(name)
    return sequence(state: parts.number) { number in
      guard number < UInt64.max else { return nil }
      number += 1
      return join(parts, number, limit: limit)
    }
  }

  /// Returns `name` if it is free, otherwise the first free alternative.
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

  /// Splits off the extension. A leading dot hides a file, a trailing dot is part of the name, and an extension is
  /// short and has no space.
  private static func splitSuffix(_ name: String) -> (base: Substring, suffix: Substring) {
    guard let dot = name.lastIndex(of: "."), dot > name.startIndex else { return (name[...], "") }
    let suffix = name[dot...]
    guard (2...16).contains(suffix.utf8.count), !suffix.contains(" ") else { return (name[...], "") }
    return (name[..<dot], suffix)
  }

  /// Parses a number without leading zeros, and short enough to be a counter.
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
