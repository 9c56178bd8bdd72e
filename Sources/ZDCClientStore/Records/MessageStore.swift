internal import Foundation
package import GRDB
package import ZDCProtocol

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

  /// The deliveries of an outbox, in queue order.
  package func deliveries(zone: Int64) throws -> [OperationRow] {
    try operations.fetchAll("WHERE zone = ? AND kind = 7 ORDER BY id", [zone])
  }

  /// The open dependencies of these deliveries.
  package func dependencies(zone: Int64) throws -> [Int64: [Int64]] {
    var found: [Int64: [Int64]] = [:]
    let query = """
      SELECT o.id, d.dependsOn FROM zdc_operation o CROSS JOIN zdc_dependency d ON d.operation = o.id
      WHERE o.zone = ? AND o.kind = 7 AND EXISTS (SELECT 1 FROM zdc_operation t WHERE t.id = d.dependsOn)
      ORDER BY o.id, d.dependsOn
      """
    try db.forEachRow(query, [zone]) { found[$0[0], default: []].append($0[1]) }
    return found
  }

  /// The envelopes of an outbox whose answer is unknown, and those of these operations, in queue order. Those that do
  /// not fit into `count` and `bytes` are not decoded.
  package func envelopes(zone: Int64, orOf due: Set<Int64>, count: Int, bytes: Int) throws -> [StoredEnvelope] {
    let query = """
      SELECT e.operation, o.state, length(e.bytes), e.recipient, e.seq, e.bytes FROM zdc_operation o
      CROSS JOIN zdc_envelope e ON e.operation = o.id WHERE o.zone = ? AND o.kind = 7 ORDER BY o.id
      """
    var found: [StoredEnvelope] = []
    var room = bytes
    let rows = try RawRow.fetchCursor(db.cachedStatement(sql: query), arguments: [zone])
    while found.count < count, let row = try rows.next() {
      guard row[1] == OperationRow.State.inFlight.rawValue || due.contains(row[0]) else { continue }
      room -= row[2]
      guard room >= 0 else { break }
      found.append(
        StoredEnvelope(
          operation: row[0], recipient: try UserID(row, 3), seq: row.unsigned(4) ?? 0, bytes: try row.requiredBytes(5)))
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

  /// Returns the highest number of the sealed messages of an outbox to each user. Profiles and burns have none.
  package func sealedSeqs(zone: Int64) throws -> [UserID: UInt64] {
    let query = """
      SELECT e.recipient, MAX(e.seq) FROM zdc_operation o CROSS JOIN zdc_envelope e ON e.operation = o.id
      WHERE o.zone = ? AND o.kind = 7 AND o.node IS NOT NULL GROUP BY e.recipient
      """
    var highest: [UserID: UInt64] = [:]
    try db.forEachRow(query, [zone]) { highest[try UserID($0, 0)] = $0.unsigned(1) ?? 0 }
    return highest
  }

  /// Remembers whether messages of a user are taken over.
  package func setKnown(_ isKnown: Bool, _ user: UserID, localUser: Int64, tree: String) throws {
    try db.execute(
      sql: """
        INSERT INTO zdc_message_peer (localUser, appTreeID, userID, isKnown) VALUES (?, ?, ?, ?)
        ON CONFLICT DO UPDATE SET isKnown = excluded.isKnown
        """, arguments: [localUser, tree, user.data, isKnown])
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
