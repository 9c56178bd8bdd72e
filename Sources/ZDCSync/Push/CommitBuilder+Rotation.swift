internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport

// Rotate before write (PROTOCOL 3.10, R1): putting a node below a stale node also rotates the path above it.

extension CommitBuilder {
  /// Fresh keys for nodes in this commit, with key histories that still open the children wrapped with the old keys.
  struct Rekeying {
    private let leaves: LogNodeStore
    private let tree: TreeID
    /// Ancestors before the commit, cached so that a thousand siblings need only one walk up.
    private var above: [NodeID: (keyGen: UInt32, isStale: Bool)] = [:]

    package init(leaves: LogNodeStore, tree: TreeID) {
      self.leaves = leaves
      self.tree = tree
    }

    /// Returns whether a node is stale: its parent has a newer key than the one the node's record uses, or is stale
    /// itself.
    package mutating func isStale(_ leaf: LogNode) throws -> Bool {
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

    /// Returns the row with the key of its next version. The new generation follows the newest one in the log, even one
    /// that this device cannot open, and replaces its key.
    ///
    /// - Throws: `limitExceeded` if there is no next generation, or if too many old ones are in use.
    package mutating func next(_ row: NodeRow, leaf: LogNode?) throws -> NodeRow {
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

    /// Returns the row's key history. Older keys that were sealed incorrectly open nothing for any device, so they are
    /// dropped.
    private func history(of row: NodeRow) -> KeyHistory {
      do throws(ZDCSecurityError) {
        return try KeyHistory(
          opening: row.historyWrap, tree: tree, node: row.nodeID, key: row.key, keyGen: row.keyGen)
      } catch { return KeyHistory() }
    }
  }

  /// Returns the parent as this commit leaves it, with a fresh path above it. Ancestors that need another key are put
  /// first.
  ///
  /// - Returns: Nil if there is no room, or if an ancestor cannot be put now (``blocked`` then holds the reason).
  ///   Ancestors that were already put stay in the commit.
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

  /// Returns the row with the key of its next version, or nil with the reason in ``blocked``.
  mutating func rekeyed(_ row: NodeRow, _ leaf: LogNode?) throws -> NodeRow? {
    do {
      return try rekeying.next(row, leaf: leaf)
    } catch let error as ZDCSecurityError {
      blocked = RecordDrafts.Refusal(reason: .exhausted, code: error.code)
      return nil
    }
  }

  /// Returns the name that the node keeps. If its newest version cannot be read, its own name may be free since, and
  /// another node may have it.
  func nameInCloud(of row: NodeRow, _ leaf: LogNode, below parent: NodeRow) throws -> [UInt8] {
    guard !DuplicateNames.isShownOtherwise(row), let cloud = row.cloud else { return row.name }
    if cloud.recordHash == leaf.record { return cloud.name }
    let isMoving = try !transaction.operations.placements(ofNode: row.id).isEmpty
    return try places.freeName(isMoving ? cloud.name : row.name, under: parent, except: row.id)
  }

  /// Puts a node at its place in the cloud with a fresh key and no other change.
  private mutating func rotate(_ row: NodeRow) throws -> Bool {
    guard let leaf = try leaves.leaf(row.nodeID), try !transaction.isUnread(row), parents[row.nodeID] == nil,
      let above = try nodes.parent(zone: zoneRow.id, nodeID: leaf.parent)
    else { return false }
    guard var next = try rekeyed(try drafts.withNewestContent(row), leaf) else { return false }
    next.name = try nameInCloud(of: row, leaf, below: above)
    guard hasRoom(for: nil, besides: next.historyWrap.count),
      let record = try seal(next, parent: rekeyed[above.id] ?? above, content: nil)
    else { return false }
    add(record)
    var facts = facts(next, record, nil, isRekeyed: true)
    facts.carry(next.content, insteadOf: row.content)
    rotations.append(InFlightStore.Rotation(node: row.id, facts: facts))
    next.name = row.name
    rekeyed[row.id] = next
    return true
  }
}
