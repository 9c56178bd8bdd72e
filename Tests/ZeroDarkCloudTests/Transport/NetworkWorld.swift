import Foundation
import Logging
import Synchronization
import ZDCProtocol
import ZDCServer
import ZDCServerSQLite

@testable import ZDCAccounts
@testable import ZDCClientAPI
@testable import ZDCClientStore
@testable import ZDCTransfers
@testable import ZeroDarkCloud

/// A real server in this process with devices that talk to it over loopback.
final class NetworkWorld: Sendable {
  static let treeID = "com.example.network"

  let server: RunningServer
  let folder: URL
  private let nextDevice = Mutex(0)

  private init(server: RunningServer, folder: URL) {
    self.server = server
    self.folder = folder
  }

  /// Runs a test in a fresh world and shuts it down afterwards.
  @discardableResult
  static func run<Value>(
    _ configure: (inout Configuration) -> Void = { _ in }, _ body: (NetworkWorld) async throws -> Value
  ) async throws -> Value {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("zdc-net-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    let data = folder.appendingPathComponent("server")
    try FileManager.default.createDirectory(at: data, withIntermediateDirectories: true)
    var configuration = Configuration()
    configure(&configuration)
    var logger = Logger(label: "test")
    logger.logLevel = .critical
    let server = try await RunningServer.start(
      configuration: configuration, metadata: SQLiteStore(path: data.appendingPathComponent("zdc.sqlite").path),
      blobs: FolderBlobStore(folder: data.appendingPathComponent("blobs").path), logger: logger)
    let outcome: Result<Value, any Error>
    do {
      outcome = .success(try await body(NetworkWorld(server: server, folder: folder)))
    } catch { outcome = .failure(error) }
    try await server.stop()
    return try outcome.get()
  }

  /// Returns a device with an empty database, or reopens the device called `name`.
  func device(_ name: String? = nil, hooks: HookedTransport.Hooks = .init()) throws -> NetworkDevice {
    let name =
      name
      ?? nextDevice.withLock { count in
        count += 1
        return "device\(count)"
      }
    return try NetworkDevice(
      url: server.url, folder: folder.appendingPathComponent(name, isDirectory: true), hooks: hooks)
  }
}

/// A client's database and managers, without the engines.
final class NetworkDevice: Sendable {
  let transport: HookedTransport
  let database: ZDCDatabaseManager
  let users: ZDCLocalUserManager
  let downloads: ZDCDownloadManager
  let progress = ZDCProgressManager()
  /// The recorded pauses between attempts, which take no time.
  let pauses = Pauses()

  final class Pauses: Sendable {
    private let durations = Mutex<[Duration]>([])
    var all: [Duration] { durations.withLock { $0 } }
    func add(_ duration: Duration) { durations.withLock { $0.append(duration) } }
  }

  init(url: String, folder: URL, hooks: HookedTransport.Hooks) throws {
    guard let serverURL = URL(string: url) else { throw TransportError(.invalidAddress) }
    let config = ZDCConfig(
      primaryTreeID: NetworkWorld.treeID, serverURL: serverURL, databaseDirectory: folder)
    transport = HookedTransport(try AsyncHTTPTransport(serverURL: url), hooks)
    database = try ZDCDatabaseManager(
      config: config, databaseConfig: ZDCDatabaseConfig(encryptionKey: Data(repeating: 7, count: 32)))
    users = try ZDCLocalUserManager(config: config, database: database, transport: transport)
    downloads = ZDCDownloadManager(
      database: database.rwDatabaseConnection, users: users, primaryTreeID: NetworkWorld.treeID,
      folder: DownloadFolder(below: folder), partials: folder.appendingPathComponent("partials"), progress: progress,
      slots: TransferSlots(limit: 1)
    ) { [pauses] in pauses.add($0) }
  }

  var connection: ZDCDatabaseConnection { database.rwDatabaseConnection }

  func close() throws {
    try database.close()
  }
}

/// The real transport with hooks before and after it. It also records the requests.
final class HookedTransport: Transport {
  struct Hooks: Sendable {
    var before: @Sendable (TransportRequest) async throws -> Void = { _ in }
    var after: @Sendable (TransportRequest, TransportResponse) async throws -> TransportResponse = { $1 }
  }

  private let real: any Transport
  private let hooks: Mutex<Hooks>
  private let sent = Mutex<[String]>([])

  init(_ real: any Transport, _ hooks: Hooks = .init()) {
    self.real = real
    self.hooks = Mutex(hooks)
  }

  func set(_ hooks: Hooks) {
    self.hooks.withLock { $0 = hooks }
  }

  /// The requests in order, as "POST /v1/…" without the query.
  var requests: [String] { sent.withLock { $0 } }

  func count(_ part: String) -> Int { requests.count { $0.contains(part) } }

  func send(_ request: TransportRequest) async throws -> TransportResponse {
    let path = request.path.split(separator: "?").first.map(String.init) ?? request.path
    sent.withLock { $0.append("\(request.method.rawValue) \(path)") }
    let hooks = hooks.withLock { $0 }
    try await hooks.before(request)
    return try await hooks.after(request, try await real.send(request))
  }
}

/// A flag for hooks that act only once: only the first `take()` returns true.
final class Once: Sendable {
  private let done = Mutex(false)

  func take() -> Bool {
    done.withLock { done in
      defer { done = true }
      return !done
    }
  }
}
