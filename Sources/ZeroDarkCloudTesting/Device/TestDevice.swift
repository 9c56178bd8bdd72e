public import Foundation
internal import GRDB
internal import Synchronization
public import ZeroDarkCloud

/// A device with its own database file, network and delegate, stepped manually.
///
/// Nothing runs automatically. `pull`, `push` and `sync` do one thing and return; the clock does not advance.
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
/// print(try await b.tree())  // `?` marks content that is not downloaded
/// ```
public final class TestDevice: Sendable {
  /// The state of a killed device's network.
  public enum Network: Sendable {
    /// Disconnected too: nothing more is sent.
    case dead
    /// Connected: requests in progress still reach the server, but their answers have no effect on the device.
    case alive
  }

  private struct State {
    var zdc: ZeroDarkCloud?
    var guardian: CommitGuard?
    var users: [String] = []
  }

  /// The app's name for the tree of all test devices.
  public static let treeID = "test.zerodark.tree"

  /// The name of the device, which failures print.
  public let name: String
  /// The network between the device and the server.
  public let network: FaultyTransport
  /// The delegate that records the framework's calls, unless the test has one of its own.
  public let recorder = RecordingDelegate()
  /// The log output of the framework on this device.
  public let log = CapturedLog()
  /// The clock of this device.
  public let clock: ManualClock
  /// The pauses of its downloads between two attempts.
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

  /// Creates a device with an empty database.
  ///
  /// ```swift
  /// let phone = try await TestDevice("phone", server: server, clock: clock, delegate: myDelegate) { config in
  ///   config.register(Task.self, inCollection: "tasks")
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - delegate: The app's own delegate; nil for ``recorder``.
  ///   - configure: Registers the app's collections and migrations.
  public convenience init(
    _ name: String, server: TestServer, clock: ManualClock, delegate: (any ZeroDarkCloudDelegate)? = nil,
    configure: @escaping @Sendable (inout ZDCDatabaseConfig) -> Void = { _ in }
  ) async throws {
    try await self.init(
      name, server: server, clock: clock, delegate: delegate, through: nil, configure: configure)
  }

  /// Creates a device whose requests pass through a hostile server, behind ``network``, on their way to the real one.
  package init(
    _ name: String, server: TestServer, clock: ManualClock, delegate: (any ZeroDarkCloudDelegate)? = nil,
    through hostile: HostileServer?,
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
    let config = ZDCConfig(primaryTreeID: Self.treeID, serverURL: serverURL, databaseDirectory: folder)
    try await EmptyDatabases.createDevice(at: config.databasePath)
    try await open()
  }

  /// Creates a twin of a closed device: a copy of its database, opened in another folder.
  ///
  /// The twin has the identity of the other device, including its session's key. Its clock shows the same time.
  ///
  /// ```swift
  /// try await a.close()
  /// let twin = try await TestDevice("twin", twinOf: a)  // like a phone that was set up from another one's backup
  /// ```
  public convenience init(_ name: String, twinOf other: TestDevice) async throws {
    try await self.init(name, twinOf: other, through: nil)
  }

  /// Creates a twin whose requests pass through a hostile server.
  package init(_ name: String, twinOf other: TestDevice, through hostile: HostileServer?) async throws {
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

  /// Opens the database of a device that another process created and has closed.
  package init(
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

  /// The framework's object. Each ``relaunch()`` creates a new one.
  public var zdc: ZeroDarkCloud {
    get throws {
      guard let zdc = state.withLock({ $0.zdc }) else { throw TestFailure("\(name) is not running") }
      return zdc
    }
  }

  /// The connection to the device's database.
  ///
  /// - Throws: ``TestFailure`` while the device is closed.
  public var database: ZDCDatabaseConnection {
    get throws {
      guard let manager = try zdc.databaseManager else { throw TestFailure("\(name)'s database is locked") }
      return manager.rwDatabaseConnection
    }
  }

  /// The device's sync manager.
  ///
  /// - Throws: ``TestFailure`` while the device is closed.
  public var syncManager: ZDCSyncManager {
    get throws {
      guard let manager = try zdc.syncManager else { throw TestFailure("\(name)'s database is locked") }
      return manager
    }
  }

  /// Whether the engines run automatically, from the next launch on.
  public var syncsAutomatically: Bool {
    get { isAutomatic.withLock { $0 } }
    set { isAutomatic.withLock { $0 = newValue } }
  }

  /// The clock of the engines, from the next launch on.
  package var engineClock: EngineClock {
    get { engineTime.withLock { $0 } }
    set { engineTime.withLock { $0 = newValue } }
  }

  /// The service that makes requests while the device's app is not running, from the next launch on; nil for none.
  package var transferService: TransferService? {
    get { service.withLock { $0 } }
    set { service.withLock { $0 = newValue } }
  }

  private func open() async throws {
    var config = ZDCConfig(primaryTreeID: Self.treeID, serverURL: serverURL, databaseDirectory: folder)
    config.syncAutomatically = syncsAutomatically
    config.transport = network
    config.clock = { [clock] in clock.nowMs }
    config.engineClock = engineClock
    config.systemTransfers = transferService
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

  /// Closes the database, drops all state in memory and opens the same file again, like a relaunch of the app.
  ///
  /// ```swift
  /// try await a.create("/note", "milk")
  /// try await a.relaunch()  // the queue survives
  /// try await a.sync()
  /// ```
  public func relaunch() async throws {
    try await close()
    network.isOffline = false
    try await open()
  }

  /// Closes the instance. The file remains.
  public func close() async throws {
    let old = state.withLock { state in
      defer { state.zdc = nil }
      return state.zdc
    }
    recorder.attach(nil)
    try await old?.close()
  }

  // MARK: Process crashes

  /// Lets `count` more transactions that change something commit, and none after them, until ``relaunch()``.
  ///
  /// The file is then in the state that a process killed at this moment would leave.
  ///
  /// ```swift
  /// a.die(afterCommits: 3)
  /// _ = try? await a.sync()  // interrupted
  /// try await a.relaunch()
  /// a.clock.advance(by: .seconds(120))  // the pause after a failure
  /// try await a.sync()
  /// ```
  public func die(afterCommits count: Int, network: Network = .dead) {
    diesWithNetwork.withLock { $0 = network == .dead }
    state.withLock { $0.guardian }?.arm(after: count)
  }

  /// Aborts this process after the `count`th transaction that changes something.
  package func abortProcess(afterCommits count: Int) {
    abortsProcess.withLock { $0 = true }
    state.withLock { $0.guardian }?.arm(after: count)
  }

  /// The number of transactions that changed something since the launch or the last call of
  /// ``die(afterCommits:network:)``.
  public var commits: Int { state.withLock { $0.guardian }?.commits ?? 0 }

  /// Whether the device has died since its last launch.
  public var isDead: Bool { state.withLock { $0.guardian }?.isDead ?? false }

  private let isAutomatic = Mutex(false)
  private let engineTime = Mutex(EngineClock())
  private let service = Mutex<TransferService?>(nil)
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

  /// All accounts on the device, in the order in which they were added.
  public var localUserIDs: [String] { state.withLock { $0.users } }

  /// Creates an account.
  ///
  /// ```swift
  /// let words = try await a.createAccount()
  /// _ = try await b.login(words: words)
  /// ```
  ///
  /// - Returns: The account's words.
  @discardableResult
  public func createAccount(invite: String? = nil) async throws -> [String] {
    let (user, words) = try await users.createAccount(invite: invite)
    enter(user.uuid)
    return words
  }

  /// Logs in to an account with its 24 words, and returns the local user's ID.
  @discardableResult
  public func login(words: [String]) async throws -> String {
    let user = try await users.login(words: words)
    enter(user.uuid)
    return user.uuid
  }

  /// Returns the accounts in the database. After a kill, these may include one that no call has returned.
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

  // MARK: Single steps

  /// Pulls all zones once and compares the tree with the log. Downloads no content.
  ///
  /// ```swift
  /// let summary = try await b.pull()
  /// print(summary)
  /// ```
  @discardableResult
  public func pull(user: String? = nil) async throws -> ZDCPullSummary {
    let summary = try await syncManager.pullOnce(localUserID: user ?? localUserID)
    try await checkTree()
    return summary
  }

  /// Pushes at most one commit per zone.
  ///
  /// ```swift
  /// let summary = try await a.push()
  /// #expect(summary.waiting == 0)
  /// ```
  @discardableResult
  public func push(user: String? = nil) async throws -> ZDCPushSummary {
    try await syncManager.pushOnce(localUserID: user ?? localUserID)
  }

  /// Pulls and pushes until nothing can run, and compares the tree with the log.
  ///
  /// ```swift
  /// try await a.sync()
  /// try await b.sync()
  /// ```
  @discardableResult
  public func sync(user: String? = nil) async throws -> ZDCSyncSummary {
    let summary = try await syncManager.syncUntilIdle(localUserID: user ?? localUserID)
    try await checkTree()
    return summary
  }
}
