internal import Foundation
internal import ZDCAccounts
internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport
internal import ZDCTransfers

// Handles a stored commit: sends it, then completes or abandons it.

extension ZonePusher {
  /// - Parameter isNew: Whether no earlier attempt sent these bytes.
  package func send(_ request: InFlightStore.Request, isNew: Bool = false) async throws -> ZDCPushSummary {
    session.progress.begin(request.uploads)
    session.activity.sends()
    // The progress of accepted operations has already ended with their transaction.
    defer { session.progress.end(request.uploads, .waits) }
    return try await sendShown(request, isNew: isNew)
  }

  private func sendShown(
    _ request: InFlightStore.Request, isNew: Bool
  ) async throws -> ZDCPushSummary {
    do {
      switch try await answer(to: request) {
      case .accepted(let response): return try await accepted(request, response)
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
  private func remember(_ error: any Error) async {
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
    _ request: InFlightStore.Request, _ response: CommitResponse
  ) async throws -> ZDCPushSummary {
    session.handOver.forget(request.commitHash)
    let page = try PageContents(ownRequest: request.body, receivedMs: response.receivedMs)
    let origins = ZoneOrigins(ownRequest: page)
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
  private func isOutrun(_ request: InFlightStore.Request?) async throws -> Bool {
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

  private func failed(_ error: ServerError) async throws -> ZDCPushSummary {
    await remember(error)
    switch PushFailure(error) {
    case .noAccess where try await hasOwnerClosed(error):
      try await abandon(reason: .notAllowed, detail: error.code.rawValue)
      return ZDCPushSummary()
    case .noAccess where error.code == .forbidden: return try await forbidden(error)
    case .unknownOutcome, .retryLater, .noAccess: throw error
    case .contentLost: return try await contentLost(error)
    case .overQuota(let pause): return try await overQuota(error, pauseMs: pause)
    case .refused where try await isListChange():
      return try await listRefused(error)
    case .refused where error.security == .writerNotAuthorized:
      if try await signsWithNewKeys() { return ZDCPushSummary(triesAgain: true) }
      return try await refused(error, detail: error.security?.rawValue ?? error.code.rawValue)
    case .refused:
      return try await refused(error, detail: error.security?.rawValue ?? error.code.rawValue)
    }
  }

  /// Drops a request that the server would never accept. It checks whether the user may write before it compares the heads, so
  /// a request from before the list took that right away gets no page.
  private func forbidden(_ error: ServerError) async throws -> ZDCPushSummary {
    let request = try await storedRequest()
    note(try await ZonePuller(session: session, zone: zone).pull().refusal)
    // The pull may have found the request's commit in the log.
    guard try await storedRequest() != nil else { return ZDCPushSummary(triesAgain: true) }
    guard try await isOutrun(request) else { throw error }
    try await abandon(outcome: .overtaken)
    return ZDCPushSummary(triesAgain: true)
  }

  /// Returns whether the zone's owner has closed their account, as their identity chain confirms.
  private func hasOwnerClosed(_ error: ServerError) async throws -> Bool {
    guard error.code == .accountClosed, let owner = error.user else { return false }
    let row = try await session.database.asyncRead { [zone] transaction in try transaction.zones.zone(id: zone) }
    guard row?.owner == owner else { return false }
    return try await OwnerCheck(session: session).confirm(owner)
  }

  /// Returns whether the user's keys were rotated on another device. The request was then signed with an old key, and
  /// is made again.
  private func signsWithNewKeys() async throws -> Bool {
    let before = try PageContents(ownRequest: try await storedRequest()?.body ?? []).commits.first?.commit.fields
      .writerGen
    guard let before, try await identity.hasNewKeys(since: before) else { return false }
    try await abandon()
    return true
  }

  private func contentOperations() async throws -> [OperationRow] {
    try await session.database.asyncRead { [zone] transaction in
      try InFlightStore(transaction: transaction).operations(zone: zone)
        .compactMap { try transaction.operations.operation(id: $0.operation) }.filter { $0.kind == .putData }
    }
  }

  /// Queues lost content again when the server does not store a blob that the request in flight names.
  ///
  /// - Returns: Whether the request names content that this device sent before and has now queued again.
  private func requeueLostContent() async throws -> Bool {
    let isQueued = try await session.database.asyncReadWrite { [session, zone] transaction in
      try LostContent(session: session, zone: zone, transaction: transaction).requeueInFlight()
    }
    if isQueued { _ = try await ZonePuller(session: session, zone: zone).pull() }
    return isQueued
  }

  /// Sends content with a blob again: immediately the first time, later after growing pauses. If the request names
  /// several blobs, smaller commits show which is gone. Content that is inlined in the commit is kept.
  private func contentLost(_ error: ServerError) async throws -> ZDCPushSummary {
    if try await requeueLostContent() {
      try await abandon()
      return ZDCPushSummary(triesAgain: true)
    }
    let sources = try await moveSources()
    if try await pull(sources) > 0 {
      try await abandon()
      return ZDCPushSummary(triesAgain: true)
    }
    let operations = try await contentOperations()
    guard !operations.isEmpty else {
      let code = error.code.rawValue
      return try await sources.isEmpty ? setAside(error, detail: code) : refused(error, detail: code)
    }
    let nodes = operations.compactMap(\.node)
    if await contents.uploaded(among: nodes).count > 1, try await split() { return ZDCPushSummary(triesAgain: true) }
    await handle(.contentLost(operations: operations.map(\.id)))
    await contents.forgetUploaded(of: nodes)
    let losses = state.losses(of: operations.map(\.id))
    let pause = Backoff.pause(losses: losses, random: session.time.random())
    try await abandon(
      reason: pause == 0 ? .ready : .serverSaid, detail: pause == 0 ? nil : error.code.rawValue,
      pauseMs: pause == 0 ? nil : pause, contentOnly: pause > 0)
    if pause == 0 { return ZDCPushSummary(triesAgain: true) }
    session.events.report(error)
    return await noteRefusal()
  }

  /// Sends operations without content separately, because they need no quota, unless the server refuses those too.
  private func overQuota(_ error: ServerError, pauseMs: UInt64) async throws -> ZDCPushSummary {
    let hasContent = try await !contentOperations().isEmpty
    let free = try await abandon(
      reason: .overQuota, detail: error.code.rawValue, pauseMs: pauseMs, contentOnly: hasContent)
    session.events.report(error)
    return ZDCPushSummary(triesAgain: free > 0)
  }

  /// Halves a refused commit of several nodes. If the commit has one node, its operation is set aside.
  private func refused(_ error: any Error, detail: String) async throws -> ZDCPushSummary {
    if try await split() { return ZDCPushSummary(triesAgain: true) }
    return try await setAside(error, detail: detail)
  }

  /// Drops the request and halves the commits that follow.
  ///
  /// - Returns: False if the request has only one node, and stays.
  private func split() async throws -> Bool {
    let outcomes = try await session.database.asyncRead { [zone] transaction in
      try InFlightStore(transaction: transaction).outcomes(zone: zone)
    }
    let nodes = Set(outcomes.map { $0.node ?? -$0.operation }).count
    guard nodes > 1 else { return false }
    await handle(.split(nodes: nodes))
    try await abandon()
    return true
  }

  func setAside(_ error: any Error, detail: String) async throws -> ZDCPushSummary {
    if (error as? ServerError)?.security == .duplicateName, try await !isRetry() {
      // Retry immediately: the node is then put under another name.
      try await abandon(reason: .serverSaid, detail: detail, pauseMs: 0)
      return ZDCPushSummary(triesAgain: true)
    }
    let pause = Backoff.pause(attempts: 8, random: 0.5 + session.time.random() / 2)
    try await abandon(reason: .serverSaid, detail: detail, pauseMs: pause)
    session.events.report(error)
    return await noteRefusal()
  }

  /// Returns whether an operation of the commit failed before, for any reason.
  private func isRetry() async throws -> Bool {
    try await session.database.asyncRead { [zone] transaction in
      try InFlightStore(transaction: transaction).operations(zone: zone)
        .contains { try transaction.operations.operation(id: $0.operation).map { $0.attempts > 0 } ?? false }
    }
  }

  private func noteRefusal() async -> ZDCPushSummary {
    await handle(.nodeRefused)
    return ZDCPushSummary(triesAgain: !state.isRefusedThroughout)
  }
}
