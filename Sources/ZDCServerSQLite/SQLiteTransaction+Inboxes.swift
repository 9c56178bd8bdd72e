internal import GRDB
internal import ZDCProtocol
internal import ZDCServer

// Messages that wait for their recipients.
extension SQLiteTransaction {
  func envelopes(in inbox: ZoneKey, after cursor: UInt64, limit: Int) throws -> [WaitingMessage] {
    try db.all(
      """
      SELECT id, sender, message, length, received_ms, is_request FROM envelopes
      WHERE inbox = ? AND id > ? ORDER BY id LIMIT ?
      """, .int(inbox.rawValue), .ms(cursor), .int(Int64(limit))
    ) { row in
      WaitingMessage(
        cursor: row.unsigned(0), sender: try row.id(1), messageID: try row.id(2), length: Int(row.int(3)),
        receivedMs: row.unsigned(4), isRequest: row.int(5) != 0)
    }
  }

  func envelope(_ id: MessageID, from sender: UserID, in inbox: ZoneKey) throws -> [UInt8]? {
    try db.first(
      "SELECT bytes FROM envelopes WHERE inbox = ? AND node = ?", .int(inbox.rawValue),
      .id(NodeID(message: id, from: sender))
    ) { $0.bytes(0) }
  }

  func envelopeLengths(ofNodes nodes: [NodeID], in inbox: ZoneKey) throws -> [NodeID: Int] {
    let length = try db.prepared("SELECT length FROM envelopes WHERE inbox = ? AND node = ?")
    return try nodes.reduce(into: [:]) { found, node in
      found[node] = try length.first(.int(inbox.rawValue), .id(node)) { Int($0.int(0)) }
    }
  }

  func envelopes(ofNodes nodes: [NodeID], in inbox: ZoneKey) throws -> [NodeID: [UInt8]] {
    let bytes = try db.prepared("SELECT bytes FROM envelopes WHERE inbox = ? AND node = ?")
    return try nodes.reduce(into: [:]) { found, node in
      found[node] = try bytes.first(.int(inbox.rawValue), .id(node)) { $0.bytes(0) }
    }
  }

  func inboxUsage(of inbox: ZoneKey, sender: UserID) throws -> InboxUsage {
    let sums = """
      SELECT count(*), total(length), total(is_request), total(is_request * length), total(sender = ?2),
        total((sender = ?2) * length) FROM envelopes WHERE inbox = ?1
      """
    return try db.first(sums, .int(inbox.rawValue), .id(sender)) { row in
      var usage = InboxUsage()
      usage.all = InboxUsage.Share(count: Int(row.int(0)), bytes: Int(row.int(1)))
      usage.requests = InboxUsage.Share(count: Int(row.int(2)), bytes: Int(row.int(3)))
      usage.sender = InboxUsage.Share(count: Int(row.int(4)), bytes: Int(row.int(5)))
      return usage
    } ?? InboxUsage()
  }

  private static let ownInboxes = """
    FROM users u JOIN trees t ON t.owner = u.id AND t.trunk = \(Trunk.inbox.rawValue) JOIN zones z ON z.tree = t.id
    """

  func newestEnvelope(of user: UserID) throws -> UInt64? {
    try db.first(
      "SELECT max(e.id) \(Self.ownInboxes) JOIN envelopes e ON e.inbox = z.id WHERE u.user_id = ?", .id(user)
    ) { $0.isNull(0) ? nil : $0.unsigned(0) } ?? nil
  }

  func sender(_ user: UserID, of inbox: ZoneKey) throws -> SenderState {
    try db.first("SELECT state FROM senders WHERE inbox = ? AND user_id = ?", .int(inbox.rawValue), .id(user)) {
      SenderState(rawValue: Int($0.int(0)))
    } ?? []
  }

  func inboxCounts(of user: UserID) throws -> (envelopes: Int, bytes: UInt64, senders: Int) {
    let waiting = try db.first(
      "SELECT count(*), total(e.length) \(Self.ownInboxes) JOIN envelopes e ON e.inbox = z.id WHERE u.user_id = ?",
      .id(user)
    ) { (Int($0.int(0)), $0.unsigned(1)) }
    let senders = try db.first(
      "SELECT count(*) \(Self.ownInboxes) JOIN senders s ON s.inbox = z.id WHERE u.user_id = ?", .id(user)
    ) { Int($0.int(0)) }
    return (waiting?.0 ?? 0, waiting?.1 ?? 0, senders ?? 0)
  }

  /// CROSS JOIN fixes the order, because the sender may be a member of any number of zones.
  func shares(_ user: UserID, aZoneWith other: UserID) throws -> Bool {
    let query = """
      SELECT 1 FROM users u CROSS JOIN memberships f ON f.user = u.id AND f.ended_seq IS NULL
        CROSS JOIN members m ON m.user_id = ?2 AND m.zone = f.zone AND m.left_seq IS NULL WHERE u.user_id = ?1
      UNION ALL
      SELECT 1 FROM users u CROSS JOIN trees t ON t.owner = u.id CROSS JOIN zones z ON z.tree = t.id
        CROSS JOIN members m ON m.user_id = ?2 AND m.zone = z.id AND m.left_seq IS NULL WHERE u.user_id = ?1
      LIMIT 1
      """
    return try db.first(query, .id(user), .id(other)) { _ in true } ?? false
  }
}

// Changes
extension SQLiteTransaction {
  func insertEnvelope(_ envelope: MessageEnvelope, row: WaitingMessage, in inbox: ZoneKey) throws {
    try db.run(
      """
      INSERT INTO envelopes(inbox, node, sender, message, length, is_request, received_ms, bytes)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?)
      """, .int(inbox.rawValue), .id(NodeID(message: row.messageID, from: row.sender)), .id(row.sender),
      .id(row.messageID),
      .int(Int64(row.length)), .int(row.isRequest ? 1 : 0), .ms(row.receivedMs), .bytes(envelope.bytes))
  }

  func removeEnvelopes(ofNodes nodes: [NodeID], in inbox: ZoneKey) throws {
    let delete = try db.prepared("DELETE FROM envelopes WHERE inbox = ? AND node = ?")
    for node in nodes { try delete.run(.int(inbox.rawValue), .id(node)) }
  }

  func setSender(_ user: UserID, to state: SenderState, of inbox: ZoneKey) throws {
    guard !state.isEmpty else {
      return try db.run("DELETE FROM senders WHERE inbox = ? AND user_id = ?", .int(inbox.rawValue), .id(user))
    }
    try db.run(
      "INSERT OR REPLACE INTO senders(inbox, user_id, state) VALUES (?, ?, ?)", .int(inbox.rawValue), .id(user),
      .int(Int64(state.rawValue)))
    guard state.contains(.accepted) else { return }
    try db.run(
      "UPDATE envelopes SET is_request = 0 WHERE inbox = ? AND sender = ?", .int(inbox.rawValue), .id(user))
  }

  func removeRequests(receivedBefore: UInt64, limit: Int) throws -> Bool {
    try db.run(
      """
      DELETE FROM envelopes WHERE id IN (
        SELECT id FROM envelopes WHERE is_request = 1 AND received_ms < ? LIMIT ?)
      """, .ms(receivedBefore), .int(Int64(limit)))
    return db.changesCount >= limit
  }
}
