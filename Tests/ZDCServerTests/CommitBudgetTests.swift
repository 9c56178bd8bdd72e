import Testing
import ZDCProtocol

@testable import ZDCServer
@testable import ZDCServerPostgres

/// The cost of a commit over PostgreSQL: round trips and statements, and the bytes that PostgreSQL writes for it.
@Suite(.timeLimit(.minutes(20)), .disabled(if: TestStores.haveNoFolder, "opens databases of its own, once"))
struct CommitBudgetTests {
  /// - Commits of one put, of 1,000 puts, of 1,000 edits and of 1,000 deletes, sent to a server
  /// => each is one transaction, with these round trips and statements
  @Test func aCommitCostsTheSameRoundTrips_howeverManyNodesItHas() async throws {
    let url = try TestPostgres.shared().newDatabase()
    try await PostgresProxy.with(url) { proxy in
      try await TestServerPair.run(url: url, way: proxy.url) { pair in
        let (account, token) = try await pair.first.newAccount()
        var zone = account.home
        for count in [1, 1_000] {
          let nodes = (0..<count).map { _ in NodeID.random() }
          let puts = try await Self.trips(proxy) { try await Self.put(nodes, in: &zone, pair.first, token) }
          let edits = try await Self.trips(proxy) {
            try await Self.put(nodes, version: 2, in: &zone, pair.first, token)
          }
          let deletes = try await Self.trips(proxy) {
            let delete = try zone.commit(
              nodes.map { .delete(node: $0, record: zone.records[$0]?.hash ?? .zero, liveDescendants: 0) })
            _ = try await pair.first.commit(TestZone.body(delete), token: token).expect(200)
            zone.accepted(delete)
          }
          #expect(puts == [6, 1, 2, 1, 7], "\(count)")
          #expect(edits == [6, 1, 1, 2, 2, 7], "\(count)")
          #expect(deletes == [6, 1, 1, 2, 7], "\(count)")
        }
      }
    }
  }

  private static func put(
    _ nodes: [NodeID], version: UInt64 = 1, in zone: inout TestZone, _ server: TestServerPair.Member, _ token: [UInt8]
  ) async throws {
    let contents = nodes.map { _ in TestZone.Content(453) }
    let records = zip(nodes, contents).map { [zone] in zone.record($0, content: $1.field(version: version)) }
    try await server.put(records, contents: contents, in: &zone, token: token)
  }

  /// Returns the number of statements in each round trip of the only commit that `body` sends.
  private static func trips(_ proxy: PostgresProxy, _ body: () async throws -> Void) async throws -> [Int] {
    func commits() -> [[[String]]] {
      proxy.writes.filter { $0.joined().contains { $0.hasPrefix("INSERT INTO commits") } }
    }
    let before = commits().count
    try await body()
    let new = commits().dropFirst(before)
    #expect(new.count == 1)
    return new.first?.map(\.count) ?? []
  }

  /// - 20 commits of one put with 300 bytes of content, which are 453 when sealed, and 10 of 1,000 each
  /// => PostgreSQL's log and tables grow by no more than this
  @Test func commitsWriteFewBytes() async throws {
    let server = try TestPostgres.another()
    let url = try server.newDatabase()
    let store = try PostgresStore(url: url, connections: 1)
    let db = try PostgresConnection(url)
    var world = try await StoreSplitTests.World(store, branch: 1)
    for (puts, commits, most) in [(1, 20, 2_700), (1_000, 10, 1_800_000)] as [(Int, Int64, Int64)] {
      let before = try Self.logBytes(db)
      for _ in 0..<commits {
        let contents = (0..<puts).map { _ in TestZone.Content(453) }
        let records = contents.map { [world] in world.home.record(.random(), content: $0.field()) }
        try await world.put(records, contents: contents)
      }
      let written = try Self.logBytes(db) - before
      #expect(written / commits <= most, "\(puts)")
    }
    let tables =
      "SELECT sum(pg_total_relation_size(oid))::int8 FROM pg_class WHERE relkind = 'r' AND relnamespace = 2200"
    let sum = try db.first(tables) { $0.int(0) }
    let bytes = try #require(sum)
    #expect(bytes / 10_020 <= 1_800)
    try await store.close()
    withExtendedLifetime(server) {}
  }

  /// - Commits put, edit and delete 1,000 nodes with content; what they have replaced is collected
  /// => no statement compares nodes with each other in a join
  @Test func noStatementComparesEachNodeWithEachOther() async throws {
    let nodes = (0..<1_000).map { _ in NodeID.random() }
    let log = try await Self.plans { world, store in
      for version in 1...2 as ClosedRange<UInt64> {
        let contents = nodes.map { _ in TestZone.Content(453) }
        let records = zip(nodes, contents).map { [world] in world.home.record($0, content: $1.field(version: version)) }
        try await world.put(records, contents: contents)
      }
      let delete = try world.home.commit(
        nodes.map { [world] in .delete(node: $0, record: world.home.records[$0]?.hash ?? .zero, liveDescendants: 0) })
      try await world.apply(TestZone.body(delete))
      let isMore = try await store.write([.upkeep]) {
        try $0.collect(replacedBefore: .max, abandonedBefore: .max, limit: 10_000).isMore
      }
      #expect(!isMore)
    }
    for statement in ["INSERT INTO records", "DELETE FROM nodes", "DELETE FROM blobs"] {
      #expect(log.contains(statement))
    }
    let removed = log.matches(of: /Rows Removed by Join Filter": (\d+)/).compactMap { Int($0.1) }
    #expect(removed.allSatisfy { $0 <= nodes.count }, "\(removed)")
  }

  /// - 1,000 nodes are in a folder that is 20 folders below the top; a device reads them with one page of the log
  /// => no step of a plan reads the folders again for each node
  @Test func theFoldersAboveNodesAreReadOnce() async throws {
    let log = try await Self.plans { world, store in
      var folder = world.top
      for _ in 0..<20 {
        let below = world.home.record(.random(), parent: folder)
        try await world.put([below])
        folder = below.fields.node
      }
      let (seq, zone) = (world.home.seq, world.home.zone)
      try await world.put((0..<1_000).map { [world, folder] _ in world.home.record(.random(), parent: folder) })
      let records = try await store.read { reader in
        var records = 0
        try reader.commits(of: try #require(try reader.zone(zone)).key, after: seq, withRecords: true) { commit in
          records += commit.records.count
          return true
        }
        return records
      }
      #expect(records == 1_000)
    }
    let steps = log.matches(of: /"Actual Rows": (\d+),\s+"Actual Loops": (\d+)/)
    let rows = steps.compactMap { step in Int(step.1).flatMap { rows in Int(step.2).map { rows * $0 } } }
    #expect(rows.contains(1_000) && rows.allSatisfy { $0 <= 1_100 }, "\(rows.max() ?? 0)")
  }

  /// Returns the plans of all statements that `body` causes, from PostgreSQL's log.
  private static func plans(
    _ body: (inout StoreSplitTests.World, PostgresStore) async throws -> Void
  ) async throws -> String {
    let server = try TestPostgres.another()
    let url = try server.newDatabase()
    try server.logPlans(of: url)
    let store = try PostgresStore(url: url, connections: 1)
    var world = try await StoreSplitTests.World(store, branch: 1)
    try await body(&world, store)
    try await store.close()
    return try server.log()
  }

  private static func logBytes(_ db: PostgresConnection) throws -> Int64 {
    let bytes = try db.first("SELECT (pg_current_wal_insert_lsn() - '0/0')::int8") { $0.int(0) }
    return try #require(bytes)
  }
}
