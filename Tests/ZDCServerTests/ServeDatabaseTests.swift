import Foundation
import Testing
import ZDCProtocol

@testable import ZDCServerPostgres

/// `zdc-server serve --database`.
@Suite(.disabled(if: TestStores.haveNoFolder, "runs the program once")) struct ServeDatabaseTests {
  private func withDatabase(_ body: (_ folder: String, _ url: String) async throws -> Void) async throws {
    let folder = TestServer.newFolder()
    let url = try TestPostgres.shared().newDatabase()
    let result: Result<Void, any Error>
    do { result = .success(try await body(folder, url)) } catch { result = .failure(error) }
    TestServer.remove(folder)
    try TestPostgres.shared().remove(url)
    try result.get()
  }

  /// - A user commits a node and uploads content; the server is killed and starts again
  /// => it still has both, and its data folder has no other database
  @Test func whatWasAcknowledgedIsThereAfterAKill() async throws {
    try await withDatabase { folder, url in
      let first = try await ServerProcess.serve(folder: folder, ["--database", url])
      let (account, token) = try await first.newAccount()
      var zone = account.home
      let record = zone.record(.random())
      try await first.put([record], in: &zone, token: token)
      let large = BlobTests.Large(300_000)
      _ = try await first.ticket(large, .random(), zone, token: token).expect(201)
      await first.kill()
      let second = try await ServerProcess.serve(folder: folder, ["--database", url])
      let zones = try await second.zones(token: token).zones
      #expect(zones.first { $0.zone == zone.zone }?.seq == 1)
      #expect(await second.stop() == 0)
      #expect(try !FileManager.default.contentsOfDirectory(atPath: folder).contains("zdc.sqlite"))
    }
  }

  /// - A check, a migration and a backup are given an empty database, and one that an older version has used
  /// => they refuse both, and change neither
  @Test func onlyServeChangesTables() async throws {
    try await withDatabase { folder, url in
      let (empty, target) = (try TestPostgres.shared().newDatabase(), TestServer.newFolder())
      defer { TestServer.remove(target) }
      let server = try await ServerProcess.serve(folder: folder, ["--database", url])
      #expect(await server.stop() == 0)
      func run(_ database: String) async throws -> [Int32] {
        [
          try await ServerProcess.run(["check", "--data", folder, "--database", database]).status,
          try await ServerProcess.run(
            ["migrate", "--from-data", folder, "--from-database", database, "--to-data", target]
          ).status,
          try await ServerProcess.run(["backup", target, "--data", folder, "--database", database]).status,
        ]
      }
      #expect(try await run(empty) == [66, 66, 66])
      let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
      #expect(try PostgresConnection(empty).first(tables) { $0.int(0) } == 0)
      let db = try PostgresConnection(url)
      try db.run("UPDATE schema_version SET version = version - 1")
      #expect(try await run(url) == [70, 70, 70])
      let version = try db.first("SELECT version FROM schema_version") { $0.int(0) }
      #expect(version == PostgresSchema.version - 1)
      try TestPostgres.shared().remove(empty)
    }
  }

  @Test func aSecondServer_anotherFolder_andAWrongURLAreRefused() async throws {
    try await withDatabase { folder, url in
      let other = TestServer.newFolder()
      defer { TestServer.remove(other) }
      let listen = ["--listen", "127.0.0.1:0"]
      let server = try await ServerProcess.serve(folder: folder, ["--database", url])
      let second = try await ServerProcess.run(["serve", "--data", other, "--database", url] + listen)
      #expect(second.status == 69, "the database is in use")
      #expect(await server.stop() == 0)
      let elsewhere = try await ServerProcess.run(["serve", "--data", folder] + listen)
      #expect(elsewhere.status == 70, "SQLite would collect content that it does not know")
      let wrong = try await ServerProcess.run(["serve", "--data", folder, "--database", "mysql://x"] + listen)
      #expect(wrong.status == 64)
      let missing = ["serve", "--data", folder, "--database", "postgres:///x?host=/nowhere"]
      #expect(try await ServerProcess.run(missing + listen).status == 69)
    }
  }

  /// PostgreSQL lets only the owner of a database create tables, which `createdb` alone does not make of the server's user.
  @Test func aUserWhoMayNotCreateTablesIsRefused() async throws {
    try await withDatabase { folder, url in
      let role = "guest\(UInt32.random(in: 0 ... .max))"
      let database = try PostgresConnection(url)
      try database.run("CREATE ROLE \(role) LOGIN")
      let guests = url.replacingOccurrences(of: "postgres@", with: "\(role)@")
      let run = try await ServerProcess.run(
        ["serve", "--data", folder, "--database", guests, "--listen", "127.0.0.1:0"])
      #expect(run.status == 77)
      try database.run("DROP ROLE \(role)")
    }
  }
}
