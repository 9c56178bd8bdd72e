package import GRDB

/// The rows of zdc_needs_download inside one transaction.
package struct DownloadMarkStore {
  package let db: Database
  /// The bit of the data among the components.
  private static let data = 8

  package func components(node: Int64) throws -> Int {
    try db.firstRow("SELECT components FROM zdc_needs_download WHERE node = ?", [node]) { $0[0] } ?? 0
  }

  /// Replaces the marks of a node. Marking its data, which was not marked before, is a new request.
  package func set(_ components: Int, node: Int64) throws {
    guard components != 0 else {
      let statement = try db.cachedStatement(sql: "DELETE FROM zdc_needs_download WHERE node = ?")
      return try statement.execute(arguments: [node])
    }
    let statement = try db.cachedStatement(
      sql: """
        INSERT INTO zdc_needs_download (node, components, dataRequest) VALUES (?1, ?2, random())
        ON CONFLICT (node) DO UPDATE SET
          dataRequest = iif(excluded.components & ~components & ?3, excluded.dataRequest, dataRequest),
          components = excluded.components
        """)
    try statement.execute(arguments: [node, components, Self.data])
  }

  /// The marked nodes of a tree, shallow first.
  package func nodes(localUser: Int64, treeID: String, components: Int) throws -> [String] {
    let statement = try db.cachedStatement(
      sql: """
        SELECT n.uuid FROM zdc_needs_download m JOIN zdc_node n ON n.id = m.node JOIN zdc_zone z ON z.id = n.zone
        WHERE z.localUser = ? AND z.appTreeID = ? AND m.components & ? <> 0 ORDER BY n.depth, n.id
        """)
    return try String.fetchAll(statement, arguments: [localUser, treeID, components])
  }

  /// The nodes of a tree whose data is marked, shallow first, each with the number of its request.
  package func dataRequests(localUser: Int64, treeID: String) throws -> [(uuid: String, request: Int64)] {
    let query = """
      SELECT n.uuid, m.dataRequest FROM zdc_needs_download m
      JOIN zdc_node n ON n.id = m.node JOIN zdc_zone z ON z.id = n.zone
      WHERE z.localUser = ? AND z.appTreeID = ? AND m.components & ? <> 0 ORDER BY n.depth, n.id
      """
    let data = Self.data
    var requests: [(uuid: String, request: Int64)] = []
    try db.forEachRow(query, [localUser, treeID, data]) { requests.append(($0[0], $0[1])) }
    return requests
  }
}

extension ZDCReadTransaction {
  package var downloadMarks: DownloadMarkStore { DownloadMarkStore(db: database) }
}
