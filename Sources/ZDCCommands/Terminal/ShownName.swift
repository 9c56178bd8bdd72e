/// Makes names safe to show on a terminal.
package enum ShownName {
  /// Returns the name with every character escaped as `\u{…}` that could move the cursor, forge a line or change the
  /// text direction.
  package static func text(_ name: String) -> String {
    guard name.unicodeScalars.contains(where: isHarmful) else { return name }
    var out = ""
    for scalar in name.unicodeScalars {
      if isHarmful(scalar) {
        out += "\\u{\(String(scalar.value, radix: 16))}"
      } else {
        out.unicodeScalars.append(scalar)
      }
    }
    return out
  }

  private static func isHarmful(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0..<0x20, 0x7F...0x9F, 0x2028...0x202E, 0x2066...0x2069, 0x200B, 0x2060, 0xFEFF: true
    default: false
    }
  }
}
