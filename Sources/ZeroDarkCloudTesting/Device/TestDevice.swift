public import Foundation
internal import GRDB
internal import Synchronization
public import ZeroDarkCloud

/// One device: its own database file, network and delegate, stepped by hand.
///
/// Nothing happens by itself. `pull`, `push` and `sync` do one thing and return; time stands still.
///
/// ```swift
/// let a = try await TestDevice("A", server: server, clock: clock)
/// let words = try await a.createAccount()
/// try await a.create("/notes", "hello")
/// try await a.sync()
///
/// let b = try await TestDevice("B", server: server, clock: clock)
/// try await b.login(words: words)
/// try await b.sync()
/// #expect(try await b.tree() == "/notes  v1")
/// ```
public final class TestDevice: Sendable {
  /// Where a killed device's network is.
  public enum Network: Sendable {
    /// Gone as well: nothing more is sent.
    case dead
    /// There: what is under way still reaches the server, and its answer changes nothing here.
    case alive
  }

  private struct State {
    var zdc: ZeroDarkCloud?
    var guardian: CommitGuard?
    var users: [String] = []
  }

  public static let treeID = "test.zerodark.tree"

  public let name: String
  public let network: FaultyTransport
  public let recorder = RecordingDelegate()
  /// What the framework wrote to its log on this device.
  public let log = CapturedLog()
  public let clock: ManualClock
  /// The pauses that its downloads make between two tries.
  public let pauses = TransferPauses()
  private let temporary: TemporaryFolder?
  /// The folder with the device's database.
  public let folder: URL
  /// The database's key.
  public let databaseKey: Data
  private let serverURL: URL
  private let delegate: (any ZeroDarkCloudDelegate)?
  private let configure: @Sendable (inout ZDCDatabaseConfig) -> Void
  private let state = Mutex(State())

  /// Makes a device with an empty database.
  ///
  /// - Parameters:
  ///   - delegate: the app's own; nil for ``recorder``.
  ///   - hostile: stands between the device and the server, behind ``network``.
  ///   - configure: registers the app's collections and migrations.
  public init(
    _ name: String, server: TestServer, clock: ManualClock, delegate: (any ZeroDarkCloudDelegate)? = nil,
    through hostile: HostileServer? = nil,
    configure: @escaping @Sendable (inout ZDCDatabaseConfig) -> Void = { _ in }
  ) async throws {
    self.name = name
    self.clock = clock
    self.delegate = delegate
    self.configure = configure
    let temporary = try TemporaryFolder()
    self.temporary = temporary
    folder = temporary.url
    databaseKey = Data((0..<32).map { _ in UInt8.random(in: 0...255) })
    serverURL = server.url
    network = try Self.network(name, serverURL: serverURL, through: hostile, clock: clock)
    try await open()
  }

  /// Makes a twin of a device that is closed: the same database, opened at its own place.
  ///
  /// The twin believes that it is the other one, down to its session's key. Its clock shows the same time.
  public init(_ name: String, twinOf other: TestDevice, through hostile: HostileServer? = nil) async throws {
    self.name = name
    clock = ManualClock(startingAt: other.clock.now)
    (databaseKey, serverURL) = (other.databaseKey, other.serverURL)
    (delegate, configure) = (nil, other.configure)
    let temporary = try TemporaryFolder()
    self.temporary = temporary
    folder = temporary.url.appendingPathComponent("device", isDirectory: true)
    try FileManager.default.copyItem(at: other.folder, to: folder)
    network = try Self.network(name, serverURL: serverURL, through: hostile, clock: clock)
    try await open()
    try await knownAccounts()
  }

  private static func network(
    _ name: String, serverURL: URL, through hostile: HostileServer?, clock: ManualClock
  ) throws -> FaultyTransport {
    let inner = try hostile?.transport(for: name) ?? AsyncHTTPTransport(serverURL: serverURL.absoluteString)
    return FaultyTransport(inner, clock: clock)
  }

  /// Opens the database of a device that another process has made, which must have closed it.
  public init(
    _ name: String, reopening folder: URL, databaseKey: Data, serverURL: URL, clock: ManualClock = ManualClock()
  ) async throws {
    self.name = name
    self.clock = clock
    self.folder = folder
    self.databaseKey = databaseKey
    self.serverURL = serverURL
    (delegate, temporary, configure) = (nil, nil, { _ in })
    network = FaultyTransport(try AsyncHTTPTransport(serverURL: serverURL.absoluteString), clock: clock)
    try await open()
    try await knownAccounts()
  }

  // MARK: The instance

  /// The framework's object. Another one after each ``relaunch()``.
  public var zdc: ZeroDarkCloud {
    get throws {
      guard let zdc = state.withLock({ $0.zdc }) else { throw TestFailure("\(name) is not running") }
      return zdc
    }
  }

  public var database: ZDCDatabaseConnection {
    get throws {
      guard let manager = try zdc.databaseManager else { throw TestFailure("\(name)'s database is locked") }
      return manager.rwDatabaseConnection
    }
  }

  public var syncManager: ZDCSyncManager {
    get throws {
      guard let manager = try zdc.syncManager else { throw TestFailure("\(name)'s database is locked") }
      return manager
    }
  }

  /// Whether the engines run by themselves from the next launch on.
  public var syncsAutomatically: Bool {
    get { isAutomatic.withLock { $0 } }
    set { isAutomatic.withLock { $0 = newValue } }
  }

  /// Time of the engines from the next launch on.
  package var engineClock: EngineClock {
    get { engineTime.withLock { $0 } }
    set { engineTime.withLock { $0 = newValue } }
  }

  private func open() async throws {
    var config = ZDCConfig(primaryTreeID: Self.treeID, serverURL: serverURL, databaseDirectory: folder)
    config.syncAutomatically = syncsAutomatically
    config.transport = network
    config.clock = { [clock] in clock.nowMs }
    config.engineClock = engineClock
    config.transferSleep = { [pauses] in try await pauses.pass($0) }
    config.logger = log.logger(label: name)
    let opened = try ZeroDarkCloud(delegate: delegate ?? recorder, config: config)
    var databaseConfig = ZDCDatabaseConfig(encryptionKey: databaseKey)
    databaseConfig.register(TestContent.self, inCollection: TestContent.collection)
    configure(&databaseConfig)
    try opened.unlockOrCreateDatabase(databaseConfig)
    recorder.attach(opened)
    let guardian = CommitGuard { [weak self] in self?.died() }
    try await opened.databaseManager?.rwDatabaseConnection.write { transaction in
      transaction.database.add(transactionObserver: guardian, extent: .databaseLifetime)
    }
    state.withLock { state in
      state.zdc = opened
      state.guardian = guardian
    }
  }

  /// Closes the database and drops everything in memory, and opens the same file again: what a relaunch of the app
  /// does.
  public func relaunch() async throws {
    try await close()
    network.isOffline = false
    try await open()
  }

  /// Ends the instance. The file stays.
  public func close() async throws {
    let old = state.withLock { state in
      defer { state.zdc = nil }
      return state.zdc
    }
    recorder.attach(nil)
    try await old?.close()
  }

  // MARK: Dying

  /// Lets `count` more transactions that change something commit, and none after them, until ``relaunch()``.
  ///
  /// The file then holds what a process would leave behind that was killed at this moment.
  public func die(afterCommits count: Int, network: Network = .dead) {
    diesWithNetwork.withLock { $0 = network == .dead }
    state.withLock { $0.guardian }?.arm(after: count)
  }

  /// Aborts this process behind the `count`th transaction that changes something.
  public func abortProcess(afterCommits count: Int) {
    abortsProcess.withLock { $0 = true }
    state.withLock { $0.guardian }?.arm(after: count)
  }

  /// How many transactions have changed something since the launch or the last call of ``die(afterCommits:network:)``.
  public var commits: Int { state.withLock { $0.guardian }?.commits ?? 0 }

  /// Whether the device has died since its last launch.
  public var isDead: Bool { state.withLock { $0.guardian }?.isDead ?? false }

  private let isAutomatic = Mutex(false)
  private let engineTime = Mutex(EngineClock())
  private let diesWithNetwork = Mutex(true)
  private let abortsProcess = Mutex(false)

  private func died() {
    if abortsProcess.withLock({ $0 }) { abort() }
    if diesWithNetwork.withLock({ $0 }) { network.isOffline = true }
  }

  // MARK: Accounts

  /// The first account on the device.
  public var localUserID: String {
    get throws {
      guard let user = state.withLock({ $0.users.first }) else { throw TestFailure("\(name) has no account") }
      return user
    }
  }

  /// All accounts on the device, in the order in which they came.
  public var localUserIDs: [String] { state.withLock { $0.users } }

  /// - Returns: the account's words.
  @discardableResult
  public func createAccount(invite: String? = nil) async throws -> [String] {
    let (user, words) = try await users.createAccount(invite: invite)
    enter(user.uuid)
    return words
  }

  @discardableResult
  public func login(words: [String]) async throws -> String {
    let user = try await users.login(words: words)
    enter(user.uuid)
    return user.uuid
  }

  /// The accounts that the database holds, which after a death may be one that no call has returned.
  @discardableResult
  public func knownAccounts() async throws -> [String] {
    let known = try await users.allLocalUserIDs()
    for user in known { enter(user) }
    return known
  }

  private func enter(_ user: String) {
    state.withLock { state in
      if !state.users.contains(user) { state.users.append(user) }
    }
  }

  private var users: ZDCLocalUserManager {
    get throws {
      guard let manager = try zdc.localUserManager else { throw TestFailure("\(name)'s database is locked") }
      return manager
    }
  }

  // MARK: Stepping

  /// Pulls all zones once and compares the tree with the log. Downloads no content.
  @discardableResult
  public func pull(user: String? = nil) async throws -> PullSummary {
    let summary = try await syncManager.pullOnce(localUserID: user ?? localUserID)
    try await checkTree()
    return summary
  }

  /// Sends at most one commit for each zone.
  @discardableResult
  public func push(user: String? = nil) async throws -> PushSummary {
    try await syncManager.pushOnce(localUserID: user ?? localUserID)
  }

  /// Pulls and pushes until nothing can run, and compares the tree with the log.
  @discardableResult
  public func sync(user: String? = nil) async throws -> ZDCSyncSummary {
    let summary = try await syncManager.syncUntilQuiet(localUserID: user ?? localUserID)
    try await checkTree()
    return summary
  }
}

extension TestDevice {
  /// Runs the engines of all accounts, event stream included, until the task is cancelled.
  public func runInBackground() throws -> Task<Void, Never> {
    let manager = try syncManager
    return Task { await manager.run() }
  }

  /// Runs `body` while the engines run. Returns when they have ended; a transaction that was open when `body` returned,
  /// in which the app was told what `body` had waited for, is committed first.
  public func whileRunning(_ body: @Sendable () async throws -> Void) async throws {
    let updates = try syncManager.statusUpdates
    let engines = try runInBackground()
    do {
      for await update in updates {
        if case .online = update { break }
      }
      try await body()
      try await database.write { _ in }
    } catch {
      engines.cancel()
      await engines.value
      throw error
    }
    engines.cancel()
    await engines.value
  }
}
