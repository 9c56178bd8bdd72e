internal import GRDB
package import ZDCProtocol

/// Messages of known senders that wait in the mailbox for the user's decision, because their sender has declared the key
/// that signed them compromised, inside one transaction.
///
/// The mailbox bounds their number: rows of other messages are removed whenever it is listed.
package struct HeldMessageStore {
  private let db: Database
  private let zone: Int64

  package init(_ transaction: ZDCReadTransaction, inbox zone: Int64) { (db, self.zone) = (transaction.database, zone) }

  /// Returns all of them, and whether the user has accepted them.
  package func all() throws -> [MessageName: Bool] {
    var held: [MessageName: Bool] = [:]
    try db.forEachRow("SELECT sender, message, isAccepted FROM zdc_held_message WHERE zone = ?", [zone]) { row in
      held[MessageName(sender: try UserID(row, 0), id: try MessageID(row, 1))] = row[2] as Int64 != 0
    }
    return held
  }

  package func hold(_ messages: Set<MessageName>) throws {
    let statement = try db.cachedStatement(
      sql: "INSERT OR IGNORE INTO zdc_held_message (zone, sender, message) VALUES (?, ?, ?)")
    for message in messages { try statement.execute(arguments: [zone, message.sender.data, message.id.data]) }
  }

  /// Notes that the user accepts the messages of a sender that are held now. Later ones are held again.
  package func accept(from sender: UserID) throws {
    try db.execute(
      sql: "UPDATE zdc_held_message SET isAccepted = 1 WHERE zone = ? AND sender = ?",
      arguments: [zone, sender.data])
  }

  package func remove(_ messages: some Sequence<MessageName>) throws {
    let statement = try db.cachedStatement(
      sql: "DELETE FROM zdc_held_message WHERE zone = ? AND sender = ? AND message = ?")
    for message in messages { try statement.execute(arguments: [zone, message.sender.data, message.id.data]) }
  }
}
