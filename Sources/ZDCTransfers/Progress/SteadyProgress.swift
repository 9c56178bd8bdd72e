/// How far one piece of work is, over all its tries. Pure.
///
/// Never runs backwards: a try that starts anew stands still until it has passed the one before, and one of another
/// size spreads what is left of the units over what is left of it. The number of units is fixed by the first try,
/// because a total that changes would let the fraction jump.
package struct SteadyProgress: Sendable, Equatable {
  /// -1 until the first report.
  package private(set) var total: Int64 = -1
  package private(set) var completed: Int64 = 0
  private var attempt = Attempt()

  private struct Attempt: Equatable {
    var from: UInt64 = 0
    var size: UInt64 = 0
    /// The units that were done when it began.
    var base: Int64 = 0
  }

  package mutating func report(_ done: UInt64, of size: UInt64) {
    // Work of no size is done.
    let (size, done) = size == 0 ? (1, 1) : (size, min(done, size))
    if total < 0 {
      total = Int64(clamping: size)
      attempt = Attempt(size: size)
    } else if size != attempt.size {
      attempt = Attempt(from: done < size ? done : 0, size: size, base: completed)
    }
    completed = max(completed, units(done, of: size))
  }

  private func units(_ done: UInt64, of size: UInt64) -> Int64 {
    guard done < size else { return total }
    guard done > attempt.from else { return attempt.base }
    // As bytes where it can be: most work is done at the first try.
    if attempt.base == 0, attempt.from == 0, Int64(clamping: size) == total { return Int64(clamping: done) }
    let part = Double(done - attempt.from) / Double(size - attempt.from)
    return min(total - 1, attempt.base + Int64(Double(total - attempt.base) * part))
  }

  package mutating func finish() {
    total = max(1, total)
    completed = total
  }

  package var fraction: Double { total > 0 ? Double(completed) / Double(total) : 0 }
}

/// How far several pieces of work are together, from the first one's beginning until none is left. Pure.
///
/// Never runs backwards: when work is added or given up, what is left of the units is spread over what is left of the
/// work.
package struct AggregateProgress<ID: Hashable & Sendable>: Sendable {
  package static var units: Int64 { 1_000_000 }

  private struct Item {
    var done: Double
    var size: Double
    var left: Double { max(0, size - done) }
  }

  package private(set) var completed: Int64 = 0
  private var items: [ID: Item] = [:]
  private var left = 0.0
  private var base: Int64 = 0
  /// What was left when the work was last added to or given up.
  private var span = 0.0

  package var isEmpty: Bool { items.isEmpty }

  package func contains(_ id: ID) -> Bool { items[id] != nil }

  /// - Parameter size: in bytes, so that large work counts more.
  package mutating func report(_ id: ID, fraction: Double, size: UInt64) {
    let item = Item(done: fraction * Double(size), size: Double(max(1, size)))
    let known = items.updateValue(item, forKey: id)
    left += item.left - (known?.left ?? 0)
    if known?.size != item.size { rebase() }
    update()
  }

  package mutating func end(_ id: ID, hasSucceeded: Bool) {
    guard let item = items.removeValue(forKey: id) else { return }
    left -= item.left
    if hasSucceeded { update() } else { rebase() }
    if items.isEmpty { completed = Self.units }
  }

  private mutating func rebase() {
    (base, span) = (completed, left)
  }

  private mutating func update() {
    guard span > 0 else { return }
    let part = 1 - min(1, max(0, left / span))
    let now = base + Int64((Double(Self.units - base) * part).rounded())
    // Units are left for what is still to be ended.
    completed = max(completed, min(now, Self.units - 1))
  }
}
