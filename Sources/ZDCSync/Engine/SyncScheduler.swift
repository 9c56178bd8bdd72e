package import ZDCClientStore
package import ZDCProtocol
internal import ZDCSupport
internal import ZDCTransfers

/// Pulls and pushes one local user's zones, a few at a time.
///
/// Each zone has a ``ZoneWorker``, so that a slow zone delays no other. This actor holds the state that a user's zones
/// share: the identity check, the pause of all pushes, and the state that the app sees. ``BackgroundSync`` decides when
/// to sync.
package actor SyncScheduler {
  /// The maximum number of zones that are pulled or pushed at the same time.
  static let zonesAtOnce = 4

  package nonisolated let executor = EngineExecutor()
  package nonisolated let session: SyncSession
  package nonisolated let identity: IdentityCheck
  package nonisolated let rounds: RunningRounds
  let innerBranches: InnerBranches
  private let slots = TaskGate(limit: SyncScheduler.zonesAtOnce)
  private var workers: [Int64: ZoneWorker] = [:]
  private var rows: [ZoneID: Int64] = [:]
  /// Grafted zones whose first pull was requested.
  private var grafts: Set<Int64> = []
  private var preparation: Task<Void, any Error>?
  /// Whether the last notification to the app reported that pushes are paused.
  var wasPaused = false
  /// The date of the last sync that was stored, in milliseconds.
  var storedSyncMs: UInt64 = 0
  package nonisolated let wake: WakeTimer

  package init(session: SyncSession) {
    self.session = session
    identity = IdentityCheck(session: session, executor: executor)
    rounds = RunningRounds(session: session)
    innerBranches = InnerBranches(session: session, executor: executor)
    wake = WakeTimer(time: session.time)
  }

  package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.unownedExecutor }

  // MARK: Zones

  package func zones() async throws -> [ZoneRow] {
    try await session.database.asyncRead { [session] transaction in
      try transaction.zones.zones(localUser: session.localUser).filter { $0.appTreeID == session.appTreeID }
    }
  }

  package func worker(_ zone: Int64) -> ZoneWorker {
    if let worker = workers[zone] { return worker }
    let worker = ZoneWorker(
      session: session, zone: zone, identity: identity, slots: slots, wake: wake, executor: executor
    ) { [weak self] in await self?.noteUploads() }
    workers[zone] = worker
    return worker
  }

  /// - Returns: Nil for a zone that does not belong to the tree.
  package func worker(_ zone: ZoneID) async throws -> ZoneWorker? {
    if rows[zone] == nil { for row in try await zones() { rows[row.zone] = row.id } }
    return rows[zone].map { worker($0) }
  }

  /// Notes the row of a zone that was accepted. An earlier row of the same zone went with the access.
  package func follow(_ zone: ZoneID, row: Int64) { rows[zone] = row }

  /// Makes the workers of zones that began with a split pull them.
  @discardableResult
  func noteNewZones() async -> [Int64] {
    let new = session.newZones.withLock { zones in
      defer { zones = [] }
      return zones.sorted()
    }
    await pullFirst(new)
    return new
  }

  /// Makes the workers of new zones pull them. Earlier rows of the same zones are no longer valid.
  func pullFirst(_ zones: [Int64]) async {
    guard !zones.isEmpty else { return }
    rows = [:]
    for zone in zones { await worker(zone).handle(.followed) }
  }

  /// Makes the workers of zones that the app has grafted pull them, once for each graft. If that fails, they pause.
  ///
  /// - Returns: Whether there are new ones.
  func pullFirst(_ survey: PushSurvey) async -> Bool {
    let new = survey.unpulled.subtracting(grafts)
    grafts = survey.unpulled
    await pullFirst(new.sorted())
    return !new.isEmpty
  }

  package var knownWorkers: [ZoneWorker] { Array(workers.values) }

  /// Resets the queue once after launch: no upload is running, and the app is asked again for missing content.
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

  /// Drops all in-memory state, because another process has synced this database in the meantime.
  func startAnew() async {
    await cancelUploads()
    session.progress.endAll()
    session.events.update { $0.endPauses() }
    (workers, rows, grafts) = ([:], [:], [])
    preparation = nil
    await innerBranches.forget()
    await identity.forget()
  }

  func cancelUploads() async {
    for worker in workers.values { await worker.contents.cancelUploads() }
  }

  /// Reports the end of the last upload if no push runs that would report it.
  func noteUploads() async {
    session.activity.uploadsChanged(isUploading: await hasUploads())
  }

  func hasUploads() async -> Bool {
    for worker in workers.values where await worker.contents.isUploading { return true }
    return false
  }

  /// Adopts the server's log, and queues the changes that the log lacks.
  package func acceptServerState(of zone: ZoneID) async throws -> ZDCRestoreSummary {
    do {
      try await prepareOnce()
      guard let row = try await zones().first(where: { $0.zone == zone }) else { return ZDCRestoreSummary() }
      return try await worker(row.id).acceptServerState()
    } catch { throw publicError(error) }
  }
}
