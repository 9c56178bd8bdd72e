internal import ZeroDarkCloud

extension TestDevice {
  /// Runs the engines of all accounts, event stream included, until the task is cancelled.
  ///
  /// ```swift
  /// let engine = try a.runInBackground()
  /// try await a.create("/note", "milk")
  /// engine.cancel()
  /// ```
  public func runInBackground() throws -> Task<Void, Never> {
    let manager = try syncManager
    return Task { await manager.run() }
  }

  /// Runs `body` while the engines run, and returns when they have ended. A transaction in which the delegate was
  /// called may still be open when `body` returns; it is committed first.
  ///
  /// ```swift
  /// try await b.whileRunning {
  ///   try await a.create("/notes", "hello")
  ///   try await a.sync()
  ///   await b.recorder.wait(for: "new /notes")  // by the event stream
  /// }
  /// ```
  public func whileRunning(_ body: @Sendable () async throws -> Void) async throws {
    let updates = try syncManager.statusUpdates
    let engines = try runInBackground()
    do {
      for await update in updates {
        if case .online = update { break }
      }
      try await body()
      try await database.write { _ in }
    } catch {
      engines.cancel()
      await engines.value
      throw error
    }
    engines.cancel()
    await engines.value
  }
}
