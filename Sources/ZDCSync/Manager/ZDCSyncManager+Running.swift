internal import GRDB
internal import ZDCAccounts
internal import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport

// Which process syncs, and the engines of the one that does.

extension ZDCSyncManager {
  // MARK: One process at a time

  /// Runs `body` as the process that syncs this database.
  ///
  /// - Returns: nil if another process does; `body` was not run then.
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
    guard let result = try await whileSyncing(body) else { throw ZDCError(.syncedElsewhere) }
    return result
  }

  /// Runs `body` as the process that syncs, or waits while another one does the work, as long as that makes progress.
  ///
  /// - Parameter left: asked again and again while another process syncs: what it has not done yet, nil for nothing. If
  ///   that process ends first, `body` runs here.
  /// - Returns: false if the other process was given up. What is queued stays queued.
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

  /// Parts of uploads that are under way, of whatever process.
  private func partsSent() async throws -> Int {
    try await database.roDatabaseConnection.asyncRead { transaction in
      try Int.fetchOne(transaction.database, sql: "SELECT COUNT(*) FROM zdc_upload_part") ?? 0
    }
  }

  /// Whether another process runs the engines of this database now.
  public func isSyncedElsewhere() throws -> Bool {
    guard try database.engineLease.tryAcquire() else { return true }
    database.engineLease.release()
    return false
  }

  private func forgetWhatOthersChanged(_ generation: Int) async {
    let isKnown = knownGeneration.withLock { known in
      defer { known = generation }
      return known == generation
    }
    guard !isKnown else { return }
    for engine in engines.withLock({ Array($0.values) }) { await engine.startAnew() }
  }

  // MARK: In the background

  /// Runs the engines of all local users, those that come later too, until the task is cancelled.
  ///
  /// While another process runs them this one waits to take over. Either way it notices what other processes commit:
  /// observations refresh, and what they queue is sent.
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
    // By row: a user who was removed and has logged in again has another one.
    var running: [Int64: Task<Void, Never>] = [:]
    for await _ in Self.first(then: database.context.changes.hints(.localUsers)) {
      guard let users = await readyUsers() else { break }
      for (row, task) in running where users[row] == nil {
        await Self.end([task])
        running[row] = nil
        engines.withLock { engines in engines = engines.filter { $0.value.session.localUser != row } }
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

  /// - Returns: the local users by row; nil if the task was cancelled.
  private func readyUsers() async -> [Int64: String]? {
    await persistently("") { [connection = database.roDatabaseConnection] in
      try await connection.asyncRead { transaction in
        let ready = try transaction.localUsers.all().filter { $0.state == .ready }
        return Dictionary(uniqueKeysWithValues: ready.map { ($0.id, $0.userID.text) })
      }
    }
  }

  /// Tries until it succeeds: a failure at launch, such as a busy database, would else stop the engine for good.
  ///
  /// - Returns: nil if the task was cancelled.
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

  /// One element at once, then one for each hint.
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
