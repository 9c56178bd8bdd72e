import Foundation

/// A measured value with its yardstick.
struct Figure: Codable {
  var id: String
  var value: Double
  var unit: String
  var yardstick: String
  var yardstickValue: Double
  var ratio: Double
  var runs: Int

  enum CodingKeys: String, CodingKey {
    case id, value, unit, yardstick
    case yardstickValue = "yardstick_value"
    case ratio, runs
  }

  init(_ id: String, _ values: [Double], beside yardstick: Yardstick) {
    self.id = id
    value = median(values)
    unit = Row.all.first { $0.id == id }?.unit ?? ""
    self.yardstick = yardstick.name
    yardstickValue = yardstick.value
    ratio = yardstick.value == 0 ? 0 : value / yardstick.value
    runs = values.count
  }
}

extension Figure {
  /// The value is in its own unit. If the yardstick has another size of the same work, `scale` adjusts the ratio.
  init(_ id: String, _ value: Double, beside yardstick: Yardstick, scale: Double = 1, runs: Int = 1) {
    self.init(id, [value], beside: yardstick)
    ratio *= scale
    self.runs = runs
  }
}

/// The cost of comparable work on this machine, or with a plain program. In the unit of the row next to it.
struct Yardstick {
  var name: String
  var value: Double
}

/// `.build/bench.json`: a list of figures.
struct Report {
  var figures: [Figure]

  init(_ figures: [Figure]) {
    self.figures = figures
  }

  func write(to url: URL) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    try encoder.encode(figures).write(to: url)
  }
}

func median(_ values: [Double]) -> Double { percentile(values, 50) }

/// The smallest value that is not below `percent` % of them.
func percentile(_ values: [Double], _ percent: Double) -> Double {
  guard !values.isEmpty else { return .nan }
  let sorted = values.sorted()
  let rank = Int((percent / 100 * Double(sorted.count)).rounded(.up))
  return sorted[min(max(rank, 1), sorted.count) - 1]
}
