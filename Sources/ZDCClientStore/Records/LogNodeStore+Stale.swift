internal import Foundation
internal import GRDB
package import ZDCProtocol

// Stale nodes (PROTOCOL 3.10): their keys, or those above, are older than the last removal of a member.

extension LogNodeStore {
  /// Nodes whose parent has a newer key than the one that they hang on. Nodes below them are stale too.
  package func staleNodes(limit: Int) throws -> [NodeID] {
    var nodes: [NodeID] = []
    let query = """
      SELECT c.node FROM zdc_leaf p CROSS JOIN zdc_leaf c INDEXED BY zdc_leaf_parent
      ON c.zone = p.zone AND c.parent = p.node
      WHERE p.zone = ? AND p.keyGen > 1 AND c.parentKeyGen < p.keyGen LIMIT ?
      """
    try db.forEachRow(query, [zone, limit]) { nodes.append(try NodeID($0, 0)) }
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
