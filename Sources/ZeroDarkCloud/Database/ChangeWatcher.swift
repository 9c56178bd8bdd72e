internal import GRDB
internal import Synchronization

/// Notices commits of other processes, by SQLite's counter of them, and tells this process's observers and engines.
package final class ChangeWatcher: Sendable {
  private let pool: DatabasePool
  private let context: DatabaseContext
  private let interval: Duration
  private let lastVersion: Mutex<Int64?> = Mutex(nil)

  init(pool: DatabasePool, context: DatabaseContext, interval: Duration) {
    self.pool = pool
    self.context = context
    self.interval = interval
  }

  /// Looks again and again, until the task is cancelled or the database closes.
  ///
  /// The first look tells everybody too: what was committed before it may not have been seen.
  package func run() async {
    var isFirst = true
    while !Task.isCancelled {
      do {
        if try await !poll(), isFirst { try await tell() }
        isFirst = false
        try await Task.sleep(for: interval)
      } catch is CancellationError {
        return
      } catch let error as DatabaseError where error.resultCode == .SQLITE_MISUSE {
        return
      } catch {
        context.logFailure(error)
        guard (try? await Task.sleep(for: interval)) != nil else { return }
      }
    }
  }

  /// Looks once. The first look only remembers where things stand.
  ///
  /// - Returns: Whether another process committed since the last look.
  package func poll() async throws -> Bool {
    // On the writer: there the counter stands still for our own commits.
    let version = try await pool.writeWithoutTransaction { try Int64.fetchOne($0, sql: "PRAGMA data_version") }
    let previous = lastVersion.withLock { last in
      defer { last = version }
      return last
    }
    guard let previous, previous != version else { return false }
    try await tell()
    return true
  }

  private func tell() async throws {
    try await pool.write { try $0.notifyChanges(in: .fullDatabase) }
    context.changes.everythingMayHaveChanged()
  }
}
