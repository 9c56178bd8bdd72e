internal import ZDCProtocol

// The engine in the background: events of the server bring changes in, hints of the database bring them out.

extension SyncScheduler {
  /// A round that runs beside the others.
  typealias Job = @Sendable () async -> Void

  /// Syncs until the task is cancelled. Every failure is reported and tried again after a pause; nothing here loses
  /// anything, because the tables hold all pending work.
  func run(changes: ChangeSignals, reachability: ZDCReachability) async {
    // Before the first signal: one without a listener is lost.
    let wakeups = wakeups()
    let hints = changes.listen([.queue(localUser: session.localUser)]) { [weak self] _ in self?.signal() }
    defer { changes.end(hints) }
    let (stream, continuation) = AsyncStream.makeStream(of: Job.self)
    jobs = continuation
    await withDiscardingTaskGroup { group in
      group.addTask { await EventListener(scheduler: self, changes: changes, reachability: reachability).run() }
      group.addTask { await self.work(wakeups) }
      for await job in stream { group.addTask { await job() } }
    }
    jobs = nil
    (pulling, pushing) = ([], [])
    // A job that had not begun takes its zone's events no more.
    for worker in knownWorkers { await worker.forgetEvents() }
    await cancelUploads()
  }

  private func work(_ wakeups: AsyncStream<Void>) async {
    signal()
    for await _ in wakeups {
      if Task.isCancelled { return }
      do {
        guard !pause.lasts(session.time.now()) else { continue }
        await startDuePulls()
        try await startDuePushes()
      } catch { failed(error) }
    }
  }

  /// Reports an error that concerns all zones, and pauses the engine.
  private func failed(_ error: any Error) {
    if error is CancellationError { return }
    let length = pause.begin(after: error, now: session.time.now(), random: session.time.random())
    guard let length else { return }
    session.events.report(error)
    scheduleWake(in: length)
  }

  // MARK: Pulling

  private func startDuePulls() async {
    let now = session.time.now()
    var due: [Int64] = []
    for worker in knownWorkers where await worker.state.isPullDue(now: now) { due.append(worker.zone) }
    startPulls(of: due) { try await $0.pullIfDue() }
  }

  private func startPulls(
    of zones: [Int64], evenIfNone: Bool = false,
    _ pull: @escaping @Sendable (ZoneWorker) async throws -> ZonePuller.Pulled
  ) {
    let zones = zones.filter { !pulling.contains($0) }
    guard !zones.isEmpty || evenIfNone else { return }
    pulling.formUnion(zones)
    jobs?.yield { await self.pullInBackground(zones, pull) }
  }

  private func pullInBackground(
    _ zones: [Int64], _ pull: @escaping @Sendable (ZoneWorker) async throws -> ZonePuller.Pulled
  ) async {
    do {
      let round = try await pulling {
        try await self.pullRound(of: zones, inBackground: true) { worker in
          let result = await Self.result { try await pull(worker) }
          await self.pullEnded(worker.zone)
          return try result.get()
        }
      }
      if round.failure == nil { pause.endIfOfConnection() }
    } catch is CancellationError {
      // The server does not name them again as long as nothing new happens there.
      for zone in zones where await worker(zone).state.isPullDue(now: session.time.now()) {
        await worker(zone).handle(.pullAborted)
      }
    } catch { failed(error) }
    pulling.subtract(zones)
    signal()
  }

  /// The zone's push need not wait for the pulls of others.
  private func pullEnded(_ zone: Int64) {
    pulling.remove(zone)
    signal()
  }

  /// Pulls the zones whose head is not the pinned one.
  func follow(_ list: ZoneList) async throws {
    try await prepareOnce()
    let due = try await note(list)
    pause.endIfOfConnection()
    startPulls(of: due, evenIfNone: true) { try await $0.pull(inBackground: true) }
    signal()
  }

  // MARK: Events

  /// Hands the event to its zone's worker. Does not wait for it: the next event may be another zone's.
  func take(_ event: HeadEvent) async throws {
    try await prepareOnce()
    guard let worker = try await worker(event.status.zone), await worker.add(event) else { return }
    jobs?.yield { await self.takeEvents(worker) }
  }

  private func takeEvents(_ worker: ZoneWorker) async {
    while !Task.isCancelled, let next = await worker.nextEvent() {
      guard case .event(let event) = next else {
        await worker.handle(.headNamed(isKnown: false))
        signal()
        continue
      }
      do {
        let round = try await pulling { try await self.take(event, worker) }
        if round.failure == nil { pause.endIfOfConnection() }
      } catch { failed(error) }
    }
  }

  private func take(_ event: HeadEvent, _ worker: ZoneWorker) async throws -> ZoneRound<PullSummary> {
    var round = ZoneRound(PullSummary())
    do {
      guard case .pulled(let pulled, let isDrained) = try await worker.take(event) else { return round }
      round.take(pulled)
      // The change may have unblocked queued operations.
      if pulled.summary.commits > 0, !isDrained { signal() }
    } catch {
      try round.add(worker.zone, Result<Void, any Error>.failure(error)) { _, _ in }
    }
    try await finishedPull(round)
    return round
  }

  // MARK: Pushing

  /// Pushes whatever may go out, zones after their first pull: before it, the engine does not know what is new.
  private func startDuePushes() async throws {
    let now = session.time.now()
    var due: [Int64] = []
    for zone in try await survey().zones {
      let state = await worker(zone).state
      if pushing.contains(zone) { isSurveyMissed = true }
      if state.hasPulled, !state.isPushPaused(now: now), !pushing.contains(zone) { due.append(zone) }
    }
    guard !due.isEmpty else { return }
    pushing.formUnion(due)
    jobs?.yield { [due] in await self.pushInBackground(due) }
  }

  private func pushInBackground(_ zones: [Int64]) async {
    do {
      let round = try await pushing {
        try await self.pushRound(of: zones, inBackground: true) { worker in
          let result = await Self.result { try await worker.push(inBackground: true) }
          await self.pushEnded(worker.zone, result)
          return try result.get()
        }
      }
      if round.failure == nil { pause.end() }
    } catch {
      failed(error)
      // An aborted push is repeated.
      if error is CancellationError { signal() }
    }
    pushing.subtract(zones)
    lookAgainIfMissed()
  }

  /// The zone need not wait for the others of its round.
  private func pushEnded(_ zone: Int64, _ result: Result<ZoneWorker.Pushed, any Error>) {
    pushing.remove(zone)
    if case .success(let pushed) = result, pushed.summary.hasNext, !pushed.summary.isDrained { signal() }
    lookAgainIfMissed()
  }

  /// Wakes the scheduler if an operation was queued while its zone was busy.
  private func lookAgainIfMissed() {
    guard isSurveyMissed else { return }
    isSurveyMissed = false
    signal()
  }

  // MARK: Time

  /// Signals after a pause. An engine has one timer, for the earliest of its pauses.
  func scheduleWake(in pause: Duration) {
    let due = session.time.now().advanced(by: pause)
    if let timer, timer.due <= due { return }
    timer?.task.cancel()
    let task = Task { [weak self, time = session.time] in
      do { try await time.sleep(pause) } catch { return }
      await self?.timerFired(due)
    }
    timer = (task, due)
  }

  private func timerFired(_ due: ContinuousClock.Instant) async {
    guard timer?.due == due else { return }
    timer = nil
    signal()
    // The pauses of operations are found by the next push.
    let now = session.time.now()
    var next = pause.until
    for worker in knownWorkers {
      next = [next, await worker.state.nextWake(after: now)].compactMap(\.self).min()
    }
    if let next, next > now { scheduleWake(in: now.duration(to: next)) }
  }
}
