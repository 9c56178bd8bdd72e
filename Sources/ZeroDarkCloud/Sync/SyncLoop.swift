internal import Foundation
internal import ZDCProtocol

/// Runs one engine in the background: events of the server bring changes in, hints of the database bring them out.
///
/// Ends when its task is cancelled. Every failure is reported and tried again after a pause; nothing here loses
/// anything, because the tables hold all pending work.
struct SyncLoop: Sendable {
  let engine: SyncEngine
  let changes: ChangeSignals
  let reachability: ZDCReachability
  private var time: EngineClock { engine.session.time }

  init(engine: SyncEngine, changes: ChangeSignals, reachability: ZDCReachability) {
    self.engine = engine
    self.changes = changes
    self.reachability = reachability
  }

  func run() async {
    // Before the first signal: one without a listener is lost.
    let wakeups = engine.wakeups()
    let hints = changes.listen([.queue(localUser: engine.session.localUser)]) { [engine] _ in engine.signal() }
    defer { changes.end(hints) }
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await listen() }
      group.addTask { await work(wakeups) }
      await group.waitForAll()
    }
    await engine.cancelUploads()
  }

  // MARK: Out

  /// Pushes whenever there may be something, after the first pull: before it, the engine does not know what is new.
  private func work(_ wakeups: AsyncStream<Void>) async {
    var backoff = Backoff()
    engine.signal()
    for await _ in wakeups {
      if Task.isCancelled { return }
      do {
        guard await engine.hasPulled else { continue }
        try await engine.pullDue()
        try await engine.pushUntilDrained()
        backoff.reset()
      } catch {
        guard await pause(after: error, &backoff) else { return }
        engine.signal()
      }
    }
  }

  // MARK: In

  /// Keeps the event stream open. Its first event names the zones that have moved, so nothing is asked twice.
  private func listen() async {
    var backoff = Backoff()
    while !Task.isCancelled {
      let health = StreamHealth()
      do { try await listenOnce(health) } catch {
        if health.isProven(at: time.now()) { backoff.reset() }
        if error is TransportError, !health.isPolling {
          reachability.lost()
          engine.session.events.post { .offline(localUserID: $0) }
        }
        guard await pause(after: error, &backoff) else { return }
      }
    }
  }

  private func listenOnce(_ health: StreamHealth) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await read(health) }
      group.addTask { try await askWhileSilent(health) }
      // Unlike `waitForAll`, ends the other one with the first error.
      while try await group.next() != nil {}
    }
  }

  private func read(_ health: StreamHealth) async throws {
    for try await event in engine.session.api.events(since: nil) {
      switch event {
      case .zones(let list):
        // The protocol has one, at the beginning; each costs requests.
        guard health.hears(at: time.now()) else { continue }
        try await took(list)
        engine.session.events.post { .online(localUserID: $0) }
      case .head(let head):
        let summary = try await pulled { try await engine.take(head) }
        // What was queued may be possible now.
        if summary.commits > 0, await !engine.isDrained { engine.signal() }
      }
    }
    // In good order or not, no event arrives any more: the server restarts, or a proxy ends what lasts too long.
    if !Task.isCancelled { throw TransportError(.cut, origin: engine.session.api.connection.origin) }
  }

  private func took(_ list: ZoneList) async throws {
    _ = try await pulled { try await engine.follow(list) }
    if reachability.reached() { tellOfReconnection() }
    engine.signal()
  }

  /// A proxy that buffers lets no event through. Asks at intervals until the stream's first event is here.
  private func askWhileSilent(_ health: StreamHealth) async throws {
    try await time.sleep(StreamHealth.firstEventDeadline)
    while !health.hasHeard {
      do {
        try await took(try await engine.session.api.zones(since: nil))
        if health.polls() { engine.session.events.post { .eventsMissing(localUserID: $0) } }
      } catch {
        if error is CancellationError { throw error }
        engine.session.events.report(error)
      }
      try await time.sleep(StreamHealth.pollInterval)
    }
  }

  /// The stream stays open, whatever is wrong with one tree, and whatever the app says: both are reported, and tried
  /// again. An app that aborts a pull does not want the next one now: the engine waits a minute.
  private func pulled(_ round: () async throws -> ZoneRound<PullSummary>) async throws -> PullSummary {
    do { return try await round().summary } catch is CancellationError where !Task.isCancelled { return PullSummary() }
  }

  private func tellOfReconnection() {
    changes.send([.network])
    engine.session.delegate().didReconnectToInternet()
  }

  // MARK: Waiting

  /// - Returns: false if the loop is to end.
  private func pause(after error: any Error, _ backoff: inout Backoff) async -> Bool {
    if Task.isCancelled || error is CancellationError { return !Task.isCancelled }
    engine.session.events.report(error)
    let milliseconds = backoff.next(after: error, random: time.random())
    do {
      try await time.sleep(.milliseconds(Int64(milliseconds)))
      return true
    } catch { return false }
  }
}

/// What one event stream has shown of itself.
final class StreamHealth: Sendable {
  private struct State {
    var firstEvent: ContinuousClock.Instant?
    var isPolling = false
  }

  /// A server sends its first event with the answer's head.
  static let firstEventDeadline = Duration.seconds(20)
  static let pollInterval = Duration.seconds(30)
  /// A stream that ends sooner is no success: the pauses before the next ones grow.
  static let proof = Duration.seconds(30)

  private let state = Locked(State())

  var hasHeard: Bool { state.withLock { $0.firstEvent != nil } }
  /// Whether the server answers other requests while the stream is silent.
  var isPolling: Bool { state.withLock { $0.isPolling && $0.firstEvent == nil } }

  /// - Returns: whether it is the stream's first event.
  func hears(at now: ContinuousClock.Instant) -> Bool {
    state.withLock { state in
      guard state.firstEvent == nil else { return false }
      state.firstEvent = now
      return true
    }
  }

  /// - Returns: whether that is new.
  func polls() -> Bool {
    state.withLock { state in
      defer { state.isPolling = true }
      return !state.isPolling
    }
  }

  func isProven(at now: ContinuousClock.Instant) -> Bool {
    state.withLock { state in
      guard let first = state.firstEvent else { return state.isPolling }
      return first.duration(to: now) >= Self.proof
    }
  }
}
