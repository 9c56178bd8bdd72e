/// The nodes of a branch at the moment when it was split off into its own zone (PROTOCOL 3.7).
///
/// The genesis of the new zone names the list by its root and count. Members of the parent zone compute the list from
/// their log. Others fetch it from the server and compare the root.
package struct StateList: Sendable, Hashable {
  package static let entryBytes = 72

  /// Ascending by node, all with `putSeq` 0. The zone's root has its old record and generation, but no parent.
  package let nodes: [LogNode]
  /// The Merkle root over the entries.
  package let root: StateRoot
  /// The node below which the others are known to form a tree; nil for a list that another device made.
  private let knownTop: NodeID?

  /// Creates the list of a branch as the parent zone has it.
  ///
  /// - Parameter top: The branch's top-most node, which becomes the root of the new zone.
  package init(branch: [LogNode], top: NodeID) {
    nodes = branch.map { $0.splitOff(isRoot: $0.node == top) }.sorted { $0.node < $1.node }
    root = Self.root(of: nodes)
    knownTop = top
  }

  /// Decodes a list. Its nodes are only known to be sorted: replay checks that they form a tree.
  package init(_ bytes: [UInt8]) throws(ZDCSecurityError) {
    try require(UInt64(bytes.count / Self.entryBytes) <= Limits.splitNodes, .limitExceeded)
    try require(!bytes.isEmpty && bytes.count % Self.entryBytes == 0, .nonCanonicalEncoding)
    var reader = ByteReader(bytes)
    var nodes: [LogNode] = []
    nodes.reserveCapacity(bytes.count / Self.entryBytes)
    while reader.remaining > 0 {
      let node = LogNode(
        node: try reader.read16(), parent: try reader.read16(), record: try reader.read32(), putSeq: 0,
        keyGen: try reader.readUInt32(), parentKeyGen: try reader.readUInt32())
      // The first node may not be zero, and the others are greater.
      try require((nodes.last?.node ?? .zero) < node.node, .nonCanonicalEncoding)
      nodes.append(node)
    }
    self.nodes = nodes
    root = Self.root(of: nodes)
    knownTop = nil
  }

  package var bytes: [UInt8] {
    var out = ByteWriter(capacity: nodes.count * Self.entryBytes)
    for node in nodes { node.writeStateEntry(to: &out) }
    return out.bytes
  }

  package var count: UInt64 { UInt64(nodes.count) }

  /// Returns a node of the list; nil if it has none with this ID.
  package func node(_ id: NodeID) -> LogNode? {
    var (low, high) = (0, nodes.count)
    while low < high {
      let middle = (low + high) / 2
      if nodes[middle].node < id { low = middle + 1 } else { high = middle }
    }
    return low < nodes.count && nodes[low].node == id ? nodes[low] : nil
  }

  private static func root(of nodes: [LogNode]) -> StateRoot {
    var tree = MerkleTree.Builder()
    for node in nodes {
      var entry = ByteWriter(capacity: Self.entryBytes)
      node.writeStateEntry(to: &entry)
      tree.append(leafHash: MerkleTree.leafHash(entry.bytes))
    }
    return StateRoot(reinterpreting: tree.root)
  }

  /// Whether the list is the one that a genesis names.
  package func isNamed(by state: ZoneOperation.GenesisState) -> Bool {
    state.count == count && state.stateRoot == root
  }

  /// Checks that the list is the one that a genesis names, and a tree below `top`.
  ///
  /// - Throws: `splitMismatch`.
  func check(_ state: ZoneOperation.GenesisState, top: NodeID) throws(ZDCSecurityError) {
    try require(isNamed(by: state), .splitMismatch, node: top)
    // A branch of a verified log is a tree already.
    if top != knownTop { try StateTree(self).check(top: top) }
  }

  package static func == (list: StateList, other: StateList) -> Bool { list.nodes == other.nodes }

  package func hash(into hasher: inout Hasher) { hasher.combine(root) }
}

extension LogNode {
  /// The node in the zone that it was split off into. Members of that zone need not know the parent zone, so the root
  /// keeps nothing of its place there.
  fileprivate func splitOff(isRoot: Bool) -> LogNode {
    LogNode(
      node: node, parent: isRoot ? .zero : parent, record: record, putSeq: 0, keyGen: keyGen,
      parentKeyGen: isRoot ? 0 : parentKeyGen)
  }

  fileprivate func writeStateEntry(to out: inout ByteWriter) {
    out.append(node)
    out.append(parent)
    out.append(record)
    out.append(keyGen)
    out.append(parentKeyGen)
  }
}

/// The parents of a state list, indexed for one walk from the root down.
private struct StateTree {
  private let list: StateList
  private var children: [NodeID: [Int]] = [:]

  init(_ list: StateList) {
    self.list = list
    for (index, node) in list.nodes.enumerated() { children[node.parent, default: []].append(index) }
  }

  /// Checks that each node is connected with the root, within the depth that replay allows, and that no node has a
  /// generation of its parent's key that does not exist yet. The root's place is bare.
  func check(top: NodeID) throws(ZDCSecurityError) {
    let roots = children[.zero] ?? []
    guard roots.count == 1, list.nodes[roots[0]].node == top, list.nodes[roots[0]].parentKeyGen == 0 else {
      throw ZDCSecurityError(.splitMismatch, node: top)
    }
    var (level, found, depth) = (roots, 0, 0)
    while !level.isEmpty {
      try require(depth <= Limits.depthAfterMoves, .splitMismatch, node: top)
      found += level.count
      level = try next(below: level)
      depth += 1
    }
    try require(found == list.nodes.count, .splitMismatch, node: top)
  }

  private func next(below level: [Int]) throws(ZDCSecurityError) -> [Int] {
    var next: [Int] = []
    for index in level {
      let parent = list.nodes[index]
      try require(parent.keyGen >= 1, .splitMismatch, node: parent.node)
      for child in children[parent.node] ?? [] {
        try require(list.nodes[child].parentKeyGen <= parent.keyGen, .splitMismatch, node: list.nodes[child].node)
        next.append(child)
      }
    }
    return next
  }
}
