internal import Foundation
internal import ZDCCrypto
internal import ZDCProtocol

// How one commit goes out: choose, ask the app, seal, build and store; SyncEngine+Sending has the rest.

extension SyncEngine {
  /// - Parameter inBackground: a zone that fails has its own pause, and the others go on.
  func pushAll(inBackground: Bool = false, except: Set<Int64> = []) async throws -> ZoneRound<PushSummary> {
    try await prepareOnce()
    isDrained = false
    var round = ZoneRound(PushSummary())
    // A zone that has its pause is not asked for.
    let survey = try await survey(asks: !inBackground || pushPauses.isEmpty)
    note(survey.pause)
    guard survey.pause == nil else { return round }
    try await requireIdentity()
    session.events.post { .pushStarted(localUserID: $0) }
    for zone in survey.zones where !except.contains(zone.id) {
      if inBackground, pushPauses.isPaused(zone.id, now: session.time.now()) { continue }
      let failure = try await round.add { round in round.summary += try await self.push(zone) }
      notePause(zone.id, failure, inBackground: inBackground)
      if failure != nil { round.failedZones.insert(zone.id) }
      round.note(pushRefusal)
      pushRefusal = nil
    }
    let operations = round.summary.operations
    session.events.post { .pushFinished(localUserID: $0, operations: operations) }
    return round
  }

  private func push(_ due: Survey.Zone) async throws -> PushSummary {
    let zone = due.id
    if due.hasRequest, let request = try await storedRequest(zone) { return try await send(request, zone: zone) }
    let records = await takeAhead(zone)
    try await stopForgottenUploads()
    var found = due.choice
    if found == nil { found = try await choose(zone) }
    guard var choice = found else { return PushSummary() }
    var summary = PushSummary()
    supply(&choice)
    summary.waiting = choice.plan.waiting.count + openPromises(choice)
    summary.calledApp = !(choice.conflicts.isEmpty && choice.refusals.isEmpty)
    guard let built = try await buildAndStore(choice, records) else { return summary }
    prepareAhead(choice)
    let sent = try await send(built, zone: zone, isNew: true)
    summary.commits = sent.commits
    summary.triesAgain = sent.triesAgain
    summary.operations = sent.operations
    return summary
  }

  private func notePause(_ zone: Int64, _ failure: (any Error)?, inBackground: Bool) {
    guard let failure else { return pushPauses.succeeded(zone) }
    guard inBackground else { return }
    session.events.report(failure)
    scheduleWake(
      in: pushPauses.failed(zone, failure, now: session.time.now(), random: session.time.random()))
  }

  func storedRequest(_ zone: Int64) async throws -> InFlightStore.Request? {
    try await session.database.asyncRead { transaction in
      try InFlightStore(transaction: transaction).request(zone: zone)
    }
  }

  // MARK: Ahead

  /// Only behind a full commit: what comes after one that is not waits for something else than its turn.
  private func prepareAhead(_ choice: Choice) {
    guard limits[choice.zone.id] == nil, choice.plan.taken >= Limits.commitOperations else { return }
    let ahead = PushAhead(session: session, zone: choice.zone.id, known: prepared, window: Chooser.window)
    self.ahead[choice.zone.id] = Task { await ahead.run() }
  }

  /// Takes over the contents that were sealed for this commit.
  ///
  /// - Returns: the records.
  func takeAhead(_ zone: Int64) async -> [Int64: SealedAhead] {
    guard let prepared = await ahead.removeValue(forKey: zone)?.value else { return [:] }
    ready.merge(prepared.contents) { known, _ in known }
    return prepared.records
  }

  // MARK: Choosing

  /// What may go into the next commit of a zone, and what the app said about it.
  struct Choice: Sendable {
    var zone: ZoneRow
    var head: ZoneHead
    var plan: PushPlan
    /// Nodes of which nothing can go out before the next pull.
    var unread: Set<Int64>
    var answers: [ContentAnswer] = []
    var conflicts: [OperationRow] = []
    var refusals: [(operation: OperationRow, error: any Error)] = []
    var failures: [(operations: [Int64], failure: ContentFailure)] = []

    /// Something to tell the app or to store, even if nothing goes out.
    var hasNews: Bool { !(conflicts.isEmpty && refusals.isEmpty && answers.isEmpty && failures.isEmpty) }
  }

  private func choose(_ zone: Int64) async throws -> Choice? {
    let chooser = chooser
    return noting(try await session.database.asyncRead { try chooser.choose(zone, $0) })
  }

  /// What follows from a choice for what is remembered.
  func noting(_ choice: Choice?) -> Choice? {
    if let next = choice?.plan.nextMs { scheduleWake(atMs: next) }
    for conflict in choice?.conflicts ?? [] { forgetContent(of: conflict.node) }
    // What is sealed for them would leave no room for the others; what was uploaded stays.
    for node in choice?.unread ?? [] where ready[node]?.content.inlineBytes != nil { ready[node] = nil }
    return choice
  }

  var chooser: Chooser {
    let underWay = uploads.count > Chooser.mostUnderWay ? [] : Set(uploads.values.flatMap(\.claim.covers))
    return Chooser(session: session, known: prepared, underWay: underWay, limits: limits)
  }

  /// What nodes whose content is prepared or under way were asked for.
  var prepared: [Int64: ContentClaim] {
    uploads.mapValues { $0.claim }.merging(ready.mapValues { $0.claim }) { _, ready in ready }
  }

  // MARK: Building

  private func buildAndStore(
    _ choice: Choice, _ ahead: [Int64: SealedAhead]
  ) async throws -> InFlightStore.Request? {
    let contents = ready
    let uploading = uploads.mapValues(\.isPromised)
    let hasWork = choice.plan.steps.contains {
      $0.isDelete || !$0.recordOperations.isEmpty || contents[$0.node ?? 0] != nil
    }
    guard hasWork || choice.hasNews else { return nil }
    return try await session.database.asyncReadWrite { [session] transaction in
      try PushStager(
        session: session, choice: choice, contents: contents, uploading: uploading, ahead: ahead,
        transaction: transaction
      ).stage()
    }
  }

  private func scheduleWake(atMs time: UInt64) {
    let now = session.now()
    guard time > now else { return signal() }
    scheduleWake(in: .milliseconds(Int64(min(time - now, Backoff.longestPauseMs))))
  }
}
