internal import ZDCCrypto
internal import ZDCProtocol

// Rotate before write (PROTOCOL 3.10, R1): a node that is put below a stale one takes the path above it along.

extension CommitBuilder {
  /// Fresh keys for a node in this commit, with what opens the children that hang on the old ones.
  struct Rekeying {
    private let leaves: LeafStore
    private let tree: TreeID
    /// Whether a node was stale before the commit.
    private var stale: [NodeID: Bool] = [:]

    init(leaves: LeafStore, tree: TreeID) {
      self.leaves = leaves
      self.tree = tree
    }

    /// A node is stale if its parent has a newer key than the one it hangs on, or if its parent is stale.
    mutating func isStale(_ node: NodeID) throws -> Bool {
      var path: [ZoneLeaf] = []
      var current = node
      while stale[current] == nil, let leaf = try leaves.leaf(current), leaf.parent != .zero {
        path.append(leaf)
        current = leaf.parent
      }
      for leaf in path.reversed() {
        let parentKeyGen = try leaves.leaf(leaf.parent)?.keyGen ?? 0
        stale[leaf.node] = stale[leaf.parent] ?? false || leaf.parentKeyGen < parentKeyGen
      }
      return stale[node] ?? false
    }

    /// The row with the key of its next version. A generation that others made and this device cannot open counts: its
    /// key is replaced.
    ///
    /// - Throws: `limitExceeded` if there is no next generation, or too many old ones are in use.
    mutating func next(_ row: NodeRow, leaf: ZoneLeaf?) throws -> NodeRow {
      guard let leaf else { return row }
      var keyGen = leaf.keyGen
      if try isStale(row.nodeID) {
        try require(keyGen < .max, .limitExceeded, node: row.nodeID)
        keyGen += 1
      }
      guard keyGen != row.keyGen else { return row }
      try require(keyGen > row.keyGen, .staleKeyGeneration, node: row.nodeID)
      return try rotated(row, to: keyGen)
    }

    private func rotated(_ row: NodeRow, to keyGen: UInt32) throws -> NodeRow {
      var next = row
      next.key = .random()
      next.keyGen = keyGen
      let used = try leaves.parentKeyGens(below: row.nodeID)
      let history = try KeyHistory(
        opening: row.historyWrap, tree: tree, node: row.nodeID, key: row.key, keyGen: row.keyGen
      ).adding(KeyHistory.Entry(keyGen: row.keyGen, key: row.key), keeping: used)
      next.historyWrap = try history.seal(tree: tree, node: row.nodeID, key: next.key, keyGen: keyGen)
      return next
    }
  }

  /// The parent as this commit leaves it, with all above it fresh: stale nodes on the way are put first.
  ///
  /// - Returns: nil if there is no room left for that, or something above cannot be put now; what was put stays.
  mutating func refreshed(_ parent: NodeRow) throws -> NodeRow? {
    if let known = rekeyed[parent.id] { return known }
    guard try rekeying.isStale(parent.nodeID) else { return parent }
    var path = [parent]
    while let leaf = try leaves.leaf(path[path.count - 1].nodeID), try rekeying.isStale(leaf.parent),
      let above = try nodes.parent(zone: zoneRow.id, nodeID: leaf.parent), rekeyed[above.id] == nil
    {
      path.append(above)
    }
    for row in path.reversed() { guard try rotate(row) else { return nil } }
    return rekeyed[parent.id]
  }

  /// Puts a node where the cloud has it, with a fresh key and nothing else changed.
  private mutating func rotate(_ row: NodeRow) throws -> Bool {
    guard let leaf = try leaves.leaf(row.nodeID), try !transaction.isUnread(row), !putNodes.contains(row.nodeID),
      let above = try nodes.parent(zone: zoneRow.id, nodeID: leaf.parent), try whyNotPut(row, content: nil) == nil
    else { return false }
    var next = try rekeying.next(row, leaf: leaf)
    if !DuplicateNames.isShownOtherwise(row), let cloud = row.cloud { next.name = cloud.name }
    guard hasRoom(for: nil, besides: next.historyWrap.count) else { return false }
    let record = try RecordSealer.seal(try drafts.draft(next, parent: rekeyed[above.id] ?? above, content: nil))
    add(record)
    rotations.append(InFlightStore.Rotation(node: row.id, facts: facts(next, record, nil, isRekeyed: true)))
    next.name = row.name
    rekeyed[row.id] = next
    return true
  }
}
