/// The progress of one piece of work over all its attempts. Pure.
///
/// Never runs backwards. A retry from the beginning does not move it until the retry has passed the previous attempt.
/// An attempt of a different size spreads the remaining units over its remaining bytes. The first attempt fixes the
/// number of units, because a changing total would let the fraction jump.
package struct SteadyProgress: Sendable, Equatable {
  /// -1 until the first report.
  package private(set) var total: Int64 = -1
  package private(set) var completed: Int64 = 0
  private var attempt = Attempt()

  private struct Attempt: Equatable {
    var from: UInt64 = 0
    var size: UInt64 = 0
    /// Units that were completed when the attempt began.
    var base: Int64 = 0
  }

  package mutating func report(_ done: UInt64, of size: UInt64) {
    // Work of no size is complete.
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
    // Counts bytes where possible: most work completes on the first attempt.
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

/// The combined progress of several pieces of work, from the start of the first until none is left. Pure.
///
/// Never runs backwards: when work is added or abandoned, the remaining units are spread over the remaining work.
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
  /// The remaining work when work was last added or abandoned.
  private var span = 0.0

  package var isEmpty: Bool { items.isEmpty }

  package func contains(_ id: ID) -> Bool { items[id] != nil }

  /// - Parameter size: in bytes, so that larger work counts more.
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
    // Keeps a unit for work that has yet to end.
    completed = max(completed, min(now, Self.units - 1))
  }
}
