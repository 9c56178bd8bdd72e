internal import Dispatch
internal import Synchronization
internal import ZDCProtocol
package import ZDCServer

/// The metadata store over PostgreSQL, for one server process or several.
///
/// Each write is one transaction that locks the rows of its subjects. Writes of different zones run at the same time,
/// each on one of the pool's connections.
package final class PostgresStore: MetadataStore {
  private typealias Write = @Sendable (UInt64) -> Void

  let connect: @Sendable () throws -> PostgresConnection
  private let lock: DatabaseLock
  private let pool: ConnectionPool
  private let turns = Mutex(SubjectTurns<Write>())
  private let statistics = Mutex(WriteStatistics())

  /// Connects to the database and takes it for this process.
  ///
  /// - Parameters:
  ///   - url: for example `postgres://zdc@db.example.org/zdc`, as libpq reads it.
  ///   - connections: how many reads and writes may run at the same time.
  ///   - isShared: whether other processes may use the database at the same time, as this one does.
  ///   - updating: whether to create or update the tables; otherwise they must be those of this version.
  ///   - filling: whether to open a database that is not complete yet, in order to fill it.
  /// - Throws: ``PostgresOpenError``; then nothing was changed.
  package init(
    url: String, connections: Int = 8, isShared: Bool = false, updating: Bool = true, filling: Bool = false
  ) throws {
    do {
      lock = try DatabaseLock(url, isShared: isShared) { connection in
        guard try filling || !PostgresRows.isBeingFilled(connection) else { throw IncompleteDatabase() }
        if updating { try PostgresSchema.migrate(connection) } else { try PostgresSchema.check(connection) }
      }
    } catch { throw PostgresOpenError(error) }
    connect = {
      let connection = try PostgresConnection(url, settings: Self.settings)
      // PostgreSQL may have restarted since.
      try PostgresSchema.beginEra(connection)
      return connection
    }
    pool = ConnectionPool(count: connections, connect)
  }

  /// All queries look rows up by keys. A plan that reads a whole table is never right, and a plan for each set of values
  /// costs more than it saves.
  private static let settings = [
    "SET plan_cache_mode = force_generic_plan", "SET enable_seqscan = off", "SET enable_hashjoin = off",
    "SET enable_mergejoin = off", "SET enable_material = off", "SET jit = off",
    "SET max_parallel_workers_per_gather = 0",
    "SET lock_timeout = '2s'", "SET idle_in_transaction_session_timeout = '60s'", "SET synchronous_commit = on",
    // Longer than any statement of a request takes. One that never ends would keep a connection of the pool.
    "SET statement_timeout = '60s'",
  ]
  /// A COMMIT that is cancelled while it waits for the standby ends as if the standby had it.
  private static let unbounded = "SET LOCAL statement_timeout = 0"

  /// Whether other processes may use the database too.
  package var isShared: Bool { lock.isShared }
  /// The number of processes that use the database, this one included.
  package var processes: Int { lock.holders }

  package var writeStatistics: WriteStatistics { statistics.withLock { $0 } }

  package func read<T: Sendable>(_ body: @escaping @Sendable (any MetadataReader) throws -> T) async throws -> T {
    try await read(isBounded: true, body)
  }

  private func read<T: Sendable>(
    isBounded: Bool, _ body: @escaping @Sendable (any MetadataReader) throws -> T
  ) async throws -> T {
    try await withCheckedThrowingContinuation { continuation in
      pool.run { connection in
        let result = Result { try Self.read(connection, isBounded: isBounded, body) }
        continuation.resume(with: result.mapError(Self.translated))
      }
    }
  }

  /// Runs statements of the coordination, which are not part of the store's contract. A transaction that `body` begins
  /// is committed, or rolled back if it throws.
  func perform<T: Sendable>(_ body: @escaping @Sendable (PostgresConnection) throws -> T) async throws -> T {
    try await withCheckedThrowingContinuation { continuation in
      pool.run { connection in
        let result = Result {
          let db = try connection.get()
          let value = try Self.rollingBack(db) {
            let value = try body(db)
            try db.flush()
            return value
          }
          if !db.isIdle { try Self.commit(db) }
          return value
        }
        continuation.resume(with: result.mapError(Self.translated))
      }
    }
  }

  private static func read<T>(
    _ connection: Result<PostgresConnection, any Error>, isBounded: Bool, _ body: (any MetadataReader) throws -> T
  ) throws -> T {
    let db = try connection.get()
    db.enqueue("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    if !isBounded { db.enqueue(unbounded) }
    let value = try rollingBack(db) { try body(PostgresTransaction(db)) }
    try db.run("COMMIT")
    return value
  }

  package func write<T: Sendable>(
    _ subjects: Set<WriteSubject>, _ body: @escaping @Sendable (any MetadataTransaction) throws -> T
  ) async throws -> T {
    try await write(subjects, isBounded: true, body)
  }

  private func write<T: Sendable>(
    _ subjects: Set<WriteSubject>, isBounded: Bool,
    _ body: @escaping @Sendable (any MetadataTransaction) throws -> T
  ) async throws -> T {
    let added = ContinuousClock.now
    return try await withCheckedThrowingContinuation { continuation in
      start(subjects) { number in
        self.count(waited: ContinuousClock.now - added)
        self.pool.run { connection in
          let result = Result { try self.write(connection, subjects, isBounded: isBounded, body) }
          // The next write of the subject begins before the caller continues.
          self.end(number)
          continuation.resume(with: result.mapError(Self.translated))
        }
      }
    }
  }

  private func start(_ subjects: Set<WriteSubject>, _ write: @escaping Write) {
    let (number, ready) = turns.withLock { $0.add(write, subjects) }
    ready?(number)
  }

  private func end(_ number: UInt64) {
    for (number, write) in turns.withLock({ $0.end(number) }) { write(number) }
  }

  private func count(waited: Duration) {
    let parts = waited.components
    statistics.withLock { statistics in
      statistics.writes += 1
      statistics.groups += 1
      statistics.waitedSeconds += Double(parts.seconds) + Double(parts.attoseconds) * 1e-18
    }
  }

  private func write<T>(
    _ connection: Result<PostgresConnection, any Error>, _ subjects: Set<WriteSubject>, isBounded: Bool,
    _ body: (any MetadataTransaction) throws -> T
  ) throws -> T {
    let db = try connection.get()
    guard lock.isHeld else { throw PostgresError(.connection, "the lock of the database was lost") }
    let transaction = PostgresTransaction(db)
    let value = try Self.rollingBack(db) {
      db.enqueue("BEGIN")
      if !isBounded { db.enqueue(Self.unbounded) }
      SubjectLocks(subjects).enqueue(to: db)
      let value = try body(transaction)
      try transaction.flush()
      guard !db.hasFailed else { throw PostgresError(.statement("25P02"), "a statement of the transaction failed") }
      return value
    }
    try Self.commit(db)
    for effect in transaction.effects { effect() }
    return value
  }

  /// Locks are waited for before the closure reads, in statements of their own: a statement that locks and reads would
  /// read the state from before the wait.
  private static func rollingBack<T>(_ db: PostgresConnection, _ body: () throws -> T) throws -> T {
    do { return try body() } catch {
      db.discard()
      // A connection that cannot roll back is replaced.
      if !db.isLost, !db.isIdle { try db.run("ROLLBACK") }
      throw error
    }
  }

  /// A COMMIT is never cancelled or repeated. If its answer is lost, the caller's client sends the same bytes again, and
  /// the zone's number and hash say whether they were stored.
  private static func commit(_ db: PostgresConnection) throws {
    db.enqueue(unbounded)
    do { try db.run("COMMIT") } catch let error as PostgresError where error.isUnavailable {
      throw PostgresError(.unknownOutcome, error.message)
    } catch {
      if !db.isLost, !db.isIdle { try db.run("ROLLBACK") }
      throw error
    }
  }

  private static func translated(_ error: any Error) -> any Error {
    guard let error = error as? PostgresError else { return error }
    if error.isFull { return StorageFull() }
    if error.isContention {
      return ServerError(.shuttingDown, "the database is busy", retryable: true, retryAfterMs: 500)
    }
    if error.isUnavailable {
      return ServerError(.shuttingDown, "the database is not available", retryable: true, retryAfterMs: 2_000)
    }
    return error
  }

  /// Does nothing: PostgreSQL vacuums its tables itself.
  package func compact() async throws {}

  package func close() async throws {
    await withCheckedContinuation { continuation in
      // Not on a thread of the concurrency pool: it waits for jobs.
      DispatchQueue.global().async { [pool, lock] in
        pool.close()
        lock.release()
        continuation.resume()
      }
    }
  }
}

extension PostgresStore: CopyableStore {
  package func readRows<T: Sendable>(
    _ body: @escaping @Sendable (any StoredRowReader) throws -> T
  ) async throws -> T {
    try await read(isBounded: false) { try body(PostgresRows(try Self.own($0))) }
  }

  package func fill<T: Sendable>(_ body: @escaping @Sendable (any StoredRowWriter) throws -> T) async throws -> T {
    try await write([.upkeep], isBounded: false) { try body(PostgresRows(try Self.own($0))) }
  }

  static func own(_ reader: any MetadataReader) throws -> PostgresTransaction {
    guard let own = reader as? PostgresTransaction else { throw PostgresError.damaged }
    return own
  }
}
