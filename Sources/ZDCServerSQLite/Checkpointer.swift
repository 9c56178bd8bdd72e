internal import GRDB
internal import GRDBSQLite
internal import Synchronization

/// Copies the write-ahead log back into the database on a dedicated connection, so that commits do not wait for it.
///
/// The writer still checkpoints when the log has grown to `wal_autocheckpoint` pages. That bounds the log if this
/// connection does not keep up, and costs little: most of the log is copied by then.
final class Checkpointer: Sendable {
  /// The number of log pages worth a copy. With fewer, pages that every commit changes would be copied too often.
  private static let worthwhile: Int32 = 4_096

  private struct State {
    /// The writer's total of written pages when the last copy was requested.
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

  /// Called on the writer, after a commit.
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
      // Pages that cannot be copied now stay in the log for a later checkpoint; nothing depends on this one.
      _ = try? db.checkpoint(.passive)
      self.state.withLock { $0.isRunning = false }
    }
  }

  func close() throws { try connection.close() }
}
