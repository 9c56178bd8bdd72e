internal import GRDB
package import ZDCProtocol

// Questions that the cloud layer asks about nodes.

extension NodeStore {
  package func hasChild(of parent: Int64, tag: NameTag, except id: Int64 = 0) throws -> Bool {
    let statement = try db.cachedStatement(
      sql: "SELECT EXISTS (SELECT 1 FROM zdc_node WHERE parent = ? AND nameTag = ? AND id <> ?)")
    return try Bool.fetchOne(statement, arguments: [parent, tag.data, id]) ?? false
  }

  /// Whether there is a node below that one, if it is in that tree. Opens nothing.
  package func hasChildren(uuid: String, localUser: Int64, appTreeID: String) throws -> Bool {
    let statement = try db.cachedStatement(
      sql: """
        SELECT EXISTS (SELECT 1 FROM zdc_node WHERE parent = (
          SELECT n.id FROM zdc_node n JOIN zdc_zone z ON z.id = n.zone
          WHERE n.uuid = ? AND z.localUser = ? AND z.appTreeID = ?))
        """)
    return try Bool.fetchOne(statement, arguments: [uuid, localUser, appTreeID]) ?? false
  }

  /// Nodes with that mark, in the order of their rows.
  package func quarantined(zone: Int64, as code: String) throws -> [NodeRow] {
    try fetchAll(
      "INDEXED BY zdc_node_quarantine WHERE quarantine IS NOT NULL AND zone = ? AND quarantine = ? ORDER BY id",
      [zone, code])
  }

  /// Nodes with any other mark, in the order of their rows.
  package func quarantined(zone: Int64, except code: String) throws -> [NodeRow] {
    try fetchAll(
      "INDEXED BY zdc_node_quarantine WHERE quarantine IS NOT NULL AND zone = ? AND quarantine <> ? ORDER BY id",
      [zone, code])
  }

  /// A page of children, in the order of their rows.
  package func children(of parent: Int64, after id: Int64, limit: Int) throws -> [NodeRow] {
    try fetchAll(
      "WHERE id IN (SELECT id FROM zdc_node WHERE parent = ? AND id > ?) ORDER BY id LIMIT ?", [parent, id, limit])
  }

  /// A node of a sub-tree and where the cloud has it.
  package struct CloudPlace {
    package var id: Int64
    package var uuid: String
    package var zone: Int64
    package var nodeID: NodeID
    package var parent: Int64?
    /// Nil if it was never uploaded.
    package var cloudParent: NodeID?
    fileprivate var depth: Int

    package var isUploaded: Bool { cloudParent != nil }

    fileprivate init(_ row: RawRow, _ nodeID: NodeID) throws {
      id = row[0]
      uuid = row[1]
      zone = row[6]
      self.nodeID = nodeID
      parent = row[3]
      let isUploaded = (row[5] as Int64) > 0
      cloudParent = try isUploaded ? NodeID(row, 4) : nil
      depth = row[7]
    }
  }

  /// The node and all below it, shallow first, without opening anything.
  ///
  /// - Parameter others: Nodes that are left out, but not those below them. Of a large branch, these may be nearly all.
  package func cloudPlaces(atOrBelow id: Int64, except others: Set<NodeID> = []) throws -> [CloudPlace] {
    var places: [CloudPlace] = []
    let query = """
      WITH RECURSIVE below(id) AS (
        SELECT ? UNION ALL SELECT child.id FROM zdc_node child JOIN below ON child.parent = below.id
      ) SELECT id, uuid, nodeID, parent, cloudParent, recordVersion, zone, depth FROM zdc_node
      WHERE id IN (SELECT id FROM below)
      """
    try db.forEachRow(query, [id]) { row in
      let nodeID = try NodeID(row, 2)
      if !others.contains(nodeID) { places.append(try CloudPlace(row, nodeID)) }
    }
    return places.sorted { ($0.depth, $0.id) < ($1.depth, $1.id) }
  }

  /// How many levels down there are nodes, from a node that is included; the second for those that the cloud never had.
  package func heights(of id: Int64, depth: Int) throws -> (all: Int, new: Int?) {
    let statement = try db.cachedStatement(
      sql: """
        WITH RECURSIVE below(id) AS (
          SELECT ? UNION ALL SELECT child.id FROM zdc_node child JOIN below ON child.parent = below.id
        ) SELECT MAX(depth), MAX(CASE WHEN recordVersion = 0 THEN depth END) FROM zdc_node
        WHERE id IN (SELECT id FROM below)
        """)
    guard let row = try Row.fetchOne(statement, arguments: [id]) else { return (0, nil) }
    return ((row[0] as Int? ?? depth) - depth, (row[1] as Int?).map { $0 - depth })
  }
}
