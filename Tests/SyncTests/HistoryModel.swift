import ZeroDarkCloudTesting

/// A random number generator that repeats its numbers for the same seed (SplitMix64).
struct SeededNumbers: RandomNumberGenerator {
  private var state: UInt64

  /// The seed is mixed first: `next()` adds a constant to the state, so a state that grows with the seed by the same
  /// constant would make each seed's numbers those of the seed before, without the first one.
  init(seed: UInt64) { state = Self.mix(seed &+ 0x1234_5678_9ABC_DEF1) }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    return Self.mix(state)
  }

  private static func mix(_ number: UInt64) -> UInt64 {
    var value = number
    value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
    return value ^ (value >> 31)
  }
}

/// The texts that a history must not lose: every text that was written, unless a device deleted its node or a node that
/// contained it.
struct HistoryModel {
  private var nodes: [String: Set<String>] = [:]
  private var deleted: Set<String> = []
  private var parents: [String: Set<String>] = [:]
  private var given: Set<String> = []
  /// Further names of nodes, each with an earlier name of the same node.
  private var names: [String: String] = [:]

  var tokens: [String] { nodes.keys.sorted() }

  /// Records that two names are those of one node.
  mutating func isSame(_ name: String, _ other: String) {
    let (first, second) = (node(name), node(other))
    if first != second { names[second] = first }
  }

  private func node(_ name: String) -> String {
    var name = name
    while let earlier = names[name] { name = earlier }
    return name
  }

  /// Returns the name that stands for all names of a node.
  func firstName(of name: String) -> String { node(name) }

  /// Returns whether a text was written into one of the nodes.
  func isWritten(_ token: String, into cloudIDs: Set<String>) -> Bool {
    let written = Set((nodes[token] ?? []).map(node))
    return cloudIDs.contains { written.contains(node($0)) }
  }

  /// Records that a text was written into a node.
  mutating func wrote(_ token: String, cloudID: String) { nodes[token, default: []].insert(cloudID) }

  /// Records that a node was put below another.
  mutating func placed(_ cloudID: String, below parent: String) { parents[cloudID, default: []].insert(parent) }

  /// Records the deletion of a node and of its subtree on that device, with their texts.
  mutating func delete(_ cloudIDs: [String], texts: [String]) {
    deleted.formUnion(cloudIDs)
    given.formUnion(texts)
  }

  /// Returns whether the text may be gone.
  func mayBeGone(_ token: String) -> Bool { given.contains(token) || isWritten(token, atOrBelow: deleted) }

  /// Returns whether a text was written into one of the nodes, or into one that has been below one of them.
  func isWritten(_ token: String, atOrBelow cloudIDs: Set<String>) -> Bool {
    let tops = Set(cloudIDs.map(node))
    let above = nodesAbove()
    var seen: Set<String> = []
    var next = (nodes[token] ?? []).map(node)
    while let name = next.popLast() {
      if tops.contains(name) { return true }
      if seen.insert(name).inserted { next += above[name] ?? [] }
    }
    return false
  }

  /// Returns the nodes that each node has been directly below, all by their first names.
  ///
  /// - Parameter others: Parents that the model does not know of.
  func nodesAbove(with others: [String: Set<String>] = [:]) -> [String: Set<String>] {
    var above: [String: Set<String>] = [:]
    for (child, parents) in parents.merging(others, uniquingKeysWith: { $0.union($1) }) {
      above[node(child), default: []].formUnion(parents.map(node))
    }
    return above
  }
}
