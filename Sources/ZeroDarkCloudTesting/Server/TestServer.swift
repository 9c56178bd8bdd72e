public import Foundation
internal import Logging
internal import Synchronization
internal import ZDCServer
internal import ZDCServerSQLite

/// The real server in this process, with SQLite and a blob folder in a temporary location, on a free port of 127.0.0.1.
///
/// ```swift
/// let server = try await TestServer.start()
/// let config = ZDCConfig(primaryTreeID: "com.example.todo", serverURL: server.url)
/// let zdc = try ZeroDarkCloud(delegate: NoOpDelegate(), config: config)
/// try await server.restart()   // same port, same data, nothing in memory
/// print(try server.dump())     // what it holds, as text
/// try await server.stop()
/// ```
public final class TestServer: Sendable {
  private let running: Mutex<RunningServer?>
  private let temporary: TemporaryFolder
  private let clock: ManualClock
  private let registration: Configuration.Registration?
  private let invites: Set<String>
  private let port: Int
  private let quotaBytes: Mutex<UInt64>
  /// Addresses of other servers under which this one may be known; empty for only its own.
  let origins: [String]
  /// The server's complete log output, at every level.
  public let log: CapturedLog
  /// The folder with all of the server's files.
  public let folder: URL

  private init(
    temporary: TemporaryFolder, folder: URL, clock: ManualClock, registration: Configuration.Registration?,
    invites: Set<String>, quotaBytes: UInt64, origins: [String] = [], log: CapturedLog, running: RunningServer
  ) {
    self.temporary = temporary
    self.folder = folder
    self.clock = clock
    self.registration = registration
    self.invites = invites
    self.quotaBytes = Mutex(quotaBytes)
    self.origins = origins
    self.log = log
    port = running.port
    self.running = Mutex(running)
  }

  /// Starts a server on an empty folder.
  ///
  /// Stop it at the end of the test, or use ``TestWorld``, which does.
  ///
  /// ```swift
  /// let clock = ManualClock()
  /// let server = try await TestServer.start(clock: clock, invites: ["welcome"])
  /// let a = try await TestDevice("A", server: server, clock: clock)
  /// try await a.createAccount(invite: "welcome")
  /// ```
  ///
  /// - Parameters:
  ///   - clock: The server's clock, which determines received times.
  ///   - quotaBytes: Maximum size of sealed content per account, in bytes; 0 for unlimited.
  public static func start(
    clock: ManualClock = ManualClock(), invites: Set<String>? = nil, quotaBytes: UInt64 = 0
  ) async throws -> TestServer {
    let temporary = try TemporaryFolder()
    let folder = temporary.url.appendingPathComponent("server", isDirectory: true)
    let log = CapturedLog()
    try await EmptyDatabases.createServer(at: folder.appendingPathComponent("zdc.sqlite"))
    let registration: Configuration.Registration? = invites == nil ? nil : .invite
    let running = try await onFreePort { port in
      try await launch(
        folder: folder, port: port, clock: clock, registration: registration, invites: invites ?? [],
        quotaBytes: quotaBytes, log: log)
    }
    return TestServer(
      temporary: temporary, folder: folder, clock: clock, registration: registration, invites: invites ?? [],
      quotaBytes: quotaBytes, log: log, running: running)
  }

  /// Starts a server on an existing folder.
  static func start(
    on folder: URL, in temporary: TemporaryFolder, clock: ManualClock, origins: [String]
  ) async throws -> TestServer {
    let log = CapturedLog()
    let running = try await onFreePort { port in
      try await launch(
        folder: folder, port: port, clock: clock, registration: nil, invites: [], quotaBytes: 0, origins: origins,
        log: log)
    }
    return TestServer(
      temporary: temporary, folder: folder, clock: clock, registration: nil, invites: [], quotaBytes: 0,
      origins: origins, log: log, running: running)
  }

  deinit { Self.reserved.withLock { _ = $0.remove(port) } }

  /// The address of the server on this machine; the port is another one for each server.
  public var url: URL {
    var parts = URLComponents()
    (parts.scheme, parts.host, parts.port) = ("http", "127.0.0.1", port)
    return parts.url ?? folder
  }

  /// Stops gracefully and starts again on the same folder and port.
  ///
  /// Devices still have their connections to the stopped server: without ``FaultyTransport/renewConnections()``, the
  /// next request of each may fail.
  ///
  /// ```swift
  /// try await server.restart(quotaBytes: 1 << 20)  // from now on, accounts may hold 1 MiB
  /// ```
  ///
  /// - Parameter quotaBytes: The new quota; nil keeps the current one.
  public func restart(quotaBytes changed: UInt64? = nil) async throws {
    try await stop()
    if let changed { quotaBytes.withLock { $0 = changed } }
    let quota = quotaBytes.withLock { $0 }
    let started = try await Self.retrying { [self] in
      try await Self.launch(
        folder: folder, port: port, clock: clock, registration: registration, invites: invites, quotaBytes: quota,
        origins: origins, log: log)
    }
    running.withLock { $0 = started }
  }

  /// Finishes running requests, flushes and closes. Does nothing if the server is stopped.
  ///
  /// A stopped server keeps its folder and port, so ``restart(quotaBytes:)`` starts it again.
  ///
  /// ```swift
  /// try await server.stop()
  /// await #expect(throws: ZDCTransportError.self) { try await a.sync() }
  /// try await server.restart()
  /// await a.network.renewConnections()
  /// try await a.sync()
  /// ```
  public func stop() async throws {
    let stopping = running.withLock { running in
      defer { running = nil }
      return running
    }
    try await stopping?.stop()
  }

  /// Removes data that retention has released, as the server does automatically once an hour.
  public func collect() async throws {
    try await running.withLock { $0 }?.collect()
  }

  /// Below the range of ephemeral ports, so a stopped server finds its port free when it starts again.
  private static let ports = 10_000..<32_000

  /// Ports of this process's servers, including stopped ones that may start again.
  private static let reserved = Mutex<Set<Int>>([])

  private static func onFreePort(
    _ launch: (_ port: Int) async throws -> RunningServer
  ) async throws -> RunningServer {
    try await retrying(times: 20, pause: .zero) {
      let port = reservePort()
      do { return try await launch(port) } catch {
        reserved.withLock { _ = $0.remove(port) }
        throw error
      }
    }
  }

  private static func reservePort() -> Int {
    while true {
      let port = Int.random(in: ports)
      if reserved.withLock({ $0.insert(port).inserted }) { return port }
    }
  }

  /// Launches again if the port is taken. Another program may use it, or a child process may hold the stopped server's
  /// socket until it ends.
  private static func retrying(
    times: Int = 300, pause: Duration = .milliseconds(100), _ launch: () async throws -> RunningServer
  ) async throws -> RunningServer {
    for _ in 0..<times {
      do { return try await launch() } catch let error as StoreOpenError { throw error } catch {
        // The last attempt throws any other error too.
        try await Task.sleep(for: pause)
      }
    }
    return try await launch()
  }

  private static func launch(
    folder: URL, port: Int, clock: ManualClock, registration: Configuration.Registration?, invites: Set<String>,
    quotaBytes: UInt64, origins: [String] = [], log: CapturedLog
  ) async throws -> RunningServer {
    var configuration = Configuration()
    configuration.origins = origins
    configuration.port = port
    configuration.registration = registration ?? .open
    configuration.invites = invites
    configuration.bounds.quotaBytes = quotaBytes
    let data = try DataFolder(path: folder.path)
    return try await data.start(
      configuration: configuration, clock: ServerClock { clock.nowMs }, logger: log.logger(label: "zdc-server"))
  }
}
