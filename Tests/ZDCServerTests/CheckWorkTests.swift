import GRDB
import Testing
import ZDCProtocol
import ZDCServer

@testable import ZDCServerSQLite

/// The work of `zdc-server check`, in instructions of the database.
@Suite(.needsFolder) struct CheckWorkTests {
  /// - A server has ten accounts, and another one forty
  /// => the check of the second one runs about four times as many instructions of the database, not sixteen times
  @Test func theWorkGrowsWithTheServer() async throws {
    let (few, many) = (try await work(accounts: 10), try await work(accounts: 40))
    #expect(many < few * 6, "\(few) and \(many) instructions")
  }

  private func work(accounts: Int) async throws -> Int {
    try await TestServer.run { (server: TestServer) async throws in
      for _ in 0..<accounts {
        let (account, token) = try await server.newAccount()
        var zone = account.home
        let contents = (0..<20).map { _ in TestZone.Content() }
        try await server.put(
          contents.map { zone.record(.random(), content: $0.field()) }, contents: contents, in: &zone, token: token)
      }
      return try await DatabaseQueue(path: server.folder + "/zdc.sqlite").read { db in
        try ReplayScratch.with { scratch in
          let check = IntegrityCheck(db, scratch: scratch, blobFolder: nil, found: { _ in }, progress: { _ in })
          let (report, steps) = try SQLiteWork.counted(db) { check.run() }
          #expect(report.damage == 0 && report.users == accounts)
          return steps
        }
      }
    }
  }
}
