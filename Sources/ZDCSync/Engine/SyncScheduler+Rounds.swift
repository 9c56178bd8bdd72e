internal import Foundation
internal import ZDCClientAPI
internal import ZDCClientStore
package import ZDCProtocol

// Rounds: each performs one step for several zones, a few at a time. The app sees a round as one pull or one push.

extension SyncScheduler {
  // MARK: Pulling

  /// Pulls all zones of the user's tree.
  package func pull() async throws -> ZDCPullSummary {
    try await pullRound().get()
  }

  func pullRound() async throws -> ZoneRound<ZDCPullSummary> {
    try await rounds.pull {
      try await self.prepareOnce()
      let list = try await self.session.api.zones(since: nil)
      let due = try await self.note(list, isOnRequest: true)
      do {
        var round = try await self.pullRound(of: due) { try await $0.pull($1) }
        try await self.takeMessages(newest: list.newestMessage, into: &round)
        return round
      } catch let error as CancellationError {
        for zone in due { await self.worker(zone).pullAborted() }
        throw error
      }
    }
  }

  /// Compares the heads of all zones and of the identity chain with the pinned ones.
  ///
  /// - Parameter isOnRequest: Whether to also pull zones whose last pull left work unfinished, even if their head has
  ///   not changed, and zones that the server does not name.
  /// - Returns: The zones that must be pulled.
  package func note(_ list: ZoneList, isOnRequest: Bool = false) async throws -> [Int64] {
    await identity.forget()
    await identity.accept(list.chain)
    try await identity.checkBeforePull()
    await checkOwners()
    let named = Dictionary(list.zones.map { ($0.zone, $0) }) { first, _ in first }
    var due: [Int64] = []
    for (zone, known) in try await known() {
      let (worker, status) = (worker(zone.id), named[zone.zone])
      if status == nil, zone.ownerAccount != .open {
        // The server has removed the zone with its owner's account. The nodes on this device stay.
        await worker.handle(.headNamed(isKnown: true))
        continue
      }
      // A requested list may be older than an event.
      let isDue = await worker.state.needsPull
      if !isOnRequest || !isDue { await worker.note(status, known: known) }
      let isOpen = isOnRequest && (status == nil || known.isUnfinished || known.hasProblem)
      if await worker.state.needsPull || isOpen { due.append(zone.id) }
    }
    return due
  }

  /// An error delays only the report to the app: the server accepts no change of the branch any more.
  private func checkOwners() async {
    do { try await OwnerCheck(session: session).runIfDue() } catch { session.events.report(error) }
  }

  private func known() async throws -> [(ZoneRow, ZoneWorker.Known)] {
    try await session.database.asyncRead { [session] transaction in
      try transaction.zones.zones(localUser: session.localUser).filter { $0.appTreeID == session.appTreeID }
        .map { ($0, try ZoneWorker.Known($0, transaction)) }
    }
  }

  /// Pulls some zones as one round. If there are more than can be pulled at the same time, their pages are fetched
  /// together.
  func pullRound(
    of zones: [Int64], inBackground: Bool = false,
    _ pull: @escaping @Sendable (ZoneWorker, RoundPages?) async throws -> ZonePuller.Pulled
  ) async throws -> ZoneRound<ZDCPullSummary> {
    session.events.post { .pullStarted(localUserID: $0) }
    let pages = zones.count > Self.zonesAtOnce ? RoundPages(session: session, zones: zones) : nil
    var round = try await round(ZDCPullSummary(), of: zones, inBackground: inBackground, { try await pull($0, pages) })
    {
      $0.take($1)
    }
    // A zone may have begun with a split in one of these.
    await innerBranches.accept(isOnRequest: !inBackground)
    var new = await noteNewZones()
    while !new.isEmpty {
      let step: @Sendable (ZoneWorker) async throws -> ZonePuller.Pulled = {
        try await $0.pull(inBackground: inBackground)
      }
      try await round.run(new.map { worker($0) }, atOnce: Self.zonesAtOnce, step) { $0.take($1) }
      await innerBranches.accept(isOnRequest: false)
      new = await noteNewZones()
    }
    try await finishedPull(round)
    return round
  }

  private func round<Summary, Part: Sendable>(
    _ empty: Summary, of zones: [Int64], inBackground: Bool,
    _ step: @escaping @Sendable (ZoneWorker) async throws -> Part, _ take: (inout ZoneRound<Summary>, Part) -> Void
  ) async throws -> ZoneRound<Summary> {
    var round = ZoneRound(empty, inBackground: inBackground)
    try await round.run(zones.map { worker($0) }, atOnce: Self.zonesAtOnce, step, take)
    return round
  }

  /// - Throws: If the date of the last sync cannot be stored.
  func finishedPull(_ round: ZoneRound<ZDCPullSummary>) async throws {
    if let failure = round.failure { session.events.failed(failure) }
    if await isSomeZoneLeftOut() { session.events.update { $0.leaveOut() } }
    let result = round.summary
    session.events.post { .pullFinished(localUserID: $0, commits: result.commits, announced: result.announced) }
    try await storeLastSynced()
  }

  private func isSomeZoneLeftOut() async -> Bool {
    for worker in knownWorkers where await worker.state.isLeftOut { return true }
    return false
  }

  /// Stores the date that the state shows. The state accounts for missing records, which throw no error.
  private func storeLastSynced() async throws {
    guard let synced = session.events.lastSynced?.ms else { return }
    guard synced < storedSyncMs || synced - storedSyncMs >= LastSynced.gridMs else { return }
    try await session.database.asyncReadWrite { [session] transaction in
      try transaction.setLastSynced(ms: synced, localUser: session.localUser)
    }
    storedSyncMs = synced
  }

  // MARK: Pushing

  /// Sends at most one commit per zone.
  package func push() async throws -> ZDCPushSummary {
    try await pushRound { try await $0.push() }.get()
  }

  /// Performs a step for each zone that has something to send.
  ///
  /// - Parameter except: Zones to skip.
  func pushRound(
    except: Set<Int64> = [], _ push: @escaping @Sendable (ZoneWorker) async throws -> ZoneWorker.Pushed
  ) async throws -> ZoneRound<ZDCPushSummary> {
    try await pushing {
      try await self.prepareOnce()
      let survey = try await self.survey()
      guard survey.pause == nil else { return ZoneRound(ZDCPushSummary()) }
      return try await self.pushRound(of: survey.zones.filter { !except.contains($0) }, push)
    }
  }

  func pushRound(
    of zones: [Int64], inBackground: Bool = false,
    _ push: @escaping @Sendable (ZoneWorker) async throws -> ZoneWorker.Pushed
  ) async throws -> ZoneRound<ZDCPushSummary> {
    try await identity.require(hasChanges: !zones.isEmpty)
    session.events.post { .pushStarted(localUserID: $0) }
    let round = try await round(ZDCPushSummary(), of: zones, inBackground: inBackground, push) { $0.take($1) }
    let operations = round.summary.operations
    session.events.post { .pushFinished(localUserID: $0, operations: operations) }
    return round
  }

  /// Shows that a push is running until it ends, successfully or not.
  package func pushing(
    _ body: @escaping @Sendable () async throws -> ZoneRound<ZDCPushSummary>
  ) async throws -> ZoneRound<ZDCPushSummary> {
    try await rounds.push(body) { await self.hasUploads() }
  }

  /// Replaces old keys, zone by zone, until nothing is left that this user may do.
  package func replaceOldKeys() async throws -> Int {
    try await prepareOnce()
    try await identity.require()
    let user = session.user
    var left = 0
    for (zone, _) in try await known() where zone.mayWrite(user) {
      while try await worker(zone.id).pushRotations().hasNext { try Task.checkCancellation() }
      left += try await session.database.asyncRead { try $0.leaves(zone: zone.id).staleCount(below: zone.zone.root) }
    }
    return left
  }

  // MARK: Queued work

  /// Adds the outbox if it has messages to take over now, and wakes the background sync otherwise when it has.
  private func note(_ due: OutgoingMessageStore.Due, in survey: inout PushSurvey) {
    let now = session.now()
    guard due.dueMs <= now else { return wake.signal(after: .milliseconds(Int64(min(due.dueMs - now, .max / 2)))) }
    if !survey.zones.contains(due.zone) { survey.zones.append(due.zone) }
  }

  /// Finds the zones that have something to send.
  func survey() async throws -> PushSurvey {
    var survey = try await session.database.asyncRead { [session] transaction in
      try PushSurvey(session, transaction)
    }
    if let due = survey.takeOver { note(due, in: &survey) }
    await note(survey.pause)
    let known = Set(survey.zones)
    for worker in knownWorkers where !known.contains(worker.zone) {
      if await worker.contents.hasRemains { survey.zones.append(worker.zone) }
    }
    return survey
  }
}
