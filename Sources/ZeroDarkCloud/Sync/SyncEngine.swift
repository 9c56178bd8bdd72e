internal import Foundation
internal import ZDCCrypto
internal import ZDCProtocol

/// Keeps one local user's trees in step with the server: pulls, then pushes, one thing at a time.
///
/// What is to be done stands in the database. Memory holds only what may be lost: contents that are sealed and wait for
/// their commit, uploads that
/// are under way.
actor SyncEngine {
  nonisolated let session: SyncSession
  private let gate = SerialGate()
  /// Content by node row, until its commit is accepted.
  var ready: [Int64: ReadyContent] = [:]
  var uploads: [Int64: Upload] = [:]
  /// By zone, what is made for its next commit while this one is on its way.
  var ahead: [Int64: Task<PushAhead.Prepared, Never>] = [:]
  /// How many uploads have ended, one way or the other.
  var settledUploads = 0
  /// How many nodes the next commit of a zone may hold; halved when the server refuses one, to find the culprit.
  var limits: [Int64: Int] = [:]
  /// Whether the app was told last that pushes are paused.
  var wasPaused = false
  /// Ends what is under way.
  var aborts: [Work: @Sendable () -> Void] = [:]
  var hasStarted = false
  var isIdentityChecked = false
  var keptIdentityError: ZDCSecurityError.Code?
  /// Whether every zone was pulled once: before that, nothing is pushed in the background.
  private(set) var hasPulled = false
  /// Zones in whose last pull the app threw.
  private var refusedByApp: Set<Int64> = []
  /// What this device committed last, by zone: the server tells of it as well.
  var ownHeads: [ZoneID: (seq: UInt64, hash: CommitHash)] = [:]
  /// Whether nothing was queued any more when this device last looked. What is queued later wakes it.
  var isDrained = false
  /// When the end of a pull was last stored.
  private var storedSyncMs: UInt64 = 0
  private(set) var pullPauses = ZonePauses()
  var pushPauses = ZonePauses()
  /// The first of the app's errors when it was told what a push has done.
  var pushRefusal: DelegateError?
  /// Zones whose last event brought nothing, and which of them another event has named since.
  private(set) var eventPauses = ZonePauses()
  private var namedWhilePaused: Set<Int64> = []
  /// How often the server has said that the content of an operation is gone.
  var contentLosses: [Int64: Int] = [:]
  /// By zone, how many nodes the server refused in a row.
  var refusals: [Int64: Int] = [:]
  var timer: (task: Task<Void, Never>, due: ContinuousClock.Instant)?
  nonisolated private let wake = Broadcast<Void>(limit: 1)

  init(session: SyncSession) {
    self.session = session
  }

  /// One element for the calls of ``signal()`` since the last one was taken. A stream ends with the task that reads it,
  /// so each run has its own.
  nonisolated func wakeups() -> AsyncStream<Void> { wake.stream() }

  /// There may be something to do.
  nonisolated func signal() {
    wake.send(())
  }

  // MARK: Steps

  /// Pulls all zones of the user's tree.
  func pull() async throws -> PullSummary {
    try await pullRound().get()
  }

  func pullRound() async throws -> ZoneRound<PullSummary> {
    try await gate.run { try await self.telling { try await self.pulling { try await self.pullAll() } } }
  }

  /// Sends at most one commit for each zone.
  func push() async throws -> PushSummary {
    try await pushRound().get()
  }

  /// Sends what is due until nothing more can go out.
  func pushUntilDrained() async throws {
    while try await pushDue().hasNext, !isDrained {}
  }

  /// For the loop: a zone that failed has its own pause, and its error is told.
  private func pushDue() async throws -> PushSummary {
    try await pushRound(inBackground: true).summary
  }

  /// - Parameter except: zones that are left alone.
  func pushRound(
    inBackground: Bool = false, except: Set<Int64> = []
  ) async throws -> ZoneRound<PushSummary> {
    try await gate.run {
      try await self.telling {
        try await self.pushing { try await self.pushAll(inBackground: inBackground, except: except) }
      }
    }
  }

  /// Takes the server's log as it is, and queues what it lacks.
  func acceptServerState(of zone: ZoneID) async throws -> ZDCRestoreSummary {
    do {
      return try await gate.run { try await self.accept(zone) }
    } catch { throw DelegateError.unwrap(error) }
  }

  private func accept(_ zone: ZoneID) async throws -> ZDCRestoreSummary {
    try await prepareOnce()
    ownHeads = [:]
    guard let row = try await zones().first(where: { $0.zone == zone }), row.frozen != nil else {
      return ZDCRestoreSummary()
    }
    let restored = try await ZoneRestore(session: session, zone: row.id).run()
    let pulled = try await puller(row.id).pull()
    signal()
    if let refusal = restored.refusal ?? pulled.refusal { throw refusal }
    return restored.summary
  }

  /// Applies what an event brought, or pulls if it does not continue what is pinned.
  func take(_ event: HeadEvent) async throws -> ZoneRound<PullSummary> {
    try await gate.run { try await self.telling { try await self.pulling { try await self.apply(event) } } }
  }

  /// Pulls the zones whose head is not the pinned one.
  func follow(_ list: ZoneList) async throws -> ZoneRound<PullSummary> {
    try await gate.run { try await self.telling { try await self.pulling { try await self.pullChanged(list) } } }
  }

  /// Pulls the zones whose pull failed while the event stream was open, once their pause is over.
  func pullDue() async throws {
    guard !zonesToPullAgain.isEmpty else { return }
    _ = try await gate.run { try await self.telling { try await self.pulling { try await self.pullAgain() } } }
  }

  /// However a round ends, nobody believes that it goes on; and whether the server was there is known.
  private func telling<Result: Sendable>(_ round: () async throws -> Result) async throws -> Result {
    do {
      let result = try await round()
      session.events.update { $0.end() }
      return result
    } catch {
      session.events.failed(error)
      session.events.update { $0.end() }
      throw error
    }
  }

  // MARK: Pulling

  /// - Throws: if it cannot be stored.
  private func finishedPull(_ round: ZoneRound<PullSummary>) async throws {
    if let failure = round.failure { session.events.failed(failure) }
    if !pullPauses.isEmpty { session.events.update { $0.leaveOut() } }
    let result = round.summary
    session.events.post { .pullFinished(localUserID: $0, commits: result.commits, announced: result.announced) }
    try await storeLastSynced()
  }

  /// What the state shows and nothing else: it knows of records that the server does not give, which throw nothing.
  private func storeLastSynced() async throws {
    guard let synced = session.events.lastSynced?.ms else { return }
    guard synced < storedSyncMs || synced - storedSyncMs >= LastSynced.gridMs else { return }
    try await session.database.asyncReadWrite { [session] transaction in
      try transaction.setLastSynced(ms: synced, localUser: session.localUser)
    }
    storedSyncMs = synced
  }

  private func pullAll() async throws -> ZoneRound<PullSummary> {
    try await prepareOnce()
    try await checkIdentityBeforePull()
    session.events.post { .pullStarted(localUserID: $0) }
    var round = ZoneRound(PullSummary())
    for zone in try await zones() {
      let failure = try await round.add { round in
        round.take(try await self.noting(zone.id) { try await $0.pull() })
      }
      if failure.map({ $0 is ZDCSecurityError && !HeadRules.isTriedAgain(after: $0) }) ?? true {
        pullPauses.succeeded(zone.id)
      }
    }
    hasPulled = true
    try await finishedPull(round)
    return round
  }

  private func pullChanged(_ list: ZoneList) async throws -> ZoneRound<PullSummary> {
    try await prepareOnce()
    forgetIdentityCheck()
    acceptIdentity(list.chain)
    try await checkIdentityBeforePull()
    session.events.post { .pullStarted(localUserID: $0) }
    var round = ZoneRound(PullSummary())
    var untouched = Set(try await zones().filter { row in list.zones.contains { $0.zone == row.zone } }.map(\.id))
    do {
      for status in list.zones {
        guard let row = try await zones().first(where: { $0.zone == status.zone }) else { continue }
        try await follow(row, to: status, &round)
        untouched.remove(row.id)
      }
    } catch let error as CancellationError {
      // Nobody tells of them again as long as nothing new happens there.
      pauseAborted(untouched)
      throw error
    }
    hasPulled = true
    try await finishedPull(round)
    return round
  }

  private func follow(_ row: ZoneRow, to status: ZoneStatus, _ round: inout ZoneRound<PullSummary>) async throws {
    let isPinned = row.head?.seq == status.seq && row.head?.hash == status.head
    if isPinned, try await !isUnfinished(row.id) { return pullPauses.succeeded(row.id) }
    try await followUp(row.id, &round) { try await $0.pull() }
  }

  private func pullAgain() async throws -> ZoneRound<PullSummary> {
    session.events.post { .pullStarted(localUserID: $0) }
    var round = ZoneRound(PullSummary())
    for zone in zonesToPullAgain {
      let commits = round.summary.commits
      try await followUp(zone, &round) { try await $0.pull() }
      namedWhilePaused.remove(zone)
      if round.summary.commits > commits { eventPauses.succeeded(zone) }
    }
    try await finishedPull(round)
    return round
  }

  private var zonesToPullAgain: Set<Int64> {
    let now = session.time.now()
    return pullPauses.due(now: now).union(namedWhilePaused.filter { !eventPauses.isPaused($0, now: now) })
  }

  /// Pulls a zone because its head has moved. What the server refuses is tried again later; a frozen zone and an error of
  /// the app's are not.
  private func followUp(
    _ zone: Int64, _ round: inout ZoneRound<PullSummary>,
    _ pull: @escaping @Sendable (ZonePuller) async throws -> ZonePuller.Pulled
  ) async throws {
    let failure: (any Error)?
    do {
      failure = try await round.add { round in round.take(try await self.noting(zone, pull)) }
    } catch let error as CancellationError {
      pauseAborted([zone])
      throw error
    }
    guard let failure, HeadRules.isTriedAgain(after: failure) else { return pullPauses.succeeded(zone) }
    session.events.report(failure)
    scheduleWake(
      in: pullPauses.failed(zone, failure, now: session.time.now(), random: session.time.random()))
  }

  private func pauseAborted(_ zones: Set<Int64>) {
    for zone in zones { scheduleWake(in: pullPauses.aborted(zone, now: session.time.now())) }
  }

  /// The same for a zone whose row is not known; the task that was broken off reads nothing any more.
  private func pauseAborted(_ zone: ZoneID) async throws {
    let rows = try await Task { try await zones() }.value
    pauseAborted(Set(rows.filter { $0.zone == zone }.map(\.id)))
  }

  /// Whether an earlier pull was cut off between the log and its records. What the app has refused waits for the next
  /// change: its errors would end the event stream again and again.
  private func isUnfinished(_ zone: Int64) async throws -> Bool {
    guard !refusedByApp.contains(zone) else { return false }
    return try await session.database.asyncRead { transaction in
      try transaction.leaves(zone: zone).pendingCount() > 0 || !transaction.delegateFailures.isEmpty(zone: zone)
    }
  }

  private func noting(
    _ zone: Int64, _ pull: @Sendable (ZonePuller) async throws -> ZonePuller.Pulled
  ) async throws -> ZonePuller.Pulled {
    let pulled = try await pull(puller(zone))
    if pulled.refusal == nil { refusedByApp.remove(zone) } else { refusedByApp.insert(zone) }
    return pulled
  }

  private func apply(_ event: HeadEvent) async throws -> ZoneRound<PullSummary> {
    let status = event.status
    var round = ZoneRound(PullSummary())
    if let own = ownHeads[status.zone], own.seq == status.seq, own.hash == status.head { return round }
    try await prepareOnce()
    isDrained = false
    do {
      switch try await takeAtOnce(event) {
      case .known: return round
      case .applied(let zone, let pulled): return try await finished(zone, pulled)
      case .unfit: break
      }
    } catch let error as CancellationError {
      try await pauseAborted(status.zone)
      throw error
    }
    guard let row = try await zones().first(where: { $0.zone == status.zone }) else { return round }
    // Told late: a refused push has brought it, or this device made it.
    if try await isKnown(status, zone: row.id) { return round }
    guard mayPull(row.id) else { return round }
    session.events.post { .pullStarted(localUserID: $0) }
    var next: CommitPage?
    if let head = row.head, let page = event.page, head.seq + 1 == status.seq {
      next = CommitPage(body: page.bytes, head: (status.seq, status.head), hasMore: false)
    }
    try await followUp(row.id, &round) { [next] puller in
      if let next { return try await puller.take(next) }
      return try await puller.pull()
    }
    noteEvent(row.id, commits: round.summary.commits)
    try await finishedPull(round)
    return round
  }

  /// Whether an event may cost requests now. During a pause, all events of a zone are one pull at its end.
  private func mayPull(_ zone: Int64) -> Bool {
    let now = session.time.now()
    if pullPauses.isBackingOff(zone, now: now) { return false }
    guard eventPauses.isPaused(zone, now: now) else { return true }
    namedWhilePaused.insert(zone)
    return false
  }

  /// An honest server names a head that it can show.
  private func noteEvent(_ zone: Int64, commits: Int) {
    guard commits == 0 else { return eventPauses.succeeded(zone) }
    scheduleWake(in: eventPauses.failed(zone, EmptyEvent(), now: session.time.now(), random: session.time.random()))
  }

  private struct EmptyEvent: Error {}

  /// What was taken at once is told like any other pull.
  private func finished(_ zone: Int64, _ pulled: ZonePuller.Pulled) async throws -> ZoneRound<PullSummary> {
    var round = ZoneRound(PullSummary())
    session.events.post { .pullStarted(localUserID: $0) }
    session.activity.foundChanges()
    try await followUp(zone, &round) { _ in pulled }
    try await finishedPull(round)
    return round
  }

  private func isKnown(_ status: ZoneStatus, zone: Int64) async throws -> Bool {
    try await session.database.asyncRead { transaction in
      try CommitLogStore(db: transaction.database, zone: zone).hash(seq: status.seq) == status.head
    }
  }

  func puller(_ zone: Int64) -> ZonePuller {
    ZonePuller(session: session, zone: zone)
  }

  func zones() async throws -> [ZoneRow] {
    try await session.database.asyncRead { [session] transaction in
      try transaction.zones.zones(localUser: session.localUser).filter { $0.appTreeID == session.appTreeID }
    }
  }

  /// After a launch: what was under way in memory is not any more, and what waited for the app is asked again.
  func prepareOnce() async throws {
    guard !hasStarted else { return }
    try await session.database.asyncReadWrite { [session] transaction in
      try transaction.operations.resetAfterLaunch(localUser: session.localUser)
    }
    hasStarted = true
  }

  /// Another process was at work on this database meanwhile: what is remembered may not be true any more.
  func startAnew() {
    cancelUploads()
    session.progress.endAll()
    uploads = [:]
    ready = [:]
    limits = [:]
    refusedByApp = []
    (pullPauses, pushPauses, eventPauses) = (ZonePauses(), ZonePauses(), ZonePauses())
    namedWhilePaused = []
    contentLosses = [:]
    refusals = [:]
    ownHeads = [:]
    isDrained = false
    hasStarted = false
    hasPulled = false
    forgetIdentityCheck()
  }
}
