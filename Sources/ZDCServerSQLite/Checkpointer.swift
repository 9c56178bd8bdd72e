internal import GRDB
internal import GRDBSQLite
internal import Synchronization

/// Copies the write-ahead log back into the database, on a connection of its own: a commit does not wait for it.
///
/// The writer still does it itself when the log has grown to `wal_autocheckpoint` pages. That bounds the log while this
/// one does not keep up, and costs little: most of it is copied by then.
final class Checkpointer: Sendable {
  /// Pages of the log that are worth a copy: fewer, and pages that every commit changes are copied too often.
  private static let worthwhile: Int32 = 4_096

  private struct State {
    /// What the writer had written in all when the last copy was asked for.
    var written: Int32 = 0
    var isRunning = false
  }

  private let connection: DatabaseQueue
  private let state = Mutex(State())

  init(path: String) throws {
    var configuration = Configuration()
    configuration.label = "zdc.server.checkpoint"
    configuration.prepareDatabase { db in try db.execute(sql: "PRAGMA synchronous = FULL") }
    connection = try DatabaseQueue(path: path, configuration: configuration)
  }

  /// Called on the writer, behind a commit.
  func wrote(_ writer: Database) {
    var (written, highest) = (Int32(0), Int32(0))
    guard sqlite3_db_status(writer.sqliteConnection, SQLITE_DBSTATUS_CACHE_WRITE, &written, &highest, 0) == SQLITE_OK
    else { return }
    let mustRun = state.withLock { state in
      guard !state.isRunning, written &- state.written >= Self.worthwhile else { return false }
      state.written = written
      state.isRunning = true
      return true
    }
    if mustRun { run() }
  }

  private func run() {
    connection.asyncWriteWithoutTransaction { db in
      // What cannot be copied now stays in the log, and is copied later, by whomever: nothing depends on it.
      _ = try? db.checkpoint(.passive)
      self.state.withLock { $0.isRunning = false }
    }
  }

  func close() throws { try connection.close() }
}
