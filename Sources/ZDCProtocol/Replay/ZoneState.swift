/// The state of one live node in a zone's log.
package struct LogNode: Hashable, Sendable {
  package var node: NodeID
  package var parent: NodeID
  package var record: RecordHash
  package var putSeq: UInt64
  package var keyGen: UInt32
  package var parentKeyGen: UInt32

  package init(node: NodeID, parent: NodeID, record: RecordHash, putSeq: UInt64, keyGen: UInt32, parentKeyGen: UInt32) {
    self.node = node
    self.parent = parent
    self.record = record
    self.putSeq = putSeq
    self.keyGen = keyGen
    self.parentKeyGen = parentKeyGen
  }
}

extension ZoneOperation.Put {
  /// Creates the operation that put the node.
  package init(_ leaf: LogNode) {
    self.init(
      node: leaf.node, parent: leaf.parent, record: leaf.record, keyGen: leaf.keyGen, parentKeyGen: leaf.parentKeyGen)
  }
}

/// The live nodes of a zone, as replay reads and changes them.
///
/// Server and client implement it over their database inside one transaction; tests use a dictionary. Replay calls
/// `put` and `removeSubtree` only for operations that it accepted. If replay throws, the caller rolls the transaction
/// back.
package protocol ZoneState {
  /// Notes the commit whose operations follow.
  mutating func begin(_ commit: ZoneCommit.Fields) throws
  func leaf(_ node: NodeID) throws -> LogNode?
  /// Returns the number of live nodes below `node`, without `node` itself. Any result above `limit` only means "more
  /// than `limit`", so that a wrong claim about a large branch does not cost a full walk.
  func descendantCount(of node: NodeID, upTo limit: UInt64) throws -> UInt64
  /// Returns the number of levels of live nodes below `node`; 0 if it has no children. Any result above `limit` only
  /// means "more than `limit`".
  func height(of node: NodeID, upTo limit: Int) throws -> Int
  mutating func put(_ leaf: LogNode, replacing old: LogNode?) throws
  /// Removes `node` and everything below it.
  mutating func removeSubtree(_ node: NodeID) throws
  /// Returns who wrote a live node's newest put, which is in an earlier commit.
  func writer(of leaf: LogNode) throws -> UserID?

  /// Returns `node` and the nodes below it, in any order. Any result with more than `limit` nodes only means "more than
  /// `limit`".
  func branch(_ node: NodeID, upTo limit: UInt64) throws -> [LogNode]
  /// Returns the list of ``branch(_:upTo:)``. A state may have prepared it.
  func stateList(of node: NodeID, upTo limit: UInt64) throws -> StateList
  /// Removes a branch that becomes its own zone.
  ///
  /// - Parameter list: The nodes of the branch, as the new zone begins with them.
  mutating func splitOff(_ list: StateList, top: NodeID) throws
  /// Inserts the nodes with which a zone begins that was split off.
  mutating func insert(_ list: StateList) throws
  /// Removes all nodes: the zone is closed.
  mutating func close() throws
}

// A state that implements none of these functions refuses the logs that need them, as logs of a later version.
extension ZoneState {
  package mutating func begin(_ commit: ZoneCommit.Fields) throws {}
  package func branch(_ node: NodeID, upTo limit: UInt64) throws -> [LogNode] {
    throw ZDCSecurityError(.unsupportedVersion, node: node)
  }
  package func stateList(of node: NodeID, upTo limit: UInt64) throws -> StateList {
    StateList(branch: try branch(node, upTo: limit), top: node)
  }
  package mutating func splitOff(_ list: StateList, top: NodeID) throws {
    throw ZDCSecurityError(.unsupportedVersion, node: top)
  }
  package mutating func insert(_ list: StateList) throws { throw ZDCSecurityError(.unsupportedVersion) }
  package mutating func close() throws { throw ZDCSecurityError(.unsupportedVersion) }
}

/// The head of a zone's log, which a client pins and a server compares with.
package struct ZoneHead: Sendable, Hashable {
  package var zone: ZoneID
  package var seq: UInt64
  package var hash: CommitHash
  package var acl: ZoneACL
  /// Generations below these are no longer accepted from these users (`retireKey`).
  package var retiredBelow: [UserID: UInt32]
  /// The owner has deleted the zone's root. No commit follows.
  package var isClosed = false

  package init(zone: ZoneID, seq: UInt64, hash: CommitHash, acl: ZoneACL, retiredBelow: [UserID: UInt32] = [:]) {
    self.zone = zone
    self.seq = seq
    self.hash = hash
    self.acl = acl
    self.retiredBelow = retiredBelow
  }
}

/// A zone's live nodes in memory.
package struct MemoryZoneState: ZoneState, Sendable {
  package private(set) var leaves: [NodeID: LogNode] = [:]
  private var children: [NodeID: Set<NodeID>] = [:]
  /// The writers of all commits so far.
  private var writers: [UInt64: UserID] = [:]

  package init() {}

  package mutating func begin(_ commit: ZoneCommit.Fields) { writers[commit.seq] = commit.writer }

  package func writer(of leaf: LogNode) -> UserID? { writers[leaf.putSeq] }

  package func leaf(_ node: NodeID) -> LogNode? { leaves[node] }

  package func descendantCount(of node: NodeID, upTo limit: UInt64 = .max) -> UInt64 {
    UInt64(subtree(of: node, upTo: limit).count - 1)
  }

  package func height(of node: NodeID, upTo limit: Int) -> Int {
    var level = [node]
    var height = -1
    while !level.isEmpty, height <= limit {
      height += 1
      level = level.flatMap { Array(children[$0] ?? []) }
    }
    return height
  }

  package mutating func put(_ leaf: LogNode, replacing old: LogNode?) {
    if let old { children[old.parent]?.remove(old.node) }
    leaves[leaf.node] = leaf
    children[leaf.parent, default: []].insert(leaf.node)
  }

  package mutating func removeSubtree(_ node: NodeID) { remove(subtree(of: node), top: node) }

  package func branch(_ node: NodeID, upTo limit: UInt64) -> [LogNode] {
    subtree(of: node, upTo: limit).compactMap { leaves[$0] }
  }

  package mutating func splitOff(_ list: StateList, top: NodeID) { remove(list.nodes.map(\.node), top: top) }

  package mutating func insert(_ list: StateList) {
    for node in list.nodes { put(node, replacing: nil) }
  }

  package mutating func close() {
    (leaves, children) = ([:], [:])
  }

  private mutating func remove(_ nodes: [NodeID], top: NodeID) {
    if let leaf = leaves[top] { children[leaf.parent]?.remove(top) }
    for id in nodes {
      leaves[id] = nil
      children[id] = nil
    }
  }

  /// Returns `node` and the nodes below it. The search stops once it exceeds `limit` nodes below.
  private func subtree(of node: NodeID, upTo limit: UInt64 = .max) -> [NodeID] {
    var found = [node]
    var next = 0
    while next < found.count, UInt64(found.count - 1) <= limit {
      found += children[found[next]] ?? []
      next += 1
    }
    return found
  }
}
