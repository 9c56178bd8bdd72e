import Foundation
import Logging
import Synchronization
import Testing
import ZDCProtocol
import ZDCServer
import ZDCServerMemory
import ZDCServerSQLite

/// A real server on a socket, with temporary stores.
final class TestServer: ServerClient {
  let folder: String
  let server: RunningServer
  let clock: TestClock
  let log: LogCapture
  let store: any MetadataStore
  let blobs: any BlobStore

  private init(folder: String, server: RunningServer, stores: TestStores, clock: TestClock, log: LogCapture) {
    store = stores.metadata
    blobs = stores.blobs
    self.folder = folder
    self.server = server
    self.clock = clock
    self.log = log
  }

  var origin: String { server.url }

  /// The store of a server that has a folder.
  var sqlite: SQLiteStore { get throws { try #require(store as? SQLiteStore) } }

  /// Runs a server around `body`; `folder` nil takes a new one and removes it. Stores in memory have its name.
  @discardableResult
  static func run<T>(
    in folder: String? = nil, blobs: (any BlobStore)? = nil, _ change: (inout Configuration) -> Void = { _ in },
    _ body: (TestServer) async throws -> T
  ) async throws -> T {
    let path = folder ?? newFolder()
    defer { if folder == nil { remove(path) } }
    var configuration = Configuration()
    // A busy machine is no slow client: tests of slow ones set their own windows.
    (configuration.bounds.idleSeconds, configuration.bounds.bodySeconds) = (600, 600)
    configuration.bounds.stalledSeconds = 600
    change(&configuration)
    let clock = TestClock()
    let log = LogCapture()
    var stores = try TestStores.open(path)
    if let blobs { stores.blobs = blobs }
    let running = try await RunningServer.start(
      configuration: configuration, metadata: stores.metadata, blobs: stores.blobs,
      coordination: try stores.coordination(configuration),
      deletions: TestStores.haveNoFolder ? nil : DeletionFile(path: "\(path)/\(DeletionFile.defaultName)"),
      clock: clock.clock, logger: log.logger)
    let result: Result<T, any Error>
    do {
      result = .success(
        try await body(TestServer(folder: path, server: running, stores: stores, clock: clock, log: log)))
    } catch { result = .failure(error) }
    try await running.stop()
    return try result.get()
  }

  static func newFolder() -> String {
    FileManager.default.temporaryDirectory.appendingPathComponent("zdc-server-\(UUID().uuidString)").path
  }
}

enum Method: String {
  case GET, POST, PUT, DELETE
}

struct Answer {
  let status: Int
  /// By lower-case name.
  let headers: [String: String]
  let bytes: [UInt8]

  func json<T: Decodable>(_ type: T.Type = T.self) throws -> T {
    guard (200..<300).contains(status) else { throw Unexpected(status: status, text: text) }
    return try JSONDecoder().decode(type, from: Data(bytes))
  }

  var error: ServerError? { try? JSONDecoder().decode(ServerError.self, from: Data(bytes)) }
  var text: String { String(decoding: bytes, as: UTF8.self) }

  func items() throws -> [ZDCProtocol.Bundle.Item] {
    var reader = ZDCProtocol.Bundle.Reader(bytes)
    return try reader.all()
  }

  /// The items' kinds and, for commits, their numbers: a page as text.
  func outline() throws -> String {
    try items().map { item in
      switch item {
      case .commit(_, let commit): "commit \(commit.fields.seq)"
      case .record(_, _, let record): "record v\(record.fields.recordVersion)"
      case .acl: "acl"
      case .grant: "grant"
      case .content: "content"
      case .link: "link"
      case .leaves: "leaves"
      case .aclEdit: "aclEdit"
      case .attach: "attach"
      case .envelope: "envelope"
      }
    }.joined(separator: ", ")
  }

  /// The newest commit of a page.
  func lastCommit() throws -> ZDCProtocol.Bundle.Item? {
    try items().last { if case .commit = $0 { true } else { false } }
  }

  func expect(_ status: Int) throws -> Answer {
    guard self.status == status else { throw Unexpected(status: self.status, text: text) }
    return self
  }
}

struct Unexpected: Error, CustomStringConvertible {
  let status: Int
  let text: String
  var description: String { "unexpected answer \(status): \(text.prefix(300))" }
}

/// A clock that moves when told.
final class TestClock: Sendable {
  private let now = Mutex<UInt64>(1_800_000_000_000)
  /// By how much the wall clock was set ahead.
  private let jumped = Mutex<UInt64>(0)

  var clock: ServerClock {
    ServerClock(
      nowMs: { self.now.withLock { $0 } + self.jumped.withLock { $0 } }, elapsedMs: { self.now.withLock { $0 } })
  }

  var nowMs: UInt64 { clock.nowMs() }
  func jump(ms: UInt64) { jumped.withLock { $0 += ms } }
  func advance(ms: UInt64) { now.withLock { $0 += ms } }
}

/// Everything that a server logged, at the most talkative level.
final class LogCapture: Sendable {
  private let lines = Mutex<[String]>([])
  var text: String { lines.withLock { $0.joined(separator: "\n") } }

  var logger: Logger {
    var logger = Logger(label: "test") { _ in Handler(capture: self) }
    logger.logLevel = .trace
    return logger
  }

  private struct Handler: LogHandler {
    let capture: LogCapture
    var logLevel = Logger.Level.trace
    var metadata = Logger.Metadata()
    var metadataProvider: Logger.MetadataProvider?

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { metadata[key] }
      set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
      let all = metadata.merging(event.metadata ?? [:]) { _, new in new }
      capture.lines.withLock { $0.append("\(event.level) \(event.message) \(all)") }
    }
  }
}
