internal import Foundation
package import GRDB
package import ZDCCrypto
package import ZDCProtocol
internal import ZDCSupport

/// The rows of zdc_node inside one transaction.
///
/// Lives as long as the transaction: it remembers parents and their derived keys, so that a thousand children read and
/// derive them once.
package final class NodeStore: TransactionCache {
  package let db: Database
  package let sealer: TableSealer
  /// The opened values of nodes that were read one by one, by the nodes' UUIDs. Kept while the database is open.
  let opened: RowCache<String, Secrets>
  private var parentKeys: [Int64: ParentKeys] = [:]
  /// The keys of local name tags, for parents that have got a new key.
  private var firstKeys: [Int64: ParentKeys] = [:]
  /// Keys of older generations, for parents with children that have not been rotated.
  private var olderKeys: [Int64: [UInt32: ParentKeys]] = [:]
  private var parents: [Int64: NodeRow] = [:]
  private var parentNumbers: [NodeID: Int64] = [:]
  /// The number of changes and removals of rows. Caches of rows are valid as long as it stays the same.
  private(set) var changeCount = 0
  /// The number of changes of where zones are shown, and of removals, which may change that too.
  private(set) var mountChangeCount = 0

  init(db: Database, context: DatabaseContext) {
    self.db = db
    sealer = context.sealer.table("zdc_node")
    opened = context.attachments.value { RowCache(limit: 4_000) }
  }

  // MARK: Reading

  package func node(id: Int64) throws -> NodeRow? {
    try fetch("WHERE id = ?", [id])
  }

  package func node(uuid: String) throws -> NodeRow? {
    try fetch("WHERE uuid = ?", [uuid])
  }

  package func node(zone: Int64, nodeID: NodeID) throws -> NodeRow? {
    try fetch("WHERE zone = ? AND nodeID = ?", [zone, nodeID.data])
  }

  /// Like ``node(id:)``, for a node that is likely to be asked for by each of its children.
  package func parent(id: Int64) throws -> NodeRow? {
    if let known = parents[id] { return known }
    return try node(id: id).map(remember)
  }

  package func parent(zone: Int64, nodeID: NodeID) throws -> NodeRow? {
    if let known = parentNumbers[nodeID].flatMap({ parents[$0] }), known.zone == zone { return known }
    return try node(zone: zone, nodeID: nodeID).map(remember)
  }

  private func remember(_ parent: NodeRow) -> NodeRow {
    parents[parent.id] = parent
    parentNumbers[parent.nodeID] = parent.id
    return parent
  }

  /// The root of a zone's trunk.
  package func root(zone: Int64) throws -> NodeRow? {
    // Named: without statistics SQLite takes the zone's index, and reads all its nodes.
    try fetch("INDEXED BY zdc_node_name WHERE parent IS NULL AND zone = ?", [zone])
  }

  /// The children with that tag: one, unless the cloud's order of changes has not been followed to its end.
  package func children(of parent: Int64, tag: NameTag) throws -> [NodeRow] {
    try fetchFew("WHERE parent = ? AND nameTag = ? ORDER BY id", [parent, tag.data])
  }

  /// The child with that name, which need not be folded; nil also for what cannot be a name.
  package func child(of parent: NodeRow, named name: String) throws -> NodeRow? {
    guard let folded = try? NameFolding.fold(name) else { return nil }
    return try children(of: parent.id, tag: try nameKeys(of: parent).nameTag(folded: folded.utf8)).first
  }

  package func children(of parent: Int64) throws -> [NodeRow] {
    // By way of their numbers: SQLite would sort the whole rows.
    try fetchAll("WHERE id IN (SELECT id FROM zdc_node WHERE parent = ?) ORDER BY id", [parent])
  }

  package func childCount(of parent: Int64) throws -> Int {
    let statement = try db.cachedStatement(sql: "SELECT COUNT(*) FROM zdc_node WHERE parent = ?")
    return try Int.fetchOne(statement, arguments: [parent]) ?? 0
  }

  /// The node and all below it, shallow first.
  package func subtree(of id: Int64) throws -> [NodeRow] {
    try fetchAll("WHERE id IN (\(Self.subtreeQuery)) ORDER BY depth, id", [id])
  }

  /// Row numbers of the node and all below it, shallow first.
  package func subtreeIDs(of id: Int64) throws -> [Int64] {
    let statement = try db.cachedStatement(
      sql: "SELECT id FROM zdc_node WHERE id IN (\(Self.subtreeQuery)) ORDER BY depth, id")
    return try Int64.fetchAll(statement, arguments: [id])
  }

  private static let subtreeQuery = """
    WITH RECURSIVE below(id) AS (
      SELECT ? UNION ALL SELECT child.id FROM zdc_node child JOIN below ON child.parent = below.id
    ) SELECT id FROM below
    """

  /// Calls `body` for each node of a zone, shallow first, without loading them all.
  package func forEach(zone: Int64, _ body: (NodeRow) throws -> Void) throws {
    let statement = try db.makeStatement(sql: "\(Self.select) WHERE zone = ? ORDER BY depth, id")
    let cursor = try RawRow.fetchCursor(statement, arguments: [zone])
    while let row = try cursor.next() { try body(try decode(row)) }
  }

  /// Returns whether the node is in the cloud, and the tag of its content there. Unlike ``node(id:)``, it opens nothing.
  package func cloudContent(id: Int64) throws -> (isUploaded: Bool, eTag: String?)? {
    let query = "SELECT recordVersion, dataVersion, blobID, cipherLength, contentRoot FROM zdc_node WHERE id = ?"
    return try db.firstRow(query, [id]) { row in
      let isUploaded = row.unsigned(0).map { $0 > 0 } ?? false
      guard let version = row.unsigned(1), let length = row.unsigned(3) else { return (isUploaded, nil) }
      let content = NodeRecord.Content(
        dataVersion: version, blobID: try BlobID(row, 2), cipherLength: length, contentRoot: try ContentRoot(row, 4))
      return (isUploaded, content.eTag)
    }
  }

  package func nodeID(of id: Int64) throws -> NodeID? {
    let statement = try db.cachedStatement(sql: "SELECT nodeID FROM zdc_node WHERE id = ?")
    return try Row.fetchOne(statement, arguments: [id])?.optional16(0, NodeRole.self)
  }

  /// From the trunk's root (without it) down to the node.
  package func ancestry(of node: NodeRow) throws -> [NodeRow] {
    var path: [NodeRow] = []
    var current = node
    while let parent = current.parent {
      path.append(current)
      guard let next = try self.parent(id: parent) else { throw ZDCError(.corruptDatabase) }
      current = next
    }
    return path.reversed()
  }

  /// The names from the trunk down to the node.
  package func names(of node: NodeRow) throws -> [String] {
    try ancestry(of: node).map { String(decoding: $0.name, as: UTF8.self) }
  }

  package func isNode(_ id: Int64, atOrBelow ancestor: Int64) throws -> Bool {
    let statement = try db.cachedStatement(
      sql: """
        WITH RECURSIVE above(id) AS (
          SELECT ? UNION ALL SELECT parent FROM zdc_node JOIN above USING (id) WHERE parent IS NOT NULL
        ) SELECT EXISTS (SELECT 1 FROM above WHERE id = ?)
        """)
    return try Bool.fetchOne(statement, arguments: [id, ancestor]) ?? false
  }

  /// The derived keys for a node's children.
  package func keys(of parent: NodeRow) throws -> ParentKeys {
    if let known = parentKeys[parent.id], known.keyGen == parent.keyGen { return known }
    let derived = parent.parentKeys
    parentKeys[parent.id] = derived
    return derived
  }

  /// The keys of one of a node's generations, for children that hang on it.
  ///
  /// - Throws: `ZDCSecurityError`: `staleKeyGeneration` for a generation that the node does not keep.
  package func keys(of parent: NodeRow, keyGen: UInt32, tree: TreeID) throws -> ParentKeys {
    if keyGen == parent.keyGen { return try keys(of: parent) }
    if let known = olderKeys[parent.id] {
      if let keys = known[keyGen] { return keys }
    } else {
      let history = try KeyHistory(
        opening: parent.historyWrap, tree: tree, node: parent.nodeID, key: parent.key, keyGen: parent.keyGen)
      olderKeys[parent.id] = Dictionary(
        uniqueKeysWithValues: history.entries.map { ($0.keyGen, ParentKeys($0.key, keyGen: $0.keyGen)) })
      if let keys = olderKeys[parent.id]?[keyGen] { return keys }
    }
    throw ZDCSecurityError(.staleKeyGeneration, node: parent.nodeID)
  }

  /// The keys for the tags by which the local tree finds a node's children. Records have tags under ``keys(of:)``.
  package func nameKeys(of parent: NodeRow) throws -> ParentKeys {
    guard let first = parent.firstKey else { return try keys(of: parent) }
    if let known = firstKeys[parent.id] { return known }
    let derived = ParentKeys(first, keyGen: 0)
    firstKeys[parent.id] = derived
    return derived
  }

  // MARK: Writing

  /// Inserts the row and gives it its number.
  package func insert(_ row: inout NodeRow) throws {
    if row.isFresh {
      try db.cachedStatement(sql: Self.insertFreshStatement).execute(arguments: try freshArguments(row))
    } else {
      try db.cachedStatement(sql: Self.insertStatement).execute(arguments: try arguments(row))
    }
    row.id = db.lastInsertedRowID
    try notePointer(row)
  }

  private func notePointer(_ row: NodeRow) throws {
    guard row.pointer != nil else { return }
    try db.cachedStatement(sql: "INSERT OR IGNORE INTO zdc_pointer (node) VALUES (?)").execute(arguments: [row.id])
  }

  /// The zone's nodes that point elsewhere, in the order of their rows.
  package func pointers(zone: Int64) throws -> [NodeRow] {
    try fetchAll("WHERE id IN (SELECT node FROM zdc_pointer) AND +zone = ? ORDER BY id", [zone])
  }

  /// Returns the pointers in zones of other users.
  package func pointersOfOthers(localUser: Int64) throws -> [NodeRow] {
    let zones = "SELECT id FROM zdc_zone WHERE localUser = ? AND owner IS NOT NULL"
    return try fetchAll(
      "WHERE id IN (SELECT node FROM zdc_pointer) AND +zone IN (\(zones)) ORDER BY id", [localUser])
  }

  package func update(_ row: NodeRow) throws {
    let statement = try db.cachedStatement(sql: Self.updateStatement)
    try statement.execute(arguments: try arguments(row) + [row.id])
    try notePointer(row)
    forget(row.id)
  }

  /// The same for a row whose place in the local tree stays as it is.
  package func updateCloud(_ row: NodeRow) throws {
    let statement = try db.cachedStatement(sql: Self.updateCloudStatement)
    try statement.execute(arguments: try cloudArguments(row))
    forget(row.id)
  }

  private func forget(_ id: Int64) {
    parentKeys[id] = nil
    firstKeys[id] = nil
    olderKeys[id] = nil
    parents[id] = nil
    changeCount += 1
  }

  /// Call after the place at which a zone is shown has changed: caches of paths are not valid any more.
  func mountsChanged() {
    changeCount += 1
    mountChangeCount += 1
  }

  package func invalidate() {
    (parentKeys, firstKeys, olderKeys, parents, parentNumbers) = ([:], [:], [:], [:], [:])
    mountsChanged()
  }

  /// Deletes the node and all below it; links, tags, marks and operations of theirs go by cascade.
  package func deleteSubtree(of id: Int64) throws {
    let statement = try db.cachedStatement(sql: "DELETE FROM zdc_node WHERE id = ?")
    mountsChanged()
    // Deep first: a parent may not go before its children.
    for row in try subtreeIDs(of: id).reversed() {
      try statement.execute(arguments: [row])
      parentKeys[row] = nil
      firstKeys[row] = nil
      olderKeys[row] = nil
      parents[row] = nil
    }
  }

  /// After a move: the depths below follow.
  package func shiftDepths(below id: Int64, by difference: Int) throws {
    guard difference != 0 else { return }
    parents.removeAll()
    let statement = try db.cachedStatement(
      sql: "UPDATE zdc_node SET depth = depth + ? WHERE id IN (\(Self.subtreeQuery)) AND id <> ?")
    try statement.execute(arguments: [difference, id, id])
  }
}
