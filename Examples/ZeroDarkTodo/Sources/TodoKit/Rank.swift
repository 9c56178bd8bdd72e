/// Places in an order, as text: between two of them there is always another one.
///
/// To move a task, a device changes the rank of this task only. Two devices that move different tasks therefore do not
/// conflict. Ranks consist of the characters 0-9, A-Z and a-z, and are compared as ASCII.
enum Rank {
  private static let characters = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
  private static let values = Dictionary(uniqueKeysWithValues: zip(characters, 0...))
  private static let maxLength = 256

  /// Whether a text is a rank that ``between(_:_:)`` can return. No rank ends with a zero: there is none before "0".
  static func isValid(_ text: String) -> Bool {
    (1...maxLength).contains(text.utf8.count) && text.allSatisfy { values[$0] != nil } && !text.hasSuffix("0")
  }

  /// Returns a rank after `lower` and before `upper`; nil is the end of the order.
  ///
  /// If the two are equal, because two devices chose the same place, the result is after both of them. If a rank between
  /// them would be too long, the result is one of the two, and the names of the nodes decide about the order.
  static func between(_ lower: String?, _ upper: String?) -> String {
    let result = middle(lower, upper)
    return result.count <= maxLength ? result : lower ?? upper ?? result
  }

  private static func middle(_ lower: String?, _ upper: String?) -> String {
    let low = digits(lower ?? "")
    let high = upper.map(digits).flatMap { low.lexicographicallyPrecedes($0) ? $0 : nil }
    var (result, isBelowHigh) = ([Int](), false)
    for index in 0... {
      let above = index < low.count ? low[index] : 0
      let below = if !isBelowHigh, let high, index < high.count { high[index] } else { characters.count }
      if below - above > 1 {
        // At the end of the order steps are small, so that ranks stay short.
        return text(result + [high == nil ? above + 1 : (above + below) / 2])
      }
      isBelowHigh = isBelowHigh || above < below
      result.append(above)
    }
    return text(result)
  }

  private static func digits(_ rank: String) -> [Int] { rank.map { values[$0] ?? 0 } }

  private static func text(_ digits: [Int]) -> String { String(digits.map { characters[$0] }) }
}
