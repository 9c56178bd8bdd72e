/// A progress bar as text. Pure: a function of progress, elapsed time and terminal width.
package struct ProgressLine: Sendable, Hashable {
  package var verb: String
  package var itemsDone = 0
  package var itemsTotal = 0
  package var bytesDone: UInt64 = 0
  package var bytesTotal: UInt64 = 0

  package init(verb: String, itemsTotal: Int = 0, bytesTotal: UInt64 = 0) {
    self.verb = verb
    self.itemsTotal = itemsTotal
    self.bytesTotal = bytesTotal
  }

  /// The weight of a file in addition to its bytes, in bytes. It makes many small files move the bar, as bytes do for a
  /// large file.
  private static let itemWeight = 4_096.0

  /// The completed fraction, between 0 and 1.
  package var fraction: Double {
    let total = Double(bytesTotal) + Double(itemsTotal) * Self.itemWeight
    guard total > 0 else { return 0 }
    let done = Double(min(bytesDone, bytesTotal)) + Double(min(itemsDone, itemsTotal)) * Self.itemWeight
    return done / total
  }

  /// Returns `put  [#####-----]  50%  120/240  1.2/2.4 MiB  3.1 MiB/s  0:04`, never wider than `width`.
  package func text(seconds: Double, width: Int) -> String {
    var parts = [percent]
    if itemsTotal > 0 { parts.append("\(min(itemsDone, itemsTotal))/\(itemsTotal)") }
    if bytesTotal > 0 { parts.append("\(Amounts.bytes(min(bytesDone, bytesTotal)))/\(Amounts.bytes(bytesTotal))") }
    if let rate = rate(seconds) { parts.append(rate) }
    if let left = remaining(seconds) { parts.append(left) }
    let facts = parts.joined(separator: "  ")
    let room = width - verb.count - facts.count - 6
    guard room >= 10 else { return String("\(verb)  \(facts)".prefix(max(0, width))) }
    return "\(verb)  [\(bar(min(room, 40)))]  \(facts)"
  }

  private var percent: String {
    let number = "\(Int(fraction * 100))%"
    return String(repeating: " ", count: max(0, 4 - number.count)) + number
  }

  private func bar(_ width: Int) -> String {
    let full = Int(fraction * Double(width))
    return String(repeating: "#", count: full) + String(repeating: "-", count: width - full)
  }

  private func rate(_ seconds: Double) -> String? {
    guard seconds >= 0.5 else { return nil }
    if bytesTotal > 0 { return "\(Amounts.bytes(UInt64(Double(bytesDone) / seconds)))/s" }
    return itemsTotal > 0 ? "\(Int(Double(itemsDone) / seconds))/s" : nil
  }

  private func remaining(_ seconds: Double) -> String? {
    guard seconds >= 1, fraction > 0.01, fraction < 1 else { return nil }
    let left = min(seconds / fraction - seconds, 359_999)
    return Amounts.duration(seconds: Int(left.rounded()))
  }
}
