internal import Foundation
internal import GRDB
internal import ZDCProtocol

/// The hashes of a zone's verified commits inside one transaction.
struct CommitLogStore {
  let db: Database
  let zone: Int64

  func hash(seq: UInt64) throws -> CommitHash? {
    try db.firstRow("SELECT seq, hash FROM zdc_log WHERE zone = ? AND seq = ?", [zone, seq.stored]) {
      try CommitHash($0, 1)
    }
  }

  /// Whether this device made every commit behind `seq`.
  func isAllOwn(after seq: UInt64) throws -> Bool {
    let statement = try db.cachedStatement(
      sql: "SELECT NOT EXISTS (SELECT 1 FROM zdc_log WHERE zone = ? AND seq > ? AND isOwn = 0)")
    return try Bool.fetchOne(statement, arguments: [zone, seq.stored]) ?? false
  }

  /// A commit that is there already stays as it is.
  func insert(_ commit: ZoneCommit, isOwn: Bool) throws {
    let statement = try db.cachedStatement(sql: "INSERT OR IGNORE INTO zdc_log VALUES (?, ?, ?, ?)")
    try statement.execute(arguments: [zone, commit.fields.seq.stored, commit.hash.data, isOwn])
  }

  func remove(from seq: UInt64) throws {
    let statement = try db.cachedStatement(sql: "DELETE FROM zdc_log WHERE zone = ? AND seq >= ?")
    try statement.execute(arguments: [zone, seq.stored])
  }
}
