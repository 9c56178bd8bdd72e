internal import Foundation
internal import ZDCCrypto
internal import ZDCProtocol

// How one commit goes out: choose, ask the app, seal, build and store; ZoneWorker+Sending has the rest.

extension ZoneWorker {
  /// Sends what may go out, as one commit.
  ///
  /// - Parameter inBackground: a push that fails has a pause, and its error is reported.
  func push(inBackground: Bool = false) async throws -> Pushed {
    try await step {
      await handle(.pushBegan)
      do {
        let summary = try await slots.run { try await pushInTurn() }
        await handle(.pushed)
        defer { pushRefusal = nil }
        return Pushed(zone: zone, summary: summary, refusal: pushRefusal)
      } catch {
        if inBackground, Self.concernsZone(error) { await handle(.pushFailed(error)) }
        throw error
      }
    }
  }

  /// The result of a push, and the first error that the app threw; one error does not stop the others.
  struct Pushed: Sendable {
    var zone: Int64
    var summary: PushSummary
    var refusal: DelegateError?
    /// Whether the rest of the queue is left for a later sync: the server refused many nodes in a row, or the app answers
    /// each commit with another change.
    var isGivenUp = false

    static func += (a: inout Pushed, b: Pushed) {
      a.summary += b.summary
      a.refusal = a.refusal ?? b.refusal
    }
  }

  /// Sends commit after commit, and waits for uploads, until nothing of the zone can be sent.
  func pushUntilQuiet(_ rule: QuietRule) async throws -> Pushed {
    var rounds = rule
    var all = Pushed(zone: zone, summary: PushSummary())
    while true {
      let settled = settledUploads
      let pushed = try await push()
      all += pushed
      if pushed.summary.isDrained { break }
      if rounds.goesOn(after: pushed.summary, uploadsSettled: settledUploads - settled) { continue }
      guard !rounds.isExhausted, let upload = uploads.values.first(where: \.endsByItself) else { break }
      await finish(upload)
      try Task.checkCancellation()
    }
    all.summary.triesAgain = false
    all.isGivenUp = state.isRefusedThroughout || rounds.isExhausted
    return all
  }

  /// Waits for an upload to end, one way or the other. A cancelled wait stops the upload.
  private func finish(_ upload: Upload) async {
    await withTaskCancellationHandler {
      await upload.task.value
    } onCancel: {
      upload.task.cancel()
    }
  }

  private static func concernsZone(_ error: any Error) -> Bool {
    !(error is CancellationError) && !((error as? TransportError)?.isOfConnection ?? false)
  }

  private func pushInTurn() async throws -> PushSummary {
    let records = await takeAhead()
    try await stopForgottenUploads()
    switch try await look() {
    case .nothing: return PushSummary()
    case .request(let request): return try await send(request)
    case .choice(let choice): return try await push(choice, records)
    }
  }

  private func push(_ chosen: Choice, _ records: [Int64: SealedAhead]) async throws -> PushSummary {
    var choice = chosen
    var summary = PushSummary()
    supply(&choice)
    summary.waiting = choice.plan.waiting.count + openPromises(choice)
    summary.calledApp = !(choice.conflicts.isEmpty && choice.refusals.isEmpty)
    guard let built = try await buildAndStore(choice, records) else { return summary }
    prepareAhead(choice)
    let sent = try await send(built, isNew: true)
    summary.commits = sent.commits
    summary.triesAgain = sent.triesAgain
    summary.operations = sent.operations
    summary.isDrained = sent.isDrained
    return summary
  }

  func storedRequest() async throws -> InFlightStore.Request? {
    try await session.database.asyncRead { [zone] transaction in
      try InFlightStore(transaction: transaction).request(zone: zone)
    }
  }

  // MARK: Ahead

  /// Only after a full commit: after any other one, the rest of the queue cannot be sent yet.
  private func prepareAhead(_ choice: Choice) {
    guard state.commitLimit == nil, choice.plan.taken >= Limits.commitOperations else { return }
    let ahead = PushAhead(session: session, zone: zone, known: prepared, window: Chooser.window)
    self.ahead = Task { await ahead.run() }
  }

  /// Takes over the contents that were sealed for this commit.
  ///
  /// - Returns: the records.
  private func takeAhead() async -> [Int64: SealedAhead] {
    guard let task = ahead else { return [:] }
    ahead = nil
    let prepared = await task.value
    ready.merge(prepared.contents) { known, _ in known }
    return prepared.records
  }

  // MARK: Choosing

  private func look() async throws -> Chooser.Due {
    let underWay = uploads.count > Chooser.mostUnderWay ? [] : Set(uploads.values.flatMap(\.claim.covers))
    let chooser = Chooser(
      session: session, zone: zone, known: prepared, underWay: underWay, limit: state.commitLimit)
    let due = try await session.database.asyncRead { try chooser.due($0) }
    if case .choice(let choice) = due { await note(choice) }
    return due
  }

  /// Updates what is remembered after a choice.
  private func note(_ choice: Choice) async {
    if let next = choice.plan.nextMs { await scheduleWake(atMs: next) }
    for conflict in choice.conflicts { forgetContent(of: conflict.node) }
    // Sealed content of theirs would leave no room for other nodes; uploaded content is kept.
    for node in choice.unread where ready[node]?.content.inlineBytes != nil { ready[node] = nil }
  }

  /// The claims of all content that is ready or being uploaded, by node row.
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

  private func scheduleWake(atMs time: UInt64) async {
    let now = session.now()
    guard time > now else { return signal() }
    await scheduleWake(.milliseconds(Int64(min(time - now, Backoff.longestPauseMs))))
  }
}
