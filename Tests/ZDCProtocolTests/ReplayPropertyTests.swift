import Testing
import ZDCProtocol

/// Random histories: replay accepts exactly the commits that a naive model accepts, and ends in the same tree.
@Suite struct ReplayPropertyTests {
  @Test(arguments: [UInt64(1), 2, 3, 4, 5, 6])
  func randomCommitsAreAcceptedExactlyWhenTheModelAcceptsThem(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let alice = try TestUser(seed: 1)
    var zone = try TestZone.born(owner: alice)
    var model = ModelZone(root: zone.zone.root)
    var accepted = 0
    for step in 0..<150 {
      if Int.random(in: 0..<12, using: &generator) == 0 {
        try zone.rotate()
        model.rotate()
        continue
      }
      let operations = model.randomOperations(using: &generator)
      let commit = try zone.commit(operations)
      let next = model.applying(operations)
      let code = refusal { try zone.apply(commit) }
      #expect((code == nil) == (next != nil), "seed \(seed), step \(step): \(operations), \(String(describing: code))")
      guard let next else { continue }
      model = next
      accepted += 1
      #expect(zone.state.leaves.mapValues(ModelZone.Node.init) == model.nodes, "seed \(seed), step \(step)")
    }
    // Both must happen, or the test proves nothing.
    #expect((20..<145).contains(accepted), "seed \(seed): \(accepted)")
  }

  @Test func onlyPrefixesOfALogAreALog() throws {
    let alice = try TestUser(seed: 1)
    var zone = try TestZone.born(owner: alice)
    let born = zone
    var log: [ZoneCommit] = []
    for number in 1...12 {
      let commit = try zone.commit([zone.put(.n(UInt64(number)))])
      try zone.apply(commit)
      log.append(commit)
    }
    func isLog(_ commits: [ZoneCommit]) -> Bool {
      var copy = born
      return refusal { for commit in commits { try copy.apply(commit) } } == nil
    }
    for length in 0...log.count { #expect(isLog(Array(log.prefix(length)))) }
    for index in log.indices.dropLast() {
      var missing = log
      missing.remove(at: index)
      #expect(!isLog(missing))
      var swapped = log
      swapped.swapAt(index, index + 1)
      #expect(!isLog(swapped))
      #expect(!isLog(Array(log[...index]) + log[index...]))
    }
  }
}

/// The rules of PROTOCOL 3.7 and 3.10 again, as simply as possible and without any cache.
private struct ModelZone {
  struct Node: Equatable {
    var parent: NodeID
    var keyGen: UInt32
    var parentKeyGen: UInt32

    init(parent: NodeID, keyGen: UInt32, parentKeyGen: UInt32) {
      self.parent = parent
      self.keyGen = keyGen
      self.parentKeyGen = parentKeyGen
    }

    init(_ leaf: LogNode) {
      self.init(parent: leaf.parent, keyGen: leaf.keyGen, parentKeyGen: leaf.parentKeyGen)
    }
  }

  let root: NodeID
  var nodes: [NodeID: Node]

  init(root: NodeID) {
    self.root = root
    nodes = [root: Node(parent: .zero, keyGen: 1, parentKeyGen: 0)]
  }

  // MARK: Rules

  /// Returns the zone after the operations, or nil if one of them is not allowed.
  func applying(_ operations: [ZoneOperation]) -> ModelZone? {
    var next = self
    var touched: [NodeID] = []
    for operation in operations {
      switch operation {
      case .put(let put):
        guard !touched.contains(put.node), next.put(put) else { return nil }
        touched.append(put.node)
      case .delete(let node, let record, let count):
        guard !touched.contains(node), record == Self.record, next.delete(node, count) else { return nil }
        touched.append(node)
      default: return nil
      }
    }
    return next
  }

  private mutating func put(_ put: ZoneOperation.Put) -> Bool {
    let old = nodes[put.node]
    guard put.node != root, let parent = nodes[put.parent], !path(from: put.parent).contains(put.node) else {
      return false
    }
    guard !isStale(put.parent), put.parentKeyGen == parent.keyGen else { return false }
    if let old {
      guard put.keyGen == old.keyGen + (isStale(put.node) ? 1 : 0) else { return false }
    } else if put.keyGen == 0 || put.keyGen > nodes[root]?.keyGen ?? 0 {
      return false
    }
    nodes[put.node] = Node(parent: put.parent, keyGen: put.keyGen, parentKeyGen: put.parentKeyGen)
    return true
  }

  /// Replaces the root's key; everything below it is stale afterwards.
  mutating func rotate() { nodes[root]?.keyGen += 1 }

  private mutating func delete(_ node: NodeID, _ count: UInt64) -> Bool {
    let below = nodes.keys.filter { $0 != node && path(from: $0).contains(node) }
    guard node != root, nodes[node] != nil, below.count == count else { return false }
    for gone in below + [node] { nodes[gone] = nil }
    return true
  }

  /// Returns the node and all its ancestors.
  private func path(from node: NodeID) -> [NodeID] {
    guard let found = nodes[node] else { return [] }
    return [node] + (node == root ? [] : path(from: found.parent))
  }

  private func isStale(_ node: NodeID) -> Bool {
    path(from: node).contains { step in
      guard step != root, let found = nodes[step], let parent = nodes[found.parent] else { return false }
      return found.parentKeyGen < parent.keyGen
    }
  }

  // MARK: Choices

  /// All puts of the model have the same record: the record is irrelevant here.
  private static let record = RecordHash(7, 7, 7, 7)

  /// Each operation is drawn from the zone as the previous ones left it, so that long commits are accepted too.
  func randomOperations(using generator: inout SeededGenerator) -> [ZoneOperation] {
    var zone = self
    return (0..<Int.random(in: 1...5, using: &generator)).map { _ in
      let operation = zone.randomOperation(using: &generator)
      zone = zone.applying([operation]) ?? zone
      return operation
    }
  }

  private func randomOperation(using generator: inout SeededGenerator) -> ZoneOperation {
    let node = randomNode(using: &generator)
    if Int.random(in: 0..<8, using: &generator) == 0 {
      let below = nodes.keys.filter { $0 != node && path(from: $0).contains(node) }.count
      return .delete(node: node, record: Self.record, liveDescendants: UInt64(below))
    }
    let parent = Bool.random(using: &generator) ? randomNode(using: &generator) : root
    // Mostly valid values, so that histories grow.
    let raise = isStale(node) != (Int.random(in: 0..<8, using: &generator) == 0)
    let keyGen = (nodes[node]?.keyGen ?? 1) + (raise ? 1 : 0)
    let isOld = Int.random(in: 0..<20, using: &generator) == 0
    let parentKeyGen = (nodes[parent]?.keyGen ?? 1) - (isOld ? 1 : 0)
    return .put(
      .init(node: node, parent: parent, record: Self.record, keyGen: keyGen, parentKeyGen: parentKeyGen))
  }

  /// Returns one of twenty nodes, existing or not.
  private func randomNode(using generator: inout SeededGenerator) -> NodeID {
    .n(UInt64.random(in: 1...20, using: &generator))
  }
}
