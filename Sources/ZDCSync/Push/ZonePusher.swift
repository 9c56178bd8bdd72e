internal import Foundation
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport

/// Pushes one commit of a zone: chooses operations, asks the app for content, and builds and stores the commit, which
/// ``CommitSender`` sends.
actor ZonePusher {
  nonisolated private let executor: EngineExecutor
  package nonisolated let session: SyncSession
  package nonisolated let zone: Int64
  package nonisolated let identity: IdentityCheck
  package nonisolated let contents: ContentPool
  nonisolated let sender: CommitSender
  /// The first error that the app threw in a callback about pushed changes.
  package var refusal: DelegateError? { get async { await sender.refusal } }

  package init(
    session: SyncSession, zone: Int64, identity: IdentityCheck, contents: ContentPool, executor: EngineExecutor,
    state: ZoneSyncState, report: @escaping @Sendable (ZoneSyncState.Event) async -> ZoneSyncState
  ) {
    (self.session, self.zone, self.identity, self.contents) = (session, zone, identity, contents)
    self.executor = executor
    sender = CommitSender(
      session: session, zone: zone, identity: identity, contents: contents, executor: executor, state: state,
      report: report)
  }

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.unownedExecutor }

  package func push() async throws -> ZDCPushSummary {
    let records = await contents.takePrefetched()
    try await contents.stopForgottenUploads()
    switch try await look() {
    case .nothing: return ZDCPushSummary()
    case .request(let request): return try await sender.send(request)
    case .retirement: return try await retireKeys()
    case .choice(let choice): return try await push(choice, records)
    case .lists(let choice): return try await push(choice)
    case .split(let choice): return try await push(choice)
    case .moves: return try await beginMoves()
    case .takeOver: return try await takeMessagesOver()
    case .deliveries(let due): return try await MessageSender(session: session, zone: zone).send(due)
    case .profile(let change):
      let publisher = ProfilePublisher(session: session, zone: zone, identity: identity)
      let (summary, refusal) = try await publisher.publish(change)
      await sender.note(refusal)
      return summary
    }
  }

  private func push(_ chosen: Choice, _ records: [Int64: PresealedRecord]) async throws -> ZDCPushSummary {
    var choice = chosen
    var summary = ZDCPushSummary()
    choice.failures = await contents.supply(choice.answers, zone: choice.zone.zone)
    summary.waiting =
      await choice.plan.waiting.count + contents.openPromises(of: choice.plan.steps.compactMap(\.node))
    summary.calledApp = !(choice.conflicts.isEmpty && choice.refusals.isEmpty)
    guard let built = try await buildAndStore(choice, records) else { return summary }
    // Only after a full commit: after any smaller one, the rest of the queue cannot be sent yet.
    let isFull = choice.plan.taken >= Limits.commitOperations
    if isFull, await sender.state.commitLimit == nil { await contents.prepareAhead() }
    let sent = try await sender.send(built, isNew: true)
    summary.commits = sent.commits
    summary.triesAgain = sent.triesAgain
    summary.operations = sent.operations
    summary.isDrained = sent.isDrained
    return summary
  }

  private func takeMessagesOver() async throws -> ZDCPushSummary {
    try await session.database.asyncReadWrite { [session, zone] transaction in
      try OutgoingMessages(session: session, transaction: transaction).takeOver(in: zone)
    }
    return ZDCPushSummary(triesAgain: true)
  }

  private func beginMoves() async throws -> ZDCPushSummary {
    let refusal = try await session.database.asyncReadWrite { [session, zone] transaction in
      try CrossingBeginning(session: session, zone: zone, transaction: transaction).run()
    }
    await sender.note(refusal)
    var summary = ZDCPushSummary(triesAgain: true)
    summary.changedQueue = true
    return summary
  }

  // MARK: Planning

  private func look() async throws -> PushPlanner.Due {
    let chooser = await contents.chooser(limit: sender.state.commitLimit)
    let due = try await session.database.asyncRead { try chooser.due($0) }
    if case .choice(let choice) = due { await note(choice) }
    return due
  }

  /// Updates the zone's state and the content pool after a choice.
  private func note(_ choice: Choice) async {
    if let next = choice.plan.nextMs { await sender.handle(.operationsPaused(for: pause(untilMs: next))) }
    await contents.forget(choice.conflicts.compactMap(\.node))
    // The sealed content of unread nodes would leave no room for other nodes.
    await contents.forgetSealed(of: choice.unread)
  }

  func pause(untilMs time: UInt64) -> Duration {
    let now = session.now()
    return .milliseconds(time > now ? Int64(min(time - now, Backoff.longestPauseMs)) : 0)
  }

  // MARK: Building

  private func buildAndStore(
    _ choice: Choice, _ ahead: [Int64: PresealedRecord]
  ) async throws -> InFlightStore.Request? {
    let content = await contents.snapshot
    let hasWork = choice.plan.steps.contains {
      $0.isDelete || !$0.recordOperations.isEmpty || content.ready[$0.node ?? 0] != nil
    }
    guard hasWork || choice.hasNews else { return nil }
    return try await session.database.asyncReadWrite { [session] transaction in
      try PushStager(
        session: session, choice: choice, contents: content.ready, uploading: content.uploading, ahead: ahead,
        transaction: transaction
      ).stage()
    }
  }
}
