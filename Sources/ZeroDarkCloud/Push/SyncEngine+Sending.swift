internal import Foundation
internal import ZDCCrypto
internal import ZDCProtocol

// How one commit goes out, from when it is stored: send, complete, or take it back.

extension SyncEngine {
  /// - Parameter isNew: whether no earlier attempt sent these bytes.
  func send(_ request: InFlightStore.Request, zone: Int64, isNew: Bool = false) async throws -> PushSummary {
    session.progress.begin(request.uploads)
    session.activity.sends()
    // What went through has ended with its transaction, whoever found out.
    defer { session.progress.end(request.uploads, .waits) }
    return try await sendShown(request, zone: zone, isNew: isNew)
  }

  private func sendShown(
    _ request: InFlightStore.Request, zone: Int64, isNew: Bool
  ) async throws -> PushSummary {
    do {
      switch try await session.api.push(request.body) {
      case .accepted(let response): return try await accepted(request, response, zone: zone)
      case .headMismatch(let page): return try await overtaken(page, zone: zone)
      }
    } catch let error as ServerError {
      return try await failed(error, zone: zone)
    } catch let error as TransportError where error.isBodyRefused {
      // A smaller commit may pass the proxy.
      await remember(error, zone: zone)
      return try await refused(error, detail: error.detail, zone: zone)
    } catch {
      await remember(error, zone: zone)
      if isNew, let error = error as? TransportError, error.isUnsent { try await takeBack(zone) }
      throw error
    }
  }

  /// The request never left this device. It is dropped, so that a newer edit takes its place, and the app is not asked
  /// again before the server has answered the next check of the identity chain.
  private func takeBack(_ zone: Int64) async throws {
    guard !Task.isCancelled else { return }
    forgetIdentityCheck()
    for (node, content) in ready where content.content.inlineBytes != nil { ready[node] = nil }
    try await abandon(zone)
  }

  /// What became of this try, in the history of the operations in flight.
  private func remember(_ error: any Error, zone: Int64) async {
    // An aborted try is no failure, and a cancelled task cannot write.
    guard !Task.isCancelled else { return }
    do {
      try await session.database.asyncReadWrite { transaction in
        let operations = try InFlightStore(transaction: transaction).operations(zone: zone).map(\.operation)
        try transaction.record(error, orElse: .appFailed, of: operations)
      }
    } catch { session.events.report(error) }
  }

  private func accepted(
    _ request: InFlightStore.Request, _ response: CommitResponse, zone: Int64
  ) async throws -> PushSummary {
    let page = try PageContents(ownRequest: request.body, receivedMs: response.receivedMs)
    let ((done, isDrained), refusal) = try await session.writeTelling { [session] transaction in
      let done = try InFlightStore(transaction: transaction).operations(zone: zone)
      _ = try PageApplier(session: session, zone: zone, transaction: transaction).apply(page)
      return (done, try transaction.operations.isEmpty(localUser: session.localUser))
    }
    self.isDrained = isDrained
    for item in page.commits { ownHeads[item.commit.fields.zone] = (item.commit.fields.seq, item.commit.hash) }
    pushRefusal = pushRefusal ?? refusal
    for (operation, node) in done {
      if let node, ready[node]?.claim.covers.contains(operation) == true { ready[node] = nil }
    }
    for (operation, _) in done { contentLosses[operation] = nil }
    refusals[zone] = nil
    limits[zone] = limits[zone].map { min($0 * 2, Limits.commitOperations) }
    return PushSummary(commits: 1, operations: done.count)
  }

  /// Somebody else's commit came first, or this one was there already and its answer was lost.
  private func overtaken(_ page: CommitPage, zone: Int64) async throws -> PushSummary {
    let before = try await storedRequest(zone)
    var pulled = try await puller(zone).take(page)
    // The event stream may have told of the other commit already.
    var isOutrun = try await isOutrun(before, zone: zone)
    if page.hasMore || (pulled.summary.commits == 0 && !isOutrun) {
      pulled += try await puller(zone).pull()
      isOutrun = try await self.isOutrun(before, zone: zone)
    }
    pushRefusal = pushRefusal ?? pulled.refusal
    let after = try await storedRequest(zone)
    if before != nil, after == nil { return PushSummary(commits: 1) }
    // A server that says no and shows no reason: the same bytes again, later.
    guard pulled.summary.commits > 0 || isOutrun else {
      throw ServerError(.headMismatch, "the server names another head and shows no commit for it", retryable: true)
    }
    try await abandon(zone, outcome: .overtaken)
    // The caller's loop plans again on the new head.
    return PushSummary(commits: 1)
  }

  /// Whether the verified log has another commit where the request's would be: a pull came between the refusal, whose
  /// answer was lost, and this try.
  private func isOutrun(_ request: InFlightStore.Request?, zone: Int64) async throws -> Bool {
    guard let request else { return false }
    let commits = try PageContents(request.body).commits
    let head = try await session.database.asyncRead { transaction in try transaction.zones.zone(id: zone)?.head }
    guard let head else { return false }
    return commits.allSatisfy { $0.commit.fields.seq <= head.seq }
  }

  @discardableResult
  private func abandon(
    _ zone: Int64, reason: OperationRow.Reason = .ready, detail: String? = nil, pauseMs: UInt64? = nil,
    contentOnly: Bool = false, outcome: ZDCAttempt.Outcome? = nil
  ) async throws -> Int {
    try await session.database.asyncReadWrite { [session] transaction in
      try InFlightCompletion(session: session, zone: zone, transaction: transaction).abandon(
        reason: reason, detail: detail, notBeforeMs: pauseMs.map { session.now() + $0 } ?? 0,
        contentOnly: contentOnly, outcome: outcome)
    }
  }

  private func failed(_ error: ServerError, zone: Int64) async throws -> PushSummary {
    await remember(error, zone: zone)
    switch PushFailure(error) {
    case .unknownOutcome, .retryLater, .noAccess: throw error
    case .contentLost: return try await contentLost(error, zone: zone)
    case .overQuota(let pause): return try await overQuota(error, pauseMs: pause, zone: zone)
    case .refused where error.security == .writerNotAuthorized:
      if try await signsWithNewKeys(zone: zone) { return PushSummary(triesAgain: true) }
      return try await refused(error, detail: error.security?.rawValue ?? error.code.rawValue, zone: zone)
    case .refused:
      return try await refused(error, detail: error.security?.rawValue ?? error.code.rawValue, zone: zone)
    }
  }

  /// The user's keys may have been rotated on another device: then the request was signed with an old one, and is made
  /// again.
  private func signsWithNewKeys(zone: Int64) async throws -> Bool {
    let before = try PageContents(try await storedRequest(zone)?.body ?? []).commits.first?.commit.fields.writerGen
    forgetIdentityCheck()
    try await requireIdentity()
    guard let before, before != session.keys.signGen else { return false }
    try await abandon(zone)
    return true
  }

  private func contentOperations(_ zone: Int64) async throws -> [OperationRow] {
    try await session.database.asyncRead { transaction in
      try InFlightStore(transaction: transaction).operations(zone: zone)
        .compactMap { try transaction.operations.operation(id: $0.operation) }.filter { $0.kind == .putData }
    }
  }

  /// Content with a blob is sent again: once now, later after pauses that grow. Which of several blobs is gone, smaller
  /// commits show. What travels in the commit is kept.
  private func contentLost(_ error: ServerError, zone: Int64) async throws -> PushSummary {
    if try await requeueLostContent(zone) {
      try await abandon(zone)
      return PushSummary(triesAgain: true)
    }
    let contents = try await contentOperations(zone)
    guard !contents.isEmpty else { return try await setAside(error, detail: error.code.rawValue, zone: zone) }
    let blobs = Set(contents.compactMap(\.node).filter { ready[$0]?.content.inlineBytes == nil })
    if blobs.count > 1, try await split(zone) { return PushSummary(triesAgain: true) }
    for operation in contents {
      contentLosses[operation.id, default: 0] += 1
      if let node = operation.node, ready[node]?.content.inlineBytes == nil { ready[node] = nil }
    }
    let losses = contents.compactMap { contentLosses[$0.id] }.max() ?? 1
    let pause = Backoff.pause(losses: losses, random: session.time.random())
    try await abandon(
      zone, reason: pause == 0 ? .ready : .serverSaid, detail: pause == 0 ? nil : error.code.rawValue,
      pauseMs: pause == 0 ? nil : pause, contentOnly: pause > 0)
    if pause == 0 { return PushSummary(triesAgain: true) }
    session.events.report(error)
    return noteRefusal(zone)
  }

  /// What brings no content needs no room and goes alone, unless the server refuses that too.
  private func overQuota(_ error: ServerError, pauseMs: UInt64, zone: Int64) async throws -> PushSummary {
    let hasContent = try await !contentOperations(zone).isEmpty
    let free = try await abandon(
      zone, reason: .overQuota, detail: error.code.rawValue, pauseMs: pauseMs, contentOnly: hasContent)
    session.events.report(error)
    return PushSummary(triesAgain: free > 0)
  }

  /// A commit of many is split until the one that is refused stands alone and is set aside.
  private func refused(_ error: any Error, detail: String, zone: Int64) async throws -> PushSummary {
    if try await split(zone) { return PushSummary(triesAgain: true) }
    return try await setAside(error, detail: detail, zone: zone)
  }

  /// Drops the request and halves the commits to come.
  ///
  /// - Returns: false if the request is of one node, and stays.
  private func split(_ zone: Int64) async throws -> Bool {
    let outcomes = try await session.database.asyncRead { transaction in
      try InFlightStore(transaction: transaction).outcomes(zone: zone)
    }
    let nodes = Set(outcomes.map { $0.node ?? -$0.operation }).count
    guard nodes > 1 else { return false }
    limits[zone] = max(1, nodes / 2)
    try await abandon(zone)
    return true
  }

  /// So many refusals in a row are the server's, not those of single nodes: the rest of the queue waits.
  static let mostRefusals = 8

  private func setAside(_ error: any Error, detail: String, zone: Int64) async throws -> PushSummary {
    if (error as? ServerError)?.security == .duplicateName, try await !isRetry(zone) {
      // At once: the node comes under another name then.
      try await abandon(zone, reason: .serverSaid, detail: detail, pauseMs: 0)
      return PushSummary(triesAgain: true)
    }
    let pause = Backoff.pause(attempts: 8, random: 0.5 + session.time.random() / 2)
    try await abandon(zone, reason: .serverSaid, detail: detail, pauseMs: pause)
    session.events.report(error)
    return noteRefusal(zone)
  }

  private func isRetry(_ zone: Int64) async throws -> Bool {
    try await session.database.asyncRead { transaction in
      try InFlightStore(transaction: transaction).operations(zone: zone)
        .contains { try transaction.operations.operation(id: $0.operation).map { $0.attempts > 0 } ?? false }
    }
  }

  private func noteRefusal(_ zone: Int64) -> PushSummary {
    refusals[zone, default: 0] += 1
    guard refusals[zone, default: 0] >= Self.mostRefusals else { return PushSummary(triesAgain: true) }
    refusals[zone] = nil
    return PushSummary()
  }
}
