internal import Foundation
internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport

/// Passes the server's events to the background sync, and reports whether the server is reachable.
///
/// Runs until its task is cancelled.
struct EventListener: Sendable {
  package let sync: BackgroundSync
  package let changes: ChangeSignals
  package let reachability: ZDCReachability
  private var session: SyncSession { sync.scheduler.session }
  private var time: EngineClock { session.time }

  /// Keeps the event stream open. The first event of each stream names the zones that have changed, so no separate
  /// request is needed.
  package func run() async {
    var backoff = Backoff()
    var health = StreamHealth()
    while !Task.isCancelled {
      do { try await listenOnce(health) } catch {
        if health.isProven(at: time.now()) { backoff.reset() }
        await pollIfDue(after: error, health)
        if error is TransportError, !health.isPolling {
          reachability.lost()
          session.events.post { .offline(localUserID: $0) }
        }
        guard await pause(after: error, health, &backoff) else { return }
      }
      health = StreamHealth(after: health)
    }
  }

  private func listenOnce(_ health: StreamHealth) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await read(health) }
      group.addTask { try await askWhileSilent(health) }
      // Unlike `waitForAll`, this ends the other task on the first error.
      while try await group.next() != nil {}
    }
  }

  private func read(_ health: StreamHealth) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for try await event in session.api.events(since: nil) {
        switch event {
        case .zones(let list):
          // The protocol sends one list, at the start. Each list costs requests, so ignore any others.
          guard health.hears(at: time.now()) else { continue }
          try await took(list)
          session.events.update { $0.hearStream() }
          group.addTask { await reportOnline() }
        case .head(let head): try await sync.take(head)
        case .message: await sync.takeMessages()
        }
      }
      group.cancelAll()
    }
    // The stream has ended, cleanly or not, because the server restarted or a proxy cut a long-lived connection.
    if !Task.isCancelled { throw TransportError(.cut, origin: session.api.connection.origin) }
  }

  /// Reports that the user is online once all pulls have ended. Events are taken in the meantime.
  private func reportOnline() async {
    await sync.waitForPulls()
    if !Task.isCancelled { session.events.post { .online(localUserID: $0) } }
  }

  private func took(_ list: ZoneList) async throws {
    try await sync.follow(list)
    if reachability.reached() { tellOfReconnection() }
  }

  // MARK: Polling

  /// Polls the server until the stream's first event arrives, because a buffering proxy may hold back all events.
  private func askWhileSilent(_ health: StreamHealth) async throws {
    try await time.sleep(StreamHealth.firstEventDeadline)
    while !health.hasHeard {
      await poll(health)
      try await time.sleep(StreamHealth.pollInterval)
    }
  }

  /// Polls the server if it may still answer other requests than the stream's. Without the list of zones, the background
  /// sync would neither pull nor push.
  private func pollIfDue(after error: any Error, _ health: StreamHealth) async {
    if error is CancellationError { return }
    if (error as? TransportError)?.isUnsent == true { return health.forgetPolls() }
    // A stream that was silent for so long has been polled for, and another silent request would delay the next stream.
    if (error as? TransportError)?.code == .timeout { return }
    if health.isPollDue(at: time.now()) { await poll(health) }
  }

  private func poll(_ health: StreamHealth) async {
    do {
      try await took(try await session.api.zones(since: nil))
      if health.polled(at: time.now(), isAnswered: true) { session.events.post { .eventsMissing(localUserID: $0) } }
    } catch {
      // The stream has ended while the poll was running.
      if error is CancellationError { return }
      _ = health.polled(at: time.now(), isAnswered: false)
      session.events.report(error)
    }
  }

  private func tellOfReconnection() {
    changes.send([.network])
    session.delegate().didReconnectToInternet()
  }

  // MARK: Waiting

  /// - Returns: False if the loop must end.
  private func pause(after error: any Error, _ health: StreamHealth, _ backoff: inout Backoff) async -> Bool {
    if Task.isCancelled || error is CancellationError { return !Task.isCancelled }
    let answers = session.api.connection.answers.stream()
    // While polls are answered, the status is `eventsMissing`: a transport error would report that the server is away.
    if !(error is TransportError && health.isPolling) { session.events.report(error) }
    let length = Duration.milliseconds(Int64(backoff.next(after: error, random: time.random())))
    do {
      guard (error as? TransportError)?.isUnsent == true, length > Self.shortestPause else {
        try await time.sleep(length)
        return true
      }
      try await time.sleep(Self.shortestPause)
      try await sleep(length - Self.shortestPause, orUntil: answers)
      return true
    } catch { return false }
  }

  /// A pause ends after this time if the server could not be reached, and has answered another request since then. A server
  /// that answers on open connections and refuses new ones is asked no more often.
  private static let shortestPause = Duration.seconds(1)

  private func sleep(_ duration: Duration, orUntil answers: AsyncStream<Void>) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { [time] in try await time.sleep(duration) }
      group.addTask { for await _ in answers { return } }
      try await group.next()
      group.cancelAll()
    }
    try Task.checkCancellation()
  }
}

/// The observed health of one event stream, and the polls since the last stream that delivered an event.
final class StreamHealth: Sendable {
  private struct State {
    var firstEvent: ContinuousClock.Instant?
    /// The last poll that took the place of an event.
    var lastPoll: (date: ContinuousClock.Instant, isAnswered: Bool)?
    /// Whether the server answered a poll while this stream was open.
    var hasPolled = false
  }

  /// The server sends its first event along with the response headers.
  static let firstEventDeadline = Duration.seconds(20)
  static let pollInterval = Duration.seconds(30)
  /// A stream that ends sooner does not count as a success, so the pauses before the next attempts grow.
  package static let proof = Duration.seconds(30)

  private let state: Locked<State>

  /// - Parameter previous: The stream before this one.
  package init(after previous: StreamHealth? = nil) {
    let last = previous?.state.withLock { $0.firstEvent == nil ? $0.lastPoll : nil }
    state = Locked(State(lastPoll: last))
  }

  var hasHeard: Bool { state.withLock { $0.firstEvent != nil } }
  /// Whether the server answers other requests while no stream delivers an event.
  package var isPolling: Bool { state.withLock { $0.firstEvent == nil && $0.lastPoll?.isAnswered == true } }

  /// - Returns: Whether this is the stream's first event.
  package func hears(at now: ContinuousClock.Instant) -> Bool {
    state.withLock { state in
      guard state.firstEvent == nil else { return false }
      state.firstEvent = now
      return true
    }
  }

  /// Whether a poll may take the place of the events of a stream that has ended.
  package func isPollDue(at now: ContinuousClock.Instant) -> Bool {
    state.withLock { state in
      state.firstEvent == nil && state.lastPoll.map { $0.date + Self.pollInterval <= now } ?? true
    }
  }

  /// Forgets the polls, because the server cannot be reached any more.
  func forgetPolls() { state.withLock { $0.lastPoll = nil } }

  /// - Returns: Whether this is the first poll that is answered, or the first one since a poll that was not.
  package func polled(at now: ContinuousClock.Instant, isAnswered: Bool) -> Bool {
    state.withLock { state in
      defer { (state.lastPoll, state.hasPolled) = ((now, isAnswered), state.hasPolled || isAnswered) }
      return isAnswered && state.lastPoll?.isAnswered != true
    }
  }

  package func isProven(at now: ContinuousClock.Instant) -> Bool {
    state.withLock { state in
      guard let first = state.firstEvent else { return state.hasPolled }
      return first.duration(to: now) >= Self.proof
    }
  }
}
