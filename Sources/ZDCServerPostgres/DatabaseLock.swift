internal import Dispatch
internal import Foundation
internal import Synchronization

/// Keeps other servers out of the database, or those that do not share it: an advisory lock, held by a connection that does
/// nothing else.
///
/// If that connection is lost, the lock is taken again. ``isHeld`` is false until then.
final class DatabaseLock: Sendable {
  /// "ZDCS", and the same number for all versions.
  private static let number: Int64 = 0x5a44_4353
  /// "ZDCP".
  private static let preparation: Int64 = 0x5a44_4350
  private static let checkSeconds = 1

  private let url: String
  let isShared: Bool
  private let held = Mutex(false)
  private let counted = Mutex(1)
  private let stop = DispatchSemaphore(value: 0)
  private let ended = DispatchGroup()

  var isHeld: Bool { held.withLock { $0 } }
  /// The number of processes that have the lock, this one included, a moment ago.
  var holders: Int { counted.withLock { $0 } }

  /// - Parameters:
  ///   - isShared: whether other processes that share the lock may have it too.
  ///   - prepare: runs once on the connection that has the lock, and in one process at a time.
  /// - Throws: ``DatabaseInUse``, ``PostgresError``, or an error of `prepare`.
  init(
    _ url: String, isShared: Bool = false, prepare: @escaping @Sendable (PostgresConnection) throws -> Void
  ) throws {
    self.url = url
    self.isShared = isShared
    let started = DispatchSemaphore(value: 0)
    let outcome = Mutex<Result<Void, any Error>>(.success(()))
    ended.enter()
    Thread.detachNewThread { [self] in
      var connection: PostgresConnection?
      do { connection = try locked(prepare) } catch { outcome.withLock { $0 = .failure(error) } }
      started.signal()
      if connection != nil { keep(&connection) }
      ended.leave()
    }
    started.wait()
    try outcome.withLock { try $0.get() }
  }

  /// Gives the lock up. A second call does nothing.
  func release() {
    stop.signal()
    ended.wait()
  }

  private func locked(_ prepare: (PostgresConnection) throws -> Void) throws -> PostgresConnection {
    let connection = try PostgresConnection(url)
    // A standby grants the lock too, but it keeps no server out of the primary.
    guard try connection.first("SELECT pg_is_in_recovery()", row: { $0.int(0) == 0 }) == true else {
      throw PostgresError(.connection, "the database is a standby")
    }
    let function = isShared ? "pg_try_advisory_lock_shared" : "pg_try_advisory_lock"
    // A server that has just ended may still have its connection.
    for attempt in 0..<20 {
      let isFree = try connection.first("SELECT \(function)($1)", .int(Self.number)) { $0.int(0) == 1 }
      if isFree == true { break }
      guard attempt < 19 else { throw DatabaseInUse() }
      Thread.sleep(forTimeInterval: 0.05)
    }
    try connection.run("SELECT pg_advisory_lock($1)", .int(Self.preparation))
    try prepare(connection)
    try connection.run("SELECT pg_advisory_unlock($1)", .int(Self.preparation))
    held.withLock { $0 = true }
    return connection
  }

  private func keep(_ connection: inout PostgresConnection?) {
    while stop.wait(timeout: .now() + .seconds(Self.checkSeconds)) == .timedOut {
      do {
        if let connection, !connection.isLost {
          try count(connection)
        } else {
          connection = nil
          connection = try locked { _ in }
        }
      } catch { held.withLock { $0 = false } }
    }
    held.withLock { $0 = false }
    connection = nil
  }

  private func count(_ db: PostgresConnection) throws {
    let found = try db.first(
      """
      SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
      WHERE d.datname = current_database() AND l.locktype = 'advisory' AND l.granted
        AND l.classid::int8 = 0 AND l.objid::int8 = $1 AND l.objsubid = 1
      """, .int(Self.number)
    ) { Int($0.int(0)) }
    counted.withLock { $0 = max(found ?? 1, 1) }
  }
}

/// Another server has the database.
struct DatabaseInUse: Error {}
