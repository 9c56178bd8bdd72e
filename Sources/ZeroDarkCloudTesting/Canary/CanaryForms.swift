internal import Foundation

extension CanaryScanner {
  /// Returns the byte patterns in which a text may be encoded.
  static func forms(of canary: String) -> [Pattern] {
    let utf8 = Array(canary.utf8)
    let little = canary.utf16.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8($0 >> 8)] }
    let big = canary.utf16.flatMap { [UInt8($0 >> 8), UInt8(truncatingIfNeeded: $0)] }
    let hex = utf8.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    var patterns = [
      Pattern(canary: canary, form: "utf8", bytes: utf8),
      Pattern(canary: canary, form: "utf16le", bytes: little),
      Pattern(canary: canary, form: "utf16be", bytes: big),
      Pattern(canary: canary, form: "hex", bytes: Array(hex.utf8)),
      Pattern(canary: canary, form: "HEX", bytes: Array(hex.uppercased().utf8)),
    ]
    for phase in 0..<3 {
      let text = base64(utf8, phase: phase)
      patterns.append(Pattern(canary: canary, form: "base64+\(phase)", bytes: Array(text.utf8)))
      let url = text.replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_")
      guard url != text else { continue }
      patterns.append(Pattern(canary: canary, form: "base64url+\(phase)", bytes: Array(url.utf8)))
    }
    return patterns
  }

  /// Returns the base64 characters that depend only on the text, if it begins `phase` bytes into a group of three.
  private static func base64(_ bytes: [UInt8], phase: Int) -> String {
    let padded = [UInt8](repeating: 0, count: phase) + bytes
    let whole = Data(padded).base64EncodedString()
    let first = phase == 0 ? 0 : phase + 1
    let last = padded.count * 8 / 6
    return String(whole.prefix(last).dropFirst(first))
  }
}
