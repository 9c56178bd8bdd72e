internal import Dispatch
public import Foundation
internal import Synchronization
public import ZDCAccounts
public import ZDCClientStore
public import ZDCSupport
public import ZDCSync
public import ZDCTransfers

/// The framework's entry point: one object per app database.
///
/// A new object is locked. ``unlockOrCreateDatabase(_:)`` returns a session with the managers, and with
/// `syncAutomatically` the engines of all local users run from then on.
///
/// ```swift
/// let config = try ZDCConfig(primaryTreeID: "com.example.todo", server: "https://sync.example.com")
/// let zdc = try ZeroDarkCloud(delegate: myDelegate, config: config)
/// let keys = zdc.databaseKeyManager
/// let key = keys.isConfigured ? try keys.unlock() : try keys.createKey()
/// let session = try zdc.unlockOrCreateDatabase(ZDCDatabaseConfig(encryptionKey: key))
/// ```
public final class ZeroDarkCloud: Sendable {
  /// The configuration that the framework was created with.
  public let config: ZDCConfig
  /// Stores the database's key. Available before the database is unlocked.
  public let databaseKeyManager: ZDCDatabaseKeyManager
  /// Whether the server is reachable, as far as the engines of this process know. Available before the database is
  /// unlocked; unknown until an engine has tried.
  ///
  /// ```swift
  /// for await isReachable in zdc.reachability.changes { banner.isHidden = isReachable }
  /// ```
  public let reachability = ZDCReachability()
  /// The progress of uploads and downloads of this process. Available before the database is unlocked.
  public let progressManager = ZDCProgressManager()
  let delegateBox: DelegateBox
  private let state = Mutex(State.locked)

  private enum State {
    case locked
    case opening
    case unlocked(Managers)
  }

  /// Creates a locked framework object.
  ///
  /// Nothing is read, written or sent: the database file may not exist yet.
  ///
  /// ```swift
  /// var config = try ZDCConfig(primaryTreeID: "com.example.todo", server: "https://sync.example.com")
  /// config.syncAutomatically = false  // a command that calls syncUntilIdle itself
  /// let zdc = try ZeroDarkCloud(delegate: myDelegate, config: config)
  /// ```
  ///
  /// - Parameters:
  ///   - delegate: Held strongly.
  ///   - config: The tree, the server and the location of the database.
  /// - Throws: `ZDCError` with `invalidTreeID`, `invalidServerURL`, `insecureServerURL` or `invalidDatabaseName`.
  public init(delegate: any ZeroDarkCloudDelegate, config: ZDCConfig) throws(ZDCError) {
    try config.validate()
    self.config = config
    delegateBox = DelegateBox(delegate)
    databaseKeyManager = ZDCDatabaseKeyManager(config: config)
  }

  /// The app's delegate. Held strongly; may be replaced at any time.
  ///
  /// A call that has begun continues with the delegate that it began with.
  public var delegate: any ZeroDarkCloudDelegate {
    get { delegateBox.value }
    set { delegateBox.value = newValue }
  }

  /// The app's name for its tree, from the ``config``.
  public var primaryTreeID: String { config.primaryTreeID }

  /// The database file, whether or not it exists.
  ///
  /// ```swift
  /// try await zdc.close()
  /// try copyDatabase(at: zdc.databasePath)
  /// ```
  public var databasePath: URL { config.databasePath }

  /// Whether the database is unlocked. The managers and ``session`` are nil until it is.
  ///
  /// ```swift
  /// if !zdc.isDatabaseUnlocked { start(try zdc.unlockOrCreateDatabase(databaseConfig)) }
  /// ```
  public var isDatabaseUnlocked: Bool { managers != nil }

  /// Opens the database, or creates it, and starts the managers.
  ///
  /// Runs the framework's migrations, then the app's. Blocks while they run, and while another process runs them.
  ///
  /// Call it off the main thread if a migration of your own tables may take long.
  ///
  /// ```swift
  /// do {
  ///   let session = try zdc.unlockOrCreateDatabase(databaseConfig)
  ///   start(session)
  /// } catch let error as ZDCError where error.code == .databaseTooNew {
  ///   askForUpdate()  // a newer version of the app has migrated the file
  /// }
  /// ```
  ///
  /// - Returns: the managers, none of which is nil.
  /// - Throws: `ZDCError`: `invalidEncryptionKey`, `wrongDatabaseKey`, `corruptDatabase`, `foreignDatabase`,
  ///   `databaseTooNew`, `databaseNotWritable`, `diskFull`, `databaseBusy`, `reservedName`, `databaseAlreadyUnlocked`.
  ///   In all these cases the file is unchanged. An error thrown by an app's migration is rethrown unchanged; that
  ///   migration is rolled back.
  @discardableResult
  public func unlockOrCreateDatabase(_ databaseConfig: ZDCDatabaseConfig) throws -> ZDCSession {
    try beginOpening()
    do {
      let database = try ZDCDatabaseManager(config: config, databaseConfig: databaseConfig)
      let managers = try Managers(
        config: config, delegate: delegateBox, progress: progressManager, database: database,
        reachability: reachability)
      state.withLock { $0 = .unlocked(managers) }
      managers.start()
      return ZDCSession(self, managers)
    } catch {
      state.withLock { $0 = .locked }
      throw error
    }
  }

  private func beginOpening() throws(ZDCError) {
    let wasLocked = state.withLock { state in
      guard case .locked = state else { return false }
      state = .opening
      return true
    }
    guard wasLocked else { throw ZDCError(.databaseAlreadyUnlocked) }
  }

  /// Stops the managers and closes the database. Afterwards all managers but ``progressManager`` are nil, and their
  /// streams have ended.
  ///
  /// Returns when running transactions have ended and the engines have stopped. Queued operations stay queued, and
  /// large uploads continue where they stopped. Does nothing if the database is locked. The same object can unlock the
  /// database again:
  ///
  /// ```swift
  /// try await zdc.close()
  /// try copyDatabase(at: zdc.databasePath)
  /// try zdc.unlockOrCreateDatabase(databaseConfig)
  /// ```
  public func close() async throws {
    let open = state.withLock { state -> Managers? in
      guard case .unlocked(let managers) = state else { return nil }
      state = .opening
      return managers
    }
    guard let open else { return }
    defer { state.withLock { $0 = .locked } }
    await open.stop()
    reachability.close()
    // On a Dispatch thread: closing waits for running transactions, which may take a while.
    try await withCheckedThrowingContinuation { continuation in
      DispatchQueue.global().async { continuation.resume(with: Result(catching: open.database.close)) }
    }
  }

  /// The session while the database is unlocked; otherwise nil.
  ///
  /// For code that knows the framework object only:
  ///
  /// ```swift
  /// guard let session = zdc.session else { return }  // still locked
  /// session.syncManager.pullChanges(forLocalUserID: user.uuid)
  /// ```
  public var session: ZDCSession? { managers.map { ZDCSession(self, $0) } }

  var managers: Managers? {
    state.withLock { state in
      guard case .unlocked(let managers) = state else { return nil }
      return managers
    }
  }
}
