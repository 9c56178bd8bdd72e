internal import Foundation
internal import Logging
internal import ServiceLifecycle
package import ZDCAccounts
package import ZDCClientStore
internal import ZDCProtocol
package import ZDCSupport
package import ZDCTransfers

/// Pulls and pushes for every local user.
///
/// With ``ZDCConfig/syncAutomatically`` the engines run from the moment the database is unlocked: the server's event
/// stream brings changes in, every
/// commit of your own transactions that queued something brings it out. Without, call ``syncUntilQuiet(localUserID:)``
/// or ``run()``.
///
/// One process per database runs the engines. The others queue and read: what they commit is sent by the one that runs
/// them, and when it ends the next one takes over.
public final class ZDCSyncManager: Sendable {
  package let database: ZDCDatabaseManager
  package let users: ZDCLocalUserManager
  package let config: ZDCConfig
  private let delegateBox: DelegateBox
  package let reachability: ZDCReachability
  private let progress: ZDCProgressManager
  package let hub: StatusHub
  let engines = Locked<[String: SyncScheduler]>([:])
  /// The lease's generation that the engines were made in.
  let knownGeneration = Locked(0)
  /// How often each user's pushing was paused.
  package let pauses = Locked<[String: Int]>([:])
  private let background = Locked<Task<Void, Never>?>(nil)

  package init(
    database: ZDCDatabaseManager, users: ZDCLocalUserManager, config: ZDCConfig, delegate: DelegateBox,
    progress: ZDCProgressManager, reachability: ZDCReachability = ZDCReachability()
  ) {
    self.database = database
    self.users = users
    self.config = config
    delegateBox = delegate
    self.reachability = reachability
    self.progress = progress
    hub = StatusHub(database: database)
    // The hub holds the database.
    database.context.changes.listenForFailures { [weak hub] in hub?.post(.error(localUserID: "", $0)) }
  }

  // MARK: Status

  /// What the engines do from now on, for all local users. A listener that does not keep up loses the oldest messages
  /// beyond 1,000; what only counts as it is now is in ``syncStates(forLocalUserID:)``. Ends when the framework is
  /// closed.
  public var statusUpdates: AsyncStream<ZDCSyncStatus> { hub.stream() }

  /// Bytes sent and in all of a node's upload; nil if none is under way.
  public func uploadProgress(forNodeID nodeID: String) -> (sent: UInt64, total: UInt64)? {
    for engine in engines.withLock({ Array($0.values) }) {
      if let upload = engine.session.progress.upload(ofNode: nodeID) { return (upload.sent, upload.total) }
    }
    return nil
  }

  // MARK: Syncing now

  /// Pulls, then pushes, until no operation can run. Operations that wait for something else are counted in the result,
  /// and so is what this device cannot read: check ``ZDCSyncSummary/isComplete``.
  ///
  /// - Throws: `ZDCError` with `syncedElsewhere` if another process runs the engines of this database: it sends what is
  ///   queued here. `TransportError` if the server cannot be reached, `ServerError` if it refuses, `ZDCSecurityError` if
  ///   it lies, or what your delegate throws.
  @discardableResult
  public func syncUntilQuiet(localUserID: String) async throws -> ZDCSyncSummary {
    try await asEngine { try await self.engine(for: localUserID).syncUntilQuiet() }
  }

  /// Pushes until no operation can run. The server refuses what does not follow its head, and names the head then.
  @discardableResult
  package func pushUntilQuiet(localUserID: String) async throws -> ZDCSyncSummary {
    try await asEngine { try await self.engine(for: localUserID).syncUntilQuiet(pulls: false) }
  }

  /// Asks for a pull soon; ignored while one is running. Returns at once; the outcome is in ``statusUpdates``. Where
  /// another process runs the engines
  /// there is nothing to do: it follows the server's events.
  public func pullChanges(forLocalUserID localUserID: String) {
    guard !isPullingChanges(forLocalUserID: localUserID) else { return }
    Task { [hub] in
      do {
        _ = try await self.whileSyncing { try await self.engine(for: localUserID).pull() }
      } catch {
        hub.post(.error(localUserID: localUserID, error))
      }
    }
  }

  /// The same for all local users.
  public func pullChangesForAllLocalUsers() {
    Task { [hub] in
      do {
        for user in try await users.allLocalUserIDs() { pullChanges(forLocalUserID: user) }
      } catch {
        hub.post(.error(localUserID: "", error))
      }
    }
  }

  package func pullOnce(localUserID: String) async throws -> PullSummary {
    try await asEngine { try await self.engine(for: localUserID).pull() }
  }

  package func pushOnce(localUserID: String) async throws -> PushSummary {
    try await asEngine { try await self.engine(for: localUserID).push() }
  }

  // MARK: In the background

  package func start() {
    guard config.syncAutomatically else { return }
    background.withLock { $0 = Task { await self.run() } }
  }

  package func stop() async {
    let task = background.withLock { task in
      defer { task = nil }
      return task
    }
    task?.cancel()
    for engine in engines.withLock({ Array($0.values) }) { await engine.cancelUploads() }
    await task?.value
    hub.close()
  }

  // MARK: Engines

  package func engine(for localUserID: String) async throws -> SyncScheduler {
    guard let userID = UserID(text: localUserID) else { throw ZDCError(.localUserNotFound) }
    let row = try await rowID(of: userID)
    // A user who was removed and has logged in again has another row.
    if let known = engines.withLock({ $0[localUserID] }), known.session.localUser == row { return known }
    let api = try await users.serverAPI(for: userID)
    let session = SyncSession(
      localUser: row, localUserID: localUserID, appTreeID: config.primaryTreeID,
      database: database.rwDatabaseConnection, api: api,
      currentKeys: Locked(try await users.keys(for: userID)),
      identities: IdentityStore(database: database.rwDatabaseConnection, api: api, now: config.clock),
      refreshIdentity: { [users] in try await users.refreshIdentity(of: userID) },
      delegate: { [delegateBox, hub] in TellingDelegate(delegateBox.value, hub.nodes) }, now: config.clock,
      time: config.engineClock, logger: config.logger, events: SyncEvents(localUserID: localUserID, hub: hub),
      activity: SyncActivity(localUserID: localUserID, treeID: config.primaryTreeID) { [weak self] in self?.post($0) },
      progress: UploadProgress(localUserID: localUserID, manager: progress), retriedFrozen: Locked([]))
    let made = SyncScheduler(session: session)
    return engines.withLock { engines in
      if let known = engines[localUserID], known.session.localUser == row { return known }
      engines[localUserID] = made
      return made
    }
  }

  private func rowID(of userID: UserID) async throws -> Int64 {
    try await database.roDatabaseConnection.asyncRead { transaction in
      guard let row = try transaction.localUsers.user(userID) else { throw ZDCError(.localUserNotFound) }
      return row.id
    }
  }
}
