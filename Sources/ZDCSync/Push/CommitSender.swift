internal import Foundation
internal import ZDCAccounts
internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport
internal import ZDCTransfers

/// Sends the stored commit of a zone, then completes or abandons it.
actor CommitSender {
  nonisolated private let executor: EngineExecutor
  nonisolated let session: SyncSession
  nonisolated let zone: Int64
  nonisolated let identity: IdentityCheck
  nonisolated let contents: ContentPool
  /// The zone's state after the last event.
  private(set) var state: ZoneSyncState
  /// Passes an event to the zone's state.
  private let report: @Sendable (ZoneSyncState.Event) async -> ZoneSyncState
  /// The first error that the app threw in a callback about pushed changes.
  private(set) var refusal: DelegateError?
  /// The node that a commit alone rotated, and that the server has refused.
  private(set) var refusedRotation: NodeID?

  init(
    session: SyncSession, zone: Int64, identity: IdentityCheck, contents: ContentPool, executor: EngineExecutor,
    state: ZoneSyncState, report: @escaping @Sendable (ZoneSyncState.Event) async -> ZoneSyncState
  ) {
    (self.session, self.zone, self.identity, self.contents) = (session, zone, identity, contents)
    (self.state, self.report, self.executor) = (state, report, executor)
  }

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.unownedExecutor }

  func handle(_ event: ZoneSyncState.Event) async { state = await report(event) }

  func note(_ refusal: DelegateError?) { self.refusal = self.refusal ?? refusal }

  func note(refusedRotation node: NodeID) { refusedRotation = node }

  func storedRequest() async throws -> InFlightStore.Request? {
    try await session.database.asyncRead { [zone] transaction in
      try InFlightStore(transaction: transaction).request(zone: zone)
    }
  }

  /// - Parameters:
  ///   - isNew: Whether no earlier attempt sent these bytes.
  ///   - split: The branch that the request splits off, if it is still in memory.
  func send(
    _ request: InFlightStore.Request, isNew: Bool = false, split: ZoneSplit? = nil
  ) async throws -> ZDCPushSummary {
    session.progress.begin(request.uploads)
    session.activity.sends()
    // The progress of accepted operations has already ended with their transaction.
    defer { session.progress.end(request.uploads, .waits) }
    return try await sendShown(request, isNew: isNew, split)
  }

  private func sendShown(
    _ request: InFlightStore.Request, isNew: Bool, _ split: ZoneSplit?
  ) async throws -> ZDCPushSummary {
    do {
      switch try await answer(to: request) {
      case .accepted(let response): return try await accepted(request, response, split)
      case .headMismatch(let page): return try await overtaken(page)
      }
    } catch let error as ServerError {
      return try await failed(error)
    } catch let error as TransportError where error.isBodyRefused {
      // A smaller commit may pass the proxy.
      await remember(error)
      return try await refused(error, detail: error.detail)
    } catch {
      await remember(error)
      if isNew, let error = error as? TransportError, error.isUnsent { try await takeBack(request) }
      throw error
    }
  }

  /// Sends the request until the server's answer is final. If the system was given the request in the meantime, it may
  /// still reach the server, which could accept it although it refused it here.
  private func answer(to request: InFlightStore.Request) async throws -> PushAnswer {
    let (commit, handOver) = (request.commitHash, session.handOver)
    while true {
      await handOver.withdraw(.commit(commit))
      let before = handOver.handOvers(of: commit)
      do {
        let answer = try await session.api.push(request.body)
        if case .accepted = answer { return answer }
        guard handOver.handOvers(of: commit) != before else { return answer }
      } catch let error as ServerError {
        guard handOver.handOvers(of: commit) != before else { throw error }
      } catch let error as TransportError where error.isBodyRefused {
        guard handOver.handOvers(of: commit) != before else { throw error }
      }
    }
  }

  /// Drops a request that never left this device, so that a newer edit can replace it. The app is not asked again
  /// before the server has answered the next check of the identity chain.
  private func takeBack(_ request: InFlightStore.Request) async throws {
    guard !Task.isCancelled else { return }
    await identity.forget()
    await contents.forgetSealed()
    try await session.database.asyncReadWrite { [session, zone] transaction in
      // In the transaction, because a request is announced before it is read to be handed over.
      guard session.handOver.handOvers(of: request.commitHash) == 0 else { return }
      try InFlightCompletion(session: session, zone: zone, transaction: transaction).abandon()
    }
  }

  /// Adds this attempt to the history of the operations in flight.
  func remember(_ error: any Error) async {
    // An aborted attempt is not a failure, and a cancelled task cannot write.
    guard !Task.isCancelled else { return }
    do {
      try await session.database.asyncReadWrite { [zone] transaction in
        let operations = try InFlightStore(transaction: transaction).operations(zone: zone).map(\.operation)
        try transaction.record(error, orElse: .appFailed, of: operations)
      }
    } catch { session.events.report(error) }
  }

  private func accepted(
    _ request: InFlightStore.Request, _ response: CommitResponse, _ split: ZoneSplit?
  ) async throws -> ZDCPushSummary {
    session.handOver.forget(request.commitHash)
    let page = try PageContents(ownRequest: request.body, receivedMs: response.receivedMs)
    let origins = ZoneOrigins(ownRequest: page, split: split)
    let writers = try await session.keys(of: origins.signers, zone: zone)
    let ((done, isDrained, left), refusal) = try await session.writeNotifyingDelegate { [session, zone] transaction in
      let before = try transaction.zones.zone(id: zone)
      let done = try InFlightStore(transaction: transaction).operations(zone: zone)
      _ = try PageApplier(
        session: session, zone: zone, transaction: transaction, writers: writers, origins: origins
      ).apply(page)
      let isLeft = try transaction.zones.zone(id: zone) == nil
      return (done, try transaction.operations.isEmpty(localUser: session.localUser), isLeft ? before : nil)
    }
    note(refusal)
    if let left { await ZonePuller(session: session, zone: zone).forgetIfLost(left) }
    await contents.accepted(done)
    for item in page.commits where item.commit.hash == request.commitHash {
      let head = ZoneSyncState.Head(seq: item.commit.fields.seq, hash: item.commit.hash)
      await handle(.accepted(head: head, operations: done.map(\.operation)))
    }
    return ZDCPushSummary(commits: 1, operations: done.count, isDrained: isDrained)
  }

  /// Handles a head mismatch: another device's commit came first, or this commit was accepted before and the answer was
  /// lost.
  private func overtaken(_ page: CommitPage) async throws -> ZDCPushSummary {
    let before = try await storedRequest()
    let puller = ZonePuller(session: session, zone: zone)
    // A genesis was overtaken only if a commit of this zone began that zone.
    let known = try await puller.zoneRow()?.zone
    let isOther = page.zone.map { $0 != known } ?? false
    var pulled = try await isOther ? puller.pull() : puller.take(page)
    // The event stream may have already delivered the other commit.
    var isOutrun = try await isOutrun(before)
    if page.hasMore || (pulled.summary.commits == 0 && !isOutrun) {
      pulled += try await ZonePuller(session: session, zone: zone).pull()
      isOutrun = try await self.isOutrun(before)
    }
    note(pulled.refusal)
    let after = try await storedRequest()
    if before != nil, after == nil { return ZDCPushSummary(commits: 1) }
    // The server rejects the commit but shows no newer one, so send the same bytes again later.
    guard pulled.summary.commits > 0 || isOutrun else {
      throw ServerError(.headMismatch, "the server names another head and shows no commit for it", retryable: true)
    }
    try await abandon(outcome: .overtaken)
    // The caller's loop makes a new plan based on the new head.
    return ZDCPushSummary(commits: 1)
  }

  /// Returns whether the verified log has another commit at the position of the request's commit. A pull may have run
  /// between the refusal, whose answer was lost, and this attempt.
  func isOutrun(_ request: InFlightStore.Request?) async throws -> Bool {
    guard let request else { return false }
    let commits = try PageContents(ownRequest: request.body).commits
    let head = try await session.database.asyncRead { [zone] transaction in try transaction.zones.zone(id: zone)?.head }
    guard let head else { return false }
    return commits.allSatisfy { $0.commit.fields.seq <= head.seq }
  }

  @discardableResult
  func abandon(
    reason: OperationRow.Reason = .ready, detail: String? = nil, pauseMs: UInt64? = nil,
    contentOnly: Bool = false, outcome: ZDCAttempt.Outcome? = nil
  ) async throws -> Int {
    try await session.database.asyncReadWrite { [session, zone] transaction in
      try InFlightCompletion(session: session, zone: zone, transaction: transaction).abandon(
        reason: reason, detail: detail, notBeforeMs: pauseMs.map { session.now() + $0 } ?? 0,
        contentOnly: contentOnly, outcome: outcome)
    }
  }
}
