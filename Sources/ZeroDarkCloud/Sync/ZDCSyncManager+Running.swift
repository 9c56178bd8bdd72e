internal import ZDCProtocol

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

  /// Runs `body` as the process that syncs, or waits while another one does the work.
  ///
  /// - Parameter isDone: asked again and again while another process syncs; true ends the waiting. If that process
  ///   ends first, `body` runs here.
  package func syncOrWait(
    until isDone: @Sendable () async throws -> Bool, _ body: @Sendable () async throws -> Void
  ) async throws {
    while try await whileSyncing(body) == nil {
      if try await isDone() { return }
      try await Task.sleep(for: config.changePollInterval)
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
    var running: [String: Task<Void, Never>] = [:]
    for await _ in Self.first(then: database.context.changes.hints(.localUsers)) {
      guard let users = await readyUsers() else { continue }
      for (user, task) in running where !users.contains(user) {
        await Self.end([task])
        running[user] = nil
        engines.withLock { $0[user] = nil }
      }
      for user in users where running[user] == nil { running[user] = Task { await self.runEngine(user) } }
    }
    await Self.end(Array(running.values))
  }

  private static func end(_ tasks: [Task<Void, Never>]) async {
    for task in tasks { task.cancel() }
    for task in tasks { await task.value }
  }

  private func runEngine(_ localUserID: String) async {
    do {
      let engine = try await engine(for: localUserID)
      await SyncLoop(engine: engine, changes: database.context.changes, reachability: reachability).run()
    } catch {
      hub.post(.error(localUserID: localUserID, error))
    }
  }

  /// nil if that is not known.
  private func readyUsers() async -> [String]? {
    do { return try await users.allLocalUserIDs() } catch {
      hub.post(.error(localUserID: "", error))
      return nil
    }
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
