internal import Foundation
package import GRDB
package import ZDCCrypto
package import ZDCProtocol
internal import ZDCSupport

/// The queue inside one transaction.
package final class OperationStore: TransactionCache {
  package let db: Database
  package let sealer: TableSealer
  /// Operations that this transaction added, in order.
  package private(set) var added: [OperationRow] = []
  /// Queued creations of parents: a thousand children ask for the same one. Good until an operation goes.
  var knownCreations: [Int64: Int64?] = [:]
  /// Nodes none of whose operations waits for a deletion in the cloud to be answered. Good until an operation changes.
  var knownUnparked: Set<Int64> = []

  package init(db: Database, sealer: ValueSealer) {
    self.db = db
    self.sealer = sealer.table("zdc_operation")
  }

  // MARK: Reading

  package func operation(id: Int64) throws -> OperationRow? {
    try fetchAll("WHERE id = ?", [id]).first
  }

  package func operation(uuid: String) throws -> OperationRow? {
    try fetchAll("WHERE uuid = ?", [uuid]).first
  }

  package func isQueued(uuid: String) throws -> Bool {
    let statement = try db.cachedStatement(sql: "SELECT 1 FROM zdc_operation WHERE uuid = ?")
    return try Int.fetchOne(statement, arguments: [uuid]) != nil
  }

  /// A zone's queue in order, a page at a time.
  package func operations(zone: Int64, after id: Int64 = 0, limit: Int = 10_000) throws -> [OperationRow] {
    try fetchAll("WHERE zone = ? AND id > ? ORDER BY id LIMIT ?", [zone, id, limit])
  }

  package func operations(node: Int64) throws -> [OperationRow] {
    try fetchAll("WHERE node = ? ORDER BY id", [node])
  }

  /// Returns the highest versions of a node that the server had lost and that its operations send again; 0 for none.
  package func lostVersions(node: Int64) throws -> (record: UInt64, data: UInt64) {
    var (record, data): (UInt64, UInt64) = (0, 0)
    try db.forEachRow("SELECT kind, resend FROM zdc_operation WHERE node = ? AND resend IS NOT NULL", [node]) { row in
      let lost = row.unsigned(1) ?? 0
      if row[0] == OperationRow.Kind.putData.rawValue { data = max(data, lost) } else { record = max(record, lost) }
    }
    return (record, data)
  }

  package func operations(zone: Int64, nodeID: NodeID) throws -> [OperationRow] {
    try fetchAll(
      """
      WHERE id IN (
        SELECT o.id FROM zdc_node n CROSS JOIN zdc_operation o ON o.node = n.id WHERE n.zone = ?1 AND n.nodeID = ?2
        UNION ALL
        SELECT id FROM zdc_operation INDEXED BY zdc_operation_deleted
        WHERE node IS NULL AND zone = ?1 AND nodeID = ?2)
      ORDER BY id
      """, [zone, nodeID.data])
  }

  /// Returns the first change of a node's record that was queued after an operation and is not sent yet.
  package func pendingModify(node: Int64, after id: Int64) throws -> OperationRow? {
    try fetchAll(
      "WHERE node = ? AND id > ? AND kind = ? AND state = ? ORDER BY id LIMIT 1",
      [node, id, OperationRow.Kind.modify.rawValue, OperationRow.State.pending.rawValue]
    ).first
  }

  package func deletes(zone: Int64) throws -> [OperationRow] {
    try fetchAll("WHERE zone = ? AND kind = \(OperationRow.Kind.delete.rawValue) ORDER BY id", [zone])
  }

  /// Nodes with a queued move.
  package func movedNodes(zone: Int64) throws -> [NodeID] {
    let statement = try db.cachedStatement(
      sql: "SELECT nodeID FROM zdc_operation WHERE zone = ? AND kind = \(OperationRow.Kind.move.rawValue)")
    return try Row.fetchAll(statement, arguments: [zone]).map { try NodeID($0, 0) }
  }

  package func count(zone: Int64) throws -> Int {
    let statement = try db.cachedStatement(sql: "SELECT COUNT(*) FROM zdc_operation WHERE zone = ?")
    return try Int.fetchOne(statement, arguments: [zone]) ?? 0
  }

  package func count(localUser: Int64) throws -> Int {
    let statement = try db.cachedStatement(
      sql: "SELECT COUNT(*) FROM zdc_operation WHERE zone IN (SELECT id FROM zdc_zone WHERE localUser = ?)")
    return try Int.fetchOne(statement, arguments: [localUser]) ?? 0
  }

  package func isEmpty(localUser: Int64) throws -> Bool {
    let query = """
      SELECT 1 FROM zdc_zone z WHERE z.localUser = ? AND EXISTS (SELECT 1 FROM zdc_operation WHERE zone = z.id)
      """
    return try !db.hasRow(query, [localUser])
  }

  /// The operations that this one waits for and that are still in the queue.
  package func dependencies(of id: Int64) throws -> [Int64] {
    let statement = try db.cachedStatement(
      sql: """
        SELECT d.dependsOn FROM zdc_dependency d
        WHERE d.operation = ? AND EXISTS (SELECT 1 FROM zdc_operation t WHERE t.id = d.dependsOn)
        ORDER BY d.dependsOn
        """)
    return try Int64.fetchAll(statement, arguments: [id])
  }

  /// Every open dependency of a zone's queue, up to an operation.
  package func dependencies(zone: Int64, upTo last: Int64 = .max) throws -> [Int64: [Int64]] {
    // NB: with IN instead of EXISTS, SQLite walks through all operations for each one.
    let statement = try db.cachedStatement(
      sql: """
        SELECT d.operation, d.dependsOn FROM zdc_operation o CROSS JOIN zdc_dependency d ON d.operation = o.id
        WHERE o.zone = ? AND o.id <= ? AND EXISTS (SELECT 1 FROM zdc_operation t WHERE t.id = d.dependsOn)
        ORDER BY o.id, d.dependsOn
        """)
    var result: [Int64: [Int64]] = [:]
    let cursor = try RawRow.fetchCursor(statement, arguments: [zone, last])
    while let row = try cursor.next() { result[row[0], default: []].append(row[1]) }
    return result
  }

  /// The operations of other zones that those of a zone wait for, however many steps away, with their open dependencies.
  package func foreignDependencies(zone: Int64) throws -> (uuids: [Int64: String], dependencies: [Int64: [Int64]]) {
    let isQueued = "EXISTS (SELECT 1 FROM zdc_operation t WHERE t.id = d.dependsOn)"
    let query = """
      WITH RECURSIVE foreigners(id) AS (
        SELECT d.dependsOn FROM zdc_operation o CROSS JOIN zdc_dependency d ON d.operation = o.id
        CROSS JOIN zdc_operation t ON t.id = d.dependsOn WHERE o.zone = ?1 AND t.zone <> ?1
        UNION
        SELECT d.dependsOn FROM foreigners f CROSS JOIN zdc_dependency d ON d.operation = f.id WHERE \(isQueued)
      ) SELECT o.id, o.uuid, d.dependsOn FROM foreigners f CROSS JOIN zdc_operation o ON o.id = f.id
      LEFT JOIN zdc_dependency d ON d.operation = o.id AND \(isQueued) ORDER BY o.id, d.dependsOn
      """
    var (uuids, dependencies): ([Int64: String], [Int64: [Int64]]) = ([:], [:])
    try db.forEachRow(query, [zone]) { row in
      let id: Int64 = row[0]
      uuids[id] = row[1] as String
      if let dependency = row[2] as Int64? { dependencies[id, default: []].append(dependency) }
    }
    return (uuids, dependencies)
  }

  // MARK: Writing

  /// Appends to the queue and gives the operation its number.
  package func insert(_ operation: inout OperationRow, dependsOn: [Int64] = []) throws {
    if operation.isFresh {
      try db.cachedStatement(sql: Self.insertFreshStatement).execute(arguments: freshArguments(operation))
    } else {
      try db.cachedStatement(sql: Self.insertStatement).execute(arguments: try arguments(operation))
    }
    operation.id = db.lastInsertedRowID
    for dependency in dependsOn { try insertDependency(of: operation.id, on: dependency) }
    if operation.kind == .deliver, !dependsOn.isEmpty { try block(delivery: operation.id) }
    added.append(operation)
    if operation.kind == .create, let node = operation.node { knownCreations[node] = operation.id }
    if operation.reason == .deletedRemotely { knownUnparked = [] }
  }

  package func update(_ operation: OperationRow) throws {
    if operation.reason == .deletedRemotely { knownUnparked = [] }
    let statement = try db.cachedStatement(sql: Self.updateStatement)
    try statement.execute(arguments: try arguments(operation) + [operation.id])
  }

  package func addDependency(of operation: Int64, on dependency: Int64) throws {
    try insertDependency(of: operation, on: dependency)
    try block(delivery: operation)
  }

  private func insertDependency(of operation: Int64, on dependency: Int64) throws {
    guard operation != dependency else { return }
    let statement = try db.cachedStatement(sql: "INSERT OR IGNORE INTO zdc_dependency VALUES (?, ?)")
    try statement.execute(arguments: [operation, dependency])
  }

  /// Blocks a delivery that depends on a queued operation. A trigger would run for each node that the app creates.
  private func block(delivery: Int64) throws {
    let statement = try db.cachedStatement(
      sql: """
        UPDATE zdc_operation SET isBlocked = 1
        WHERE id = ? AND kind = 7 AND \(FrameworkSchema.hasOpenDependency)
        """)
    try statement.execute(arguments: [delivery])
  }

  package func delete(id: Int64) throws {
    knownCreations = [:]
    let statement = try db.cachedStatement(sql: "DELETE FROM zdc_operation WHERE id = ?")
    try statement.execute(arguments: [id])
    added.removeAll { $0.id == id }
  }

  /// Drops queued moves of a node, because a place in the cloud wins. A burn date that was set with one is still sent.
  ///
  /// - Parameter row: The node, with what the cloud has of it.
  package func drop(_ moves: [OperationRow], of row: NodeRow) throws {
    for var operation in moves {
      guard row.isBurnDateChanged else {
        try delete(id: operation.id)
        continue
      }
      operation.kind = .modify
      try update(operation)
    }
  }

  package func setState(
    _ state: OperationRow.State, reason: OperationRow.Reason, detail: String? = nil, id: Int64
  ) throws {
    if reason == .deletedRemotely { knownUnparked = [] }
    let statement = try db.cachedStatement(
      sql: "UPDATE zdc_operation SET state = ?, reason = ?, reasonDetail = ? WHERE id = ?")
    try statement.execute(arguments: [state.rawValue, reason.rawValue, detail, id])
  }

  package func invalidate() {
    knownCreations = [:]
    knownUnparked = []
  }

  /// The operations of the request in flight are part of it.
  package func setInFlight(zone: Int64) throws {
    let statement = try db.cachedStatement(
      sql: """
        UPDATE zdc_operation SET state = ?, reason = ?, reasonDetail = NULL
        WHERE id IN (SELECT operation FROM zdc_in_flight_put WHERE zone = ?)
        """)
    try statement.execute(
      arguments: [OperationRow.State.inFlight.rawValue, OperationRow.Reason.inFlight.rawValue, zone])
  }

  /// The request in flight was accepted: its operations are done.
  package func deleteInFlight(zone: Int64) throws {
    knownCreations = [:]
    let statement = try db.cachedStatement(
      sql: "DELETE FROM zdc_operation WHERE id IN (SELECT operation FROM zdc_in_flight_put WHERE zone = ?)")
    try statement.execute(arguments: [zone])
  }

  /// Tries the zone's operations again that wait for a readable version, after such a version came for one node.
  package func retryUnreadable(zone: Int64) throws {
    let statement = try db.cachedStatement(
      sql: """
        UPDATE zdc_operation SET reason = 0, reasonDetail = NULL WHERE zone = ? AND reason IN (?, ?)
        """)
    try statement.execute(
      arguments: [zone, OperationRow.Reason.unreadable.rawValue, OperationRow.Reason.exhausted.rawValue])
  }

  /// No upload is under way after a launch. Operations that waited for the app, or for its decision, ask again.
  package func resetAfterLaunch(localUser: Int64) throws {
    let reasons: [OperationRow.Reason] = [
      .noDataFromApp, .promisePending, .conflictHeld, .uploading, .unreadable, .exhausted,
    ]
    try db.execute(
      sql: """
        UPDATE zdc_operation SET state = 0, reason = 0, reasonDetail = NULL, notBeforeMs = 0
        WHERE state <> \(OperationRow.State.inFlight.rawValue)
        AND (state = \(OperationRow.State.uploading.rawValue)
          OR reason IN (\(reasons.map { String($0.rawValue) }.joined(separator: ", "))))
        AND zone IN (SELECT id FROM zdc_zone WHERE localUser = ?)
        """, arguments: [localUser])
    // A launch tries everything once: the clock that a pause was measured by may have been wrong.
    try db.execute(
      sql: """
        UPDATE zdc_operation SET notBeforeMs = 0
        WHERE notBeforeMs > 0 AND zone IN (SELECT id FROM zdc_zone WHERE localUser = ?)
        """, arguments: [localUser])
  }

  // MARK: Pauses

  /// Pauses after failures of the network or the server. Those after failures of the app stay: a sync would call it each
  /// time.
  private static let endablePauses = """
    notBeforeMs > 0 AND reason IN (\(OperationRow.Reason.offline.rawValue),
      \(OperationRow.Reason.overQuota.rawValue), \(OperationRow.Reason.serverSaid.rawValue))
    AND zone IN (SELECT id FROM zdc_zone WHERE localUser = ?)
    """

  package func hasPauses(localUser: Int64) throws -> Bool {
    let statement = try db.cachedStatement(
      sql: "SELECT EXISTS (SELECT 1 FROM zdc_operation WHERE \(Self.endablePauses))")
    return try Bool.fetchOne(statement, arguments: [localUser]) ?? false
  }

  package func endPauses(localUser: Int64) throws {
    try db.execute(
      sql: "UPDATE zdc_operation SET notBeforeMs = 0 WHERE \(Self.endablePauses)", arguments: [localUser])
  }

  /// How many operations of a tree are queued, by what they wait for.
  package func countByReason(localUser: Int64, tree: String) throws -> [ZDCWaitReason: Int] {
    var counts: [ZDCWaitReason: Int] = [:]
    let query = """
      SELECT o.state, o.reason, z.frozen IS NOT NULL, COUNT(*) FROM zdc_zone z JOIN zdc_operation o ON o.zone = z.id
      WHERE z.localUser = ? AND z.appTreeID = ? GROUP BY 1, 2, 3
      """
    try db.forEachRow(query, [localUser, tree]) { row in
      guard let stored = OperationRow.Reason(rawValue: row[1]) else { throw ZDCError(.corruptDatabase) }
      let isInFlight = row[0] as Int64 == OperationRow.State.inFlight.rawValue
      let isFrozen = row[2] as Int64 != 0
      let reason: ZDCWaitReason = isFrozen ? .zoneFrozen : isInFlight ? .inFlight : ZDCWaitReason(stored)
      counts[reason, default: 0] += row[3] as Int
    }
    return counts
  }

  // MARK: Columns

  private static let columns = [
    "uuid", "zone", "kind", "node", "nodeUUID", "nodeID", "state", "reason", "reasonDetail", "attempts",
    "notBeforeMs", "priority", "baseETag", "sealed", "createdMs", "resend", "member", "permissions",
  ]
  private static let select = "SELECT id, \(columns.joined(separator: ", ")) FROM zdc_operation"
  private static let insertStatement = """
    INSERT INTO zdc_operation (\(columns.joined(separator: ", ")))
    VALUES (\(repeatElement("?", count: columns.count).joined(separator: ", ")))
    """
  /// For operations without an attempt, which most are.
  private static let insertFreshStatement = """
    INSERT INTO zdc_operation
    (uuid, zone, kind, node, nodeUUID, nodeID, createdMs, state, reason, attempts, notBeforeMs, priority)
    VALUES (?, ?, ?, ?, ?, ?, ?, 0, 0, 0, 0, 0)
    """

  private func freshArguments(_ operation: OperationRow) -> StatementArguments {
    [
      operation.uuid, operation.zone, operation.kind.rawValue, operation.node, operation.nodeUUID,
      operation.nodeID.data, operation.createdMs.stored,
    ]
  }

  private static let updateStatement = """
    UPDATE zdc_operation SET \(columns.map { "\($0) = ?" }.joined(separator: ", ")) WHERE id = ?
    """

  package func fetchAll(_ condition: String, _ arguments: StatementArguments) throws -> [OperationRow] {
    var rows: [OperationRow] = []
    try db.forEachRow("\(Self.select) \(condition)", arguments) { rows.append(try decode($0)) }
    return rows
  }

  private func arguments(_ operation: OperationRow) throws -> StatementArguments {
    let sealed = try operation.changeset.map {
      Data(try sealer.seal($0, row: Array(operation.uuid.utf8)))
    }
    return [
      operation.uuid, operation.zone, operation.kind.rawValue, operation.node, operation.nodeUUID,
      operation.nodeID.data, operation.state.rawValue, operation.reason.rawValue, operation.reasonDetail,
      operation.attempts, operation.notBeforeMs.stored, operation.priority, operation.baseETag, sealed,
      operation.createdMs.stored, operation.resend?.stored, (operation.listChange?.member ?? operation.recipient)?.data,
      operation.listChange?.number,
    ]
  }

  private func decode(_ row: RawRow) throws -> OperationRow {
    guard
      let kind = OperationRow.Kind(rawValue: row[3]), let state = OperationRow.State(rawValue: row[7]),
      let reason = OperationRow.Reason(rawValue: row[8])
    else { throw ZDCError(.corruptDatabase) }
    let uuid: String = row[1]
    var operation = OperationRow(
      id: row[0], uuid: uuid, zone: row[2], kind: kind, node: row[4], nodeUUID: row[5], nodeID: try NodeID(row, 6),
      createdMs: row.unsigned(15) ?? 0)
    operation.state = state
    operation.reason = reason
    operation.reasonDetail = row[9]
    operation.attempts = row[10]
    operation.notBeforeMs = row.unsigned(11) ?? 0
    operation.priority = row[12]
    operation.baseETag = row[13]
    operation.resend = row.unsigned(16)
    if kind == .changeList {
      operation.listChange = try ListChange(
        member: try row.optional32(17, UserRole.self), number: row[18] ?? 0)
    }
    if kind == .deliver { operation.recipient = try row.optional32(17, UserRole.self) }
    operation.changeset = try row.bytes(14).map {
      try sealer.open($0, row: Array(uuid.utf8))
    }
    return operation
  }
}
