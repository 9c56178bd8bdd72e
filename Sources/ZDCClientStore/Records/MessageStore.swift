internal import Foundation
package import GRDB
package import ZDCProtocol
internal import ZDCSupport

/// A message on its way to one recipient: sealed, and not answered yet.
package struct StoredEnvelope: Sendable, Hashable {
  package var operation: Int64
  package var recipient: UserID
  package var seq: UInt64
  package var bytes: [UInt8]

  package init(operation: Int64, recipient: UserID, seq: UInt64, bytes: [UInt8]) {
    self.operation = operation
    self.recipient = recipient
    self.seq = seq
    self.bytes = bytes
  }
}

/// The users with whom a local user exchanges messages, and the messages that are being sent, inside one transaction.
package struct MessageStore {
  package let db: Database
  private let operations: OperationStore

  package init(_ transaction: ZDCReadTransaction) {
    (db, operations) = (transaction.database, transaction.operations)
  }

  // MARK: Deliveries

  /// Returns deliveries of an outbox that may go now, in queue order.
  ///
  /// - Parameter limit: The maximum number. Deliveries that were never paused precede others.
  package func due(zone: Int64, nowMs: UInt64, limit: Int) throws -> [OperationRow] {
    func due(_ pause: String, _ bound: UInt64, _ limit: Int) throws -> [OperationRow] {
      try operations.fetchAll(
        "WHERE zone = ? AND \(FrameworkSchema.dueDelivery) AND \(pause) ORDER BY notBeforeMs, id LIMIT ?",
        [zone, bound.stored, limit])
    }
    let ready = try due("notBeforeMs <= ?", nowMs, limit)
    // A pause longer than the maximum was set before the clock was moved back.
    let excessive = try due("notBeforeMs > ?", nowMs + Backoff.longestPauseMs, limit - ready.count)
    return (ready + excessive).sorted { $0.id < $1.id }
  }

  /// Whether the outcome of a delivery is unknown.
  package func hasUnanswered(zone: Int64) throws -> Bool { try !unanswered(zone: zone, limit: 1).isEmpty }

  private func unanswered(zone: Int64, limit: Int = .max) throws -> [Int64] {
    let statement = try db.cachedStatement(
      sql: "SELECT id FROM zdc_operation WHERE zone = ? AND kind = 7 AND state = 2 ORDER BY id LIMIT ?")
    return try Int64.fetchAll(statement, arguments: [zone, limit])
  }

  /// The envelopes of an outbox whose answer is unknown, and those of these operations, in queue order. Those that do
  /// not fit into `count` and `bytes` are not decoded.
  package func envelopes(zone: Int64, orOf due: Set<Int64>, count: Int, bytes: Int) throws -> [StoredEnvelope] {
    var found: [StoredEnvelope] = []
    var room = bytes
    for operation in try due.union(unanswered(zone: zone)).sorted() where found.count < count && room >= 0 {
      let query = "SELECT length(bytes), recipient, seq, bytes FROM zdc_envelope WHERE operation = ?"
      let envelope = try db.firstRow(query, [operation]) { row -> StoredEnvelope? in
        room -= row[0]
        guard room >= 0 else { return nil }
        return StoredEnvelope(
          operation: operation, recipient: try UserID(row, 1), seq: row.unsigned(2) ?? 0,
          bytes: try row.requiredBytes(3))
      }
      if let envelope = envelope ?? nil { found.append(envelope) }
    }
    return found
  }

  package func insert(_ envelope: StoredEnvelope) throws {
    try db.execute(
      sql: "INSERT INTO zdc_envelope (operation, recipient, seq, bytes) VALUES (?, ?, ?, ?)",
      arguments: [
        envelope.operation, envelope.recipient.data, envelope.seq.stored, Data(envelope.bytes),
      ])
  }

  /// Returns the number of a sealed message.
  package func seq(of operation: Int64) throws -> UInt64? {
    try db.firstRow("SELECT seq FROM zdc_envelope WHERE operation = ?", [operation]) { $0.unsigned(0) ?? 0 }
  }

  package func removeEnvelope(of operation: Int64) throws {
    try db.execute(sql: "DELETE FROM zdc_envelope WHERE operation = ?", arguments: [operation])
  }

  // MARK: Peers

  /// Returns the highest number of the messages with which this device has served a user; 0 if there is none.
  package func sentSeq(to user: UserID, localUser: Int64, tree: String) throws -> UInt64 {
    let row = try Row.fetchOne(
      db, sql: "SELECT sentSeq FROM zdc_message_peer WHERE localUser = ? AND appTreeID = ? AND userID = ?",
      arguments: [localUser, tree, user.data])
    return row?.unsigned(0) ?? 0
  }

  /// Notes that this device has served a user with the message of this number.
  package func setSent(_ seq: UInt64, to user: UserID, localUser: Int64, tree: String) throws {
    try db.execute(
      sql: """
        INSERT INTO zdc_message_peer (localUser, appTreeID, userID, sentSeq, isKnown) VALUES (?, ?, ?, ?, 1)
        ON CONFLICT DO UPDATE SET sentSeq = MAX(sentSeq, excluded.sentSeq)
        """, arguments: [localUser, tree, user.data, seq.stored])
  }

  /// Returns the highest number of the sealed messages of an outbox to a user; 0 if there is none. Profiles and burns have
  /// none.
  package func sealedSeq(to user: UserID, zone: Int64) throws -> UInt64 {
    let query = """
      SELECT e.seq FROM zdc_envelope e CROSS JOIN zdc_operation o ON o.id = e.operation
      WHERE e.recipient = ? AND o.zone = ? AND o.kind = 7 AND o.node IS NOT NULL ORDER BY e.seq DESC LIMIT 1
      """
    return try db.firstRow(query, [user.data, zone]) { $0.unsigned(0) ?? 0 } ?? 0
  }

  /// Remembers whether messages of a user are taken over.
  package func setKnown(_ isKnown: Bool, _ user: UserID, localUser: Int64, tree: String) throws {
    try db.execute(
      sql: """
        INSERT INTO zdc_message_peer (localUser, appTreeID, userID, isKnown) VALUES (?, ?, ?, ?)
        ON CONFLICT DO UPDATE SET isKnown = excluded.isKnown
        """, arguments: [localUser, tree, user.data, isKnown])
  }

  /// Remembers that the user knows these, unless something was decided about them before.
  package func noteKnown(_ users: [UserID], localUser: Int64, tree: String) throws {
    let statement = try db.cachedStatement(
      sql: "INSERT OR IGNORE INTO zdc_message_peer (localUser, appTreeID, userID, isKnown) VALUES (?, ?, ?, 1)")
    for user in users { try statement.execute(arguments: [localUser, tree, user.data]) }
  }

  /// The users whose messages are taken over.
  package func known(localUser: Int64, tree: String) throws -> Set<UserID> {
    let rows = try Row.fetchAll(
      db, sql: "SELECT userID FROM zdc_message_peer WHERE localUser = ? AND appTreeID = ? AND isKnown",
      arguments: [localUser, tree])
    return Set(try rows.map { try UserID($0, 0) })
  }

  // MARK: The inbox

  /// Remembers nodes that the log of an inbox has.
  package func setSeen(_ nodes: some Sequence<NodeID>, zone: Int64) throws {
    let statement = try db.cachedStatement(sql: "INSERT OR IGNORE INTO zdc_message_seen (zone, node) VALUES (?, ?)")
    for node in nodes { try statement.execute(arguments: [zone, node.data]) }
  }

  package func isSeen(_ node: NodeID, zone: Int64) throws -> Bool {
    let statement = try db.cachedStatement(sql: "SELECT 1 FROM zdc_message_seen WHERE zone = ? AND node = ?")
    return try Row.fetchOne(statement, arguments: [zone, node.data]) != nil
  }
}
