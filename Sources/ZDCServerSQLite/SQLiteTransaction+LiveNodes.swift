internal import GRDB
internal import ZDCProtocol
internal import ZDCServer

// Live nodes with their records. Each row needs the commit that put it; commits that were read last are kept.
extension SQLiteTransaction {
  private static let liveColumns = "n.id, n.commit_key, n.put, n.data_received_ms, n.blob, n.record"

  private static let byKey = "SELECT \(liveColumns) FROM nodes n WHERE n.id = ?"
  private static let keyByID =
    "SELECT n.commit_key, n.id FROM node_ids i JOIN nodes n ON n.id = i.key WHERE i.tree = ? AND i.node = ?"
  private static let byID = """
    SELECT \(liveColumns) FROM node_ids i JOIN nodes n ON n.id = i.key WHERE i.tree = ? AND i.node = ?
    """

  private func liveNode(_ row: SQLRow) throws -> LiveNode {
    let commitKey = row.int(1)
    let commit = try puts(ofCommit: commitKey)
    return LiveNode(
      key: row.int(0), commitKey: commitKey, index: Int(row.int(2)), commit: commit,
      dataReceivedMs: row.isNull(3) ? commit.receivedMs : row.unsigned(3), blob: row.optionalInt(4),
      record: CompactRecord(stored: row.bytes(5)))
  }

  func liveNode(_ key: Int64) throws -> LiveNode? { try db.first(Self.byKey, .int(key), row: liveNode) }

  func liveNode(_ key: NodeKey) throws -> LiveNode {
    guard let node = try liveNode(key.node) else { throw StoreError.damaged }
    return node
  }

  func liveNode(_ id: NodeID, tree: Int64) throws -> LiveNode? {
    try db.first(Self.byID, .int(tree), .id(id), row: liveNode)
  }

  /// Returns the keys of those that are live, in the order of their commits.
  func nodeKeys(_ ids: [NodeID], tree: Int64) throws -> [NodeKey] {
    let key = try db.prepared(Self.keyByID)
    return try ids.compactMap { try key.first(.int(tree), .id($0), row: nodeKey) }.sorted()
  }

  /// Returns those of live nodes, in the order of their commits.
  func nodeKeys(_ keys: [Int64]) throws -> [NodeKey] {
    let key = try db.prepared("SELECT commit_key, id FROM nodes WHERE id = ?")
    return try keys.compactMap { try key.first(.int($0), row: nodeKey) }.sorted()
  }

  /// Returns the names in the order of the commits that put their nodes.
  func inOrderOfCommits<Name>(_ names: [Name], of node: (Name) -> NodeID, tree: Int64) throws -> [Name] {
    guard names.count > 1 else { return names }
    let key = try db.prepared(Self.keyByID)
    let keys = try names.map { try key.first(.int(tree), .id(node($0)), row: nodeKey) ?? NodeKey(commit: 0, node: 0) }
    return zip(keys, names).sorted { $0.0 < $1.0 }.map(\.1)
  }

  private func nodeKey(_ row: SQLRow) -> NodeKey { NodeKey(commit: row.int(0), node: row.int(1)) }

  /// Returns the nodes below this one, at most `limit`.
  func childKeys(of parent: NodeID, tree: Int64, limit: Int) throws -> [NodeKey] {
    try db.all(
      """
      SELECT n.commit_key, n.id FROM node_ids i CROSS JOIN node_names c CROSS JOIN nodes n
      WHERE i.tree = ? AND i.node = ? AND c.parent = i.key AND n.id = c.key LIMIT ?
      """, .int(tree), .id(parent), .int(Int64(limit)), row: nodeKey)
  }

  /// Returns the keys of all nodes below this one, at most `limit`.
  func keysOfNodes(below top: Int64, limit: Int) throws -> [Int64] {
    let children = try db.prepared("SELECT key FROM node_names WHERE parent = ? LIMIT ?")
    var found: [Int64] = []
    var level = [top]
    while !level.isEmpty, found.count < limit {
      let first = found.count
      for parent in level where found.count < limit {
        found += try children.all(.int(parent), .int(Int64(limit - found.count))) { $0.int(0) }
      }
      level = found[first...].sorted()
    }
    return found
  }

  /// Returns where the commits put these nodes, in the order of the commits.
  func placesOfPuts(_ keys: [Int64]) throws -> [(commit: Int64, index: Int)] {
    let place = try db.prepared("SELECT commit_key, put FROM nodes WHERE id = ?")
    var found: [(commit: Int64, index: Int)] = []
    found.reserveCapacity(keys.count)
    // Names, which the keys come from, are in a random order: each page of nodes would be read again and again.
    for key in keys.sorted() {
      let row = try place.first(.int(key)) { (commit: $0.int(0), index: Int($0.int(1))) }
      guard let row else { throw StoreError.damaged }
      found.append(row)
    }
    return found.sorted { ($0.commit, $0.index) < ($1.commit, $1.index) }
  }

  func holder(of name: NodeName, tree: Int64) throws -> LiveNode? {
    try db.first(
      """
      SELECT \(Self.liveColumns) FROM node_ids i CROSS JOIN node_names c CROSS JOIN nodes n
      WHERE i.tree = ? AND i.node = ? AND c.parent = i.key AND c.tag = ? AND n.id = c.key
      """, .int(tree), .id(name.parent), .id(name.tag), row: liveNode)
  }

  /// Calls `body` with all live nodes whose keys are above `after`, until it returns false.
  func eachLiveNode(after: Int64 = 0, _ body: (LiveNode) throws -> Bool) throws {
    try db.each("SELECT \(Self.liveColumns) FROM nodes n WHERE n.id > ? ORDER BY n.id", [.int(after)]) { row in
      try body(try liveNode(row))
    }
  }

  /// Returns the nodes whose record came with this commit, in the order of their puts.
  ///
  /// - Parameter new: the keys of the nodes that the commit created. They are read in one go, all others one by one.
  func liveNodes(ofCommit key: Int64, new: ClosedRange<Int64>?) throws -> [LiveNode] {
    let commit = try puts(ofCommit: key)
    var found: [Int: LiveNode] = [:]
    if let new {
      let rows = try db.all(
        "SELECT \(Self.liveColumns) FROM nodes n WHERE n.id BETWEEN ? AND ? AND n.commit_key = ?",
        .int(new.lowerBound), .int(new.upperBound), .int(key), row: liveNode)
      for row in rows { found[row.index] = row }
    }
    let tree = try tree(of: commit.zone)
    let one = try db.prepared("\(Self.byID) AND n.commit_key = ?")
    for index in 0..<commit.count where found[index] == nil {
      found[index] = try one.first(.int(tree), .id(try commit.put(index).node), .int(key), row: liveNode)
    }
    return found.sorted { $0.key < $1.key }.map(\.value)
  }
}

// Commits
extension SQLiteTransaction {
  func puts(ofCommit key: Int64) throws -> CommitPuts {
    if let known = commitCache[key] { return known }
    let commit = try db.first(
      "SELECT zone, received_ms, bytes FROM commits WHERE feed_position = ?", .int(key)
    ) { try CommitPuts(zone: ZoneKey($0.int(0)), receivedMs: $0.unsigned(1), bytes: $0.bytes(2)) }
    guard let commit else { throw StoreError.damaged }
    commitCache.insert(commit, key: key)
    return commit
  }
}

/// A live node, and the commit that put it.
///
/// Many nodes are read in the order of their keys, not of their names, which is random: each commit is then read once,
/// however many there are.
struct NodeKey: Comparable {
  var commit: Int64
  var node: Int64

  static func < (a: NodeKey, b: NodeKey) -> Bool { (a.commit, a.node) < (b.commit, b.node) }
}

/// The commits that a transaction has read, as long as they need little memory.
struct CommitCache {
  /// In bytes.
  var limit = 4 << 20
  private var commits: [Int64: CommitPuts] = [:]
  private var bytes = 0

  subscript(key: Int64) -> CommitPuts? { commits[key] }

  mutating func insert(_ commit: CommitPuts, key: Int64) {
    if bytes + commit.bytes.count > limit {
      commits.removeAll()
      bytes = 0
    }
    bytes += commit.bytes.count
    commits[key] = commit
  }
}
