internal import Foundation
internal import ZDCProtocol

/// Keeps one local user's zones in step with the server: which of them are pulled and pushed, a few at a time.
///
/// Each zone has a ``ZoneWorker``, so that a slow one delays no other. What one user's zones share is here: the identity
/// check, the pause of all pushes, the timer, and the state that the app sees.
actor SyncScheduler {
  /// How many zones are pulled or pushed at the same time.
  static let zonesAtOnce = 4

  nonisolated let session: SyncSession
  nonisolated let identity: IdentityCheck
  private let slots = TaskGate(limit: SyncScheduler.zonesAtOnce)
  private var workers: [Int64: ZoneWorker] = [:]
  private var rows: [ZoneID: Int64] = [:]
  private var preparation: Task<Void, any Error>?
  /// Pulls and pushes that are under way.
  var aborts: [UUID: Abort] = [:]
  /// Whether the last notification to the app says that pushes are paused.
  var wasPaused = false
  /// When the end of a pull was last stored.
  var storedSyncMs: UInt64 = 0
  /// Where the rounds in the background begin, while there are any.
  var jobs: AsyncStream<Job>.Continuation?
  /// Zones that are pulled or pushed in the background now, or that are about to be.
  var pulling: Set<Int64> = []
  var pushing: Set<Int64> = []
  /// Whether something may have been queued that no survey has seen.
  var isSurveyMissed = false
  /// After failures that concern all zones.
  var pause = EnginePause()
  var timer: (task: Task<Void, Never>, due: ContinuousClock.Instant)?
  nonisolated private let wake = Broadcast<Void>(limit: 1)

  init(session: SyncSession) {
    self.session = session
    identity = IdentityCheck(session: session)
  }

  /// One element for the calls of ``signal()`` since the last one was taken. A stream ends with the task that reads it,
  /// so each run has its own.
  nonisolated func wakeups() -> AsyncStream<Void> { wake.stream() }

  /// There may be something to do.
  nonisolated func signal() {
    wake.send(())
  }

  // MARK: Zones

  func zones() async throws -> [ZoneRow] {
    try await session.database.asyncRead { [session] transaction in
      try transaction.zones.zones(localUser: session.localUser).filter { $0.appTreeID == session.appTreeID }
    }
  }

  func worker(_ zone: Int64) -> ZoneWorker {
    if let worker = workers[zone] { return worker }
    let worker = ZoneWorker(
      session: session, zone: zone, identity: identity, slots: slots, signal: { [weak self] in self?.signal() },
      scheduleWake: { [weak self] in await self?.scheduleWake(in: $0) })
    workers[zone] = worker
    return worker
  }

  /// - Returns: nil for a zone that is not the tree's.
  func worker(_ zone: ZoneID) async throws -> ZoneWorker? {
    if rows[zone] == nil { for row in try await zones() { rows[row.zone] = row.id } }
    return rows[zone].map { worker($0) }
  }

  var knownWorkers: [ZoneWorker] { Array(workers.values) }

  /// Resets the queue once after a launch: no upload is running, and the app is asked again for missing content.
  func prepareOnce() async throws {
    let task =
      preparation
      ?? Task { [session] in
        try await session.database.asyncReadWrite { transaction in
          try transaction.operations.resetAfterLaunch(localUser: session.localUser)
        }
      }
    preparation = task
    do { try await task.value } catch {
      preparation = nil
      throw error
    }
  }

  /// Drops all state in memory, because another process has synced this database in the meantime.
  func startAnew() async {
    await cancelUploads()
    session.progress.endAll()
    (workers, rows) = ([:], [:])
    preparation = nil
    pause = EnginePause()
    await identity.forget()
  }

  func cancelUploads() async {
    for worker in workers.values { await worker.cancelUploads() }
  }

  func hasUploads() async -> Bool {
    for worker in workers.values where await !worker.uploads.isEmpty { return true }
    return false
  }

  /// Takes the server's log as it is, and queues what it lacks.
  func acceptServerState(of zone: ZoneID) async throws -> ZDCRestoreSummary {
    do {
      try await prepareOnce()
      guard let row = try await zones().first(where: { $0.zone == zone }) else { return ZDCRestoreSummary() }
      return try await worker(row.id).acceptServerState()
    } catch { throw DelegateError.unwrap(error) }
  }
}

/// How long the engine leaves a server alone that it cannot reach, or that does not know this device any more. Pure.
struct EnginePause: Sendable {
  private var pause = Pause()
  private var isOfConnection = false

  var until: ContinuousClock.Instant? { pause.until }

  func lasts(_ now: ContinuousClock.Instant) -> Bool { pause.lasts(now) }

  /// - Returns: how long the pause is; nil if one lasts already.
  mutating func begin(after error: any Error, now: ContinuousClock.Instant, random: Double) -> Duration? {
    guard !lasts(now) else { return nil }
    isOfConnection = error is TransportError
    return pause.begin(after: error, now: now, random: random)
  }

  mutating func end() { self = EnginePause() }

  /// The server has answered.
  mutating func endIfOfConnection() { if isOfConnection { end() } }
}
