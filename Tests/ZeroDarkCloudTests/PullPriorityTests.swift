import Testing
import ZDCProtocol

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Seed 003: shallow nodes before deep ones, then recently put ones first. Below a node that the app prefers, depth
/// counts from that node.
struct PullPriorityTests {
  private struct Tree {
    /// The nodes, each after its parent.
    var nodes: [NodeID] = [.random()]
    var parents: [NodeID: NodeID] = [:]

    init(count: Int, _ random: inout some RandomNumberGenerator) {
      for _ in 1..<count {
        let node = NodeID.random()
        parents[node] = nodes.randomElement(using: &random)
        nodes.append(node)
      }
    }

    func ancestors(of node: NodeID) -> [NodeID] {
      var found: [NodeID] = []
      var next = parents[node]
      while let parent = next {
        found.append(parent)
        next = parents[parent]
      }
      return found
    }
  }

  /// Sorting only a few changed nodes, without a walk through the zone, gives the same order.
  @Test(arguments: 0..<20) func aFewNodesAlone_comeInTheOrderOfTheWholeWalk(seed: Int) throws {
    var random = SeededGenerator(seed: UInt64(seed))
    let tree = Tree(count: 60, &random)
    let pending = Set(tree.nodes.shuffled(using: &random).prefix(1 + seed))
    let preferred = Set(tree.nodes.shuffled(using: &random).prefix(seed % 4))
    var walk = PullPriority(preferred: preferred)
    var alone = PullPriority(preferred: preferred)
    for (index, node) in tree.nodes.enumerated() {
      let putSeq = UInt64(index / 3)
      let isPending = pending.contains(node)
      let depth = UInt32(tree.ancestors(of: node).count)
      walk.add(node, parent: tree.parents[node] ?? .zero, depth: depth, putSeq: putSeq, isPending: isPending)
      if isPending { alone.add(node, ancestors: tree.ancestors(of: node), putSeq: putSeq) }
    }
    #expect(walk.sorted().map(\.node) == alone.sorted().map(\.node))
    #expect(walk.sorted().count == pending.count)
  }
}
