/// Draws a tree as lines with branches. Pure.
package enum TreeDrawing {
  /// - Parameter nodes: The depth and label of each node, parents before children, in drawing order.
  package static func lines(_ nodes: [(depth: Int, label: String)]) -> [String] {
    guard let base = nodes.first?.depth else { return [] }
    // Bottom up: a node is the last of its siblings if no node at its depth follows before a shallower one.
    var isOpen: [Bool] = []
    var lines: [String] = []
    for (depth, label) in nodes.reversed() {
      let level = depth - base
      if isOpen.count > level + 1 { isOpen.removeLast(isOpen.count - level - 1) }
      while isOpen.count <= level { isOpen.append(false) }
      lines.append(prefix(level, isOpen) + label)
      isOpen[level] = true
    }
    return lines.reversed()
  }

  private static func prefix(_ level: Int, _ isOpen: [Bool]) -> String {
    guard level > 0 else { return "" }
    let stems = (1..<level).map { isOpen[$0] ? "│   " : "    " }.joined()
    return stems + (isOpen[level] ? "├── " : "└── ")
  }
}
