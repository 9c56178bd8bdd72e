package import GRDB
internal import Synchronization
internal import ZDCProtocol
internal import ZDCSupport

/// A connection to the database. Blocks run on the database's queues, never on the caller's actor.
///
/// Reads see the last commit and run concurrently with a write. Writes run one after another, across processes. A block
/// is synchronous: it cannot await, and must not open another transaction. It uses the one that it receives.
///
/// For transactions that concern the app's own data, or several local users. For one user's nodes, ``ZDCUserTree`` is
/// shorter.
///
/// ```swift
/// let connection = session.databaseManager.rwDatabaseConnection
/// try await connection.write { transaction in
///   transaction.setObject(task, forKey: task.uuid, inCollection: "tasks")
/// }
/// let count = try await connection.read { try $0.numberOfKeys(inCollection: "tasks") }
/// ```
public final class ZDCDatabaseConnection: Sendable {
  package let pool: DatabasePool
  package let context: DatabaseContext
  package let observations: Observations
  private let checkpointer: Checkpointer?
  private let isReadOnly: Bool

  package init(
    pool: DatabasePool, context: DatabaseContext, observations: Observations, checkpointer: Checkpointer? = nil,
    isReadOnly: Bool
  ) {
    self.pool = pool
    self.context = context
    self.observations = observations
    self.checkpointer = checkpointer
    self.isReadOnly = isReadOnly
  }

  // MARK: Reading

  /// Reads, blocking the caller.
  ///
  /// Waits for a free connection, never for a write.
  ///
  /// ```swift
  /// func isStored(_ task: Task) throws -> Bool {  // not async: Swift chooses the blocking form
  ///   try connection.read { $0.hasObject(forKey: task.uuid, inCollection: "tasks") }
  /// }
  /// ```
  ///
  /// - Throws: The block's error, or the first one that poisoned the transaction. `ZDCError` with `databaseLocked` if
  ///   the framework is closed, `corruptDatabase`, `databaseBusy`, `diskFull` or `databaseFailure`. `DatabaseError` for
  ///   any other failure of the app's own statements.
  @_disfavoredOverload
  public func read<T>(_ body: (ZDCReadTransaction) throws -> T) throws -> T {
    try translating { try pool.read { try self.run(body, $0) } }
  }

  /// Reads without blocking. A task cancelled before its turn throws `CancellationError`; a block that has begun runs
  /// to its end.
  ///
  /// ```swift
  /// let task = try await connection.read { transaction in
  ///   try transaction.object(Task.self, forKey: taskID, inCollection: "tasks")
  /// }
  /// ```
  ///
  /// - Throws: As the blocking form, and `CancellationError`.
  public func read<T: Sendable>(_ body: @escaping @Sendable (ZDCReadTransaction) throws -> T) async throws -> T {
    let isCancelled = Mutex(false)
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        // The pool's own asynchronous read returns its connection from the task. That task may wait for a thread while
        // blocking reads, which wait for a connection, occupy all threads.
        pool.asyncRead { database in
          let result = Result {
            if isCancelled.withLock({ $0 }) { throw CancellationError() }
            return try self.run(body, try database.get())
          }
          continuation.resume(with: result.mapError(translated))
        }
      }
    } onCancel: {
      isCancelled.withLock { $0 = true }
    }
  }

  /// Reads without blocking; another name for the asynchronous `read`.
  ///
  /// ```swift
  /// let count = try await connection.asyncRead { try $0.numberOfKeys(inCollection: "tasks") }
  /// ```
  public func asyncRead<T: Sendable>(
    _ body: @escaping @Sendable (ZDCReadTransaction) throws -> T
  ) async throws -> T {
    try await read(body)
  }

  /// Schedules a read and returns immediately. Without a completion, errors go to the log and the status stream.
  ///
  /// The completion runs on a database queue and should return quickly.
  ///
  /// ```swift
  /// connection.asyncRead { transaction in
  ///   try transaction.keys(inCollection: "tasks")
  /// } completion: { result in
  ///   if case .success(let keys) = result { refreshList(keys) }
  /// }
  /// ```
  public func asyncRead<T: Sendable>(
    _ body: @escaping @Sendable (ZDCReadTransaction) throws -> T,
    completion: (@Sendable (Result<T, any Error>) -> Void)? = nil
  ) {
    pool.asyncRead { database in
      self.finish(Result { try self.run(body, try database.get()) }, completion)
    }
  }

  // MARK: Writing

  /// Writes, blocking the caller until the commit is on disk.
  ///
  /// Waits for all writes before it, including those of other processes. Keep it off the main thread.
  ///
  /// ```swift
  /// func remove(_ task: Task) throws {  // not async: Swift chooses the blocking form
  ///   try connection.write { $0.removeObject(forKey: task.uuid, inCollection: "tasks") }
  /// }
  /// ```
  ///
  /// - Throws: The block's error, or the first one that poisoned the transaction; the errors of `read`; `ZDCError` with
  ///   `readOnlyConnection` or `databaseNotWritable`. In all cases everything is rolled back.
  @_disfavoredOverload
  public func write<T>(_ body: (ZDCReadWriteTransaction) throws -> T) throws -> T {
    try checkWritable()
    return try translating { try pool.writeWithoutTransaction { try self.write(body, $0) } }
  }

  /// Writes, and returns when the commit is on disk. A task that is cancelled before throws `CancellationError`, and
  /// nothing is written.
  ///
  /// Read the current value inside the block, as here: another write may have changed it since it was shown.
  ///
  /// ```swift
  /// try await connection.write { transaction in
  ///   guard var task = try transaction.object(Task.self, forKey: taskID, inCollection: "tasks") else { return }
  ///   task.completed = true
  ///   transaction.setObject(task, forKey: taskID, inCollection: "tasks")
  /// }
  /// ```
  ///
  /// - Throws: As the blocking form, and `CancellationError`.
  public func write<T: Sendable>(_ body: @Sendable (ZDCReadWriteTransaction) throws -> T) async throws -> T {
    try checkWritable()
    do {
      return try await pool.writeWithoutTransaction { try self.write(body, $0) }
    } catch { throw translated(error) }
  }

  /// Writes; another name for the asynchronous `write`.
  ///
  /// ```swift
  /// try await connection.asyncReadWrite { $0.removeObject(forKey: taskID, inCollection: "tasks") }
  /// ```
  @discardableResult
  public func asyncReadWrite<T: Sendable>(
    _ body: @Sendable (ZDCReadWriteTransaction) throws -> T
  ) async throws -> T {
    try await write(body)
  }

  /// Schedules a write and returns immediately, as in the original framework. Blocks run in the order of the calls.
  ///
  /// Without a completion, errors go to the log and the status stream. The completion runs on a database queue and
  /// should return quickly.
  ///
  /// ```swift
  /// connection.asyncReadWrite { transaction in
  ///   transaction.setObject(task, forKey: task.uuid, inCollection: "tasks")
  /// } completion: { result in
  ///   if case .failure(let error) = result { report(error) }
  /// }
  /// ```
  public func asyncReadWrite<T: Sendable>(
    _ body: @escaping @Sendable (ZDCReadWriteTransaction) throws -> T,
    completion: (@Sendable (Result<T, any Error>) -> Void)? = nil
  ) {
    guard !isReadOnly else { return finish(.failure(ZDCError(.readOnlyConnection)), completion) }
    pool.asyncWriteWithoutTransaction { database in
      self.finish(Result { try self.write(body, database) }, completion)
    }
  }

  // MARK: Running a block

  package func run<T>(_ body: (ZDCReadTransaction) throws -> T, _ db: Database) throws -> T {
    let transaction = ZDCReadTransaction(db, context: context)
    return try transaction.run { try body(transaction) }
  }

  /// Runs the block in a transaction, and the actions that it requested once the commit is on disk.
  ///
  /// GRDB's `afterNextTransaction` is no substitute: each call registers an observer, for which GRDB drops all of the
  /// connection's prepared statements that delete.
  private func write<T>(_ body: (ZDCReadWriteTransaction) throws -> T, _ db: Database) throws -> T {
    var committed: (result: T, actions: CommitActions?)?
    try db.inTransaction {
      checkpointer?.note(db)
      let transaction = ZDCReadWriteTransaction(db, context: context)
      committed = (try transaction.run { try body(transaction) }, transaction.commitActions)
      return .commit
    }
    // `inTransaction` throws if the block did.
    guard let committed else { throw ZDCError(.corruptDatabase) }
    committed.actions?.run(context.changes)
    return committed.result
  }

  package func finish<T>(
    _ result: Result<T, any Error>, _ completion: (@Sendable (Result<T, any Error>) -> Void)?
  ) {
    let result = result.mapError(translated)
    if let completion { return completion(result) }
    guard case .failure(let error) = result, !(error is CancellationError) else { return }
    context.logFailure(error)
    context.changes.report(error)
  }

  private func checkWritable() throws(ZDCError) {
    guard !isReadOnly else { throw ZDCError(.readOnlyConnection) }
  }
}
