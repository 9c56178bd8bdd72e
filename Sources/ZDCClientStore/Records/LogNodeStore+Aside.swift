internal import Foundation
internal import GRDB
package import ZDCProtocol

// A zone's leaves while another log replaces them. A temporary table keeps the old ones for comparison.
extension LogNodeStore {
  /// A live node of the new log that is not what it was in the old one.
  package struct Changed {
    package var node: NodeID
    package var parent: NodeID
    package var record: RecordHash
    package var putSeq: UInt64
    /// The old log had no such live node.
    package var isNew: Bool
  }

  package func setAside() throws {
    try db.execute(
      sql: """
        DROP TABLE IF EXISTS temp.zdc_aside;
        CREATE TEMP TABLE zdc_aside (node BLOB PRIMARY KEY, record BLOB NOT NULL, pending INTEGER NOT NULL) WITHOUT ROWID
        """)
    try db.execute(
      sql: "INSERT INTO temp.zdc_aside SELECT node, record, pending FROM zdc_leaf WHERE zone = ? ORDER BY node",
      arguments: [zone])
    try db.execute(sql: "DELETE FROM zdc_leaf WHERE zone = ?", arguments: [zone])
    try db.execute(sql: "DELETE FROM zdc_former WHERE zone = ?", arguments: [zone])
  }

  package func forgetAside() throws {
    try db.execute(sql: "DROP TABLE temp.zdc_aside")
  }

  /// Leaves that both logs share keep their state.
  package func keepProgressOfUnchanged() throws {
    try db.execute(
      sql: """
        UPDATE zdc_leaf SET pending = old.pending FROM temp.zdc_aside old
        WHERE zdc_leaf.zone = ? AND old.node = zdc_leaf.node AND old.record = zdc_leaf.record
        """, arguments: [zone])
  }

  /// Calls `body`, which may change leaves, a thousand nodes at a time.
  package func forEachChanged(_ body: (Changed) throws -> Void) throws {
    var last = Data()
    while true {
      let batch = try changed(after: last)
      for leaf in batch { try body(leaf) }
      guard let newest = batch.last else { return }
      last = newest.node.data
    }
  }

  private func changed(after node: Data) throws -> [Changed] {
    var found: [Changed] = []
    try db.forEachRow(
      """
      SELECT l.node, l.parent, l.record, l.putSeq, old.node IS NULL
      FROM zdc_leaf l LEFT JOIN temp.zdc_aside old ON old.node = l.node
      WHERE l.zone = ? AND l.node > ? AND (old.record IS NULL OR old.record <> l.record) ORDER BY l.node LIMIT 1000
      """, [zone, node]
    ) { row in
      found.append(
        Changed(
          node: try NodeID(row, 0), parent: try NodeID(row, 1), record: try RecordHash(row, 2),
          putSeq: row.unsigned(3) ?? 0, isNew: (row[4] as Int64) != 0))
    }
    return found
  }
}
