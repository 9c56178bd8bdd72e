/// Human-readable numbers.
package enum Amounts {
  /// Formats a number of bytes: `999 B`, `1.2 KiB`, `34 MiB`.
  package static func bytes(_ count: UInt64) -> String {
    guard count >= 1_024 else { return "\(count) B" }
    var value = Double(count) / 1_024
    var units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"][...]
    while value >= 1_023.5, units.count > 1 {
      value /= 1_024
      units.removeFirst()
    }
    return "\(short(value)) \(units.first ?? "")"
  }

  /// Formats one decimal below 9.95 and none above: `1.23` is `1.2`, `123.4` is `123`.
  private static func short(_ value: Double) -> String {
    guard value < 9.95 else { return "\(Int(value.rounded()))" }
    let tenths = Int((value * 10).rounded())
    return "\(tenths / 10).\(tenths % 10)"
  }

  /// Formats a duration: `0:07`, `12:30`, `1:02:03`.
  package static func duration(seconds: Int) -> String {
    let (hours, minutes, rest) = (seconds / 3_600, seconds / 60 % 60, seconds % 60)
    let end = rest < 10 ? "0\(rest)" : "\(rest)"
    guard hours > 0 else { return "\(minutes):\(end)" }
    return "\(hours):\(minutes < 10 ? "0" : "")\(minutes):\(end)"
  }

  /// Formats a count: `1 file`, `3 files`.
  package static func count(_ number: Int, _ one: String, _ many: String? = nil) -> String {
    number == 1 ? "1 \(one)" : "\(number) \(many ?? one + "s")"
  }

  /// Formats an age: `0:07 ago`; `just now` if the clock was set back.
  package static func ago(_ milliseconds: UInt64, now: UInt64) -> String {
    guard now > milliseconds else { return "just now" }
    return "\(duration(seconds: Int((now - milliseconds) / 1_000))) ago"
  }
}
