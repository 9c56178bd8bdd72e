internal import Foundation
internal import GRDB

/// Marks a local user's pushes as paused. The mark is in the database, because the process that pauses need not be the
/// one that syncs.
package enum PushPause: UInt8 {
  /// Requests in flight still finish.
  case lettingUploadsEnd = 1
  case abortingUploads = 2

  package static func key(_ localUser: Int64) -> String { "pushPaused.\(localUser)" }
}

extension ZDCReadTransaction {
  /// nil while pushes are not paused.
  package func pushPause(localUser: Int64) throws -> PushPause? {
    try database.firstRow("SELECT value FROM zdc_meta WHERE key = ?", [PushPause.key(localUser)]) { row in
      row.bytes(0)?.first.flatMap { PushPause(rawValue: $0) }
    } ?? nil
  }
}

extension ZDCReadWriteTransaction {
  /// Engines of this process and of others hear of it with the commit.
  package func setPushPause(_ pause: PushPause?, localUser: Int64) throws {
    let key = PushPause.key(localUser)
    if let pause {
      try database.execute(
        sql: "INSERT OR REPLACE INTO zdc_meta (key, value) VALUES (?, ?)", arguments: [key, Data([pause.rawValue])])
    } else {
      try database.execute(sql: "DELETE FROM zdc_meta WHERE key = ?", arguments: [key])
    }
    // SQLite reports no changes in a table without rowid.
    try database.notifyChanges(in: Table("zdc_meta"))
    signal(.queue(localUser: localUser))
  }
}
