internal import Dispatch
public import Foundation
internal import Synchronization
public import ZDCAccounts
public import ZDCClientStore
public import ZDCSupport
public import ZDCSync
public import ZDCTransfers

/// The framework: one object per app database.
///
/// Made locked. After ``unlockOrCreateDatabase(_:)`` the managers are there, and with `syncAutomatically` the engines
/// of all local
/// users run.
///
/// ```swift
/// let config = ZDCConfig(primaryTreeID: "com.example.todo", serverURL: URL(string: "https://sync.example.com")!)
/// let zdc = try ZeroDarkCloud(delegate: myDelegate, config: config)
/// let keys = zdc.databaseKeyManager
/// let key = keys.isConfigured ? try keys.unlock() : try keys.createKey()
/// try zdc.unlockOrCreateDatabase(ZDCDatabaseConfig(encryptionKey: key))
/// ```
public final class ZeroDarkCloud: Sendable {
  public let config: ZDCConfig
  /// Keeps the database's key. There before the database is unlocked.
  public let databaseKeyManager: ZDCDatabaseKeyManager
  /// Whether the server can be reached, as far as the engines of this process know. There before the database is
  /// unlocked.
  public let reachability = ZDCReachability()
  /// How far uploads and downloads are. There before the database is unlocked.
  public let progressManager = ZDCProgressManager()
  let delegateBox: DelegateBox
  private let state = Mutex(State.locked)

  private enum State {
    case locked
    case opening
    case unlocked(Managers)
  }

  /// - Parameters:
  ///   - delegate: Held strongly.
  ///   - config: Which tree, which server, and where the database lies.
  /// - Throws: `ZDCError` with `invalidTreeID`, `invalidServerURL`, `insecureServerURL` or `invalidDatabaseName`.
  public init(delegate: any ZeroDarkCloudDelegate, config: ZDCConfig) throws(ZDCError) {
    try config.validate()
    self.config = config
    delegateBox = DelegateBox(delegate)
    databaseKeyManager = ZDCDatabaseKeyManager(config: config)
  }

  /// Held strongly; may be replaced at any time.
  public var delegate: any ZeroDarkCloudDelegate {
    get { delegateBox.value }
    set { delegateBox.value = newValue }
  }

  public var primaryTreeID: String { config.primaryTreeID }

  /// The database's file, whether it exists or not.
  public var databasePath: URL { config.databasePath }

  /// Until this is true the managers are nil.
  public var isDatabaseUnlocked: Bool { managers != nil }

  /// Opens the database, or makes it, and starts the managers.
  ///
  /// Runs the framework's migrations, then the app's. Blocks while it does, and while another process does the same.
  ///
  /// - Throws: `ZDCError`: `invalidEncryptionKey`, `wrongDatabaseKey`, `corruptDatabase`, `foreignDatabase`,
  ///   `databaseTooNew`,
  ///   `databaseNotWritable`, `diskFull`, `databaseBusy`, `reservedName`, `databaseAlreadyUnlocked`. In all these cases
  ///   the file is
  ///   as it was. An error of an app's migration comes as it is; that migration was rolled back.
  public func unlockOrCreateDatabase(_ databaseConfig: ZDCDatabaseConfig) throws {
    try beginOpening()
    do {
      let database = try ZDCDatabaseManager(config: config, databaseConfig: databaseConfig)
      let managers = try Managers(
        config: config, delegate: delegateBox, progress: progressManager, database: database,
        reachability: reachability)
      state.withLock { $0 = .unlocked(managers) }
      managers.start()
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

  /// Stops the managers and closes the database; all managers are nil afterwards, and all streams end.
  ///
  /// What is queued stays queued. The database can be unlocked again.
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
    // On a thread of Dispatch: a transaction that is waited for may take its time.
    try await withCheckedThrowingContinuation { continuation in
      DispatchQueue.global().async { continuation.resume(with: Result(catching: open.database.close)) }
    }
  }

  var managers: Managers? {
    state.withLock { state in
      guard case .unlocked(let managers) = state else { return nil }
      return managers
    }
  }
}
