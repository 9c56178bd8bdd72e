/// The queue's dependencies as a graph: circles, and what an operation waits for in the end. Pure.
///
/// Which operations go into the next commit is decided in one place, ``PushPlan``.
package struct OperationGraph {
  /// The open dependencies of each operation.
  private let dependencies: [Int64: [Int64]]

  package init(_ dependencies: [Int64: [Int64]]) {
    self.dependencies = dependencies
  }

  /// Returns whether `operation` would depend on itself if it depended on `dependency`.
  ///
  /// - Parameter dependencies: Asked for the operations on the way only.
  package static func closesCircle(
    _ operation: Int64, waitingFor dependency: Int64, dependencies: (Int64) throws -> [Int64]
  ) rethrows -> Bool {
    var open = [dependency]
    var seen: Set<Int64> = []
    while let next = open.popLast() {
      if next == operation { return true }
      guard seen.insert(next).inserted else { continue }
      open += try dependencies(next)
    }
    return false
  }

  package func closesCircle(_ operation: Int64, waitingFor dependency: Int64) -> Bool {
    Self.closesCircle(operation, waitingFor: dependency) { dependencies[$0] ?? [] }
  }

  /// The operations that wait for nothing else and that `operation` waits for, however many steps away. Empty if it
  /// waits for nothing.
  package func roots(of operation: Int64) -> Set<Int64> {
    var roots: Set<Int64> = []
    var open = dependencies[operation] ?? []
    var seen: Set<Int64> = [operation]
    while let next = open.popLast() {
      guard seen.insert(next).inserted else { continue }
      let further = dependencies[next] ?? []
      if further.isEmpty { roots.insert(next) }
      open += further
    }
    return roots
  }
}
