internal import Foundation
package import GRDB
package import ZDCCrypto
internal import ZDCProtocol

/// The rows of zdc_link inside one transaction: one-to-one links between nodes and the app's objects.
package final class LinkStore {
  /// The link of a deleted node: the delegate can still look it up in its callback.
  package struct RemovedLink {
    package var nodeUUID: String
    package var collection: String
    package var key: String
  }

  package let db: Database
  package let sealer: TableSealer
  private let opened: RowCache<Int64, DatabaseContext.OpenedLink>

  init(db: Database, context: DatabaseContext) {
    self.db = db
    sealer = context.sealer.table("zdc_link")
    opened = context.openedLinks
  }

  package func link(ofNode node: Int64) throws -> (collection: String, key: String)? {
    try db.firstRow("SELECT sealed FROM zdc_link WHERE node = ?", [node]) { row in
      try open(try row.requiredBytes(0), node: node)
    }
  }

  /// The link of a node of that tree. Opens nothing but the link.
  package func link(
    ofNode uuid: String, localUser: Int64, appTreeID: String
  ) throws -> (collection: String, key: String)? {
    let query = """
      SELECT l.node, l.sealed FROM zdc_node n JOIN zdc_zone z ON z.id = n.zone JOIN zdc_link l ON l.node = n.id
      WHERE n.uuid = ? AND z.localUser = ? AND z.appTreeID = ?
      """
    return try db.firstRow(query, [uuid, localUser, appTreeID]) { try open(try $0.requiredBytes(1), node: $0[0]) }
  }

  package func node(localUser: Int64, rowKey: [UInt8]) throws -> Int64? {
    let statement = try db.cachedStatement(sql: "SELECT node FROM zdc_link WHERE localUser = ? AND rowKey = ?")
    return try Int64.fetchOne(statement, arguments: [localUser, Data(rowKey)])
  }

  /// All local users' nodes that are linked to the object.
  package func nodes(rowKey: [UInt8]) throws -> [Int64] {
    let statement = try db.cachedStatement(sql: "SELECT node FROM zdc_link WHERE rowKey = ? ORDER BY node")
    return try Int64.fetchAll(statement, arguments: [Data(rowKey)])
  }

  /// The links of a node and of all below it.
  package func links(atOrBelow top: Int64) throws -> [RemovedLink] {
    let statement = try db.cachedStatement(
      sql: """
        WITH RECURSIVE below(id) AS (
          SELECT ? UNION ALL SELECT child.id FROM zdc_node child JOIN below ON child.parent = below.id
        ) SELECT l.node, l.sealed, n.uuid FROM zdc_link l JOIN below ON l.node = below.id JOIN zdc_node n ON n.id = l.node
        """)
    return try Row.fetchAll(statement, arguments: [top]).map { row in
      let link = try open(try row.requiredBytes(1), node: row[0])
      return RemovedLink(nodeUUID: row[2], collection: link.collection, key: link.key)
    }
  }

  package func insert(node: Int64, localUser: Int64, rowKey: [UInt8], collection: String, key: String) throws {
    var out = ByteWriter(capacity: 64)
    out.append32(Array(collection.utf8))
    out.append32(Array(key.utf8))
    let sealed = Data(try sealer.seal(out.bytes, row: rowID(node)))
    let statement = try db.cachedStatement(
      sql: "INSERT INTO zdc_link (node, rowKey, localUser, sealed) VALUES (?, ?, ?, ?)")
    try statement.execute(arguments: [node, Data(rowKey), localUser, sealed])
  }

  package func remove(node: Int64) throws {
    let statement = try db.cachedStatement(sql: "DELETE FROM zdc_link WHERE node = ?")
    try statement.execute(arguments: [node])
  }

  private func open(_ sealed: [UInt8], node: Int64) throws -> (collection: String, key: String) {
    try opened.value(of: node, stored: sealed) {
      var reader = ByteReader(try sealer.open(sealed, row: rowID(node)))
      let collection = try reader.readVariable32(limit: sealed.count)
      let key = try reader.readVariable32(limit: sealed.count)
      return (String(decoding: collection, as: UTF8.self), String(decoding: key, as: UTF8.self))
    }
  }

  private func rowID(_ node: Int64) -> [UInt8] { Array(String(node).utf8) }
}

extension ZDCReadTransaction {
  package var links: LinkStore { cached { LinkStore(db: database, context: context) } }
}
