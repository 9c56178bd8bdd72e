internal import ZDCProtocol

/// The part of a zone's live nodes that the decision about one commit needs, as they are before the commit.
///
/// The nodes that the commit names and their ancestors are read at the start. Nodes below deleted and moved ones are
/// read level by level, on demand.
final class ZoneSnapshot {
  /// Nil for a zone that does not exist yet.
  let zone: ZoneKey?
  /// The list of the branch that the commit splits off, if it was read before the write.
  private let prepared: PreparedSplit?
  private let reader: any MetadataReader
  private let work: SubtreeWork
  private var nodes: [NodeID: NodeRow] = [:]
  private var writers: [UInt64: UserID] = [:]
  /// Complete lists only.
  private var children: [NodeID: [NodeID]] = [:]

  init(
    of zone: ZoneKey, for operations: [ZoneOperation], reader: any MetadataReader, work: SubtreeWork,
    prepared: PreparedSplit? = nil
  ) throws {
    self.zone = zone
    self.prepared = prepared
    self.reader = reader
    self.work = work
    for row in try reader.nodes(Array(Self.named(by: operations)), in: zone) { nodes[row.leaf.node] = row }
    try readBranches(of: operations)
  }

  /// Creates the snapshot of a zone that does not exist yet.
  ///
  /// - Parameter root: the root of a zone that is split off.
  init(reader: any MetadataReader, work: SubtreeWork, root: NodeRow? = nil) {
    zone = nil
    prepared = nil
    if let root { nodes[root.leaf.node] = root }
    self.reader = reader
    self.work = work
  }

  /// Returns a node that the commit names, one of its ancestors, or one that was found below it.
  func node(_ id: NodeID) -> NodeRow? { nodes[id] }

  /// Returns the prepared list of this branch.
  func preparedList(of node: NodeID) -> StateList? { prepared.flatMap { $0.node == node ? $0.list : nil } }

  /// Returns who signed the zone's commit with this number. A commit that deletes many nodes of one earlier commit
  /// reads that only once.
  func writer(of seq: UInt64) throws -> UserID? {
    if let known = writers[seq] { return known }
    let writer = try zone.flatMap { try reader.writer(of: seq, in: $0) }
    writers[seq] = writer
    return writer
  }

  /// Returns at most `limit` children of all these nodes together.
  ///
  /// - Throws: `limitExceeded` if the request makes the store read too many nodes.
  func children(of parents: [NodeID], upTo limit: Int) throws -> [NodeID] {
    let unknown = parents.filter { children[$0] == nil }
    guard !unknown.isEmpty else { return parents.flatMap { children[$0] ?? [] } }
    let found = try read(below: unknown, upTo: limit)
    return parents.flatMap { children[$0] ?? [] } + (found.isComplete ? [] : found.nodes)
  }

  /// Returns the leaves below a node, which are not kept here: `limit` of them, and one more if the store has it.
  ///
  /// - Throws: `limitExceeded` if the request makes the store read too many nodes.
  func leaves(below node: NodeID, upTo limit: Int) throws -> [LogNode] {
    let limit = min(limit, work.rest)
    let found =
      try zone.map { try reader.leaves(below: node, in: $0, limit: limit == .max ? limit : limit + 1) } ?? []
    try work.add(found.count)
    return found
  }

  /// Reads one node more than the limit; if it exists, the lists are incomplete and are not stored.
  private func read(below parents: [NodeID], upTo limit: Int) throws -> (nodes: [NodeID], isComplete: Bool) {
    let limit = min(limit, work.rest)
    let rows = try zone.map { try reader.children(of: parents, in: $0, limit: limit == .max ? limit : limit + 1) } ?? []
    try work.add(rows.count)
    for row in rows { nodes[row.leaf.node] = row }
    guard rows.count <= limit else { return (rows.map(\.leaf.node), false) }
    for parent in parents { children[parent] = [] }
    for row in rows { children[row.leaf.parent]?.append(row.leaf.node) }
    return (rows.map(\.leaf.node), true)
  }

  private static func named(by operations: [ZoneOperation]) -> Set<NodeID> {
    operations.reduce(into: []) { named, operation in
      switch operation {
      case .put(let put): named.formUnion([put.node, put.parent])
      case .delete(let node, _, _), .split(let node, _, _): named.insert(node)
      default: break
      }
    }
  }

  /// Reads the branches of all deleted nodes together, so that thousands of deletes cost one query per level. It ends
  /// early if the commit claims too few descendants; then each delete reads its own branch.
  private func readBranches(of operations: [ZoneOperation]) throws {
    var level: [NodeID] = []
    var claimed: UInt64 = 0
    for case .delete(let node, _, let count) in operations where nodes[node] != nil {
      level.append(node)
      claimed += min(count, Limits.deletedDescendants)
    }
    var rest = Int(min(claimed, Limits.deletedDescendants))
    while !level.isEmpty {
      let found = try read(below: level, upTo: rest)
      guard found.isComplete else { return }
      rest -= found.nodes.count
      level = found.nodes
    }
  }
}
