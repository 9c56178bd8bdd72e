import Foundation
import GRDB
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Rows that an earlier version lost are read again.
struct LostBranchTests {
  private static func loseBranch(_ b: TestDevice) async throws {
    try await b.database.write { transaction in
      try transaction.database.execute(
        sql: """
          WITH RECURSIVE below(id) AS (
            SELECT id FROM zdc_node WHERE depth = 1
            UNION ALL SELECT n.id FROM zdc_node n JOIN below ON n.parent = below.id
          ) DELETE FROM zdc_node WHERE id IN (SELECT id FROM below)
          """)
    }
  }

  private static func world(
    _ body: @Sendable @escaping (TestWorld, TestDevice, TestDevice) async throws -> Void
  ) async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      for path in ["/n", "/n/p"] { try await a.create(path) }
      try await a.create("/n/p/f", "1")
      try await world.settle(a, b)
      try await loseBranch(b)
      try await body(world, a, b)
    }
  }

  @Test("M1: a branch that an earlier version lost is back after the update")
  func lostBranch_isBackAfterTheUpdate() async throws {
    try await Self.world { world, a, b in
      try await b.database.write { transaction in
        try transaction.database.execute(sql: "DELETE FROM grdb_migrations WHERE identifier = 'zdc.lostBranches'")
      }
      try await b.relaunch()
      try await b.pull()
      try await world.settle(a, b)
      #expect(try await b.tree(versions: false) == "/n\n/n/p\n/n/p/f  \"1\"")
    }
  }

  @Test("M1: a lost branch is back when something is put into it")
  func lostBranch_isBackWhenSomethingComesIntoIt() async throws {
    try await Self.world { world, a, b in
      try await a.create("/n/p/g", "2")
      try await a.sync()
      try await world.settle(b)
      #expect(try await b.tree(versions: false) == "/n\n/n/p\n/n/p/f  \"1\"\n/n/p/g  \"2\"")
    }
  }
}
