package import GRDB
internal import Synchronization

/// Copies the write-ahead log back into the database, on a connection of its own: a commit does not wait for it.
///
/// The writer still does it itself when the log has grown to `wal_autocheckpoint` pages. That bounds the log while this
/// one does not keep up, and costs little: most of it is copied by then.
package final class Checkpointer: Sendable {
  /// Pages of the log that are worth a copy: fewer, and pages that every commit changes are copied too often. Below
  /// the writer's own limit by as much as is written meanwhile.
  private static let worthwhile: Int32 = 12_288

  private struct State {
    /// What the writer had written in all when the last copy was asked for.
    var written: Int32 = 0
    var isRunning = false
    var isClosed = false
  }

  private let connection: DatabaseQueue
  private let state = Mutex(State())

  package init(path: String) throws {
    var configuration = Configuration()
    configuration.label = "ZeroDarkCloud.checkpoint"
    // Another process may be about to open or to leave the file.
    configuration.busyMode = .timeout(DatabaseOpener.busySeconds)
    configuration.prepareDatabase { db in
      try db.execute(sql: "PRAGMA synchronous = FULL")
      #if canImport(Darwin)
        try db.execute(sql: "PRAGMA fullfsync = ON")
      #endif
    }
    connection = try DatabaseQueue(path: path, configuration: configuration)
  }

  /// Ends the copy that is under way. To be called before the pool is closed: the last connection tidies up.
  package func close() throws {
    state.withLock { $0.isClosed = true }
    try connection.close()
  }

  /// Called on the writer. What the current transaction writes counts when it is over.
  package func note(_ writer: Database) {
    let written = writer.pagesWritten
    let mustRun = state.withLock { state in
      guard !state.isRunning, !state.isClosed, written &- state.written >= Self.worthwhile else { return false }
      state.written = written
      state.isRunning = true
      return true
    }
    if mustRun { run() }
  }

  private func run() {
    connection.asyncWriteWithoutTransaction { db in
      guard self.state.withLock({ !$0.isClosed }) else { return }
      // What cannot be copied now stays in the log, and is copied later, by whomever: nothing depends on it.
      _ = try? db.checkpoint(.passive)
      self.state.withLock { $0.isRunning = false }
    }
  }
}
