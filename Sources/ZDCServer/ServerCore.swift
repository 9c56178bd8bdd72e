internal import Logging
internal import Synchronization
internal import ZDCProtocol

/// What every request shares: stores, clock, configuration, and the little that lives in memory only.
final class ServerCore: Sendable {
  let configuration: Configuration
  let metadata: any MetadataStore
  let blobs: any BlobStore
  let clock: ServerClock
  let logger: Logger
  let hub: EventHub
  let metrics = ServerMetrics()
  let challenges = Challenges()
  let sessions = SessionCache()
  let limiter: RateLimiter?
  let claims = BlobClaims()
  let contention: ContentionTable
  let bodies: BodyBudget
  var quotas: Quotas { Quotas(limit: configuration.bounds.quotaBytes) }

  private struct State {
    var origins: Set<String> = []
    var isReady = false
    var isStopping = false
    var isFull = false
  }

  private let state = Mutex(State())

  init(
    configuration: Configuration, metadata: any MetadataStore, blobs: any BlobStore, clock: ServerClock, logger: Logger
  ) {
    self.configuration = configuration
    self.metadata = metadata
    self.blobs = blobs
    self.clock = clock
    self.logger = logger
    let bounds = configuration.bounds
    hub = EventHub(streamsPerUser: bounds.eventStreamsPerUser, pendingBytes: bounds.pendingEventBytes)
    bodies = BodyBudget(limit: bounds.bufferedBodyBytes)
    contention = ContentionTable(clock: clock, holdMs: bounds.commitHoldMs)
    limiter = bounds.accountCallsPerMinute.map { RateLimiter(callsPerMinute: $0) }
  }

  var now: UInt64 { clock.nowMs() }
  var isStopping: Bool { state.withLock { $0.isStopping } }
  var isReady: Bool { state.withLock { $0.isReady && !$0.isStopping } }

  func isOwnOrigin(_ origin: String) -> Bool {
    state.withLock { $0.origins.contains(Configuration.normalizedOrigin(origin)) }
  }

  func begin(port: Int) {
    state.withLock { state in
      state.origins = configuration.effectiveOrigins(port: port)
      state.isReady = true
    }
  }

  /// New requests are refused and event streams end; what runs may finish.
  func stop() {
    state.withLock { $0.isStopping = true }
    hub.close()
    contention.close()
  }

  /// Whether the last write that needed room found none.
  var isFull: Bool { state.withLock { $0.isFull } }
  func setFull(_ isFull: Bool) { state.withLock { $0.isFull = isFull } }

  /// The session of a token, from memory or the store.
  func session(token: [UInt8]) async throws -> SessionRow? {
    let hash = Sessions.hash(token)
    let now = now
    if let known = sessions.get(hash) { return known.expiresMs > now ? known : nil }
    let epoch = sessions.epoch
    guard let row = try await metadata.read({ try $0.session(tokenHash: hash) }), row.expiresMs > now else {
      return nil
    }
    sessions.put(row, epoch: epoch)
    return row
  }
}

/// Sessions that were looked up lately. Revoking one empties the cache, so a revoked session ends at once.
final class SessionCache: Sendable {
  private struct State {
    var rows: [[UInt8]: SessionRow] = [:]
    var epoch = 0
  }

  private static let limit = 8_192
  private let state = Mutex(State())

  var epoch: Int { state.withLock { $0.epoch } }

  func get(_ hash: [UInt8]) -> SessionRow? { state.withLock { $0.rows[hash] } }

  /// Takes a row that was read in `epoch`; one that was revoked since then is not taken.
  func put(_ row: SessionRow, epoch: Int) {
    state.withLock { state in
      guard state.epoch == epoch else { return }
      if state.rows.count >= Self.limit { state.rows.removeAll() }
      state.rows[row.tokenHash] = row
    }
  }

  func removeAll() {
    state.withLock { state in
      state.rows.removeAll()
      state.epoch += 1
    }
  }
}

/// A bucket of calls per client address, refilled evenly.
final class RateLimiter: Sendable {
  private struct Bucket {
    var calls: Double
    var atMs: UInt64
  }

  private static let addresses = 16_384
  private let callsPerMinute: Int
  private let buckets = Mutex<[String: Bucket]>([:])

  init(callsPerMinute: Int) {
    self.callsPerMinute = callsPerMinute
  }

  /// Nil if the call may go on, else how long to wait.
  func wait(address: String, now: UInt64) -> UInt64? {
    let capacity = Double(callsPerMinute)
    return buckets.withLock { buckets in
      if buckets.count > Self.addresses { buckets.removeAll() }
      var bucket = buckets[address] ?? Bucket(calls: capacity, atMs: now)
      let elapsed = Double(now > bucket.atMs ? now - bucket.atMs : 0)
      bucket.calls = min(capacity, bucket.calls + elapsed * capacity / 60_000)
      bucket.atMs = now
      defer { buckets[address] = bucket }
      guard bucket.calls >= 1 else { return UInt64(((1 - bucket.calls) * 60_000 / capacity).rounded(.up)) }
      bucket.calls -= 1
      return nil
    }
  }
}
