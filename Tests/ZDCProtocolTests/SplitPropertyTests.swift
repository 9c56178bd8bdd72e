import Testing
import ZDCProtocol

/// Random trees that are split: the state that the parent's log gives is the one that the new zone begins with, and no
/// node is lost or there twice.
@Suite struct SplitPropertyTests {
  @Test(arguments: [UInt64(1), 2, 3, 4, 5, 6])
  func aSplitKeepsTheTree(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    var zones = [try TestZone.born(owner: try TestUser(seed: 1))]
    var next: UInt64 = 1
    var splits = 0
    for step in 0..<60 {
      let index = Int.random(in: 0..<zones.count, using: &generator)
      let nodes = zones[index].state.leaves.keys.filter { $0 != zones[index].zone.root }.sorted()
      if Int.random(in: 0..<6, using: &generator) == 0, let node = nodes.randomElement(using: &generator) {
        let before = zones[index].state.leaves
        let branch = Self.branch(node, in: before)
        next += 1
        let isFresh = try Self.isFresh(before[node]?.parent, in: zones[index])
        guard isFresh else { continue }
        zones.append(try TestSplit.split(node, of: &zones[index], mount: .n(next)))
        let child = zones[zones.count - 1].state.leaves
        #expect(Set(child.keys) == Set(branch.keys), "seed \(seed), step \(step)")
        for (id, leaf) in branch where id != node { #expect(child[id] == leaf, "seed \(seed), step \(step)") }
        #expect(Set(zones[index].state.leaves.keys) == Set(before.keys).subtracting(branch.keys).union([.n(next)]))
        splits += 1
      } else if Int.random(in: 0..<8, using: &generator) == 0 {
        try zones[index].rotate()
      } else {
        next += 1
        try? zones[index].apply(Self.change(.n(next), nodes: nodes, zone: zones[index], using: &generator))
      }
    }
    let all = zones.flatMap { $0.state.leaves.keys }
    #expect(Set(all).count == all.count)
    #expect(splits >= 2, "seed \(seed)")
  }

  /// Returns the branch as a new zone has it: nodes keep all but the commit that put them.
  private static func branch(_ top: NodeID, in leaves: [NodeID: LogNode]) -> [NodeID: LogNode] {
    leaves.compactMapValues { leaf in
      var path = leaf
      while path.node != top {
        guard let parent = leaves[path.parent] else { return nil }
        path = parent
      }
      var moved = leaf
      moved.putSeq = 0
      return moved
    }
  }

  /// Returns whether a node can be put below `parent` now.
  private static func isFresh(_ parent: NodeID?, in zone: TestZone) throws -> Bool {
    guard let parent else { return false }
    var copy = zone
    let commit = try zone.commit([zone.put(.n(1_000_000), below: parent)])
    return refusal { try copy.apply(commit) } == nil
  }

  private static func change(
    _ new: NodeID, nodes: [NodeID], zone: TestZone, using generator: inout SeededGenerator
  ) -> [ZoneOperation] {
    let parent = nodes.randomElement(using: &generator) ?? zone.zone.root
    switch Int.random(in: 0..<5, using: &generator) {
    case 0:
      guard let node = nodes.randomElement(using: &generator) else { return [zone.put(new)] }
      return [zone.put(node, below: parent)]
    case 1: return [zone.put(new)]
    default: return [zone.put(new, below: parent)]
    }
  }
}
