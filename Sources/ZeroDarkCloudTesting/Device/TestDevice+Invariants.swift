internal import Foundation
internal import GRDB
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZeroDarkCloud

// Invariants between a device's tree and its verified log after each pull.

extension TestDevice {
  /// Compares the local tree with the table of log nodes.
  ///
  /// Each live log node whose record was applied must have its node below its verified parent, unless a queued
  /// operation or a deletion explains the difference. Each node of the cloud must have a log node, unless the app threw
  /// when its deletion was announced.
  /// - Returns: The faults, one line per node.
  package func treeFaults() async throws -> [String] {
    try await database.read { transaction in
      let faults = try Self.lostNodes(transaction.database) + Self.misplacedNodes(transaction.database)
      return try faults + Self.strayNodes(transaction.database) + Self.misnamedNodes(transaction)
    }
  }

  /// Finds log nodes without a node. A node that this device deletes is missing until the deletion is sent, and the copy of
  /// a node whose move is interrupted until it resumes. Apps do not see the nodes of profiles, and a
  /// zone that the user leaves has none.
  private static func lostNodes(_ db: Database) throws -> [String] {
    try String.fetchAll(
      db,
      sql: """
        WITH RECURSIVE deleted(zone, node) AS (
          SELECT zone, nodeID FROM zdc_operation WHERE node IS NULL
          UNION SELECT l.zone, l.node FROM deleted d
          JOIN zdc_leaf l INDEXED BY zdc_leaf_parent ON l.zone = d.zone AND l.parent = d.node
        )
        SELECT 'no node for the leaf ' || hex(l.node) || ' below ' || hex(l.parent) FROM zdc_leaf l
        WHERE l.pending = 0
        AND NOT EXISTS (SELECT 1 FROM zdc_node n WHERE n.zone = l.zone AND n.nodeID = l.node)
        AND (l.zone, l.node) NOT IN (SELECT zone, node FROM deleted)
        AND NOT EXISTS (SELECT 1 FROM zdc_moved m WHERE m.copyZone = l.zone AND m.copyID = l.node AND m.isHeld = 1)
        AND NOT EXISTS (SELECT 1 FROM zdc_profile p WHERE p.node = l.node)
        AND l.zone NOT IN (SELECT zone FROM zdc_left_zone)
        """)
  }

  /// Finds nodes that are not below their verified parent although no operation is queued for them.
  private static func misplacedNodes(_ db: Database) throws -> [String] {
    try String.fetchAll(
      db,
      sql: """
        SELECT 'the node ' || hex(n.nodeID) || ' is below ' || hex(p.nodeID) || ' and not below ' || hex(l.parent)
        FROM zdc_leaf l JOIN zdc_node n ON n.zone = l.zone AND n.nodeID = l.node JOIN zdc_node p ON p.id = n.parent
        WHERE l.pending = 0 AND p.nodeID <> l.parent
        AND NOT EXISTS (SELECT 1 FROM zdc_operation o WHERE o.node = n.id)
        """)
  }

  private static func strayNodes(_ db: Database) throws -> [String] {
    try String.fetchAll(
      db,
      sql: """
        SELECT 'no leaf for the node ' || hex(n.nodeID) FROM zdc_node n
        WHERE n.recordVersion > 0
        AND NOT EXISTS (SELECT 1 FROM zdc_leaf l WHERE l.zone = n.zone AND l.node = n.nodeID)
        AND NOT EXISTS (SELECT 1 FROM zdc_delegate_failure f WHERE f.zone = n.zone)
        """)
  }

  /// Finds nodes that a lookup by name misses.
  private static func misnamedNodes(_ transaction: ZDCReadTransaction) throws -> [String] {
    let query = "SELECT DISTINCT parent FROM zdc_node WHERE parent IS NOT NULL"
    return try Int64.fetchAll(transaction.database, sql: query).flatMap { id in
      guard let parent = try transaction.nodes.node(id: id) else { return ["no row for the parent \(id)"] }
      let keys = try transaction.nodes.nameKeys(of: parent)
      return try transaction.nodes.children(of: id).filter { $0.nameTag != keys.nameTag(folded: $0.name) }
        .map { "no tag of its name: \($0.nodeID.text)" }
    }
  }

  func checkTree() async throws {
    let faults = try await treeFaults()
    guard faults.isEmpty else {
      throw TestFailure("\(name)'s tree is not its log's:\n" + faults.joined(separator: "\n"))
    }
  }
}
