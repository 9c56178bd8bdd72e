package import GRDB
internal import Synchronization

/// Checkpoints the write-ahead log on a dedicated connection, so that commits do not wait for it.
///
/// The writer still checkpoints when the log reaches `wal_autocheckpoint` pages. This bounds the log if the
/// checkpointer falls behind, and costs little, because most pages are copied by then.
package final class Checkpointer: Sendable {
  /// The number of new log pages that triggers a checkpoint. With fewer, pages that every commit changes are copied too
  /// often. The gap to the writer's own limit leaves room for pages written during the checkpoint.
  private static let worthwhile: Int32 = 12_288

  private struct State {
    /// The writer's total of pages written when the last checkpoint was requested.
    var written: Int32 = 0
    var isRunning = false
    var isClosed = false
  }

  private let connection: DatabaseQueue
  private let state = Mutex(State())

  package init(path: String) throws {
    var configuration = Configuration()
    configuration.label = "ZeroDarkCloud.checkpoint"
    // Another process may be opening or closing the file.
    configuration.busyMode = .timeout(DatabaseOpener.busySeconds)
    configuration.prepareDatabase { db in
      try db.execute(sql: "PRAGMA synchronous = FULL")
      #if canImport(Darwin)
        try db.execute(sql: "PRAGMA fullfsync = ON")
      #endif
    }
    connection = try DatabaseQueue(path: path, configuration: configuration)
  }

  /// Closes the connection after any running checkpoint. Call it before closing the pool: the last connection cleans
  /// up.
  package func close() throws {
    state.withLock { $0.isClosed = true }
    try connection.close()
  }

  /// Requests a checkpoint if enough pages were written. Runs on the writer; the current transaction's pages count once
  /// it ends.
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
      // Pages that cannot be copied now stay in the log until a later checkpoint. Nothing depends on this one.
      _ = try? db.checkpoint(.passive)
      self.state.withLock { $0.isRunning = false }
    }
  }
}
