package import GRDB
internal import Synchronization

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// Notices commits of other processes, by SQLite's counter of them, and tells this process's observers and engines.
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
    guard log.mayHaveChanged() else { return false }
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

/// SQLite's log as a file: every commit writes into it, so one whose time stands still has nothing new in it. Asking
/// the file costs a hundredth of asking SQLite.
private final class LogFile: Sendable {
  private struct Seen: Equatable {
    var seconds: Int
    var nanoseconds: Int
    var size: Int
    /// Whether another write could not have left the same time.
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

  /// nil if the file cannot be asked.
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
    // A file's clock is coarser than this one, by a second at most.
    let isSettled = now.tv_sec - time.tv_sec > 2
    return Seen(
      seconds: Int(time.tv_sec), nanoseconds: Int(time.tv_nsec), size: Int(status.st_size), isSettled: isSettled)
  }
}
