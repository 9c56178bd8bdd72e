internal import GRDB

// Questions that the cloud layer asks about the queue.

extension OperationStore {
  /// The queued creation of a node: what waits for the node waits for it.
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

  func putsOfChildren(of parent: Int64) throws -> [OperationRow] {
    try fetchAll(
      "WHERE kind IN (1, 3, 4) AND node IN (SELECT id FROM zdc_node WHERE parent = ?) ORDER BY id", [parent])
  }

  package func removeDependency(of operation: Int64, on dependency: Int64) throws {
    let statement = try db.cachedStatement(
      sql: "DELETE FROM zdc_dependency WHERE operation = ? AND dependsOn = ?")
    try statement.execute(arguments: [operation, dependency])
  }

  /// Nodes that are part of a request without a known outcome.
  func nodesInFlight(zone: Int64) throws -> Set<Int64> {
    let statement = try db.cachedStatement(
      sql: "SELECT DISTINCT node FROM zdc_in_flight_put WHERE zone = ? AND node IS NOT NULL")
    return try Set(Int64.fetchAll(statement, arguments: [zone]))
  }
}
