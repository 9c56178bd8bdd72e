package import GRDB

/// The rows of zdc_needs_download inside one transaction.
package struct DownloadMarkStore {
  package let db: Database

  package func components(node: Int64) throws -> Int {
    let statement = try db.cachedStatement(sql: "SELECT components FROM zdc_needs_download WHERE node = ?")
    return try Int.fetchOne(statement, arguments: [node]) ?? 0
  }

  package func set(_ components: Int, node: Int64) throws {
    let statement = try db.cachedStatement(
      sql: components == 0
        ? "DELETE FROM zdc_needs_download WHERE node = ?1 AND ?2 = 0"
        : "INSERT OR REPLACE INTO zdc_needs_download (node, components) VALUES (?1, ?2)")
    try statement.execute(arguments: [node, components])
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
}

extension ZDCReadTransaction {
  package var downloadMarks: DownloadMarkStore { DownloadMarkStore(db: database) }
}
