internal import Foundation
internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport

/// Passes the server's events to the background sync, and reports whether the server can be reached.
///
/// Ends when its task is cancelled.
struct EventListener: Sendable {
  package let sync: BackgroundSync
  package let changes: ChangeSignals
  package let reachability: ZDCReachability
  private var session: SyncSession { sync.scheduler.session }
  private var time: EngineClock { session.time }

  /// Keeps the event stream open. Its first event names the zones that have moved, so nothing is asked twice.
  package func run() async {
    var backoff = Backoff()
    while !Task.isCancelled {
      let health = StreamHealth()
      do { try await listenOnce(health) } catch {
        if health.isProven(at: time.now()) { backoff.reset() }
        if error is TransportError, !health.isPolling {
          reachability.lost()
          session.events.post { .offline(localUserID: $0) }
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
    try await withThrowingTaskGroup(of: Void.self) { group in
      for try await event in session.api.events(since: nil) {
        switch event {
        case .zones(let list):
          // The protocol has one, at the beginning; each costs requests.
          guard health.hears(at: time.now()) else { continue }
          try await took(list)
          session.events.update { $0.hearStream() }
          group.addTask { await reportOnline() }
        case .head(let head): try await sync.take(head)
        }
      }
      group.cancelAll()
    }
    // In good order or not, no event arrives any more: the server restarts, or a proxy ends what lasts too long.
    if !Task.isCancelled { throw TransportError(.cut, origin: session.api.connection.origin) }
  }

  /// Events are taken in the meantime.
  private func reportOnline() async {
    await sync.waitForPulls()
    if !Task.isCancelled { session.events.post { .online(localUserID: $0) } }
  }

  private func took(_ list: ZoneList) async throws {
    try await sync.follow(list)
    if reachability.reached() { tellOfReconnection() }
  }

  /// A proxy that buffers lets no event through. Asks at intervals until the stream's first event is here.
  private func askWhileSilent(_ health: StreamHealth) async throws {
    try await time.sleep(StreamHealth.firstEventDeadline)
    while !health.hasHeard {
      do {
        try await took(try await session.api.zones(since: nil))
        if health.polls() { session.events.post { .eventsMissing(localUserID: $0) } }
      } catch {
        if error is CancellationError { throw error }
        session.events.report(error)
      }
      try await time.sleep(StreamHealth.pollInterval)
    }
  }

  private func tellOfReconnection() {
    changes.send([.network])
    session.delegate().didReconnectToInternet()
  }

  // MARK: Waiting

  /// - Returns: false if the loop is to end.
  private func pause(after error: any Error, _ backoff: inout Backoff) async -> Bool {
    if Task.isCancelled || error is CancellationError { return !Task.isCancelled }
    session.events.report(error)
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
  package static let proof = Duration.seconds(30)

  private let state = Locked(State())

  var hasHeard: Bool { state.withLock { $0.firstEvent != nil } }
  /// Whether the server answers other requests while the stream is silent.
  package var isPolling: Bool { state.withLock { $0.isPolling && $0.firstEvent == nil } }

  /// - Returns: whether it is the stream's first event.
  package func hears(at now: ContinuousClock.Instant) -> Bool {
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

  package func isProven(at now: ContinuousClock.Instant) -> Bool {
    state.withLock { state in
      guard let first = state.firstEvent else { return state.isPolling }
      return first.duration(to: now) >= Self.proof
    }
  }
}
