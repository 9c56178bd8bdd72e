internal import Logging
internal import Synchronization
internal import ZDCProtocol

/// The state that all requests share: stores, clock, configuration, and the little that exists only in memory.
final class ServerCore: Sendable {
  let configuration: Configuration
  let metadata: any MetadataStore
  let blobs: any BlobStore
  let coordination: any ServerCoordination
  /// Nil if no backup of this server is ever restored, as in tests.
  let deletions: (any DeletionLedger)?
  let clock: ServerClock
  let logger: Logger
  let hub: EventHub
  let metrics = ServerMetrics()
  let challenges: Challenges
  let sessions = SessionCache()
  /// Limits calls without a session, by client address.
  let limiter: RateLimiter<String>?
  /// Limits expensive calls, by user.
  let work: RateLimiter<UserID>?
  /// Limits look-ups of handles, by user.
  let lookups: RateLimiter<UserID>
  /// Limits acceptances of other users' zones, by user.
  let acceptances: RateLimiter<UserID>
  /// Limits the messages that each user delivers.
  let messages: RateLimiter<UserID>
  let memberRates: MemberRates
  let lists = ListCache()
  /// Limits the nodes visited below deleted and moved ones, by user.
  let subtrees: RateLimiter<UserID>
  let connections: ConnectionTable
  /// Limits concurrent store calls, by user or address. Writes run one after the other in any case; two reads per party
  /// leave the store's other readers to everyone else.
  let writes = PartyTurns(limit: 1)
  let reads = PartyTurns(limit: 2)
  let bodies: BodyBudget
  let answers: BodyBudget
  let collection: Mutex<CollectionGuard>
  /// Files that are in the list of deletions and could not be removed yet.
  let notedRemovals = Mutex<Set<BlobID>>([])
  var quotas: Quotas {
    Quotas(limit: configuration.bounds.quotaBytes, recordLimit: configuration.bounds.recordQuotaBytes)
  }

  private struct State {
    var origins: Set<String> = []
    var isReady = false
    var isLeaving = false
    var isStopping = false
    var isFull = false
    /// When the next look for room may write, by the monotonic clock.
    var nextProbeMs: UInt64 = 0
    /// Whether nodes of closed zones may have to be removed, as after a crash.
    var hasClosing = true
  }

  private let state = Mutex(State())

  init(
    configuration: Configuration, metadata: any MetadataStore, blobs: any BlobStore,
    coordination: any ServerCoordination, deletions: (any DeletionLedger)?, clock: ServerClock, logger: Logger
  ) {
    self.configuration = configuration
    self.metadata = metadata
    self.blobs = blobs
    self.coordination = coordination
    self.deletions = deletions
    self.clock = clock
    self.logger = logger
    let bounds = configuration.bounds
    hub = EventHub(streamsPerUser: bounds.eventStreamsPerUser, pendingBytes: bounds.pendingEventBytes)
    bodies = BodyBudget(limit: bounds.bufferedBodyBytes)
    answers = BodyBudget(limit: bounds.bufferedAnswerBytes)
    challenges = Challenges(key: coordination.challengeKey)
    let processes: @Sendable () -> Int = { coordination.processes }
    limiter = bounds.accountCallsPerMinute.map { RateLimiter(perMinute: $0, processes: processes) }
    work = bounds.accountWorkPerMinute.map { RateLimiter(perMinute: $0, processes: processes) }
    acceptances = RateLimiter(
      perMinute: bounds.acceptancesPerMinute, burst: max(bounds.acceptancesPerMinute, bounds.memberships),
      processes: processes)
    messages = RateLimiter(
      perMinute: bounds.messagesPerMinute, burst: 2 * bounds.messagesPerMinute, processes: processes)
    lookups = RateLimiter(
      perMinute: bounds.lookupsPerMinute, burst: 2 * bounds.lookupsPerMinute, processes: processes)
    memberRates = MemberRates(bounds, elapsed: clock.elapsedMs, processes: processes)
    subtrees = RateLimiter(
      perMinute: bounds.subtreeNodesPerMinute, burst: bounds.subtreeNodesPerMinute / 6, processes: processes)
    connections = ConnectionTable(perAddress: bounds.connectionsPerAddress, exempt: configuration.trustedProxies)
    collection = Mutex(CollectionGuard(now: coordination.nowMs(clock), elapsed: clock.elapsedMs()))
    coordination.listen { [hub, sessions] in Self.receive($0, hub, sessions) }
  }

  /// Publishes new heads to event streams. Drops sessions that ended, here or in another process, and closes their
  /// streams.
  private static func receive(_ announcement: Announcement, _ hub: EventHub, _ sessions: SessionCache) {
    switch announcement {
    case .head(let notice): hub.publish(notice)
    case .membership(let notice): hub.publish(notice)
    case .message(let notice): hub.publish(notice)
    case .sessionsEnded(let hashes):
      sessions.remove(hashes)
      let ended = Set(hashes)
      hub.close { ended.contains($0.session) }
    case .deviceRemoved(let device, let user): end(of: user, hub, sessions) { $0 == device }
    case .allSessionsEnded(let kept, let user): end(of: user, hub, sessions) { $0 != kept }
    case .unknown:
      sessions.remove { _ in true }
      hub.close { _ in true }
    }
  }

  private static func end(
    of user: UserID, _ hub: EventHub, _ sessions: SessionCache, where isEnded: (DeviceID) -> Bool
  ) {
    sessions.remove { $0.user == user && isEnded($0.device) }
    hub.close(of: user) { isEnded($0.device) }
  }

  var now: UInt64 { coordination.nowMs(clock) }
  var elapsed: UInt64 { clock.elapsedMs() }
  var isStopping: Bool { state.withLock { $0.isStopping } }
  var isReady: Bool { state.withLock { $0.isReady && !$0.isLeaving && !$0.isStopping } }

  func isOwnOrigin(_ origin: String) -> Bool {
    state.withLock { $0.origins.contains(Configuration.normalizedOrigin(origin)) }
  }

  func begin(port: Int) {
    state.withLock { state in
      state.origins = configuration.effectiveOrigins(port: port)
      state.isReady = true
    }
  }

  func announceStop() { state.withLock { $0.isLeaving = true } }

  /// Refuses new requests and ends event streams; running requests may finish.
  func stop() {
    state.withLock { $0.isStopping = true }
    hub.close()
    coordination.close()
  }

  func setClosing() { state.withLock { $0.hasClosing = true } }

  /// Returns whether a zone was closed since the last call.
  func takeClosing() -> Bool {
    state.withLock { state in
      defer { state.hasClosing = false }
      return state.hasClosing
    }
  }

  /// Whether the last write that needed disk space found none.
  var isFull: Bool { state.withLock { $0.isFull } }
  func setFull(_ isFull: Bool) { state.withLock { $0.isFull = isFull } }

  /// Returns whether some time has passed since the last look for room that wrote: any host may ask whether the server is
  /// ready.
  func takeProbe() -> Bool {
    let now = elapsed
    return state.withLock { state in
      guard now >= state.nextProbeMs else { return false }
      state.nextProbeMs = now + Self.probeMs
      return true
    }
  }

  private static let probeMs: UInt64 = 5_000

  /// - Throws: `tooManyRequests` if the user has recently made too many expensive calls.
  func takeWork(of user: UserID) throws {
    guard let wait = work?.take(user, now: elapsed) else { return }
    throw ServerError(.tooManyRequests, "too many requests", retryable: true, retryAfterMs: wait)
  }

  /// - Throws: `tooManyRequests` if the user has recently accepted too many zones.
  func takeAcceptance(of user: UserID) throws {
    guard let wait = acceptances.take(user, now: elapsed) else { return }
    throw ServerError(.tooManyRequests, "too many zones were accepted", retryable: true, retryAfterMs: wait)
  }

  /// - Throws: `tooManyRequests` if the user has recently looked up too many handles.
  func takeLookup(of user: UserID) throws {
    guard let wait = lookups.take(user, now: elapsed) else { return }
    throw ServerError(.tooManyRequests, "too many handles were looked up", retryable: true, retryAfterMs: wait)
  }

  /// Takes that many messages. They may exceed what is left; the user's next ones then wait.
  ///
  /// - Throws: `tooManyRequests` if the user has recently delivered too many messages.
  func takeMessages(_ count: Int, of user: UserID) throws {
    guard let wait = messages.wait(user, now: elapsed) else { return messages.charge(user, count, now: elapsed) }
    throw ServerError(.tooManyRequests, "too many messages", retryable: true, retryAfterMs: wait)
  }

  /// - Throws: `tooManyRequests` if the user's calls have recently visited too many nodes.
  func checkSubtreeWork(of user: UserID) throws {
    guard let wait = subtrees.wait(user, now: elapsed) else { return }
    throw ServerError(
      .tooManyRequests, "too many nodes were moved or deleted with their folders", retryable: true, retryAfterMs: wait)
  }

  /// Returns the session of a token, from memory or the store.
  ///
  /// - Parameter party: the client's address, whose store reads are limited: a token that is not in memory may be made
  ///   up.
  func session(token: [UInt8], from party: BodyBudget.Party) async throws -> SessionRow? {
    let hash = Sessions.hash(token)
    let now = now
    if coordination.isCurrent, let known = sessions.get(hash) { return known.expiresMs > now ? known : nil }
    let epoch = sessions.epoch
    let found = try await reads.run(party) { try await metadata.read { try $0.session(tokenHash: hash) } }
    guard let row = found, row.expiresMs > now else { return nil }
    sessions.put(row, epoch: epoch)
    return row
  }
}

/// Recently used sessions. An ended session leaves the cache before the response that reports its end.
final class SessionCache: Sendable {
  private struct State {
    var rows: [[UInt8]: SessionRow] = [:]
    var epoch = 0
  }

  private static let limit = 8_192
  private let state = Mutex(State())

  var epoch: Int { state.withLock { $0.epoch } }

  func get(_ hash: [UInt8]) -> SessionRow? { state.withLock { $0.rows[hash] } }

  /// Stores a row that was read in `epoch`, unless a session has ended since then: it might be this one.
  func put(_ row: SessionRow, epoch: Int) {
    state.withLock { state in
      guard state.epoch == epoch else { return }
      if state.rows.count >= Self.limit { state.rows.removeAll() }
      state.rows[row.tokenHash] = row
    }
  }

  func remove(_ hashes: [[UInt8]]) {
    state.withLock { state in
      for hash in hashes { state.rows[hash] = nil }
      state.epoch += 1
    }
  }

  func remove(where isEnded: (SessionRow) -> Bool) {
    state.withLock { state in
      state.rows = state.rows.filter { !isEnded($0.value) }
      state.epoch += 1
    }
  }

  var count: Int { state.withLock { $0.rows.count } }
}
