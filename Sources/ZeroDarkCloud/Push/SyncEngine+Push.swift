internal import Foundation
internal import ZDCCrypto
internal import ZDCProtocol

// How one commit goes out: choose, ask the app, seal, build and store; SyncEngine+Sending has the rest.

extension SyncEngine {
  /// - Parameter inBackground: a zone that fails has its own pause, and the others go on.
  func pushAll(inBackground: Bool = false) async throws -> ZoneRound<PushSummary> {
    try await prepareOnce()
    var round = ZoneRound(PushSummary())
    guard try await !isPaused() else { return round }
    try await requireIdentity()
    session.events.post { .pushStarted(localUserID: $0) }
    for zone in try await zones() where zone.frozen == nil {
      if inBackground, pushPauses.isPaused(zone.id, now: .now) { continue }
      let failure = try await round.add { round in round.summary += try await self.push(zone.id) }
      notePause(zone.id, failure, inBackground: inBackground)
      round.note(pushRefusal)
      pushRefusal = nil
    }
    let operations = round.summary.operations
    session.events.post { .pushFinished(localUserID: $0, operations: operations) }
    return round
  }

  private func push(_ zone: Int64) async throws -> PushSummary {
    if let request = try await storedRequest(zone) { return try await send(request, zone: zone) }
    let records = await takeAhead(zone)
    try await stopForgottenUploads()
    guard var choice = try await choose(zone) else { return PushSummary() }
    var summary = PushSummary()
    supply(&choice)
    summary.waiting = choice.plan.waiting.count + openPromises(choice)
    summary.calledApp = !(choice.conflicts.isEmpty && choice.refusals.isEmpty)
    guard let built = try await buildAndStore(choice, records) else { return summary }
    prepareAhead(choice)
    let sent = try await send(built, zone: zone)
    summary.commits = sent.commits
    summary.operations = sent.operations
    return summary
  }

  private func notePause(_ zone: Int64, _ failure: (any Error)?, inBackground: Bool) {
    guard let failure else { return pushPauses.succeeded(zone) }
    guard inBackground else { return }
    session.events.report(failure)
    scheduleWake(in: pushPauses.failed(zone, failure, now: .now, random: .random(in: 0..<1)))
  }

  func storedRequest(_ zone: Int64) async throws -> InFlightStore.Request? {
    try await session.database.asyncRead { transaction in
      try InFlightStore(transaction: transaction).request(zone: zone)
    }
  }

  // MARK: Ahead

  /// Only behind a full commit: what comes after one that is not waits for something else than its turn.
  private func prepareAhead(_ choice: Choice) {
    guard limits[choice.zone.id] == nil, choice.plan.steps.count >= Limits.commitOperations else { return }
    let ahead = PushAhead(session: session, zone: choice.zone.id, known: prepared, window: Self.window)
    self.ahead[choice.zone.id] = Task { await ahead.run() }
  }

  /// Takes over the contents that were sealed for this commit.
  ///
  /// - Returns: the records.
  private func takeAhead(_ zone: Int64) async -> [Int64: SealedAhead] {
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
    var answers: [ContentAnswer] = []
    var conflicts: [OperationRow] = []
    var refusals: [(operation: OperationRow, error: any Error)] = []
    var failures: [(operations: [Int64], failure: ContentFailure)] = []

    /// Something to tell the app or to store, even if nothing goes out.
    var hasNews: Bool { !(conflicts.isEmpty && refusals.isEmpty && answers.isEmpty && failures.isEmpty) }
  }

  private func choose(_ zone: Int64) async throws -> Choice? {
    let known = prepared
    let limit = limits[zone] ?? Limits.commitOperations
    let choice = try await session.database.asyncRead { [session] transaction -> Choice? in
      guard let row = try transaction.zones.zone(id: zone), let head = row.head else { return nil }
      // In the same snapshot as the queue: nothing goes out that was queued after the pause.
      guard try transaction.pushPause(localUser: session.localUser) == nil else { return nil }
      let operations = try transaction.operations.operations(zone: zone, limit: Self.window)
      guard !operations.isEmpty else { return nil }
      let plan = PushPlan(
        operations: operations,
        dependencies: try transaction.operations.dependencies(zone: zone, upTo: operations.last?.id ?? 0),
        nowMs: session.now(), limit: limit)
      var choice = Choice(zone: row, head: head, plan: plan)
      try Self.ask(&choice, known: known, session: session, transaction: transaction)
      return choice
    }
    if let next = choice?.plan.nextMs { scheduleWake(atMs: next) }
    for conflict in choice?.conflicts ?? [] { forgetContent(of: conflict.node) }
    return choice
  }

  /// What nodes whose content is prepared or under way were asked for.
  private var prepared: [Int64: ContentClaim] {
    uploads.mapValues(\.claim).merging(ready.mapValues(\.claim)) { _, ready in ready }
  }

  /// How far into the queue a commit looks: enough for a thousand nodes with several operations each.
  private static var window: Int { 4_000 }

  private static func ask(
    _ choice: inout Choice, known: [Int64: ContentClaim], session: SyncSession, transaction: ZDCReadTransaction
  ) throws {
    let request = ContentRequest(session: session, transaction: transaction)
    for step in choice.plan.steps {
      guard let node = step.node, let first = step.dataOperations.first else { continue }
      if known[node]?.holds(for: first) == true {
        if try request.isInConflict(first) { choice.conflicts.append(first) }
        continue
      }
      switch try request.ask(step.dataOperations) {
      case .answer(let answer): choice.answers.append(answer)
      case .conflict(let operation): choice.conflicts.append(operation)
      case .refused(let operation, let error): choice.refusals.append((operation, error))
      case nil: break
      }
    }
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
    scheduleWake(in: .milliseconds(Int64(min(time - now, 3_600_000))))
  }

  func scheduleWake(in pause: Duration) {
    Task { [weak self] in
      try await Task.sleep(for: pause)
      self?.signal()
    }
  }
}
