import Foundation
import Testing
import ZDCProtocol
import ZDCServerS3

/// Two processes of `zdc-server serve` over PostgreSQL and a bucket.
@Suite(.needsObjectStore, .timeLimit(.minutes(20))) struct SharedProcessTests {
  typealias Large = BlobTests.Large

  private struct Service {
    let folders: [String]
    let options: [String]

    func start(_ index: Int) async throws -> ServerProcess {
      try await ServerProcess.serve(folder: folders[index], options)
    }
  }

  private func withService(_ body: (Service) async throws -> Void) async throws {
    let url = try TestPostgres.shared().newDatabase()
    let folders = (0..<2).map { _ in TestServer.newFolder() }
    let options = ["--database", url, "--blobs", try TestObjectStore.address().description]
    let result: Result<Void, any Error>
    do { result = .success(try await body(Service(folders: folders, options: options))) } catch {
      result = .failure(error)
    }
    for folder in folders { TestServer.remove(folder) }
    try TestPostgres.shared().remove(url)
    try result.get()
  }

  /// - The parts of a file go to both servers in turn, and one of them is killed before the file is complete
  /// => the other one takes the rest, and both have the file and the whole log after a restart
  @Test func aKilledServerLosesNothing() async throws {
    try await withService { service in
      let (a, b) = (try await service.start(0), try await service.start(1))
      let (account, token) = try await a.newAccount()
      var zone = account.home
      let (large, node) = (Large(), NodeID.random())
      _ = try await a.ticket(large, node, zone, token: token).expect(201)
      _ = try await b.part(0, of: large, token: token).expect(204)
      _ = try await a.part(1, of: large, token: token).expect(204)
      await a.kill()
      #expect(try await b.parts(of: large, token: token).parts.map(\.index) == [0, 1])
      _ = try await b.part(2, of: large, token: token).expect(204)
      _ = try await b.complete(large, token: token).expect(200)
      try await b.put([zone.record(node, content: large.field)], in: &zone, token: token)
      let again = try await service.start(0)
      #expect(try await again.content(large.blob, of: node, in: zone, token: token).bytes == large.bytes)
      try await again.put([zone.record(.random())], in: &zone, token: token)
      #expect(try await b.zones(token: token).zones.first { $0.zone == zone.zone }?.seq == 2)
      #expect(await again.stop() == 0)
      #expect(await b.stop() == 0)
    }
  }

  /// - A server without the bucket starts beside one that has it, and again after that one has ended
  /// => it is refused both times, and the running one is not disturbed
  @Test func aServerThatWouldLoseContentIsRefused() async throws {
    try await withService { service in
      let a = try await service.start(0)
      let (_, token) = try await a.newAccount()
      let serve = { (folder: String, options: [String]) in
        try await ServerProcess.run(["serve", "--data", folder, "--listen", "127.0.0.1:0"] + options).status
      }
      let database = Array(service.options.prefix(2))
      #expect(try await serve(service.folders[1], database) == 69, "the database is shared")
      _ = try await a.send(.GET, Routes.zones, token: token).expect(200)
      #expect(await a.stop() == 0)
      #expect(try await serve(service.folders[1], database) == 64, "the content is in a bucket")
    }
  }
}
