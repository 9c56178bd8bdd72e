/// Checks shape and key generations while one commit is applied: parents, cycles, depth, staleness (PROTOCOL 3.7, R1).
///
/// Lookups of ancestors are cached for the duration of the commit, so a thousand siblings walk up only once.
struct ZoneShape {
  private let zone: ZoneID
  private let seq: UInt64
  private let isGenesis: Bool
  private let isOnlyOperation: Bool
  /// The nodes that the commit has put or deleted; each may occur only once per commit.
  private var touched: Set<NodeID> = []
  /// The branch that the commit splits off; its nodes may not occur again.
  private var splitOff: StateList?
  private var rootKeyGen: UInt32?
  /// The total number of descendants that the deletes so far state.
  private var deletedDescendants: UInt64 = 0
  private var above: [NodeID: Above] = [:]
  /// Where the branch was that the commit splits off: a new node there has to point to it.
  private var mountParent: NodeID?
  private var hasMount = false
  private(set) var isClosed = false

  /// Facts about a live node that depend on its ancestors.
  private struct Above {
    var depth: Int
    var keyGen: UInt32
    var isStale: Bool
  }

  init(_ commit: ZoneCommit.Fields, isGenesis: Bool) {
    zone = commit.zone
    seq = commit.seq
    self.isGenesis = isGenesis
    isOnlyOperation = commit.operations.count == 1
  }

  mutating func put(_ put: ZoneOperation.Put, in state: inout some ZoneState) throws {
    // Zero stands for the parent of the root: a node with that ID would be above the root and below it.
    try require(put.node != .zero, .nonCanonicalEncoding)
    try touch(put.node)
    let old = try state.leaf(put.node)
    try checkKeyGen(put, old: old, in: state)
    if put.node == zone.root {
      try checkRoot(put, old: old)
    } else {
      try checkPlace(put, old: old, in: state)
    }
    let leaf = LogNode(
      node: put.node, parent: put.parent, record: put.record, putSeq: seq, keyGen: put.keyGen,
      parentKeyGen: put.parentKeyGen)
    try state.put(leaf, replacing: old)
    if old == nil, put.parent == mountParent { hasMount = true }
    // A new log node does not affect the cache. A moved or re-keyed node affects all nodes below it.
    if let old, old.parent != put.parent || old.keyGen != put.keyGen { above.removeAll() }
    if old != nil { above[put.node] = nil }
  }

  mutating func delete(
    _ node: NodeID, record: RecordHash, liveDescendants: UInt64, in state: inout some ZoneState
  ) throws {
    try touch(node)
    if node == zone.root { return try close(record: record, liveDescendants: liveDescendants, in: &state) }
    let (total, overflow) = deletedDescendants.addingReportingOverflow(liveDescendants)
    try require(!overflow && total <= Limits.deletedDescendants, .limitExceeded, node: node)
    deletedDescendants = total
    guard let leaf = try state.leaf(node) else { throw ZDCSecurityError(.objectMissing, node: node) }
    try require(leaf.record == record, .recordHashMismatch, node: node)
    let below = try state.descendantCount(of: node, upTo: liveDescendants)
    try require(below == liveDescendants, .moveMismatch, node: node)
    try state.removeSubtree(node)
    above.removeAll()
  }

  /// Ends the zone. The number of nodes does not matter, so that an owner can always end a zone with one commit.
  private mutating func close(
    record: RecordHash, liveDescendants: UInt64, in state: inout some ZoneState
  ) throws {
    try require(!isTrunk, .writerNotAuthorized, node: zone.root)
    try require(isOnlyOperation && liveDescendants == 0, .nonCanonicalEncoding, node: zone.root)
    guard let leaf = try state.leaf(zone.root) else { throw ZDCSecurityError(.objectMissing, node: zone.root) }
    try require(leaf.record == record, .recordHashMismatch, node: zone.root)
    try state.close()
    isClosed = true
  }

  /// Inserts the branch with which the zone begins that was split off.
  mutating func begin(
    _ genesis: ZoneOperation.GenesisState, list: StateList?, in state: inout some ZoneState
  ) throws {
    try require(!isTrunk, .splitMismatch, node: zone.root)
    guard let list else { throw ZDCSecurityError(.objectMissing, node: zone.root) }
    try list.check(genesis, top: zone.root)
    try state.insert(list)
  }

  /// Removes a branch that becomes its own zone, and returns its state.
  mutating func split(_ node: NodeID, count: UInt64, in state: inout some ZoneState) throws -> StateList {
    try require(node != zone.root, .splitMismatch, node: node)
    try require(count <= Limits.splitNodes, .limitExceeded, node: node)
    guard let top = try state.leaf(node) else { throw ZDCSecurityError(.objectMissing, node: node) }
    let list = try state.stateList(of: node, upTo: count)
    try require(list.count == count, .splitMismatch, node: node)
    try state.splitOff(list, top: node)
    splitOff = list
    mountParent = top.parent
    return list
  }

  private mutating func touch(_ node: NodeID) throws(ZDCSecurityError) {
    let isFirst = touched.insert(node).inserted && splitOff?.node(node) == nil
    try require(isFirst, .nonCanonicalEncoding, node: node)
  }

  private var isTrunk: Bool { zone == ZoneID(trunkOf: zone.tree) }

  /// Z9: the access list and the root's record of the same commit must have the same generation.
  func finish(acl: ZoneACL, previous: ZoneACL?) throws(ZDCSecurityError) {
    try require(mountParent == nil || hasMount, .splitMismatch)
    let isRotation = acl.fields.zoneKeyGen != previous?.fields.zoneKeyGen
    if isRotation { try require(rootKeyGen != nil, .keyCommitmentMismatch, node: zone.root) }
    if let rootKeyGen { try require(rootKeyGen == acl.fields.zoneKeyGen, .keyCommitmentMismatch, node: zone.root) }
  }

  private mutating func checkRoot(_ put: ZoneOperation.Put, old: LogNode?) throws(ZDCSecurityError) {
    try require(old != nil || isGenesis, .commitChainBroken, node: put.node)
    let isBare = put.parent == .zero && put.parentKeyGen == 0
    try require(isBare, .treeCycle, node: put.node)
    rootKeyGen = put.keyGen
  }

  private mutating func checkKeyGen(_ put: ZoneOperation.Put, old: LogNode?, in state: some ZoneState) throws {
    guard let old else { return try checkFirstKeyGen(put, in: state) }
    let isNext = old.keyGen < .max && put.keyGen == old.keyGen + 1
    // Z9 binds the root's generation to that of the list.
    let isRoot = put.node == zone.root
    // A former member of the parent zone may have the root's old key: a zone that was split off begins with a new one.
    let mustRise = isRoot ? isNext || isGenesis : try lookUp(put.node, in: state).isStale
    try require(mustRise ? isNext : put.keyGen == old.keyGen, .staleKeyGeneration, node: put.node)
  }

  /// Checks the first generation of a node. No node has more generations than its zone, because each rotation of the
  /// zone makes a node stale at most once.
  private mutating func checkFirstKeyGen(_ put: ZoneOperation.Put, in state: some ZoneState) throws {
    try require(put.keyGen >= 1, .staleKeyGeneration, node: put.node)
    guard put.node != zone.root else { return }
    try require(try put.keyGen <= lookUp(zone.root, in: state).keyGen, .staleKeyGeneration, node: put.node)
  }

  private mutating func checkPlace(_ put: ZoneOperation.Put, old: LogNode?, in state: some ZoneState) throws {
    try require(put.node != put.parent, .treeCycle, node: put.node)
    let parent = try lookUp(put.parent, in: state)
    let isFresh = !parent.isStale && put.parentKeyGen == parent.keyGen
    try require(isFresh, .staleKeyGeneration, node: put.node)
    let isMove = old.map { $0.parent != put.parent } ?? false
    if old == nil { try require(parent.depth < Limits.depthAtCreation, .limitExceeded, node: put.node) }
    guard isMove else { return }
    try checkNotBelow(put.node, from: put.parent, in: state)
    try checkDepth(put.node, movedBelow: parent, in: state)
  }

  /// Checks the depth after a move, which includes all descendants. Only a move further down can exceed the limit.
  private mutating func checkDepth(_ node: NodeID, movedBelow parent: Above, in state: some ZoneState) throws {
    let depth = parent.depth + 1
    guard try depth > lookUp(node, in: state).depth else { return }
    let room = Limits.depthAfterMoves - depth
    let fits = try room >= 0 && state.height(of: node, upTo: room) <= room
    try require(fits, .limitExceeded, node: node)
  }

  private func checkNotBelow(_ node: NodeID, from start: NodeID, in state: some ZoneState) throws {
    var current = start
    while current != zone.root {
      try require(current != node, .treeCycle, node: node)
      guard let leaf = try state.leaf(current) else { throw ZDCSecurityError(.objectMissing, node: current) }
      current = leaf.parent
    }
  }

  /// Walks up to the zone's root, or to the first cached node, and caches the path.
  private mutating func lookUp(_ node: NodeID, in state: some ZoneState) throws -> Above {
    var path: [LogNode] = []
    var current = node
    while above[current] == nil {
      guard let leaf = try state.leaf(current) else { throw ZDCSecurityError(.objectMissing, node: current) }
      path.append(leaf)
      if current == zone.root { break }
      try require(path.count <= Limits.depthAfterMoves * 4, .limitExceeded, node: node)
      current = leaf.parent
    }
    for leaf in path.reversed() {
      if leaf.node == zone.root {
        above[leaf.node] = Above(depth: 0, keyGen: leaf.keyGen, isStale: false)
      } else if let parent = above[leaf.parent] {
        above[leaf.node] = Above(
          depth: parent.depth + 1, keyGen: leaf.keyGen, isStale: parent.isStale || leaf.parentKeyGen < parent.keyGen)
      }
    }
    guard let found = above[node] else { throw ZDCSecurityError(.objectMissing, node: node) }
    return found
  }
}
