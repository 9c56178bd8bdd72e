import GRDB
import Synchronization
import Testing
import ZDCCrypto

@testable import ZDCClientStore
@testable import ZeroDarkCloud

/// Rows that are read without GRDB's cursors, and sealed values that are opened once.
@Suite struct RowReadingTests {
  private let device: CloudFixture

  init() async throws { device = try await CloudFixture() }

  private static let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"

  @Test func queryOfACancelledTask_endsWithCancellationError() async throws {
    let (rows, row) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    let database = try device.zdc.rw
    let task = Task {
      try await database.write { try $0.database.forEachRow(Self.endless, []) { _ in row.yield() } }
    }
    for await _ in rows { break }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
  }

  @Test func errorInABody_endsTheQuery_andItRunsAgain() async throws {
    try await device.zdc.rw.write { (transaction) throws in
      let database = transaction.database
      #expect(throws: AppError()) { try database.forEachRow(Self.endless, []) { _ in throw AppError() } }
      #expect(try database.firstRow(Self.endless, []) { $0[0] as Int } == 1)
      #expect(try database.hasRow("SELECT 1 WHERE ?", [true]))
      #expect(try !database.hasRow("SELECT 1 WHERE ?", [false]))
    }
  }

  @Test func failedStatement_isTheAppsError_andTheStatementRunsAgain() async throws {
    try await device.zdc.rw.write { (transaction) throws in
      let query = "SELECT abs(?)"
      let result = Result { try transaction.database.firstRow(query, [Int64.min]) { $0[0] as Int64 } }
      let error = #expect(throws: DatabaseError.self) { try result.get() }
      #expect(error?.message == "integer overflow")
      #expect(try transaction.database.firstRow(query, [-3]) { $0[0] as Int64 } == 3)
    }
  }

  @Test func sealedValueOfAnotherNode_isNoticedAfterTheNodeWasRead() async throws {
    try await device.create("/a", "/b")
    let names = try await device.read { cloud in
      try ["/a", "/b"].map { try cloud.transaction.nodes.node(id: cloud.row(path: $0).id)?.name }
    }
    #expect(names == [Array("a".utf8), Array("b".utf8)])
    try await device.write { cloud in
      let (a, b) = (try cloud.row(path: "/a").id, try cloud.row(path: "/b").id)
      try cloud.transaction.database.execute(
        sql: "UPDATE zdc_node SET sealed = (SELECT sealed FROM zdc_node WHERE id = ?) WHERE id = ?", arguments: [b, a])
      #expect(throws: CryptoFailure.authenticationFailure) { try cloud.transaction.nodes.node(id: a) }
      #expect(try cloud.transaction.nodes.node(id: b)?.name == Array("b".utf8))
    }
  }
}
