import Foundation
import GRDB
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// The number of pages that a commit of a thousand nodes writes to the databases of both sides must not grow with their
/// size. Only then do a hundred thousand nodes cost ten times as much as ten thousand.
@Suite(.timeLimit(.minutes(20))) struct PageCountTests {
  private static func create(_ count: Int, _ device: TestDevice) async throws {
    try await device.write { _, cloud in
      for number in 0..<count { try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["\(number)"])) }
    }
    try await device.pull()
  }

  /// Returns the number of pages that `body` writes to the write-ahead log of a database.
  private static func pages(_ database: URL, _ body: () async throws -> Void) async throws -> Int {
    var configuration = Configuration()
    configuration.busyMode = .timeout(10)
    configuration.allowsUnsafeTransactions = true
    let queue = try DatabaseQueue(path: database.path, configuration: configuration)
    // Moves the log into the database, and truncates it.
    let frame = try await queue.writeWithoutTransaction { db in
      // The pragma does not wait while another connection copies; it reports that it was busy.
      while try Bool.fetchOne(db, sql: "PRAGMA wal_checkpoint(TRUNCATE)") ?? false {}
      // While a connection reads, no other one can empty the log, as that of an idle server would.
      try db.execute(sql: "BEGIN; SELECT count(*) FROM sqlite_master")
      return try (Int.fetchOne(db, sql: "PRAGMA page_size") ?? 0) + 24
    }
    try await body()
    let attributes = try FileManager.default.attributesOfItem(atPath: database.path + "-wal")
    try await queue.writeWithoutTransaction { db in try db.execute(sql: "COMMIT") }
    try queue.close()
    return ((attributes[.size] as? Int ?? 0) - 32) / frame
  }

  private static func push(_ device: TestDevice, _ world: TestWorld) async throws -> (client: Int, server: Int) {
    var server = 0
    let client = try await pages(device.folder.appendingPathComponent("zdcDatabase.sqlite")) {
      server = try await pages(world.server.folder.appendingPathComponent("zdc.sqlite")) {
        let commits = try await device.push().commits
        #expect(commits == 1)
      }
    }
    return (client, server)
  }

  @Test func aCommit_writesAsManyPages_howeverLongTheQueueIs() async throws {
    try await TestWorld.run { world in
      let short = try await world.device("short", account: "short")
      let long = try await world.device("long", account: "long")
      try await Self.create(1_200, short)
      try await Self.create(5_000, long)
      let pages = (short: try await Self.push(short, world).client, long: try await Self.push(long, world).client)
      #expect(pages.long <= pages.short * 11 / 10)
      for device in [short, long] { try await device.sync() }
    }
  }

  @Test func aCommit_writesAsManyPages_howeverLargeTheTreeIs() async throws {
    try await TestWorld.run { world in
      let device = try await world.device("A")
      try await Self.create(5_000, device)
      var pages: [(client: Int, server: Int)] = []
      for _ in 0..<5 { pages.append(try await Self.push(device, world)) }
      try #require(pages.allSatisfy { $0.client > 0 && $0.server > 0 })
      #expect(pages[4].client <= pages[0].client * 5 / 4)
      // Two indexes over random tags and hashes grow, but no table does.
      #expect(pages[4].server <= pages[0].server * 8 / 5)
      try await device.sync()
    }
  }
}
