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
/// With ``ZDCConfig/syncAutomatically`` the engines run from the moment the database is unlocked. The server's event
/// stream delivers remote changes, and each commit of your own transactions that queued an operation triggers a push.
/// Otherwise, call ``syncUntilIdle(localUserID:)`` or ``run()``.
///
/// One process per database runs the engines. The others queue and read. The operations that they queue are sent by the
/// process that runs the engines; when it ends, another one takes over.
///
/// A command that does one thing and ends syncs like this:
///
/// ```swift
/// let summary = try await session.syncManager.syncUntilIdle(localUserID: user.uuid)
/// if !summary.isComplete { print("waiting: \(summary.stillQueued)") }
/// ```
public final class ZDCSyncManager: Sendable {
  package let database: ZDCDatabaseManager
  package let users: ZDCLocalUserManager
  package let config: ZDCConfig
  private let delegateBox: DelegateBox
  package let reachability: ZDCReachability
  private let progress: ZDCProgressManager
  package let handOver: TransferHandOver
  package let hub: StatusHub
  let engines = Locked<[String: SyncScheduler]>([:])
  /// The reset of the engines in the lease's current generation.
  let reset = Locked<(generation: Int, task: Task<Void, Never>)?>(nil)
  /// The number of times that each user's pushes were paused.
  package let pauses = Locked<[String: Int]>([:])
  private let background = Locked<Task<Void, Never>?>(nil)

  package init(
    database: ZDCDatabaseManager, users: ZDCLocalUserManager, config: ZDCConfig, delegate: DelegateBox,
    progress: ZDCProgressManager, handOver: TransferHandOver = .unavailable,
    reachability: ZDCReachability = ZDCReachability()
  ) {
    self.database = database
    self.users = users
    self.config = config
    delegateBox = delegate
    self.reachability = reachability
    self.progress = progress
    self.handOver = handOver
    hub = StatusHub(database: database)
    // The hub holds the database, so capture it weakly.
    database.context.changes.listenForFailures { [weak hub] in hub?.post(.error(localUserID: "", $0)) }
  }

  // MARK: Status

  /// The future status messages of the engines, for all local users. A slow listener loses the oldest messages beyond
  /// 1,000. For the current state only, use ``syncStates(forLocalUserID:)``. The stream ends when the framework is
  /// closed.
  public var statusUpdates: AsyncStream<ZDCSyncStatus> { hub.stream() }

  /// Returns the bytes sent and the total bytes of a node's upload, or nil if none is running.
  ///
  /// For this process only; bytes of sealed content. Small content is part of a commit, and has no progress. For a
  /// `Progress` object that a view follows, see ``ZDCProgressManager/dataUploadProgress(forNodeID:)``.
  ///
  /// ```swift
  /// if let (sent, total) = session.syncManager.uploadProgress(forNodeID: node.uuid) {
  ///   print("\(sent / 1_000_000) of \(total / 1_000_000) MB")
  /// }
  /// ```
  public func uploadProgress(forNodeID nodeID: String) -> (sent: UInt64, total: UInt64)? {
    for engine in engines.withLock({ Array($0.values) }) {
      if let upload = engine.session.progress.upload(ofNode: nodeID) { return (upload.sent, upload.total) }
    }
    return nil
  }

  // MARK: Syncing now

  /// Pulls, then pushes, until no operation can run. The result counts operations that still wait and nodes that this
  /// device cannot read: check ``ZDCSyncSummary/isComplete``.
  ///
  /// ```swift
  /// do {
  ///   try await session.syncManager.syncUntilIdle(localUserID: user.uuid)
  /// } catch let error as ZDCError where error.code == .syncedElsewhere {
  ///   // The app's other process is running. It sends what is queued here.
  /// }
  /// ```
  ///
  /// - Throws: `ZDCError` with `syncedElsewhere` if another process runs the engines of this database; that process
  ///   sends the operations queued here. `ZDCTransportError` if the server cannot be reached, `ZDCServerError` if it refuses,
  ///   `ZDCSecurityError` if its answers are invalid, or your delegate's error.
  @discardableResult
  public func syncUntilIdle(localUserID: String) async throws -> ZDCSyncSummary {
    try await asEngine { try await self.engine(for: localUserID).syncUntilIdle() }
  }

  /// Pushes until no operation can run. The server refuses a commit that does not follow its head, and then names the
  /// head.
  @discardableResult
  package func pushUntilIdle(localUserID: String) async throws -> ZDCSyncSummary {
    try await asEngine { try await self.engine(for: localUserID).syncUntilIdle(pulls: false) }
  }

  /// Requests a pull soon; ignored while one is running. Returns immediately; the outcome is in ``statusUpdates``. If
  /// another process runs the engines, there is nothing to do, because it follows the server's events.
  ///
  /// ```swift
  /// session.syncManager.pullChanges(forLocalUserID: user.uuid)  // a push notification or "pull to refresh"
  /// ```
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

  /// Requests a pull for all local users, as ``pullChanges(forLocalUserID:)`` does for one.
  ///
  /// ```swift
  /// session.syncManager.pullChangesForAllLocalUsers()  // "pull to refresh"
  /// ```
  public func pullChangesForAllLocalUsers() {
    Task { [hub] in
      do {
        for user in try await users.allLocalUserIDs() { pullChanges(forLocalUserID: user) }
      } catch {
        hub.post(.error(localUserID: "", error))
      }
    }
  }

  package func pullOnce(localUserID: String) async throws -> ZDCPullSummary {
    try await asEngine { try await self.engine(for: localUserID).pull() }
  }

  package func pushOnce(localUserID: String) async throws -> ZDCPushSummary {
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
    forgetEngine(of: localUserID) { $0 < row }
    if let known = engines.withLock({ $0[localUserID] }) { return known }
    let api = try await users.serverAPI(for: userID)
    let session = SyncSession(
      localUser: row, localUserID: localUserID, appTreeID: config.primaryTreeID,
      database: database.rwDatabaseConnection, api: api,
      keys: try await users.keys(for: userID),
      identities: IdentityStore(
        database: database.rwDatabaseConnection, api: api, now: config.clock, random: config.engineClock.random),
      fetchIdentity: { [users] in try await users.refreshIdentity(of: userID, known: $0) },
      delegate: { [delegateBox, hub] in DelegateProxy(delegateBox.value, hub.nodes) }, now: config.clock,
      time: config.engineClock, logger: config.logger, events: SyncEvents(localUserID: localUserID, hub: hub),
      activity: SyncActivity(localUserID: localUserID, treeID: config.primaryTreeID) { [weak self] in self?.post($0) },
      progress: UploadProgress(localUserID: localUserID, manager: progress), handOver: handOver)
    database.context.engines.begin(localUserID, localUser: row)
    let made = SyncScheduler(session: session)
    return engines.withLock { engines in
      if let known = engines[localUserID], known.session.localUser >= row { return known }
      engines[localUserID] = made
      return made
    }
  }

  /// Drops the engine of a user who was removed, and the pauses of their pushes.
  func forgetEngine(of localUserID: String, where isRemoved: (_ row: Int64) -> Bool) {
    let isForgotten = engines.withLock { engines in
      guard let known = engines[localUserID], isRemoved(known.session.localUser) else { return false }
      engines[localUserID] = nil
      return true
    }
    if isForgotten { pauses.withLock { $0[localUserID] = nil } }
  }

  private func rowID(of userID: UserID) async throws -> Int64 {
    try await database.roDatabaseConnection.asyncRead { transaction in
      guard let row = try transaction.localUsers.user(userID) else { throw ZDCError(.localUserNotFound) }
      return row.id
    }
  }
}
