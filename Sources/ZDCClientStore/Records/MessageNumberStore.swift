internal import GRDB
package import ZDCCrypto
package import ZDCProtocol

/// The numbers of the messages of one sending device.
package struct MessageNumbers: Sendable, Hashable {
  package var sender: UserID
  package var device: UInt64
  /// The highest one that was compared before; nil for a device of which there was no message before.
  package var highest: UInt64?
  /// Those read since.
  package var new: [UInt64]

  package init(sender: UserID, device: UInt64, highest: UInt64?, new: [UInt64]) {
    (self.sender, self.device, self.highest, self.new) = (sender, device, highest, new)
  }

  /// The highest of all.
  package var newHighest: UInt64 { max(highest ?? 0, new.max() ?? 0) }

  /// The number of messages that are missing above the highest one before. Holes below it were counted then.
  package var missing: UInt64 {
    let before = highest ?? 0
    let above = Set(new.filter { $0 > before })
    return newHighest - before - UInt64(above.count)
  }

  /// The lowest and the highest number of the ``missing`` messages.
  package var missingRange: ClosedRange<UInt64>? {
    guard missing > 0 else { return nil }
    let before = highest ?? 0
    let above = Set(new.filter { $0 > before }).sorted()
    var (first, last) = (before + 1, newHighest - 1)
    for number in above where number == first { first += 1 }
    for number in above.reversed() where number == last { last -= 1 }
    return first...last
  }
}

/// The numbers of messages that were read from the log of an inbox, inside one transaction.
package struct MessageNumberStore {
  private let db: Database
  private let zone: Int64

  package init(_ transaction: ZDCReadTransaction, inbox zone: Int64) { (db, self.zone) = (transaction.database, zone) }

  // MARK: Reading records

  /// Notes that the record of a node was read.
  package func setRead(_ node: NodeID) throws {
    let statement = try db.cachedStatement(sql: "UPDATE zdc_message_seen SET isRead = 1 WHERE zone = ? AND node = ?")
    try statement.execute(arguments: [zone, node.data])
  }

  /// Notes the number of a message.
  package func insert(_ message: ReceivedMessage) throws {
    let statement = try db.cachedStatement(
      sql: "INSERT OR IGNORE INTO zdc_message_number (zone, sender, device, seq) VALUES (?, ?, ?, ?)")
    try statement.execute(arguments: [zone, message.sender.data, message.device.stored, message.seq.stored])
  }

  /// Counts those of the nodes whose records were never read. Their numbers are not known.
  package func countUnread(_ nodes: [NodeID]) throws {
    let statement = try db.cachedStatement(
      sql: "SELECT 1 FROM zdc_message_seen WHERE zone = ? AND node = ? AND isRead = 0")
    let unread = try nodes.count { try Row.fetchOne(statement, arguments: [zone, $0.data]) != nil }
    guard unread > 0 else { return }
    try db.execute(
      sql: """
        INSERT INTO zdc_message_inbox (zone, unread) VALUES (?1, ?2)
        ON CONFLICT DO UPDATE SET unread = unread + excluded.unread
        """, arguments: [zone, unread])
  }

  // MARK: The first pull

  /// Notes that the first pull has begun: there are no messages before the oldest one that it reads.
  package func beginBaseline() throws {
    try db.execute(
      sql: """
        INSERT INTO zdc_message_inbox (zone, isBaseline) VALUES (?, 1) ON CONFLICT DO UPDATE SET isBaseline = 1
        """, arguments: [zone])
  }

  package func endBaseline() throws {
    try db.execute(sql: "UPDATE zdc_message_inbox SET isBaseline = 0 WHERE zone = ?", arguments: [zone])
  }

  package func inbox() throws -> (unread: UInt64, isBaseline: Bool) {
    let query = "SELECT unread, isBaseline FROM zdc_message_inbox WHERE zone = ?"
    return try db.firstRow(query, [zone]) { ($0.unsigned(0) ?? 0, ($0[1] as Int64) != 0) } ?? (0, false)
  }

  // MARK: Comparing

  package func isEmpty() throws -> Bool {
    try db.firstRow("SELECT 1 FROM zdc_message_number WHERE zone = ? LIMIT 1", [zone]) { _ in true } == nil
  }

  /// Returns the devices with new numbers, and the inbox's `unread` when each was compared before.
  package func new() throws -> [(numbers: MessageNumbers, unread: UInt64)] {
    let query = """
      SELECT n.sender, n.device, n.seq, d.highest, d.unread FROM zdc_message_number n
      LEFT JOIN zdc_message_device d ON d.zone = n.zone AND d.sender = n.sender AND d.device = n.device
      WHERE n.zone = ? ORDER BY n.sender, n.device, n.seq
      """
    var found: [(numbers: MessageNumbers, unread: UInt64)] = []
    try db.forEachRow(query, [zone]) { row in
      let (sender, device) = (try UserID(row, 0), row.unsigned(1) ?? 0)
      if let last = found.last?.numbers, last.sender == sender, last.device == device {
        found[found.count - 1].numbers.new.append(row.unsigned(2) ?? 0)
      } else {
        let numbers = MessageNumbers(
          sender: sender, device: device, highest: row.unsigned(3), new: [row.unsigned(2) ?? 0])
        found.append((numbers, row.unsigned(4) ?? 0))
      }
    }
    return found
  }

  /// Returns the number of devices that are known of a sender.
  package func devices(of sender: UserID) throws -> Int {
    let query = "SELECT COUNT(*) FROM zdc_message_device WHERE zone = ? AND sender = ?"
    return try db.firstRow(query, [zone, sender.data]) { $0[0] as Int } ?? 0
  }

  package func set(_ numbers: MessageNumbers, unread: UInt64) throws {
    let statement = try db.cachedStatement(
      sql: "INSERT OR REPLACE INTO zdc_message_device (zone, sender, device, highest, unread) VALUES (?, ?, ?, ?, ?)")
    try statement.execute(arguments: [
      zone, numbers.sender.data, numbers.device.stored, numbers.newHighest.stored, unread.stored,
    ])
  }

  /// Forgets the numbers that were compared.
  package func forgetNew() throws {
    try db.execute(sql: "DELETE FROM zdc_message_number WHERE zone = ?", arguments: [zone])
  }
}
