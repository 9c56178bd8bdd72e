package import GRDB
internal import Synchronization

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// Detects commits of other processes with SQLite's `data_version`, and notifies this process's observers and engines.
package final class ChangeWatcher: Sendable {
  private let pool: DatabasePool
  private let context: DatabaseContext
  private let interval: Duration
  private let lastVersion: Mutex<Int64?> = Mutex(nil)
  private let log: LogFile

  package init(pool: DatabasePool, context: DatabaseContext, interval: Duration) {
    self.pool = pool
    self.context = context
    self.interval = interval
    log = LogFile(path: pool.path + "-wal")
  }

  /// Polls until the task is cancelled or the database closes.
  ///
  /// The first poll always notifies: earlier commits may have gone unseen.
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

  /// Polls once. The first poll only records the current version.
  ///
  /// - Returns: Whether another process committed since the last look.
  package func poll() async throws -> Bool {
    guard log.mayHaveChanged() else { return false }
    // On the writer connection, `data_version` does not change with this process's commits.
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

/// Watches SQLite's write-ahead log as a file. Every commit writes to it, so an unchanged modification time means there
/// is nothing new. Checking the file costs a hundredth of asking SQLite.
private final class LogFile: Sendable {
  private struct Seen: Equatable {
    var seconds: Int
    var nanoseconds: Int
    var size: Int
    /// Whether another write would certainly have left a different time.
    var isSettled: Bool
  }

  private let path: String
  private let last = Mutex<Seen?>(nil)

  init(path: String) {
    self.path = path
  }

  func mayHaveChanged() -> Bool {
    let seen = look()
    return last.withLock { last in
      defer { last = seen }
      guard let seen, seen.isSettled else { return true }
      return seen != last
    }
  }

  /// Returns nil if the file's status cannot be read.
  private func look() -> Seen? {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    #if canImport(Darwin)
      let time = status.st_mtimespec
    #else
      let time = status.st_mtim
    #endif
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    // File timestamps are coarser than this clock, by at most a second.
    let isSettled = now.tv_sec - time.tv_sec > 2
    return Seen(
      seconds: Int(time.tv_sec), nanoseconds: Int(time.tv_nsec), size: Int(status.st_size), isSettled: isSettled)
  }
}
