internal import Foundation
internal import ZDCClientStore
internal import ZDCCrypto
package import ZDCProtocol
package import ZDCSupport

/// Keeps one zone in sync with the server: pulls and sends commits, one step at a time.
///
/// The database holds all pending work. Memory holds only state that may be lost: the zone's state, content that is
/// being prepared for a commit, and pending events.
package actor ZoneWorker {
  package nonisolated let executor: EngineExecutor
  package nonisolated let session: SyncSession
  package nonisolated let zone: Int64
  package nonisolated let identity: IdentityCheck
  /// Limits how many of the user's zones make requests at the same time.
  package nonisolated let slots: TaskGate
  package nonisolated let wake: WakeTimer
  package nonisolated let contents: ContentPool
  private let gate = TaskGate()
  package private(set) var state = ZoneSyncState()
  /// Pending events, or nil if there were too many and the zone is pulled instead.
  private var events: [HeadEvent]? = []
  private var isTakingEvents = false
  /// Messages that do not open. They are tried again after a relaunch.
  var refusedMessages: Set<MessageName> = []
  /// Nodes that wait for the replacement of their keys.
  var staleNodes = StaleNodes()

  package init(
    session: SyncSession, zone: Int64, identity: IdentityCheck, slots: TaskGate, wake: WakeTimer,
    executor: EngineExecutor, uploadFailed: @escaping @Sendable () async -> Void
  ) {
    (self.session, self.zone, self.identity, self.slots, self.wake) = (session, zone, identity, slots, wake)
    self.executor = executor
    contents = ContentPool(
      session: session, zone: zone, wake: wake, executor: executor, uploadFailed: uploadFailed)
  }

  package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.unownedExecutor }

  /// Updates the state and performs the actions that it returns.
  package func handle(_ event: ZoneSyncState.Event) {
    for action in state.handle(event, now: session.time.now(), random: session.time.random()) {
      switch action {
      case .wake(let pause): wake.signal(after: pause)
      case .report(let error): session.events.report(error)
      case .showPause(let pause): show(pause)
      }
    }
  }

  private func show(_ pause: (error: any Error, length: Duration)?) {
    let now = session.now()
    let shown = pause.map { error, length in
      ZDCSyncFailure(error, date: Date(ms: now + UInt64(length / .milliseconds(1))))
    }
    session.events.update { [zone] in $0.setPause(shown, of: zone) }
  }

  /// Runs steps one at a time, in the order of the calls.
  package func step<Value: Sendable>(_ body: () async throws -> Value) async throws -> Value {
    try await gate.run(body)
  }

  // MARK: Events of the server

  /// Maximum number of pending events; each may hold a page.
  private static let mostEvents = 32

  /// - Returns: Whether the caller must take the events, because no other task does.
  package func add(_ event: HeadEvent) -> Bool {
    if events.map({ $0.count >= Self.mostEvents }) ?? false { events = nil } else { events?.append(event) }
    defer { isTakingEvents = true }
    return !isTakingEvents
  }

  package enum NextEvent {
    case event(HeadEvent)
    /// Too many events were pending.
    case overflow
  }

  package func nextEvent() -> NextEvent? {
    guard let waiting = events else {
      events = []
      return .overflow
    }
    isTakingEvents = !waiting.isEmpty
    guard isTakingEvents else { return nil }
    events?.removeFirst()
    return .event(waiting[0])
  }

  /// Drops all events when the stream has ended. The next stream begins with all heads.
  func forgetEvents() { (events, isTakingEvents) = ([], false) }
}
