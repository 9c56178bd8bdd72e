/// The names that an export may write.
package enum ExportNamePolicy: String, Sendable, CaseIterable {
  /// Names that this platform's file systems support, without dangerous parts: separators, `..`, control and bidi
  /// characters.
  case native
  /// Names that every platform supports: also no Windows device names, no `a:b`, no trailing dot or space.
  case portable
}

/// Turns a node's name, which may be any text, into a name that is safe to create in a folder. Pure.
///
/// The result is never empty, `.` or `..`. It contains no separator, no NUL, no control character and nothing that
/// changes the text direction, and has at most 255 bytes.
package enum ExportName {
  package static let longest = 255

  package static func safe(_ name: String, policy: ExportNamePolicy = .native) -> String {
    var scalars = String.UnicodeScalarView()
    for scalar in name.unicodeScalars { scalars.append(isSafe(scalar, policy) ? scalar : substitute) }
    var safe = String(scalars)
    if safe.unicodeScalars.allSatisfy({ $0 == "." }) { safe = String(repeating: "_", count: max(1, safe.utf8.count)) }
    // The prefix `.zdc-` is ours, for unfinished files: the next export may remove them.
    if safe.hasPrefix(".zdc-") { safe = "_" + safe }
    if policy == .portable { safe = portable(safe) }
    return shortened(safe, to: longest)
  }

  private static let substitute: Unicode.Scalar = "_"
  private static let portableOnly = Set<Unicode.Scalar>(["<", ">", ":", "\"", "|", "?", "*", "\\"])

  private static func isSafe(_ scalar: Unicode.Scalar, _ policy: ExportNamePolicy) -> Bool {
    switch scalar.value {
    case 0..<0x20, 0x7F...0x9F: false
    case 0x2F: false
    // Line separators, and characters that embed, override or isolate a text direction ("Trojan source").
    case 0x2028...0x202E, 0x2066...0x2069: false
    // Invisible, or not a character at all.
    case 0x200B, 0x2060, 0xFEFF, 0xFFFE, 0xFFFF: false
    default: isAllowedHere(scalar, policy)
    }
  }

  private static func isAllowedHere(_ scalar: Unicode.Scalar, _ policy: ExportNamePolicy) -> Bool {
    guard policy == .native else { return !portableOnly.contains(scalar) }
    #if canImport(Darwin)
      // The Finder shows a colon as a slash and writes a slash as a colon.
      return scalar != ":"
    #elseif os(Windows)
      return !portableOnly.contains(scalar)
    #else
      return true
    #endif
  }

  // MARK: Windows

  private static func portable(_ name: String) -> String {
    var scalars = Array(name.unicodeScalars)
    var end = scalars.endIndex
    while end > 0, scalars[end - 1] == "." || scalars[end - 1] == " " {
      end -= 1
      scalars[end] = substitute
    }
    var view = String.UnicodeScalarView()
    view.append(contentsOf: scalars)
    let safe = String(view)
    return isDevice(safe) ? "_" + safe : safe
  }

  private static let devices = Set(
    ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$"]
      + ["COM", "LPT"].flatMap { port in "0123456789¹²³".map { "\(port)\($0)" } })

  /// `con`, `CON.txt` and `con .tar.gz` all open the console.
  private static func isDevice(_ name: String) -> Bool {
    let base = name.prefix { $0 != "." }
    let trimmed = String(base.reversed().drop { $0 == " " || $0 == "_" }.reversed())
    return devices.contains(String(base).uppercased()) || devices.contains(trimmed.uppercased())
  }

  // MARK: Length

  /// Truncates the stem, never inside a character, and keeps a short extension.
  package static func shortened(_ name: String, to limit: Int, tail: String = "") -> String {
    guard name.utf8.count + tail.utf8.count > limit || !tail.isEmpty else { return name }
    let (stem, suffix) = split(name)
    let end = tail + suffix
    var kept = String.UnicodeScalarView()
    var count = end.utf8.count
    for scalar in stem.unicodeScalars {
      count += UTF8.width(scalar)
      if count > limit { break }
      kept.append(scalar)
    }
    return String(kept) + end
  }

  private static func split(_ name: String) -> (stem: Substring, suffix: Substring) {
    let scalars = name.unicodeScalars
    guard let dot = scalars.lastIndex(of: "."), dot > scalars.startIndex else { return (name[...], "") }
    let suffix = name[dot...]
    guard (2...16).contains(suffix.utf8.count) else { return (name[...], "") }
    return (name[..<dot], suffix)
  }
}
