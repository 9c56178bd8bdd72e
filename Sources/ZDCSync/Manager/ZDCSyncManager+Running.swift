internal import GRDB
internal import ZDCAccounts
internal import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport

// The choice of the process that syncs, and that process's engines.

extension ZDCSyncManager {
  // MARK: One process at a time

  /// Runs `body` as the process that syncs this database.
  ///
  /// - Returns: Nil if another process syncs; `body` was then not run.
  package func whileSyncing<Result: Sendable>(
    _ body: @Sendable () async throws -> Result
  ) async throws -> Result? {
    let lease = database.engineLease
    guard try lease.tryAcquire() else { return nil }
    defer { lease.release() }
    await forgetWhatOthersChanged(lease.generation)
    return try await body()
  }

  func asEngine<Result: Sendable>(_ body: @Sendable () async throws -> Result) async throws -> Result {
    do {
      guard let result = try await whileSyncing(body) else { throw ZDCError(.syncedElsewhere) }
      return result
    } catch { throw publicError(error) }
  }

  /// Runs `body` as the process that syncs, or waits while another process does the work and makes progress.
  ///
  /// - Parameter left: Returns the work that the other process has not done yet, or nil for none. Called repeatedly
  ///   while another process syncs. If that process ends first, `body` runs here.
  /// - Returns: False if the other process made no progress. Queued operations stay queued.
  package func syncOrWait(
    for left: @Sendable () async throws -> HolderProgress?, _ body: @Sendable () async throws -> Void
  ) async throws -> Bool {
    let time = config.engineClock
    var wait: HolderWait?
    while try await whileSyncing(body) == nil {
      guard var seen = try await left() else { return true }
      seen.partsSent = try await partsSent()
      var current = wait ?? HolderWait(seen, at: time.now())
      guard current.isWorthwhile(seen, at: time.now()) else { return false }
      wait = current
      try await time.sleep(config.changePollInterval)
    }
    return true
  }

  /// Returns the number of recorded parts of pending uploads, in all processes.
  private func partsSent() async throws -> Int {
    try await database.roDatabaseConnection.asyncRead { transaction in
      try Int.fetchOne(transaction.database, sql: "SELECT COUNT(*) FROM zdc_upload_part") ?? 0
    }
  }

  /// Returns whether another process is running the engines of this database.
  ///
  /// The answer may be outdated when it arrives: the other process may end at any time.
  ///
  /// ```swift
  /// if try session.syncManager.isSyncedElsewhere() { show(["Another window syncs these changes"]) }
  /// ```
  public func isSyncedElsewhere() throws -> Bool {
    guard try database.engineLease.tryAcquire() else { return true }
    database.engineLease.release()
    return false
  }

  /// Resets the engines if another process has held the lease. Each caller waits for the reset: otherwise it would use an
  /// engine that is being reset.
  private func forgetWhatOthersChanged(_ generation: Int) async {
    let task = reset.withLock { known in
      if let known, known.generation == generation { return known.task }
      let task = Task { [engines, previous = known?.task] in
        await previous?.value
        for engine in engines.withLock({ Array($0.values) }) { await engine.startAnew() }
      }
      known = (generation, task)
      return task
    }
    await task.value
  }

  // MARK: In the background

  /// Runs the engines of all local users, including users added later, until the task is cancelled.
  ///
  /// While another process runs the engines, this one waits to take over. In either case it notices commits of other
  /// processes: observations are refreshed, and operations that they queue are sent.
  ///
  /// For services that set ``ZDCConfig/syncAutomatically`` to false and manage their tasks themselves:
  ///
  /// ```swift
  /// try await withThrowingTaskGroup(of: Void.self) { group in
  ///   group.addTask { await session.syncManager.run() }
  ///   group.addTask { try await serve() }
  ///   try await group.next()
  ///   group.cancelAll()
  /// }
  /// ```
  public func run() async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await self.database.changeWatcher.run() }
      group.addTask { await self.runWhenLeased() }
      group.addTask { await self.watchQueues() }
      await group.waitForAll()
    }
  }

  private func runWhenLeased() async {
    while !Task.isCancelled {
      do {
        if try await whileSyncing({ await self.runEngines() }) != nil { return }
      } catch {
        hub.post(.error(localUserID: "", error))
      }
      do { try await Task.sleep(for: config.changePollInterval) } catch { return }
    }
  }

  private func runEngines() async {
    // By row, because a user who was removed and has logged in again has a new row.
    var running: [Int64: Task<Void, Never>] = [:]
    for await _ in Self.first(then: database.context.changes.hints(.localUsers)) {
      guard let users = await readyUsers() else { break }
      for (row, task) in running where users[row] == nil {
        await Self.end([task])
        running[row] = nil
        for user in engines.withLock({ Array($0.keys) }) { forgetEngine(of: user) { $0 == row } }
      }
      for (row, user) in users where running[row] == nil { running[row] = Task { await self.runEngine(user) } }
    }
    await Self.end(Array(running.values))
  }

  private static func end(_ tasks: [Task<Void, Never>]) async {
    for task in tasks { task.cancel() }
    for task in tasks { await task.value }
  }

  private func runEngine(_ localUserID: String) async {
    guard let engine = await persistently(localUserID, { try await self.engine(for: localUserID) }) else { return }
    await BackgroundSync(scheduler: engine).run(changes: database.context.changes, reachability: reachability)
  }

  /// - Returns: The local users by row, or nil if the task was cancelled.
  private func readyUsers() async -> [Int64: String]? {
    await persistently("") { [connection = database.roDatabaseConnection] in
      try await connection.asyncRead { transaction in
        let ready = try transaction.localUsers.all().filter { $0.state == .ready }
        return Dictionary(uniqueKeysWithValues: ready.map { ($0.id, $0.userID.text) })
      }
    }
  }

  /// Retries until `body` succeeds. Otherwise a failure at launch, such as a busy database, would stop the engine
  /// permanently.
  ///
  /// - Returns: Nil if the task was cancelled.
  private func persistently<Value: Sendable>(
    _ localUserID: String, _ body: @Sendable () async throws -> Value
  ) async -> Value? {
    var backoff = Backoff()
    while !Task.isCancelled {
      do { return try await body() } catch { hub.post(.error(localUserID: localUserID, error)) }
      let pause = backoff.next(random: config.engineClock.random())
      do { try await config.engineClock.sleep(.milliseconds(Int64(pause))) } catch { return nil }
    }
    return nil
  }

  /// Returns a stream with one element immediately, then one for each hint.
  private static func first(then hints: AsyncStream<Void>) -> AsyncStream<Void> {
    AsyncStream { continuation in
      continuation.yield()
      let task = Task {
        for await _ in hints { continuation.yield() }
        continuation.finish()
      }
      continuation.onTermination = { _ in task.cancel() }
    }
  }
}
