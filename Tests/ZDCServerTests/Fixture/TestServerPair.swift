import Testing
import ZDCServer
import ZDCServerMemory

@testable import ZDCServerPostgres

/// Two servers over one database and one store for large content, as two processes of a service.
struct TestServerPair {
  struct Member: ServerClient {
    let server: RunningServer
    let coordination: PostgresCoordination
    let store: PostgresStore
    var origin: String { server.url }
  }

  let first: Member
  let second: Member
  let url: String

  /// - Parameters:
  ///   - skewMs: by how much the clock of the second server is ahead.
  ///   - way: the URL by which the first server reaches the database.
  static func run(
    _ change: (inout Configuration) -> Void = { _ in }, skewMs: UInt64 = 0, url given: String? = nil,
    way: String? = nil,
    _ body: (TestServerPair) async throws -> Void
  ) async throws {
    var configuration = Configuration()
    change(&configuration)
    let url = try given ?? TestPostgres.shared().newDatabase()
    let blobs = MemoryBlobStore()
    let ahead = ServerClock(nowMs: { ServerClock.system.nowMs() + skewMs }, elapsedMs: ServerClock.system.elapsedMs)
    let first = try await start(configuration, way ?? url, blobs, .system)
    let second = try await start(configuration, url, blobs, ahead)
    let result: Result<Void, any Error>
    do {
      result = .success(try await body(TestServerPair(first: first, second: second, url: url)))
    } catch { result = .failure(error) }
    for member in [first, second] { try await member.server.stop() }
    try TestPostgres.shared().remove(url)
    try result.get()
  }

  private static func start(
    _ configuration: Configuration, _ url: String, _ blobs: MemoryBlobStore, _ clock: ServerClock
  ) async throws -> Member {
    let store = try PostgresStore(url: url, connections: 3, isShared: true)
    let coordination = try PostgresCoordination(store, holdMs: configuration.bounds.commitHoldMs)
    let server = try await RunningServer.start(
      configuration: configuration, metadata: store, blobs: blobs, coordination: coordination,
      clock: clock, logger: LogCapture().logger)
    return Member(server: server, coordination: coordination, store: store)
  }
}
