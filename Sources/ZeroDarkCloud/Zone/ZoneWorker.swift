internal import Foundation
internal import ZDCCrypto
internal import ZDCProtocol

/// Keeps one zone in step with the server: pulls, and sends commits, one step at a time.
///
/// Pending work is in the database. Memory holds only what may be lost: the zone's state, contents that are sealed and
/// wait for their commit, uploads that are under way.
actor ZoneWorker {
  nonisolated let session: SyncSession
  nonisolated let zone: Int64
  nonisolated let identity: IdentityCheck
  /// How many zones of the user may make requests at the same time.
  nonisolated let slots: TaskGate
  /// Wakes the scheduler.
  nonisolated let signal: @Sendable () -> Void
  let scheduleWake: @Sendable (Duration) async -> Void
  private let gate = TaskGate()
  private(set) var state = ZoneSyncState()
  /// Content by node row, until its commit is accepted.
  var ready: [Int64: ReadyContent] = [:]
  var uploads: [Int64: Upload] = [:]
  /// What is made for the next commit while this one is on its way.
  var ahead: Task<PushAhead.Prepared, Never>?
  /// How many uploads have ended, one way or the other.
  var settledUploads = 0
  /// The first error that the app threw from a callback about what a push has done.
  var pushRefusal: DelegateError?
  /// Events that were not taken yet; nil if there were too many, and the zone is pulled instead.
  private var events: [HeadEvent]? = []
  private var isTakingEvents = false

  init(
    session: SyncSession, zone: Int64, identity: IdentityCheck, slots: TaskGate, signal: @escaping @Sendable () -> Void,
    scheduleWake: @escaping @Sendable (Duration) async -> Void
  ) {
    (self.session, self.zone, self.identity, self.slots) = (session, zone, identity, slots)
    (self.signal, self.scheduleWake) = (signal, scheduleWake)
  }

  /// Updates the state, and performs the actions that it returns.
  func handle(_ event: ZoneSyncState.Event) async {
    for action in state.handle(event, now: session.time.now(), random: session.time.random()) {
      switch action {
      case .wake(let pause): await scheduleWake(pause)
      case .report(let error): session.events.report(error)
      }
    }
  }

  /// Runs one step after the other, in the order in which they were called for.
  func step<Value: Sendable>(_ body: () async throws -> Value) async throws -> Value {
    try await gate.run(body)
  }

  /// Whether content is in memory whose operations may be gone.
  var hasRemains: Bool { !uploads.isEmpty || ahead != nil }

  func cancelUploads() {
    for upload in uploads.values { upload.task.cancel() }
    ahead?.cancel()
  }

  // MARK: Events of the server

  /// Maximum number of pending events; each may hold a page.
  private static let mostEvents = 32

  /// - Returns: whether the caller has to take the events, because no other task does.
  func add(_ event: HeadEvent) -> Bool {
    if events.map({ $0.count >= Self.mostEvents }) ?? false { events = nil } else { events?.append(event) }
    defer { isTakingEvents = true }
    return !isTakingEvents
  }

  enum NextEvent {
    case event(HeadEvent)
    /// There were too many of them.
    case overflow
  }

  func nextEvent() -> NextEvent? {
    guard let waiting = events else {
      events = []
      return .overflow
    }
    isTakingEvents = !waiting.isEmpty
    guard isTakingEvents else { return nil }
    events?.removeFirst()
    return .event(waiting[0])
  }

  /// The stream has ended: the next one begins with all heads.
  func forgetEvents() { (events, isTakingEvents) = ([], false) }
}
