internal import Foundation
internal import Logging
internal import ServiceLifecycle
internal import ZDCProtocol

/// Pulls and pushes for every local user.
///
/// With ``ZDCConfig/syncAutomatically`` the engines run from the moment the database is unlocked: the server's event
/// stream brings changes in, every
/// commit of your own transactions that queued something brings it out. Without, call ``syncUntilQuiet(localUserID:)``
/// or ``run()``.
///
/// One process per database runs the engines (see `EngineLease`).
public final class ZDCSyncManager: Sendable {
  private let database: ZDCDatabaseManager
  private let users: ZDCLocalUserManager
  private let config: ZDCConfig
  private let delegateBox: DelegateBox
  private let hub = StatusHub()
  private let engines = Locked<[String: SyncEngine]>([:])
  private let background = Locked<Task<Void, Never>?>(nil)

  init(database: ZDCDatabaseManager, users: ZDCLocalUserManager, config: ZDCConfig, delegate: DelegateBox) {
    self.database = database
    self.users = users
    self.config = config
    delegateBox = delegate
  }

  // MARK: Status

  /// What the engines do from now on, for all local users. A listener that does not keep up loses the oldest messages.
  public var statusUpdates: AsyncStream<ZDCSyncStatus> { hub.stream() }

  /// Bytes sent and in all of a node's upload; nil if none is under way.
  public func uploadProgress(forNodeID nodeID: String) -> (sent: UInt64, total: UInt64)? {
    for engine in engines.withLock({ Array($0.values) }) {
      if let upload = engine.session.progress.upload(ofNode: nodeID) { return (upload.sent, upload.total) }
    }
    return nil
  }

  // MARK: Syncing now

  /// Pulls, then pushes, until no operation can run. Operations that wait for something else are counted in the result.
  ///
  /// - Throws: `TransportError` if the server cannot be reached, `ServerError` if it refuses, `ZDCSecurityError` if it
  ///   lies, or what your delegate throws.
  @discardableResult
  public func syncUntilQuiet(localUserID: String) async throws -> ZDCSyncSummary {
    try await engine(for: localUserID).syncUntilQuiet()
  }

  /// Asks for a pull soon. Returns at once; the outcome is in ``statusUpdates``.
  public func pullChanges(forLocalUserID localUserID: String) {
    Task { [hub] in
      do {
        _ = try await self.engine(for: localUserID).pull()
      } catch {
        hub.post(.error(localUserID: localUserID, error))
      }
    }
  }

  /// Stops sending; what is under way ends. The queue grows and nothing is lost.
  public func pausePush(forLocalUserID localUserID: String, andAbortUploads abort: Bool = false) async throws {
    let engine = try await engine(for: localUserID)
    await engine.setPaused(true)
    if abort { await engine.cancelUploads() }
  }

  public func resumePush(forLocalUserID localUserID: String) async throws {
    try await engine(for: localUserID).setPaused(false)
  }

  package func pullOnce(localUserID: String) async throws -> PullSummary {
    try await engine(for: localUserID).pull()
  }

  package func pushOnce(localUserID: String) async throws -> PushSummary {
    try await engine(for: localUserID).push()
  }

  // MARK: In the background

  /// Runs the engines of all local users, those that come later too, until the task is cancelled.
  public func run() async {
    await withTaskGroup(of: Void.self) { group in
      var running: Set<String> = []
      for await _ in Self.first(then: database.context.changes.hints(.localUsers)) {
        for localUserID in await readyUsers() where running.insert(localUserID).inserted {
          group.addTask { await self.runEngine(localUserID) }
        }
      }
      group.cancelAll()
    }
  }

  func start() {
    guard config.syncAutomatically else { return }
    background.withLock { $0 = Task { await self.run() } }
  }

  func stop() async {
    let task = background.withLock { task in
      defer { task = nil }
      return task
    }
    task?.cancel()
    for engine in engines.withLock({ Array($0.values) }) { await engine.cancelUploads() }
    await task?.value
  }

  private func runEngine(_ localUserID: String) async {
    do {
      let engine = try await engine(for: localUserID)
      await SyncLoop(engine: engine, changes: database.context.changes).run()
    } catch {
      hub.post(.error(localUserID: localUserID, error))
    }
  }

  private func readyUsers() async -> [String] {
    do { return try await users.allLocalUserIDs() } catch {
      hub.post(.error(localUserID: "", error))
      return []
    }
  }

  /// One element at once, then one for each hint.
  private static func first(then hints: AsyncStream<Void>) -> AsyncStream<Void> {
    AsyncStream { continuation in
      continuation.yield()
      let task = Task {
        for await _ in hints { continuation.yield() }
        continuation.finish()
      }
      continuation.onTermination = { _ in task.cancel() }
    }
  }

  // MARK: Engines

  func engine(for localUserID: String) async throws -> SyncEngine {
    if let known = engines.withLock({ $0[localUserID] }) { return known }
    guard let userID = UserID(text: localUserID) else { throw ZDCError(.localUserNotFound) }
    let session = SyncSession(
      localUser: try await rowID(of: userID), localUserID: localUserID, appTreeID: config.primaryTreeID,
      database: database.rwDatabaseConnection, api: try await users.serverAPI(for: userID),
      keys: try await users.keys(for: userID), delegate: { [delegateBox] in delegateBox.value }, now: config.clock,
      logger: config.logger, events: SyncEvents(localUserID: localUserID, hub: hub), progress: UploadProgress())
    let made = SyncEngine(session: session)
    return engines.withLock { engines in
      let kept = engines[localUserID] ?? made
      engines[localUserID] = kept
      return kept
    }
  }

  private func rowID(of userID: UserID) async throws -> Int64 {
    try await database.roDatabaseConnection.asyncRead { transaction in
      guard let row = try transaction.localUsers.user(userID) else { throw ZDCError(.localUserNotFound) }
      return row.id
    }
  }
}
