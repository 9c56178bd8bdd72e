internal import ZDCClientAPI
package import ZDCClientStore
package import ZDCProtocol
internal import ZDCSupport

// Remote changes: pulls and server events.

extension ZoneWorker {
  private var puller: ZonePuller { ZonePuller(session: session, zone: zone) }

  /// Pulls the zone.
  ///
  /// - Parameters:
  ///   - pages: The pages of a round's zones.
  ///   - inBackground: Whether a failed pull pauses the zone and reports its error.
  package func pull(_ pages: RoundPages? = nil, inBackground: Bool = false) async throws -> ZonePuller.Pulled {
    try await step { try await pulling(inBackground: inBackground) { [puller] in try await puller.pull(pages) } }
  }

  /// Pulls the zone if it still needs a pull.
  func pullIfDue(_ pages: RoundPages?) async throws -> ZonePuller.Pulled {
    try await step {
      guard state.isPullDue(now: session.time.now()) else { return ZonePuller.Pulled() }
      let pulled = try await pulling(inBackground: true) { [puller] in try await puller.pull(pages) }
      if pulled.summary.commits > 0 { handle(.eventPulled(commits: pulled.summary.commits)) }
      return pulled
    }
  }

  /// Notes that a round was cancelled before it pulled the zone. The server does not name the head again until the zone
  /// changes.
  package func pullAborted() {
    if state.isPullDue(now: session.time.now()) { handle(.pullAborted) }
  }

  private func pulling(
    inBackground: Bool, _ body: @Sendable () async throws -> ZonePuller.Pulled
  ) async throws -> ZonePuller.Pulled {
    do {
      let pulled = try await slots.run(body)
      handle(pulled.isUnreachable ? .unreachable : .pulled(isRefusedByApp: pulled.refusal != nil))
      return pulled
    } catch {
      if let ending = Self.ending(error, inBackground: inBackground) { handle(ending) }
      throw error
    }
  }

  /// - Returns: Nil if the caller receives the error and a later pull may succeed.
  private static func ending(_ error: any Error, inBackground: Bool) -> ZoneSyncState.Event? {
    guard inBackground else { return HeadRules.isTriedAgain(after: error) ? nil : .pullFailed(error) }
    if error is CancellationError { return .pullAborted }
    return (error as? TransportError)?.isOfConnection ?? false ? .pullDisconnected : .pullFailed(error)
  }

  // MARK: Heads that the server names

  /// The local state of a zone that the server has named.
  package struct Known: Sendable {
    package var head: ZoneHead?
    /// Whether an earlier pull was interrupted between the log and its records, calls to the app must be repeated, or a
    /// member has named a head since.
    var isUnfinished: Bool
    /// Whether the zone is frozen, its key is missing, or the server's answers could not be followed.
    var hasProblem: Bool

    package init(_ row: ZoneRow, _ transaction: ZDCReadTransaction) throws {
      head = row.head
      hasProblem = row.frozen != nil || row.doubt != nil || row.unreadableReason != nil
      isUnfinished =
        try transaction.leaves(zone: row.id).pendingCount() > 0
        || !transaction.delegateFailures.isEmpty(zone: row.id)
        || (row.frozen == nil && MemberHeadStore.isPullDue(zone: row.id, transaction))
    }
  }

  /// Compares the head that the server names with the pinned one, and notes whether the zone must be pulled.
  ///
  /// - Parameter status: Nil if the server did not name the zone.
  package func note(_ status: ZoneStatus?, known: Known) {
    guard let status else { return handle(.headNamed(isKnown: !state.needsPull)) }
    let isPinned = known.head?.seq == status.seq && known.head?.hash == status.head
    // A change that the app has refused waits for the next change. Otherwise its errors would repeat with every list.
    let isFinished = !known.isUnfinished || state.isRefusedByApp
    handle(.headNamed(isKnown: isPinned && isFinished))
  }

  /// Applies the changes of an event, or pulls if the event does not continue the pinned head.
  package func take(_ event: HeadEvent) async throws -> TakenEvent {
    try await step {
      do { return try await self.takeInTurn(event) } catch {
        // The error may precede the pull, whose errors are noted already. The server does not name the head again.
        if !state.needsPull, let ending = Self.ending(error, inBackground: true) { handle(ending) }
        throw error
      }
    }
  }

  package enum TakenEvent: Sendable {
    case known
    case pulled(ZonePuller.Pulled, isDrained: Bool)
  }

  private func takeInTurn(_ event: HeadEvent) async throws -> TakenEvent {
    guard state.ownHead != ZoneSyncState.Head(event.status) else { return .known }
    if let taken = try await applyDirectly(event) { return taken }
    guard let row = try await row() else { return .known }
    // A rejected push has already fetched this commit, or this device made it.
    if try await isKnown(event.status) { return .known }
    guard state.mayPullForEvent(now: session.time.now()) else {
      handle(.headNamed(isKnown: false))
      return .known
    }
    session.events.post { .pullStarted(localUserID: $0) }
    let page = Self.page(event, after: row.head)
    let pulled = try await pulling(inBackground: true) { [puller] in
      if let page { return try await puller.take(page) }
      return try await puller.pull()
    }
    handle(.eventPulled(commits: pulled.summary.commits))
    return .pulled(pulled, isDrained: false)
  }

  private static func page(_ event: HeadEvent, after head: ZoneHead?) -> CommitPage? {
    let status = event.status
    guard let head, let page = event.page, head.seq + 1 == status.seq else { return nil }
    return CommitPage(body: page.bytes, head: (status.seq, status.head), hasMore: false)
  }

  /// - Returns: Nil for an event that needs more than one transaction.
  private func applyDirectly(_ event: HeadEvent) async throws -> TakenEvent? {
    guard let taker = EventFastPath(event, session: session) else { return nil }
    do {
      let (outcome, refusal) = try await session.writeNotifyingDelegate { try taker.take(in: $0) }
      guard case .applied(let summary, let isDrained) = outcome else { return .known }
      handle(.pulled(isRefusedByApp: refusal != nil))
      session.events.post { .pullStarted(localUserID: $0) }
      session.activity.foundChanges()
      return .pulled(ZonePuller.Pulled(summary: summary, refusal: refusal), isDrained: isDrained)
    } catch is EventFastPath.NotEligible {
      return nil
    } catch is ZDCSecurityError {
      // The puller encounters the same error and handles it.
      return nil
    }
  }

  private func row() async throws -> ZoneRow? {
    try await session.database.asyncRead { [zone] transaction in try transaction.zones.zone(id: zone) }
  }

  private func isKnown(_ status: ZoneStatus) async throws -> Bool {
    try await session.database.asyncRead { [zone] transaction in
      try CommitLogStore(db: transaction.database, zone: zone).hash(seq: status.seq) == status.head
    }
  }

  // MARK: Restoring

  /// Adopts the server's log of a frozen zone, and queues the changes that the log lacks.
  package func acceptServerState() async throws -> ZDCRestoreSummary {
    try await step {
      guard try await row()?.frozen != nil else { return ZDCRestoreSummary() }
      let restored = try await ZoneRestore(session: session, zone: zone).run()
      let pulled = try await pulling(inBackground: false) { [puller] in try await puller.pull() }
      wake.signal()
      if let refusal = restored.refusal ?? pulled.refusal { throw refusal }
      return restored.summary
    }
  }
}
