internal import GRDB
internal import ZDCSupport

/// The pointers in whose place the roots of zones are shown (zdc_zone.mount), inside one transaction.
///
/// The app sees the pointer and the root as one node: the pointer has its name and place, the root everything else. A
/// zone is shown in one place at most, and never inside of itself: of the pointers of a circle, the last one is a leaf
/// (zdc_zone.circularMount).
package final class MountStore: TransactionCache {
  private let db: Database
  private let nodes: NodeStore
  private var known: Known?

  private struct Known {
    var mountChangeCount: Int
    var zones: [Int64: Int64] = [:]
    var pointers: [Int64: Int64] = [:]
    var circular: [Int64: Int64] = [:]
  }

  private static let query = """
    SELECT id, mount, 0 FROM zdc_zone INDEXED BY zdc_zone_mount WHERE mount IS NOT NULL
    UNION ALL SELECT id, circularMount, 1 FROM zdc_zone INDEXED BY zdc_zone_circular WHERE circularMount IS NOT NULL
    """

  init(db: Database, nodes: NodeStore) {
    self.db = db
    self.nodes = nodes
  }

  package func invalidate() { known = nil }

  // A pointer that is deleted takes its row here along, so the rows are as good as those of the nodes.
  private func rows() throws -> Known {
    if let known, known.mountChangeCount == nodes.mountChangeCount { return known }
    var rows = Known(mountChangeCount: nodes.mountChangeCount)
    try db.forEachRow(Self.query, []) { row in
      let (zone, pointer): (Int64, Int64) = (row[0], row[1])
      if row[2] as Int == 1 {
        rows.circular[zone] = pointer
      } else {
        (rows.zones[pointer], rows.pointers[zone]) = (zone, pointer)
      }
    }
    known = rows
    return rows
  }

  package var isEmpty: Bool { get throws { try rows().zones.isEmpty } }

  /// Returns the zone that is shown in place of a pointer.
  package func zone(at pointer: Int64) throws -> Int64? { try rows().zones[pointer] }

  /// Returns the pointer in whose place a zone's root is shown.
  package func pointer(ofZone zone: Int64) throws -> Int64? { try rows().pointers[zone] }

  /// Returns the pointer that precedes all others to a zone. The zone is shown there, unless the pointer is the last one of
  /// a circle.
  package func choice(ofZone zone: Int64) throws -> Int64? { try pointer(ofZone: zone) ?? circular[zone] }

  /// Returns the zones that are shown at a node or below it, not counting those inside of them.
  package func zones(below node: Int64) throws -> [Int64] {
    try rows().zones.filter { try nodes.isNode($0.key, atOrBelow: node) }.map(\.value).sorted()
  }

  /// Shows a zone in place of a pointer, or nowhere. If the pointer closes a circle, the last pointer of the circle is a leaf
  /// from now on, and its zone is shown nowhere.
  package func set(zone: Int64, at pointer: Int64?) throws {
    try update(zone, mount: pointer, circular: nil)
    try isInside(zone) ? decideCircles() : resolveCircles()
  }

  private func update(_ zone: Int64, mount: Int64?, circular: Int64?) throws {
    let statement = try db.cachedStatement(sql: "UPDATE zdc_zone SET mount = ?, circularMount = ? WHERE id = ?")
    try statement.execute(arguments: [mount, circular, zone])
    known = nil
    nodes.mountsChanged()
  }

  // MARK: Circles

  /// The zones that are shown nowhere because their pointer is the last one of a circle, with that pointer.
  package var circular: [Int64: Int64] { get throws { try rows().circular } }

  /// Whether the zones around a zone include itself.
  private func isInside(_ zone: Int64) throws -> Bool {
    var passed: Set<Int64> = []
    var current = zone
    while let pointer = try pointer(ofZone: current), let place = try nodes.node(id: pointer)?.zone {
      if place == zone { return true }
      guard passed.insert(place).inserted else { return false }
      current = place
    }
    return false
  }

  /// Shows zones again whose pointer is not part of a circle any more. Call after the deletion of pointers or zones.
  package func resolveCircles() throws {
    if try !circular.isEmpty { try decideCircles() }
  }

  private func decideCircles() throws {
    var choices: [Int64: PointerChoice] = [:]
    try db.forEachRow(PointerChoice.query, []) { row in choices[row[0]] = try PointerChoice(row) }
    let leaves = PointerChoice.leaves(of: choices)
    for (zone, choice) in choices where choice.isShown == leaves.contains(zone) {
      let pointer = choice.pointer
      try update(zone, mount: choice.isShown ? nil : pointer, circular: choice.isShown ? pointer : nil)
    }
  }
}

extension ZDCReadTransaction {
  package var mounts: MountStore { cached { MountStore(db: database, nodes: nodes) } }

  /// Whether the row is the root of a trunk, which has no name, place or content.
  package func isTrunkRoot(_ row: NodeRow) throws -> Bool {
    guard row.parent == nil else { return false }
    return try zones.zone(id: row.zone)?.isTrunk ?? false
  }

  /// Returns the node that the app sees in place of a row: for a pointer that is followed, the root of its zone.
  package func shown(_ row: NodeRow) throws -> NodeRow {
    guard row.parent != nil, let zone = try mounts.zone(at: row.id) else { return row }
    return try nodes.root(zone: zone) ?? row
  }

  /// Returns the row that has a node's name and place: for the root of a zone that is mounted, the pointer.
  package func place(of row: NodeRow) throws -> NodeRow {
    guard row.parent == nil, let pointer = try mounts.pointer(ofZone: row.zone) else { return row }
    return try nodes.parent(id: pointer) ?? row
  }

  /// Returns the row above a node, as the app sees it; nil for the root of a trunk, and of a zone that is not mounted.
  package func parent(of row: NodeRow) throws -> NodeRow? {
    try place(of: row).parent.flatMap { try nodes.parent(id: $0) }
  }

  /// Returns the nodes from the one below the top down to `row`, as the app sees them, and the top.
  package func ancestry(of row: NodeRow) throws -> (top: NodeRow, path: [NodeRow]) {
    var path: [NodeRow] = []
    var current = row
    while let parent = try parent(of: current) {
      path.append(current)
      current = parent
    }
    return (current, path.reversed())
  }

  /// Returns whether a node is another one or below it, as the app sees them.
  package func isNode(_ row: NodeRow, atOrBelow other: NodeRow) throws -> Bool {
    var current: NodeRow? = row
    while let node = current {
      if node.id == other.id { return true }
      current = try parent(of: node)
    }
    return false
  }
}
