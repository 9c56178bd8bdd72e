internal import Logging
internal import Synchronization
internal import ZDCProtocol

/// The background job that removes unreachable data and compacts the store's files while the server is idle.
struct Reaper {
  let core: ServerCore

  /// Runs a collection once an hour, and a tidy-up a few seconds after the last write. The first collection comes a minute
  /// after the start: a server that has just started serves its clients first.
  func run() async {
    var lastWrites: UInt64 = 0
    var tidied: UInt64 = 0
    var ticks = 0
    while (try? await Task.sleep(for: .seconds(5))) != nil {
      let writes = core.metadata.writeStatistics.writes
      if writes == lastWrites, writes != tidied {
        tidied = writes
        await attempt("tidy") { try await core.metadata.compact() }
      }
      lastWrites = writes
      ticks += 1
      if core.takeClosing() { await attempt("remove closed zones") { try await removeClosedNodes() } }
      if ticks % 720 == 12, await core.coordination.claimUpkeep() { await attempt("collect") { try await collect() } }
    }
  }

  /// Removes the nodes of closed zones in steps, between which other writes run.
  private func removeClosedNodes() async throws {
    do {
      while try await core.metadata.write([.upkeep], { try $0.removeClosedNodes(limit: Self.closingBatch) }) {}
    } catch {
      core.setClosing()
      throw error
    }
  }

  private func attempt(_ what: String, _ body: () async throws -> Void) async {
    do { try await body() } catch { core.logger.warning("upkeep failed", metadata: ["step": "\(what)"]) }
  }

  /// Removes data that was replaced or deleted before the retention period, abandoned uploads, and files without a row.
  ///
  /// Rows go first: the next pass finds a file without a row, but a row without a file would be lost content.
  func collect() async throws {
    try await removeClosedNodes()
    let bounds = core.configuration.bounds
    let (now, elapsed) = (core.now, core.elapsed)
    guard try await mayCollect(now: now, elapsed: elapsed) else {
      return core.logger.warning("the clock has jumped ahead: nothing is collected for a day; check the system time")
    }
    let replacedBefore = now - min(now, bounds.retentionMs)
    let abandonedBefore = now - min(now, bounds.abandonedUploadMs)
    while true {
      let step = try await core.metadata.write([.upkeep]) { tx in
        try tx.collect(replacedBefore: replacedBefore, abandonedBefore: abandonedBefore, limit: Self.batch)
      }
      await removeFiles(of: step)
      guard step.isMore else { break }
    }
    try await removeRequests(receivedBefore: now - min(now, bounds.requestMs))
    try await removeClosedAccounts(closedBefore: now - min(now, bounds.closedAccountMs))
    try await core.metadata.write([.upkeep]) { try $0.removeExpiredSessions(now: now) }
    core.sessions.remove { $0.expiresMs <= now }
    try await core.blobs.forEachBatch { await core.removeFiles(of: $0) }
  }

  private func removeFiles(of step: Collected) async {
    await core.removeFiles(of: step.files)
    await core.removeFiles(of: step.uploads, areUploads: true)
  }

  private func removeRequests(receivedBefore: UInt64) async throws {
    var isMore = true
    while isMore {
      isMore = try await core.metadata.write([.upkeep]) { tx in
        try tx.removeRequests(receivedBefore: receivedBefore, limit: Self.requestBatch)
      }
    }
  }

  private func removeClosedAccounts(closedBefore: UInt64) async throws {
    while true {
      let step = try await core.metadata.write([.upkeep]) { tx in
        try tx.removeClosedAccounts(closedBefore: closedBefore, limit: Self.batch)
      }
      await removeFiles(of: step)
      guard step.isMore else { return }
      // A session of the account may still be in memory.
      core.sessions.remove { _ in true }
    }
  }

  private func mayCollect(now: UInt64, elapsed: UInt64) async throws -> Bool {
    let newest = try await core.metadata.read { try $0.lastReceivedMs() }
    return core.collection.withLock { $0.mayCollect(now: now, elapsed: elapsed, newest: newest) }
  }

  private static let batch: Int = 1_000
  /// A request has up to 1 MiB.
  private static let requestBatch: Int = 50
  /// Bounds the time that a step holds the store's writer.
  private static let closingBatch: Int = 250
}
