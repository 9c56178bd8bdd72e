internal import Foundation
package import GRDB
internal import ZDCProtocol
internal import ZDCSupport

/// The outcomes of attempts to send queued operations (zdc_attempt). They are removed with their operation.
package final class AttemptStore {
  /// Maximum number of rows per operation; older ones are deleted.
  package static let limit = 20
  private let db: Database
  private let nowMs: UInt64

  package init(db: Database, nowMs: UInt64) {
    self.db = db
    self.nowMs = nowMs
  }

  /// Oldest first.
  package func attempts(of operation: Int64) throws -> [ZDCAttempt] {
    var attempts: [ZDCAttempt] = []
    let query = "SELECT times, outcome, code, firstMs, lastMs FROM zdc_attempt WHERE operation = ? ORDER BY id"
    try db.forEachRow(query, [operation]) { row in
      guard let outcome = ZDCAttempt.Outcome(rawValue: row[1]) else { throw ZDCError(.corruptDatabase) }
      attempts.append(
        ZDCAttempt(
          outcome: outcome, code: row[2], times: row[0], firstDate: Date(ms: row.unsigned(3) ?? 0),
          date: Date(ms: row.unsigned(4) ?? 0)))
    }
    return attempts
  }

  package func record(_ outcome: ZDCAttempt.Outcome, code: String?, of operations: [Int64]) throws {
    for operation in operations where try !repeatLast(outcome, code, operation) {
      let insert = try db.cachedStatement(
        sql: """
          INSERT INTO zdc_attempt (operation, firstMs, lastMs, times, outcome, code)
          SELECT id, ?2, ?2, 1, ?3, ?4 FROM zdc_operation WHERE id = ?1
          """)
      try insert.execute(arguments: [operation, nowMs.stored, outcome.rawValue, code])
      let forget = try db.cachedStatement(
        sql: """
          DELETE FROM zdc_attempt WHERE operation = ?1 AND id <= (
            SELECT id FROM zdc_attempt WHERE operation = ?1 ORDER BY id DESC LIMIT 1 OFFSET \(Self.limit))
          """)
      try forget.execute(arguments: [operation])
    }
  }

  /// - Returns: false if the last try had another outcome.
  private func repeatLast(_ outcome: ZDCAttempt.Outcome, _ code: String?, _ operation: Int64) throws -> Bool {
    let update = try db.cachedStatement(
      sql: """
        UPDATE zdc_attempt SET times = times + 1, lastMs = ?2
        WHERE id = (SELECT MAX(id) FROM zdc_attempt WHERE operation = ?1) AND outcome = ?3 AND code IS ?4
        """)
    try update.execute(arguments: [operation, nowMs.stored, outcome.rawValue, code])
    return db.changesCount > 0
  }
}

extension ZDCReadTransaction {
  package var attempts: AttemptStore { cached { AttemptStore(db: database, nowMs: context.clock()) } }
}
