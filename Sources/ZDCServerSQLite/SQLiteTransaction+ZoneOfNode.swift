internal import GRDB
internal import ZDCProtocol
internal import ZDCServer

/// Caches the zones of nodes for one transaction. Any commit invalidates it.
struct ZoneCache {
  struct Node: Hashable {
    var tree: Int64
    var node: NodeID
  }

  /// The zone of folders on the way to their root.
  var zones: [Node: ZoneKey] = [:]
  /// The only zone of a tree; nil if the tree has several.
  var onlyZones: [Int64: ZoneKey?] = [:]
  /// When zones were closed; nil for open ones.
  var closed: [ZoneKey: UInt64?] = [:]
}

// The zone of a node is that of the nearest root above it. No row stores it, so a split writes none for the nodes of its
// branch. Replay bounds the depth.
extension SQLiteTransaction {
  /// Returns the zone of a live node; nil if it has no root, which only a damaged database has.
  func zoneKey(of node: LiveNode, tree: Int64) throws -> ZoneKey? {
    if let only = try onlyZone(of: tree) { return only }
    let put = try node.put()
    guard put.parent != .zero else { return try zoneKey(ofRoot: put.node, tree: tree) }
    return try zoneKey(ofFolder: put.parent, tree: tree)
  }

  private func zoneKey(ofFolder folder: NodeID, tree: Int64) throws -> ZoneKey? {
    var path: [ZoneCache.Node] = []
    var next = folder
    while path.count <= Limits.depthAfterMoves {
      let place = ZoneCache.Node(tree: tree, node: next)
      path.append(place)
      if let known = zoneCache.zones[place] { return remember(known, for: path) }
      guard let parent = try liveNode(next, tree: tree)?.put().parent else { return nil }
      guard parent != .zero else { return try zoneKey(ofRoot: next, tree: tree).map { remember($0, for: path) } }
      next = parent
    }
    return nil
  }

  private func remember(_ zone: ZoneKey, for path: [ZoneCache.Node]) -> ZoneKey {
    for place in path { zoneCache.zones[place] = zone }
    return zone
  }

  /// Returns the zone that has this root.
  func zoneKey(ofRoot node: NodeID, tree: Int64) throws -> ZoneKey? {
    try db.first("SELECT id FROM zones WHERE tree = ? AND root = ?", .int(tree), .id(node)) { ZoneKey($0.int(0)) }
  }

  /// Returns when the zone was closed; nil while it is open.
  func closedMs(of zone: ZoneKey) throws -> UInt64? {
    if let known = zoneCache.closed[zone] { return known }
    let closedMs: UInt64? =
      try db.first("SELECT closed_ms FROM zones WHERE id = ?", .int(zone.rawValue)) { row in
        row.isNull(0) ? nil : row.unsigned(0)
      } ?? nil
    zoneCache.closed[zone] = .some(closedMs)
    return closedMs
  }

  private func onlyZone(of tree: Int64) throws -> ZoneKey? {
    if let known = zoneCache.onlyZones[tree] { return known }
    let zones = try db.all("SELECT id FROM zones WHERE tree = ? LIMIT 2", .int(tree)) { ZoneKey($0.int(0)) }
    let only = zones.count == 1 ? zones[0] : nil
    zoneCache.onlyZones[tree] = .some(only)
    return only
  }
}
