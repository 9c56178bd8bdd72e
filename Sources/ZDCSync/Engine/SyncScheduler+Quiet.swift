internal import ZDCClientStore
internal import ZDCProtocol

extension SyncScheduler {
  /// Pulls and pushes until no operation can run. Waiting operations are counted, not waited for.
  ///
  /// An error of one zone, or of the app, does not hold up the other zones. It is thrown at the end.
  ///
  /// - Parameter pulls: False for a caller that has just pulled.
  package func syncUntilIdle(pulls: Bool = true) async throws -> ZDCSyncSummary {
    var summary = ZDCSyncSummary()
    let pulled = pulls ? try await pullRound() : ZoneRound(ZDCPullSummary())
    var failure = pulled.failure
    summary.pulled = pulled.summary
    let rule = IdleDetector(queued: try await endPauses())
    var rounds = rule
    var failed: Set<Int64> = []
    while true {
      let round = try await pushRound(except: failed) { try await $0.pushUntilIdle(rule) }
      failure = failure ?? round.failure
      failed.formUnion(round.failedZones)
      summary.pushed.commits += round.summary.commits
      summary.pushed.operations += round.summary.operations
      // The app may have changed another zone in a callback.
      guard rounds.shouldContinue(after: round.summary, uploadsSettled: 0) else { break }
    }
    if let failure { throw publicError(failure) }
    return try await session.database.asyncRead { [session, summary] transaction in
      try transaction.addRemainder(to: summary, localUser: session.localUser, tree: session.appTreeID)
    }
  }

  /// Ends the pauses of operations, because a sync on request does not wait for the engine's next retry.
  ///
  /// - Returns: The number of queued operations.
  private func endPauses() async throws -> Int {
    let (count, isPaused) = try await session.database.asyncRead { [session] transaction in
      let operations = transaction.operations
      return (
        try operations.count(localUser: session.localUser),
        try operations.hasPauses(localUser: session.localUser)
      )
    }
    if isPaused {
      try await session.database.asyncReadWrite { [session] transaction in
        try transaction.operations.endPauses(localUser: session.localUser)
      }
    }
    return count
  }
}

extension ZDCReadTransaction {
  /// Adds the counts of queued operations, frozen zones and unreadable nodes after a sync without errors.
  fileprivate func addRemainder(to summary: ZDCSyncSummary, localUser: Int64, tree: String) throws -> ZDCSyncSummary {
    var summary = summary
    let queued = try operations.countByReason(localUser: localUser, tree: tree)
    let count = queued.values.reduce(0, +)
    let isPaused = try pushPause(localUser: localUser) != nil && count > 0
    summary.stillQueued = isPaused ? [.paused: count] : queued
    summary.pushed.waiting = count
    summary.frozenZones = try frozenZones(localUser: localUser)
    summary.unreadableNodes = try unreadableNodeCount(localUser: localUser)
    return summary
  }
}
