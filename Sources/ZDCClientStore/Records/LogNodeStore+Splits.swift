internal import Foundation
internal import GRDB
package import ZDCProtocol

// Branches that become zones of their own, and the end of a zone (PROTOCOL 3.7).

extension LogNodeStore {
  package func branch(_ node: NodeID, upTo limit: UInt64) throws -> [LogNode] {
    let rows = limit < UInt64(Int64.max - 1) ? Int64(limit) + 1 : -1
    // The walk takes the columns with it: another lookup of each node would take as long as the walk.
    let query = """
      WITH RECURSIVE below(node, parent, record, putSeq, keyGen, parentKeyGen) AS (
        SELECT node, parent, record, putSeq, keyGen, parentKeyGen FROM zdc_leaf WHERE zone = ?2 AND node = ?1
        UNION ALL
        SELECT l.node, l.parent, l.record, l.putSeq, l.keyGen, l.parentKeyGen FROM below
        JOIN zdc_leaf l INDEXED BY zdc_leaf_parent ON l.zone = ?2 AND l.parent = below.node
      ) SELECT node, parent, record, putSeq, keyGen, parentKeyGen FROM below LIMIT ?3
      """
    var found: [LogNode] = []
    try db.forEachRow(query, [node.data, zone, rows]) { found.append(try Self.decode($0)) }
    return found
  }

  package func stateList(of node: NodeID, upTo limit: UInt64) throws -> StateList {
    if let knownSplit, knownSplit.zone.root == node { return knownSplit.list }
    return StateList(branch: try branch(node, upTo: limit), top: node)
  }

  package mutating func splitOff(_ list: StateList, top: NodeID) throws {
    guard let leaf = try leaf(top), let author else { throw ZDCSecurityError(.objectMissing, node: top) }
    departed = (leaf, list.nodes.map(\.node))
    guard let branchZone else {
      return try db.cachedStatement(
        sql: "\(Self.below) DELETE FROM zdc_leaf WHERE zone = ?2 AND node IN (SELECT node FROM below)"
      ).execute(arguments: [top.data, zone])
    }
    // The owner vouches for the nodes: the new zone does not show who put them. Records that are not read yet stay
    // pending.
    try db.cachedStatement(
      sql: """
        \(Self.below) UPDATE zdc_leaf SET zone = ?3, putSeq = 0, writer = ?4, writerGen = 0
        WHERE zone = ?2 AND node IN (SELECT node FROM below)
        """
    ).execute(arguments: [top.data, zone, branchZone, author.user.data])
    try db.cachedStatement(sql: "UPDATE zdc_leaf SET parent = ?, parentKeyGen = 0 WHERE zone = ? AND node = ?")
      .execute(arguments: [NodeID.zero.data, branchZone, top.data])
  }

  /// Inserts the nodes with which the zone begins. If this device follows the parent zone, they are here already.
  package mutating func insert(_ list: StateList) throws {
    guard let author else { return }
    let isThere = try db.firstRow("SELECT 1 FROM zdc_leaf WHERE zone = ? LIMIT 1", [zone]) { _ in true } ?? false
    guard !isThere else { return }
    let statement = try db.cachedStatement(
      sql: """
        INSERT INTO zdc_leaf
        (zone, node, parent, record, prev, putSeq, keyGen, parentKeyGen, writer, writerGen, pending)
        VALUES (?, ?, ?, ?, ?, 0, ?, ?, ?, 0, 1)
        """)
    for node in list.nodes {
      try statement.execute(arguments: [
        zone, node.node.data, node.parent.data, node.record.data, RecordHash.zero.data, Int64(node.keyGen),
        Int64(node.parentKeyGen), author.user.data,
      ])
    }
  }

  /// Whether a live node's newest put replaced no other.
  package func isNew(_ node: NodeID) throws -> Bool {
    let prev = try db.firstRow("SELECT prev FROM zdc_leaf WHERE zone = ? AND node = ?", [zone, node.data]) { row in
      try RecordHash(row, 0)
    }
    return prev == .zero
  }

  package mutating func close() throws {
    let nodes = try Row.fetchAll(
      db, sql: "SELECT node, parent FROM zdc_leaf WHERE zone = ? ORDER BY parent <> ?",
      arguments: [zone, NodeID.zero.data])
    let all = try nodes.map { try NodeID($0, 0) }
    guard let top = all.first else { return }
    try db.cachedStatement(sql: "DELETE FROM zdc_leaf WHERE zone = ?").execute(arguments: [zone])
    removed.append(Removal(top: top, all: all))
  }
}
