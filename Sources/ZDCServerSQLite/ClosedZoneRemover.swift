internal import GRDB
internal import ZDCProtocol
internal import ZDCServer

extension SQLiteTransaction {
  func removeClosedNodes(limit: Int) throws -> Bool {
    guard let zone = try db.first("SELECT zone FROM closing LIMIT 1", row: { ZoneKey($0.int(0)) }) else { return false }
    zoneCache = ZoneCache()
    if try ClosedZoneRemover(self, zone: zone).remove(limit: limit) {
      try db.run("DELETE FROM closing WHERE zone = ?", .int(zone.rawValue))
    }
    return try db.first("SELECT 1 FROM closing LIMIT 1") { _ in true } ?? false
  }
}

/// Removes the nodes of a closed zone, children before their parents, so that those that are left are always found from
/// the root.
struct ClosedZoneRemover {
  private struct Entry {
    var key: Int64
    /// The parent's key and the tag under which the node has its name; nil for the root.
    var name: (parent: Int64, tag: [UInt8])?
  }

  private let store: SQLiteTransaction
  private let zone: ZoneKey
  private let tree: Int64
  private let replacer: NodeReplacer

  init(_ store: SQLiteTransaction, zone: ZoneKey) throws {
    self.store = store
    self.zone = zone
    tree = try store.tree(of: zone)
    replacer = try NodeReplacer(store, zone: zone, now: try store.closedMs(of: zone) ?? 0)
  }

  /// - Returns: whether no node is left.
  func remove(limit: Int) throws -> Bool {
    let sql = "SELECT i.key FROM zones z JOIN node_ids i ON i.tree = z.tree AND i.node = z.root WHERE z.id = ?"
    var stack = try store.db.all(sql, .int(zone.rawValue)) { Entry(key: $0.int(0)) }
    var removed = 0
    while let next = stack.last, removed < limit {
      let below = try children(of: next.key, limit: limit - removed)
      stack += below
      guard below.isEmpty else { continue }
      try remove(next)
      stack.removeLast()
      removed += 1
    }
    try store.db.run(
      "UPDATE zones SET live_nodes = live_nodes - ? WHERE id = ?", .int(Int64(removed)), .int(zone.rawValue))
    return stack.isEmpty
  }

  private func children(of key: Int64, limit: Int) throws -> [Entry] {
    let found = try store.db.all(
      """
      SELECT c.key, c.tag, n.commit_key FROM node_names c LEFT JOIN nodes n ON n.id = c.key WHERE c.parent = ? LIMIT ?
      """, .int(key), .int(Int64(limit))
    ) { row in
      (key: NodeKey(commit: row.int(2), node: row.int(0)), entry: Entry(key: row.int(0), name: (key, row.bytes(1))))
    }
    return found.sorted { $0.key < $1.key }.map(\.entry)
  }

  private func remove(_ entry: Entry) throws {
    if let node = try store.liveNode(entry.key) {
      let leaf = try node.leaf(in: zone)
      let row = NodeRow(leaf: leaf, tag: nil, record: node.key, blob: node.blobKey)
      try replacer.keepRecord(of: row)
      try replacer.keepContent(of: row)
      try store.db.run("DELETE FROM node_ids WHERE tree = ? AND node = ?", .int(tree), .id(leaf.node))
    }
    try store.db.run("DELETE FROM nodes WHERE id = ?", .int(entry.key))
    guard let name = entry.name else { return }
    try store.db.run("DELETE FROM node_names WHERE parent = ? AND tag = ?", .int(name.parent), .bytes(name.tag))
  }
}
