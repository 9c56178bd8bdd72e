internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport

// Rotate before write (PROTOCOL 3.10, R1): a node that is put below a stale one takes the path above it along.

extension CommitBuilder {
  /// Fresh keys for a node in this commit, with what opens the children that hang on the old ones.
  struct Rekeying {
    private let leaves: LeafStore
    private let tree: TreeID
    /// Nodes with others below them, before the commit: a thousand siblings walk up once.
    private var above: [NodeID: (keyGen: UInt32, isStale: Bool)] = [:]

    package init(leaves: LeafStore, tree: TreeID) {
      self.leaves = leaves
      self.tree = tree
    }

    /// A node is stale if its parent has a newer key than the one it hangs on, or if its parent is stale.
    package mutating func isStale(_ leaf: ZoneLeaf) throws -> Bool {
      guard leaf.parent != .zero else { return false }
      let parent = try lookUp(leaf.parent)
      return parent.isStale || leaf.parentKeyGen < parent.keyGen
    }

    private mutating func lookUp(_ node: NodeID) throws -> (keyGen: UInt32, isStale: Bool) {
      if let known = above[node] { return known }
      guard let leaf = try leaves.leaf(node) else { throw ZDCError(.corruptDatabase) }
      let found = (leaf.keyGen, try isStale(leaf))
      above[node] = found
      return found
    }

    /// The row with the key of its next version. A generation that others made and this device cannot open counts: its
    /// key is replaced.
    ///
    /// - Throws: `limitExceeded` if there is no next generation, or too many old ones are in use.
    package mutating func next(_ row: NodeRow, leaf: ZoneLeaf?) throws -> NodeRow {
      guard let leaf else { return row }
      var keyGen = leaf.keyGen
      if try isStale(leaf) {
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
      let history = try history(of: row).adding(KeyHistory.Entry(keyGen: row.keyGen, key: row.key), keeping: used)
      next.historyWrap = try history.seal(tree: tree, node: row.nodeID, key: next.key, keyGen: keyGen)
      return next
    }

    /// Older keys that somebody sealed wrongly open nothing for anybody: they are left out.
    private func history(of row: NodeRow) -> KeyHistory {
      do throws(ZDCSecurityError) {
        return try KeyHistory(
          opening: row.historyWrap, tree: tree, node: row.nodeID, key: row.key, keyGen: row.keyGen)
      } catch { return KeyHistory() }
    }
  }

  /// The parent as this commit leaves it, with all above it fresh: nodes on the way that need another key are put first.
  ///
  /// - Returns: nil if there is no room left for that, or something above cannot be put now (then ``blocked`` says why);
  ///   what was put stays.
  mutating func refreshed(_ parent: NodeRow) throws -> NodeRow? {
    if let known = rekeyed[parent.id] { return known }
    if fresh.contains(parent.id) { return parent }
    var due: [NodeRow] = []
    var current: NodeRow? = parent
    while let row = current, rekeyed[row.id] == nil, !fresh.contains(row.id),
      let leaf = try leaves.leaf(row.nodeID)
    {
      if try leaf.keyGen != row.keyGen || rekeying.isStale(leaf) { due.append(row) }
      current = leaf.parent == .zero ? nil : try nodes.parent(zone: zoneRow.id, nodeID: leaf.parent)
    }
    for row in due.reversed() { guard try rotate(row) else { return nil } }
    if due.isEmpty { fresh.insert(parent.id) }
    return rekeyed[parent.id] ?? parent
  }

  /// The row with the key of its next version; nil if there is none, with the reason in ``blocked``.
  mutating func rekeyed(_ row: NodeRow, _ leaf: ZoneLeaf?) throws -> NodeRow? {
    do {
      return try rekeying.next(row, leaf: leaf)
    } catch let error as ZDCSecurityError {
      blocked = RecordDrafts.Refusal(reason: .exhausted, code: error.code)
      return nil
    }
  }

  /// Puts a node where the cloud has it, with a fresh key and nothing else changed.
  private mutating func rotate(_ row: NodeRow) throws -> Bool {
    guard let leaf = try leaves.leaf(row.nodeID), try !transaction.isUnread(row), parents[row.nodeID] == nil,
      let above = try nodes.parent(zone: zoneRow.id, nodeID: leaf.parent)
    else { return false }
    blocked = try drafts.refusal(of: row, content: nil)
    guard blocked == nil, var next = try rekeyed(row, leaf) else { return false }
    if !DuplicateNames.isShownOtherwise(row), let cloud = row.cloud { next.name = cloud.name }
    guard hasRoom(for: nil, besides: next.historyWrap.count),
      let record = try seal(next, parent: rekeyed[above.id] ?? above, content: nil)
    else { return false }
    add(record)
    rotations.append(InFlightStore.Rotation(node: row.id, facts: facts(next, record, nil, isRekeyed: true)))
    next.name = row.name
    rekeyed[row.id] = next
    return true
  }
}
