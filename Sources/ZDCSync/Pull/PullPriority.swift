package import ZDCProtocol

/// The order in which records are fetched: shallow before deep, then most recently put first.
///
/// Below a node that the app prefers, depth counts from that node. Pure.
package struct PullPriority {
  package struct Candidate: Sendable {
    package var node: NodeID
    package var depth: UInt32
    package var putSeq: UInt64
  }

  private let preferred: Set<NodeID>
  private var depths: [NodeID: UInt32] = [:]
  package private(set) var candidates: [Candidate] = []

  package init(preferred: Set<NodeID>) {
    self.preferred = preferred
  }

  /// Adds a zone's nodes, each after its parent.
  ///
  /// - Parameter depth: The distance from the zone's root.
  package mutating func add(_ node: NodeID, parent: NodeID, depth: UInt32, putSeq: UInt64, isPending: Bool) {
    var depth = depth
    // Only depths relative to a preferred node must be remembered.
    if !preferred.isEmpty {
      if preferred.contains(node) { depth = 0 } else if let above = depths[parent] { depth = above + 1 }
      depths[node] = depth
    }
    if isPending { candidates.append(Candidate(node: node, depth: depth, putSeq: putSeq)) }
  }

  /// Adds a single pending node.
  ///
  /// - Parameter ancestors: The node's ancestors, from its parent up to the zone's root.
  package mutating func add(_ node: NodeID, ancestors: [NodeID], putSeq: UInt64) {
    let distance = ([node] + ancestors).firstIndex { preferred.contains($0) } ?? ancestors.count
    candidates.append(Candidate(node: node, depth: UInt32(distance), putSeq: putSeq))
  }

  /// Returns the candidates in fetch order. A node never precedes its parent: a parent is always less deep unless the
  /// node is preferred, and then the app already has the node and its parent.
  package func sorted() -> [Candidate] {
    candidates.sorted { a, b in
      if a.depth != b.depth { return a.depth < b.depth }
      if a.putSeq != b.putSeq { return a.putSeq > b.putSeq }
      return a.node < b.node
    }
  }
}
