internal import GRDB

// Questions that the cloud layer asks about the queue.

extension OperationStore {
  /// The queued creation of a node. Operations that depend on the node depend on it.
  package func create(ofNode node: Int64) throws -> Int64? {
    if let known = knownCreations[node] { return known }
    let statement = try db.cachedStatement(
      sql: "SELECT id FROM zdc_operation WHERE node = ? AND kind = \(OperationRow.Kind.create.rawValue) LIMIT 1")
    let found = try Int64.fetchOne(statement, arguments: [node])
    knownCreations[node] = .some(found)
    return found
  }

  /// Queued creations and moves of a node: until they are done the cloud has it elsewhere, or not at all.
  package func placements(ofNode node: Int64) throws -> [Int64] {
    let statement = try db.cachedStatement(
      sql: "SELECT id FROM zdc_operation WHERE node = ? AND kind IN (1, 2) ORDER BY id")
    return try Int64.fetchAll(statement, arguments: [node])
  }

  /// Whether something of the node waits because it was deleted in the cloud.
  func isParkedAsDeleted(node: Int64) throws -> Bool {
    if knownUnparked.contains(node) { return false }
    let statement = try db.cachedStatement(
      sql: """
        SELECT EXISTS (
          SELECT 1 FROM zdc_operation WHERE node = ? AND reason = \(OperationRow.Reason.deletedRemotely.rawValue))
        """)
    let isParked = try Bool.fetchOne(statement, arguments: [node]) ?? false
    if !isParked { knownUnparked.insert(node) }
    return isParked
  }

  /// Queued deletes and moves of nodes that were put below their parents under a key older than a generation.
  package func leaving(zone: Int64, putBefore keyGen: UInt32) throws -> [OperationRow] {
    try fetchAll(
      """
      WHERE id IN (
        SELECT o.id FROM zdc_operation o CROSS JOIN zdc_leaf l ON l.zone = o.zone AND l.node = o.nodeID
        WHERE o.zone = ? AND o.kind IN (2, 5) AND l.parentKeyGen < ?)
      ORDER BY id
      """, [zone, Int64(keyGen)])
  }

  func putsOfChildren(of parent: Int64) throws -> [OperationRow] {
    try fetchAll(
      "WHERE kind IN (1, 3, 4) AND node IN (SELECT id FROM zdc_node WHERE parent = ?) ORDER BY id", [parent])
  }

  /// Queued creations and moves of the nodes above: the cloud has to know of them before the node can be put there.
  package func placements(above row: NodeRow, in nodes: NodeStore) throws -> [Int64] {
    try nodes.ancestry(of: row).dropLast().flatMap { try placements(ofNode: $0.id) }
  }

  /// Makes the queued records of a node that was moved depend on the placements above its new place, and no longer on
  /// those above the old one.
  ///
  /// Otherwise two nodes that changed places would wait for each other; so would a deleted folder for a node that leaves it,
  /// and that node for a folder that takes the name.
  ///
  /// - Returns: false if a record would depend on itself; that dependency is left out.
  package func replaceDependencies(of row: NodeRow, before: [Int64], after: [Int64]) throws -> Bool {
    var isComplete = true
    for operation in try operations(node: row.id) where operation.kind.isRecord {
      for old in before where !after.contains(old) { try removeDependency(of: operation.id, on: old) }
      for new in after {
        guard try !closesCircle(operation.id, waitingFor: new) else {
          // An operation in flight waits for no other: the dependency would matter only if it had to be sent again.
          if operation.state != .inFlight { isComplete = false }
          continue
        }
        try addDependency(of: operation.id, on: new)
      }
    }
    return isComplete
  }

  package func closesCircle(_ operation: Int64, waitingFor dependency: Int64) throws -> Bool {
    try OperationGraph.closesCircle(operation, waitingFor: dependency) { try dependencies(of: $0) }
  }

  private func removeDependency(of operation: Int64, on dependency: Int64) throws {
    let statement = try db.cachedStatement(
      sql: "DELETE FROM zdc_dependency WHERE operation = ? AND dependsOn = ?")
    try statement.execute(arguments: [operation, dependency])
  }

  /// Nodes that are part of a request without a known outcome.
  package func nodesInFlight(zone: Int64) throws -> Set<Int64> {
    let statement = try db.cachedStatement(
      sql: "SELECT DISTINCT node FROM zdc_in_flight_put WHERE zone = ? AND node IS NOT NULL")
    return try Set(Int64.fetchAll(statement, arguments: [zone]))
  }

  /// Nodes whose restored content (``OperationRow/isRestoration``) is part of a request without a known outcome.
  package func restoredNodesInFlight(zone: Int64) throws -> [Int64] {
    let statement = try db.cachedStatement(
      sql: """
        SELECT o.node FROM zdc_in_flight_put p CROSS JOIN zdc_operation o ON o.id = p.operation
        WHERE p.zone = ? AND o.kind = \(OperationRow.Kind.modify.rawValue) AND o.resend IS NOT NULL
        """)
    return try Int64.fetchAll(statement, arguments: [zone])
  }
}
