internal import Foundation
internal import GRDB
package import ZDCProtocol

// Stale nodes (PROTOCOL 3.10): their keys, or those above, are older than the last removal of a member.

extension LogNodeStore {
  /// All stale nodes, parents before their children: a node whose parent has a newer key than the one that it hangs on,
  /// and all nodes below it. Walks through the whole zone.
  package func staleNodes(below root: NodeID) throws -> [NodeID] {
    var nodes: [NodeID] = []
    let query = """
      WITH RECURSIVE walk(node, keyGen, isStale) AS (
        SELECT node, keyGen, 0 FROM zdc_leaf WHERE zone = ?1 AND node = ?2
        UNION ALL
        SELECT c.node, c.keyGen, w.isStale OR c.parentKeyGen < w.keyGen
        FROM walk w CROSS JOIN zdc_leaf c INDEXED BY zdc_leaf_parent ON c.zone = ?1 AND c.parent = w.node)
      SELECT node FROM walk WHERE isStale
      """
    try db.forEachRow(query, [zone, root.data]) { nodes.append(try NodeID($0, 0)) }
    return nodes
  }

  /// Up to `limit` stale nodes in the order of their ids. Pages that follow each other read each node of the zone once.
  ///
  /// - Parameter last: The last node of the page before; nil for the first page.
  package func staleNodes(below root: NodeID, after last: NodeID?, limit: Int) throws -> [NodeID] {
    // Most zones have none, which the count finds sooner than a look at the nodes above each one.
    guard try last != nil || staleCount(below: root) > 0 else { return [] }
    var nodes: [NodeID] = []
    let query = """
      SELECT l.node FROM zdc_leaf l WHERE l.zone = ?1 AND l.node > ?2 AND EXISTS (
        WITH RECURSIVE above(parent, parentKeyGen, isStale) AS (
          SELECT l.parent, l.parentKeyGen, 0
          UNION ALL
          SELECT p.parent, p.parentKeyGen, a.parentKeyGen < p.keyGen
          FROM above a CROSS JOIN zdc_leaf p ON p.zone = ?1 AND p.node = a.parent)
        SELECT 1 FROM above WHERE isStale)
      ORDER BY l.node LIMIT ?3
      """
    try db.forEachRow(query, [zone, (last ?? .zero).data, limit]) { nodes.append(try NodeID($0, 0)) }
    return nodes
  }

  /// The number of all stale nodes. It walks through the whole zone.
  package func staleCount(below root: NodeID) throws -> Int {
    let query = """
      WITH RECURSIVE fresh(node, keyGen) AS (
        SELECT node, keyGen FROM zdc_leaf WHERE zone = ?1 AND node = ?2
        UNION ALL
        SELECT c.node, c.keyGen FROM fresh f CROSS JOIN zdc_leaf c INDEXED BY zdc_leaf_parent
        ON c.zone = ?1 AND c.parent = f.node AND c.parentKeyGen = f.keyGen)
      SELECT (SELECT COUNT(*) FROM zdc_leaf WHERE zone = ?1) - (SELECT COUNT(*) FROM fresh)
      """
    return try db.firstRow(query, [zone, root.data]) { $0[0] as Int } ?? 0
  }
}
