import Foundation

/// The figures as a readable table.
struct Table {
  var figures: [Figure]
  var skipped: [(ids: [String], reason: String)] = []
  var failed: [(ids: [String], reason: String)] = []

  var text: String {
    let rows = [["row", "value", "reach", "", "yardstick of this run", "value", "ratio", "runs"]] + figures.map(cells)
    let widths = rows[0].indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
    let lines = rows.map { row in
      zip(row, widths).map { $0.padding(toLength: $1, withPad: " ", startingAt: 0) }.joined(separator: "  ")
    }
    return (lines + [""] + endings).joined(separator: "\n")
  }

  private var endings: [String] {
    let missed = figures.filter { figure in row(figure).map { !$0.reach.isMet(by: figure) } ?? false }
    let result = missed.isEmpty ? "all reached" : "not reached: \(missed.map(\.id).joined(separator: ", "))"
    return [result] + skipped.map { "SKIPPED \($0.ids.joined(separator: ", ")): \($0.reason)" }
      + failed.map { "FAILED \($0.ids.joined(separator: ", ")): \($0.reason)" }
  }

  private func row(_ figure: Figure) -> Row? { Row.all.first { $0.id == figure.id } }

  private func cells(_ figure: Figure) -> [String] {
    let row = row(figure)
    return [
      figure.id, "\(number(figure.value)) \(figure.unit)", row.map { limit($0.reach) } ?? "",
      row.map { $0.reach.isMet(by: figure) ? "met" : "MISSED" } ?? "", figure.yardstick,
      "\(number(figure.yardstickValue)) \(figure.unit)", number(figure.ratio), "\(figure.runs)",
    ]
  }

  private func limit(_ reach: Row.Reach) -> String {
    switch reach {
    case .atMost(let limit): "≤ \(number(limit))"
    case .atLeast(let limit): "≥ \(number(limit))"
    case .ratioAtMost(let limit): "≤ \(number(limit)) ×"
    case .ratioAtLeast(let limit): "≥ \(number(limit)) ×"
    }
  }

  /// Formats a number with three significant digits.
  private func number(_ value: Double) -> String {
    switch abs(value) {
    case 100...: String(format: "%.0f", value)
    case 10...: String(format: "%.1f", value)
    case 1...: String(format: "%.2f", value)
    default: String(format: "%.3f", value)
    }
  }
}
