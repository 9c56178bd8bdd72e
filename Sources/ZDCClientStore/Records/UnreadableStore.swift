internal import Foundation
package import GRDB
package import ZDCProtocol

/// Nodes whose newest version in the verified log this device does not have or cannot open (zdc_unreadable), one row for
/// each node.
///
/// A row counts as long as the log names the record that it is about, and that record has not been read.
package final class UnreadableStore: TransactionCache {
  /// The public fields of a record that the next version has to follow.
  package struct PublicFacts: Sendable, Hashable {
    package var recordVersion: UInt64
    package var content: NodeRecord.Content?

    package init(recordVersion: UInt64, content: NodeRecord.Content? = nil) {
      self.recordVersion = recordVersion
      self.content = content
    }
  }

  package struct Entry: Sendable {
    package var zone: Int64
    package var node: NodeID
    package var parent: NodeID
    package var code: String
    /// When this device found it out.
    package var sinceMs: UInt64
    /// The node's own record may be readable: one above it is not.
    package var isBelow: Bool
  }

  private let db: Database
  private let nowMs: UInt64
  /// Zones of which it is known whether they have any: a thousand records ask, and nearly no zone has.
  private var knownEmpty: [Int64: Bool] = [:]

  package init(db: Database, nowMs: UInt64) {
    self.db = db
    self.nowMs = nowMs
  }

  package func invalidate() { knownEmpty = [:] }

  // MARK: Reading

  package func isEmpty(zone: Int64) throws -> Bool {
    if let known = knownEmpty[zone] { return known }
    let isEmpty = try !db.hasRow("SELECT 1 FROM zdc_unreadable WHERE zone = ?", [zone])
    knownEmpty[zone] = isEmpty
    return isEmpty
  }

  /// The record counts only while the log has it, unread.
  private static let current = """
    zdc_unreadable u JOIN zdc_leaf l ON l.zone = u.zone AND l.node = u.node AND l.record = u.record AND l.pending <> 0
    """

  /// Why the node's newest version is not here; nil if it is.
  ///
  /// - Parameter isCurrent: false to ask of an older version as well.
  package func code(zone: Int64, node: NodeID, isCurrent: Bool = true) throws -> String? {
    if try isEmpty(zone: zone) { return nil }
    let source = isCurrent ? Self.current : "zdc_unreadable u"
    return try db.firstRow("SELECT u.code FROM \(source) WHERE u.zone = ? AND u.node = ?", [zone, node.data]) { $0[0] }
  }

  /// The public fields of the newest version; nil if it has been read, or was never fetched.
  package func publicFacts(zone: Int64, node: NodeID) throws -> PublicFacts? {
    if try isEmpty(zone: zone) { return nil }
    let query = """
      SELECT u.recordVersion, u.dataVersion, u.blobID, u.cipherLength, u.contentRoot FROM \(Self.current)
      WHERE u.zone = ? AND u.node = ? AND u.recordVersion IS NOT NULL
      """
    return try db.firstRow(query, [zone, node.data]) { row in
      var facts = PublicFacts(recordVersion: row.unsigned(0) ?? 0, content: nil)
      guard let version = row.unsigned(1) else { return facts }
      facts.content = NodeRecord.Content(
        dataVersion: version, blobID: try BlobID(row, 2), cipherLength: row.unsigned(3) ?? 0,
        contentRoot: try ContentRoot(row, 4))
      return facts
    }
  }

  /// Those that cannot be read, and those that wait for one of them above, in the order of their ids.
  package func entries(zone: Int64, limit: Int) throws -> [Entry] {
    if try isEmpty(zone: zone) { return [] }
    var entries: [Entry] = []
    let query = "\(Self.waiting) SELECT node, parent, code, firstMs, MIN(isBelow) FROM waiting GROUP BY node LIMIT ?"
    try db.forEachRow(query, [zone, limit]) { row in
      entries.append(
        Entry(
          zone: zone, node: try NodeID(row, 0), parent: try NodeID(row, 1), code: row[2],
          sinceMs: row.unsigned(3) ?? 0, isBelow: (row[4] as Int64) != 0))
    }
    return entries
  }

  package func count(zone: Int64) throws -> Int {
    if try isEmpty(zone: zone) { return 0 }
    let statement = try db.cachedStatement(sql: "\(Self.waiting) SELECT COUNT(DISTINCT node) FROM waiting")
    return try Int.fetchOne(statement, arguments: [zone]) ?? 0
  }

  private static let waiting = """
    WITH RECURSIVE waiting(zone, node, parent, code, firstMs, isBelow) AS (
      SELECT u.zone, u.node, l.parent, u.code, u.firstMs, 0 FROM \(current) WHERE u.zone = ?
      UNION
      SELECT l.zone, l.node, l.parent, waiting.code, waiting.firstMs, 1 FROM waiting
      JOIN zdc_leaf l INDEXED BY zdc_leaf_parent ON l.zone = waiting.zone AND l.parent = waiting.node
      WHERE l.pending = 1
    )
    """

  // MARK: Writing

  /// - Parameter facts: of the record, if it is here.
  package func record(_ code: ZDCSecurityError.Code, _ leaf: LogNode, zone: Int64, facts: PublicFacts? = nil) throws {
    knownEmpty[zone] = false
    let statement = try db.cachedStatement(
      sql: """
        INSERT INTO zdc_unreadable
        (zone, node, record, code, firstMs, recordVersion, dataVersion, blobID, cipherLength, contentRoot)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
        ON CONFLICT (zone, node) DO UPDATE SET code = ?4, firstMs = CASE record WHEN ?3 THEN firstMs ELSE ?5 END,
        record = ?3, recordVersion = ?6, dataVersion = ?7, blobID = ?8, cipherLength = ?9, contentRoot = ?10
        """)
    let content = facts?.content
    try statement.execute(arguments: [
      zone, leaf.node.data, leaf.record.data, code.rawValue, nowMs.stored, facts?.recordVersion.stored,
      content?.dataVersion.stored, content?.blobID.data, content?.cipherLength.stored, content?.contentRoot.data,
    ])
  }

  package func forget(zone: Int64, node: NodeID) throws {
    if try isEmpty(zone: zone) { return }
    try db.cachedStatement(sql: "DELETE FROM zdc_unreadable WHERE zone = ? AND node = ?")
      .execute(arguments: [zone, node.data])
  }

  /// Removes the rows of records that the log no longer names.
  package func forgetPast(zone: Int64) throws {
    if try isEmpty(zone: zone) { return }
    let statement = try db.cachedStatement(
      sql: """
        DELETE FROM zdc_unreadable AS u WHERE u.zone = ? AND NOT EXISTS (
          SELECT 1 FROM zdc_leaf l WHERE l.zone = u.zone AND l.node = u.node AND l.record = u.record AND l.pending <> 0)
        """)
    try statement.execute(arguments: [zone])
    knownEmpty[zone] = nil
  }
}

extension ZDCReadTransaction {
  package var unreadable: UnreadableStore { cached { UnreadableStore(db: database, nowMs: context.clock()) } }
}
