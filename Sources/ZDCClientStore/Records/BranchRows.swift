internal import Foundation
internal import GRDB
internal import ZDCProtocol

/// Moves what this device stores about a branch into the zone that the branch was split off into, inside the transaction
/// that applies the split.
///
/// The log nodes are there already: see ``LogNodeStore/splitOff(_:top:)``.
package struct BranchRows {
  private let transaction: ZDCReadWriteTransaction
  private let zone: Int64
  private let branch: Int64

  /// - Parameters:
  ///   - zone: The parent zone.
  ///   - branch: The new zone.
  package init(_ transaction: ZDCReadWriteTransaction, from zone: Int64, to branch: Int64) {
    self.transaction = transaction
    (self.zone, self.branch) = (zone, branch)
  }

  /// A condition on the few rows of another table: each statement would make a list of all the branch's nodes.
  private static func isInBranch(_ column: String) -> String {
    "EXISTS (SELECT 1 FROM zdc_leaf l WHERE l.zone = ?1 AND l.node = \(column))"
  }

  /// The same for the row of a node.
  private static func isOfBranch(_ column: String) -> String {
    "EXISTS (SELECT 1 FROM zdc_node n WHERE n.id = \(column) AND n.zone = ?1)"
  }

  /// Moves the rows of all nodes that the branch has in the cloud, and what is noted about them by their IDs: deletes that
  /// are queued, records that cannot be read, calls of the app that failed, moves to and from other zones that have not
  /// ended.
  ///
  /// - Parameter top: The row of the branch's top, if it becomes the root of the new zone: the depths below it follow.
  package func moveCloudNodes(below top: NodeRow? = nil) throws {
    if let top { try moveRows(below: top) }
    for statement in [
      "UPDATE zdc_node SET zone = ?1 WHERE zone = ?2 AND nodeID IN (SELECT node FROM zdc_leaf WHERE zone = ?1)",
      "UPDATE zdc_operation SET zone = ?1 WHERE zone = ?2 AND node IS NULL AND \(Self.isInBranch("nodeID"))",
      "UPDATE zdc_unreadable SET zone = ?1 WHERE zone = ?2 AND \(Self.isInBranch("zdc_unreadable.node"))",
      "UPDATE zdc_delegate_failure SET zone = ?1 WHERE zone = ?2 AND \(Self.isInBranch("nodeID"))",
      "UPDATE zdc_moved SET zone = ?1 WHERE zone = ?2 AND \(Self.isInBranch("nodeID"))",
      "UPDATE zdc_moved SET copyZone = ?1 WHERE copyZone = ?2 AND \(Self.isInBranch("copyID"))",
      "UPDATE zdc_claim SET zone = ?1 WHERE zone = ?2 AND \(Self.isInBranch("nodeID"))",
    ] { try transaction.database.execute(sql: statement, arguments: [branch, zone]) }
    forgetCaches()
  }

  /// Gives all rows below the top their new depths, and those of the branch their zone in the same step: a row is long,
  /// and nearly all of them are of the branch.
  private func moveRows(below top: NodeRow) throws {
    try transaction.database.execute(
      sql: """
        WITH RECURSIVE below(id) AS (
          SELECT id FROM zdc_node WHERE parent = ?3
          UNION ALL SELECT child.id FROM zdc_node child JOIN below ON child.parent = below.id
        )
        UPDATE zdc_node SET depth = depth - ?4,
          zone = CASE WHEN zone = ?2 AND \(Self.isInBranch("zdc_node.nodeID")) THEN ?1 ELSE zone END
        WHERE id IN (SELECT id FROM below)
        """, arguments: [branch, zone, top.id, top.depth])
  }

  /// Returns the nodes directly below nodes of the branch that the app has restored, or that have such a node below them,
  /// and that the cloud does not have again yet.
  package func restoredNodes() throws -> [NodeRow] {
    try transaction.nodes.fetchAll(
      """
      WHERE zone = ?1 AND recordVersion = 0 AND parent IN (SELECT id FROM zdc_node WHERE zone = ?2) AND id IN (
        WITH RECURSIVE above(id) AS (
          SELECT node FROM zdc_operation
          WHERE zone = ?1 AND kind <> \(OperationRow.Kind.putData.rawValue) AND resend IS NOT NULL AND node IS NOT NULL
          UNION SELECT n.parent FROM above JOIN zdc_node n ON n.id = above.id WHERE n.parent IS NOT NULL
        ) SELECT id FROM above)
      ORDER BY id
      """, [zone, branch])
  }

  /// Moves nodes below `top` that the cloud does not have, and all queued operations of the branch's nodes.
  ///
  /// - Parameter except: Nodes that stay, with all below them.
  package func moveLocalNodes(below top: Int64, except: [Int64] = []) throws {
    let below = """
      WITH RECURSIVE below(id) AS (
        SELECT ?3 UNION ALL SELECT child.id FROM zdc_node child JOIN below ON child.parent = below.id
        WHERE child.id NOT IN (\(except.map(String.init).joined(separator: ", "))))
      """
    try transaction.database.execute(
      sql: "\(below) UPDATE zdc_node SET zone = ?1 WHERE zone = ?2 AND id IN (SELECT id FROM below)",
      arguments: [branch, zone, top])
    try transaction.database.execute(
      sql: "UPDATE zdc_operation SET zone = ?1 WHERE zone = ?2 AND \(Self.isOfBranch("zdc_operation.node"))",
      arguments: [branch, zone])
    // Copies of other zones' nodes that the cloud does not have yet.
    try transaction.database.execute(
      sql: """
        UPDATE zdc_moved SET copyZone = ?1 WHERE copyZone = ?2 AND isHeld = 0 AND \(Self.isOfBranch("zdc_moved.node"))
        """, arguments: [branch, zone])
    forgetCaches()
  }

  /// Returns the rows of the branch's nodes that this device has elsewhere, because a move is queued, the shallow ones
  /// first.
  package func nodesElsewhere(than top: Int64) throws -> [NodeRow] {
    try transaction.nodes.fetchAll(
      """
      WHERE zone = ? AND id NOT IN (
        WITH RECURSIVE below(id) AS (
          SELECT ? UNION ALL SELECT child.id FROM zdc_node child JOIN below ON child.parent = below.id
        ) SELECT id FROM below) ORDER BY depth, id
      """, [branch, top])
  }

  /// Returns the rows of the branch's nodes whose parents are still in the parent zone.
  package func nodesWithoutPlace() throws -> [NodeRow] {
    try transaction.nodes.fetchAll(
      "WHERE zone = ? AND parent IN (SELECT id FROM zdc_node WHERE zone = ?) ORDER BY depth, id", [branch, zone])
  }

  /// Requests the records of nodes without a row: this device deleted them, or has not read them yet.
  package func readLostNodes() throws {
    try transaction.database.execute(
      sql: """
        WITH RECURSIVE deleted(node) AS (
          SELECT nodeID FROM zdc_operation WHERE zone = ?1 AND node IS NULL
          UNION SELECT l.node FROM deleted d
          JOIN zdc_leaf l INDEXED BY zdc_leaf_parent ON l.zone = ?1 AND l.parent = d.node
        )
        UPDATE zdc_leaf SET pending = 1 WHERE zone = ?1 AND pending = 0
        AND node NOT IN (SELECT node FROM deleted)
        AND NOT EXISTS (SELECT 1 FROM zdc_node n WHERE n.zone = ?1 AND n.nodeID = zdc_leaf.node)
        """, arguments: [branch])
  }

  /// Makes the row of the branch's top the root of the new zone: it has no name and no place of its own. The depths below
  /// are those of ``moveCloudNodes(below:)``.
  package func makeRoot(_ top: NodeRow) throws {
    var root = top
    (root.parent, root.depth, root.name, root.nameTag) = (nil, 0, [], .zero)
    try transaction.nodes.update(root)
  }

  /// Gives the queued moves of the branch's top to the pointer that has its name and place now.
  package func moveMoves(of top: NodeRow, to pointer: NodeRow) throws {
    for operation in try transaction.operations.operations(node: top.id) where operation.kind == .move {
      var moved = operation
      (moved.zone, moved.node, moved.nodeID) = (zone, pointer.id, pointer.nodeID)
      try transaction.operations.update(moved)
    }
  }

  private func forgetCaches() {
    transaction.nodes.invalidate()
    transaction.operations.invalidate()
    transaction.unreadable.invalidate()
    transaction.delegateFailures.invalidate()
  }
}
