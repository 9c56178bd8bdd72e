internal import GRDB
internal import ZDCProtocol

// What a push finds to do, in one look: most find nothing, or one zone with one change.

extension SyncEngine {
  struct Survey: Sendable {
    struct Zone: Sendable {
      var id: Int64
      /// Its last request has no known outcome.
      var hasRequest: Bool
      /// What may go out, if that was asked at once.
      var choice: Choice?
    }

    var pause: PushPause?
    /// Those with something queued or in flight.
    var zones: [Zone] = []
  }

  /// Looks what there is to do, and asks for the first zone's contents in the same snapshot. What is under way has its
  /// say first; so has the identity.
  ///
  /// - Parameter asks: whether the app is asked in this look; else later, for each zone.
  func survey(asks: Bool = true) async throws -> Survey {
    let mayAsk = asks && isIdentityChecked && session.keys.canSign && ahead.isEmpty && uploads.isEmpty
    let chooser = chooser
    var survey = try await session.database.asyncRead { try chooser.survey(asks: mayAsk, $0) }
    if let choice = survey.zones.first?.choice { survey.zones[0].choice = noting(choice) }
    // Nothing waits any more for what was made for them.
    for zone in ahead.keys where !survey.zones.contains(where: { $0.id == zone }) { _ = await takeAhead(zone) }
    if survey.zones.isEmpty { try await stopForgottenUploads() }
    return survey
  }
}

/// Decides what may go out, inside one read transaction.
struct Chooser: Sendable {
  /// How far into the queue a commit looks: enough for a thousand nodes with several operations each.
  static let window = 4_000
  /// The same when all of that waits: so many rows are held at once, at most.
  static let widestWindow = 16 * window
  /// So many contents may be waited for without holding up what is behind them: each is a task of its own.
  static let mostUnderWay = 8_000

  let session: SyncSession
  /// Contents that need not be asked for.
  let known: [Int64: ContentClaim]
  /// The operations of those among them that are not here yet.
  let underWay: Set<Int64>
  let limits: [Int64: Int]

  func survey(asks: Bool, _ transaction: ZDCReadTransaction) throws -> SyncEngine.Survey {
    var survey = SyncEngine.Survey(pause: try transaction.pushPause(localUser: session.localUser))
    guard survey.pause == nil else { return survey }
    survey.zones = try dueZones(transaction)
    guard asks, let first = survey.zones.first, !first.hasRequest else { return survey }
    survey.zones[0].choice = try choose(first.id, transaction)
    return survey
  }

  private func dueZones(_ transaction: ZDCReadTransaction) throws -> [SyncEngine.Survey.Zone] {
    var zones: [SyncEngine.Survey.Zone] = []
    let query = """
      SELECT z.id, EXISTS (SELECT 1 FROM zdc_in_flight WHERE zone = z.id) AS hasRequest FROM zdc_zone z
      WHERE z.localUser = ? AND z.appTreeID = ? AND z.frozen IS NULL
      AND (hasRequest OR EXISTS (SELECT 1 FROM zdc_operation WHERE zone = z.id)) ORDER BY z.id
      """
    try transaction.database.forEachRow(query, [session.localUser, session.appTreeID]) { row in
      zones.append(SyncEngine.Survey.Zone(id: row[0], hasRequest: row[1] as Int64 != 0))
    }
    return zones
  }

  func choose(_ zone: Int64, _ transaction: ZDCReadTransaction) throws -> SyncEngine.Choice? {
    guard let row = try transaction.zones.zone(id: zone), let head = row.head else { return nil }
    // In the same snapshot as the queue: nothing goes out that was queued after the pause.
    guard try transaction.pushPause(localUser: session.localUser) == nil else { return nil }
    guard var choice = try plan(row, head, transaction) else { return nil }
    try ask(&choice, transaction)
    return choice
  }

  /// Looks further into the queue as long as all that it has seen waits for somebody.
  private func plan(
    _ row: ZoneRow, _ head: ZoneHead, _ transaction: ZDCReadTransaction
  ) throws -> SyncEngine.Choice? {
    var window = Self.window
    while true {
      let operations = try transaction.operations.operations(zone: row.id, limit: window)
      guard !operations.isEmpty else { return nil }
      let unread = try transaction.unreadNodes(of: operations, zone: row.id)
      let plan = PushPlan(
        operations: operations,
        dependencies: try transaction.operations.dependencies(zone: row.id, upTo: operations.last?.id ?? 0),
        unread: unread, unreadable: row.unreadableReason?.code, underWay: underWay, nowMs: session.now(),
        limit: limits[row.id] ?? Limits.commitOperations)
      let isAllSeen = operations.count < window || window >= Self.widestWindow
      if plan.taken > 0 || isAllSeen { return SyncEngine.Choice(zone: row, head: head, plan: plan, unread: unread) }
      window *= 4
    }
  }

  private func ask(_ choice: inout SyncEngine.Choice, _ transaction: ZDCReadTransaction) throws {
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
}
