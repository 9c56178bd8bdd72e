internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport

/// Syncs one local user's zones until its task is cancelled. Server events trigger pulls; queue changes trigger pushes.
///
/// Every failure is reported and retried after a pause. Nothing here loses data, because the tables hold all pending
/// work.
actor BackgroundSync {
  /// A round that runs concurrently with the others.
  private typealias Job = @Sendable () async -> Void

  package nonisolated let scheduler: SyncScheduler
  nonisolated private let jobs: AsyncStream<Job>
  nonisolated private let newJobs: AsyncStream<Job>.Continuation
  /// Zones that are being pulled or pushed, or are about to be.
  private var pulling: Set<Int64> = [] {
    didSet { if pulling.isEmpty { pullsEnded.send(()) } }
  }
  nonisolated private let pullsEnded = Broadcast<Void>(limit: 1)
  private var pushing: Set<Int64> = []
  /// Zones whose last push left nothing to send.
  private var drained: Set<Int64> = []
  /// Whether an operation may have been queued that no survey has seen.
  private var isSurveyMissed = false
  /// Whether the mailbox has messages that were not looked at, and whether a round does that.
  private var (areMessagesDue, isTakingMessages) = (false, false)
  private var messagePause = MessagePause()
  /// The pause after failures that affect all zones.
  private var pause = EnginePause()

  nonisolated var unownedExecutor: UnownedSerialExecutor { scheduler.unownedExecutor }
  nonisolated private var session: SyncSession { scheduler.session }
  nonisolated private var wake: WakeTimer { scheduler.wake }

  package init(scheduler: SyncScheduler) {
    self.scheduler = scheduler
    (jobs, newJobs) = AsyncStream.makeStream(of: Job.self)
  }

  package func run(changes: ChangeSignals, reachability: ZDCReachability) async {
    // Subscribe before the first signal: a signal without a listener is lost.
    let wakeups = wake.wakeups()
    let hints = changes.listen([]) { self.note($0) }
    defer { changes.end(hints) }
    await withDiscardingTaskGroup { group in
      group.addTask { await EventListener(sync: self, changes: changes, reachability: reachability).run() }
      group.addTask { await self.work(wakeups) }
      for await job in jobs { group.addTask { await job() } }
    }
    // A job that has not started yet will no longer take its zone's events.
    for worker in await scheduler.knownWorkers { await worker.forgetEvents() }
    session.events.update { $0.endPauses() }
    await scheduler.cancelUploads()
  }

  nonisolated private func note(_ changes: Set<ChangeSignals.Interest>?) {
    guard let changes else { return wake.signal() }
    for case .zoneQueue(session.localUser, let zone) in changes { wake.signal(queueOf: zone) }
    if changes.contains(.queue(localUser: session.localUser)) { wake.signal() }
  }

  private func work(_ wakeups: AsyncStream<Void>) async {
    wake.signal()
    for await _ in wakeups {
      if Task.isCancelled { return }
      do { try await startDueWork() } catch { failed(error) }
    }
  }

  private func startDueWork() async throws {
    if case .queues(let zones) = wake.takeDue(), zones.isSubset(of: drained) {
      // Nothing else can have become due, so a look at all zones would only delay these pushes.
      guard !pause.lasts(session.time.now()) else { return }
      return await startDuePushes(zones.sorted())
    }
    await scheduler.noteNewZones()
    let states = await states()
    wakeAtNextPause(states)
    guard !pause.lasts(session.time.now()) else { return await noteUploads() }
    startDuePulls(states)
    startTakingMessages()
    let survey = try await scheduler.survey()
    if survey.pause != nil { drained = [] }
    if await scheduler.pullFirst(survey) { wake.signal() }
    await startDuePushes(survey.zones)
    await startKeyReplacements(survey)
    await noteUploads()
  }

  /// Reports the end of the last upload if no push follows it, which would report it: the user's pushes may be paused.
  private func noteUploads() async {
    guard pushing.isEmpty else { return }
    await scheduler.noteUploads()
  }

  private func states() async -> [Int64: ZoneSyncState] {
    var states: [Int64: ZoneSyncState] = [:]
    for worker in await scheduler.knownWorkers { states[worker.zone] = await worker.state }
    return states
  }

  /// Schedules the next wakeup for when a pause ends. The next push finds the pauses of individual operations.
  private func wakeAtNextPause(_ states: [Int64: ZoneSyncState]) {
    let now = session.time.now()
    let ends = [pause.until] + states.values.map { $0.nextWake(after: now) }
    if let next = ends.compactMap(\.self).filter({ $0 > now }).min() { wake.signal(after: now.duration(to: next)) }
  }

  /// Reports an error that affects all zones, and pauses the engine.
  private func failed(_ error: any Error) {
    if error is CancellationError { return }
    let length = pause.begin(after: error, now: session.time.now(), random: session.time.random())
    guard let length else { return }
    session.events.report(error)
    wake.signal(after: length)
  }

  // MARK: Pulling

  private func startDuePulls(_ states: [Int64: ZoneSyncState]) {
    let now = session.time.now()
    let due = states.filter { $0.value.isPullDue(now: now) }
    startPulls(of: due.keys.sorted()) { try await $0.pullIfDue($1) }
  }

  private func startPulls(
    of zones: [Int64], evenIfNone: Bool = false,
    _ pull: @escaping @Sendable (ZoneWorker, RoundPages?) async throws -> ZonePuller.Pulled
  ) {
    let zones = zones.filter { !pulling.contains($0) }
    guard !zones.isEmpty || evenIfNone else { return }
    pulling.formUnion(zones)
    newJobs.yield { await self.pullInBackground(zones, pull) }
  }

  private func pullInBackground(
    _ zones: [Int64], _ pull: @escaping @Sendable (ZoneWorker, RoundPages?) async throws -> ZonePuller.Pulled
  ) async {
    do {
      let round = try await scheduler.rounds.pull {
        try await self.scheduler.pullRound(of: zones, inBackground: true) { worker, pages in
          let result = await Result { try await pull(worker, pages) }
          await self.pullEnded(worker.zone)
          return try result.get()
        }
      }
      if round.failure == nil { pause.endIfOfConnection() }
    } catch is CancellationError {
      // The server does not name these zones again until they change.
      for zone in zones { await scheduler.worker(zone).pullAborted() }
    } catch { failed(error) }
    pulling.subtract(zones)
    wake.signal()
  }

  /// Marks the zone as pulled, so that its push need not wait for the pulls of other zones.
  private func pullEnded(_ zone: Int64) {
    pulling.remove(zone)
    wake.signal()
  }

  /// Starts pulls of the zones whose head differs from the pinned one. Does not wait for the pulls.
  package func follow(_ list: ZoneList) async throws {
    try await scheduler.prepareOnce()
    let due = try await scheduler.note(list)
    pause.endIfOfConnection()
    startPulls(of: due, evenIfNone: true) { try await $0.pull($1, inBackground: true) }
    if list.newestMessage != nil { takeMessages() }
    wake.signal()
  }

  /// Waits until no pull is running or the task is cancelled.
  func waitForPulls() async {
    let ended = pullsEnded.stream()
    if pulling.isEmpty { return }
    for await _ in ended where pulling.isEmpty { return }
  }

  // MARK: Events

  /// Takes over the pending messages, after the pulls that are running: the inbox may be pulled for the first time.
  /// Events that arrive in the meantime cause one more round.
  package func takeMessages() {
    areMessagesDue = true
    startTakingMessages()
  }

  private func startTakingMessages() {
    guard areMessagesDue, !isTakingMessages else { return }
    if let rest = messagePause.rest(session.time.now()) { return wake.signal(after: rest) }
    (areMessagesDue, isTakingMessages) = (false, true)
    newJobs.yield { await self.takeMessagesInBackground() }
  }

  private func takeMessagesInBackground() async {
    await waitForPulls()
    do {
      let round = try await scheduler.rounds.pull { try await self.scheduler.messageRound(inBackground: true) }
      if let failure = round.failure {
        messagesFailed(failure)
      } else {
        pause.endIfOfConnection()
        messagePause.roundEnded(commits: round.summary.commits, now: session.time.now())
        for zone in try await scheduler.zonesBehindMembers() {
          newJobs.yield { [scheduler] in await scheduler.worker(zone).pullForMember() }
        }
      }
    } catch {
      failed(error)
      messagesFailed(error)
    }
    isTakingMessages = false
    startTakingMessages()
  }

  private func messagesFailed(_ error: any Error) {
    areMessagesDue = true
    wake.signal(after: messagePause.begin(after: error, now: session.time.now(), random: session.time.random()))
  }

  /// Hands the event to its zone's worker without waiting, because the next event may belong to another zone.
  package func take(_ event: HeadEvent) async throws {
    try await scheduler.prepareOnce()
    guard let worker = try await scheduler.worker(event.status.zone), await worker.add(event) else { return }
    newJobs.yield { await self.takeEvents(worker) }
  }

  private func takeEvents(_ worker: ZoneWorker) async {
    while !Task.isCancelled, let next = await worker.nextEvent() {
      guard case .event(let event) = next else {
        await worker.handle(.headNamed(isKnown: false))
        wake.signal()
        continue
      }
      do {
        let round = try await scheduler.rounds.pull { try await self.take(event, worker) }
        if round.failure == nil { pause.endIfOfConnection() }
      } catch { failed(error) }
    }
  }

  private func take(_ event: HeadEvent, _ worker: ZoneWorker) async throws -> ZoneRound<ZDCPullSummary> {
    var round = ZoneRound(ZDCPullSummary())
    do {
      guard case .pulled(let pulled, let isDrained) = try await worker.take(event) else { return round }
      round.take(pulled)
      // The change may have unblocked queued operations.
      if pulled.summary.commits > 0, !isDrained { wake.signal() }
    } catch {
      try round.add(worker.zone, Result<Void, any Error>.failure(error)) { _, _ in }
    }
    try await scheduler.finishedPull(round)
    return round
  }

  // MARK: Pushing

  /// Starts pushes of all zones that can send something and have completed their first pull. Before its first pull, the
  /// engine does not know what is new in a zone.
  private func startDuePushes(_ zones: [Int64]) async {
    let now = session.time.now()
    var due: [Int64] = []
    for zone in zones {
      guard !pushing.contains(zone) else {
        isSurveyMissed = true
        continue
      }
      let state = await scheduler.worker(zone).state
      if state.hasPulled, !state.isPushPaused(now: now) { due.append(zone) }
    }
    guard !due.isEmpty else { return }
    pushing.formUnion(due)
    newJobs.yield { [due] in await self.pushInBackground(due) { try await $0.push(inBackground: true) } }
  }

  /// Finishes removals: starts commits that replace the keys of nodes that were not written since.
  private func startKeyReplacements(_ survey: PushSurvey) async {
    for (zone, keyGen) in survey.raisedKeys {
      let worker = await scheduler.worker(zone)
      await worker.handle(.keyRaised(keyGen))
      guard await worker.state.isKeyReplacementDue(now: session.time.now()) else { continue }
      guard pushing.insert(zone).inserted else {
        isSurveyMissed = true
        continue
      }
      newJobs.yield { await self.pushInBackground([zone]) { try await $0.replaceOldKeys(keyGen) } }
    }
  }

  private func pushInBackground(
    _ zones: [Int64], _ push: @escaping @Sendable (ZoneWorker) async throws -> ZoneWorker.Pushed
  ) async {
    do {
      let round = try await scheduler.pushing {
        try await self.scheduler.pushRound(of: zones, inBackground: true) { worker in
          let result = await Result { try await push(worker) }
          await self.pushEnded(worker.zone, result)
          return try result.get()
        }
      }
      if round.failure == nil { pause.end() }
    } catch {
      failed(error)
      // Retry an aborted push.
      if error is CancellationError { wake.signal() }
    }
    pushing.subtract(zones)
    lookAgainIfMissed()
  }

  /// Marks the zone as pushed, so that it need not wait for the other zones of its round.
  private func pushEnded(_ zone: Int64, _ result: Result<ZoneWorker.Pushed, any Error>) {
    pushing.remove(zone)
    drained.remove(zone)
    if case .success(let pushed) = result {
      if pushed.summary.isDrained { drained.insert(zone) }
      if pushed.summary.hasNext, !pushed.summary.isDrained { wake.signal() }
    }
    lookAgainIfMissed()
  }

  /// Looks at the queue again if an operation was queued while its zone was busy.
  private func lookAgainIfMissed() {
    guard isSurveyMissed else { return }
    isSurveyMissed = false
    wake.signal()
  }
}

/// The pause after the server could not be reached, or no longer recognizes this device. Pure.
package struct EnginePause: Sendable {
  private var pause = Pause()
  private var isOfConnection = false

  package var until: ContinuousClock.Instant? { pause.until }

  package func lasts(_ now: ContinuousClock.Instant) -> Bool { pause.lasts(now) }

  /// - Returns: The length of the pause, or nil if one is already in effect.
  package mutating func begin(after error: any Error, now: ContinuousClock.Instant, random: Double) -> Duration? {
    guard !lasts(now) else { return nil }
    isOfConnection = error is TransportError
    return pause.begin(after: error, now: now, random: random)
  }

  package mutating func end() { self = EnginePause() }

  /// Ends a pause that a connection failure caused, because the server has answered.
  package mutating func endIfOfConnection() { if isOfConnection { end() } }
}

/// The pause between two rounds that take messages over. Pure.
struct MessagePause: Sendable {
  static let afterEmptyRounds = Duration.seconds(5)

  private var pause = Pause()
  /// The number of rounds in a row that took nothing over.
  private var emptyRounds = 0

  /// - Returns: The time until the next round may begin, or nil if it may begin now.
  func rest(_ now: ContinuousClock.Instant) -> Duration? {
    pause.until.flatMap { $0 > now ? now.duration(to: $0) : nil }
  }

  /// Begins a pause after two rounds in a row that took nothing over. One is ordinary: the round before may have taken the
  /// message of its event. A server that sends events without messages causes one round per pause.
  mutating func roundEnded(commits: Int, now: ContinuousClock.Instant) {
    pause = Pause()
    emptyRounds = commits > 0 ? 0 : emptyRounds + 1
    if emptyRounds > 1 { pause.until = now + Self.afterEmptyRounds }
  }

  /// - Returns: The length of the pause.
  mutating func begin(after error: any Error, now: ContinuousClock.Instant, random: Double) -> Duration {
    pause.begin(after: error, now: now, random: random)
  }
}
