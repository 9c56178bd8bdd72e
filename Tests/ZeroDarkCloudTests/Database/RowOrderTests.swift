import Foundation
import GRDB
import Testing
import ZDCProtocol

@testable import ZDCClientStore
@testable import ZeroDarkCloud

/// Rows are stored in the order of insertion, so that rows inserted together are stored together.
@Suite struct RowOrderTests {
  @Test func sortedUUIDs_areUUIDs_inTheOrderOfTheirMaking() throws {
    let early = (0..<5_000).map { _ in UUIDv7.make(atMs: 1_700_000_000_000) }
    // Setting the clock back does not change the order.
    let late = (0..<5_000).map { UUIDv7.make(atMs: 1_600_000_000_000 + UInt64($0)) }
    let all = early + late
    #expect(all == all.sorted() && Set(all).count == all.count)
    #expect(all.allSatisfy { UUID(uuidString: $0)?.uuidString == $0 })
    #expect(all.allSatisfy { Array($0)[14] == "7" && "89AB".contains(Array($0)[19]) })
  }

  @Test func sortedUUIDs_beginWithTheTime() throws {
    let time: UInt64 = 0x01ff_0000_0000
    #expect(UUIDv7.make(atMs: time).hasPrefix("01FF0000-0000-7000-"))
  }

  /// - node IDs are generated for two transactions
  /// => a thousand in a row share a prefix, each is unique, and nothing else distinguishes them from random IDs
  @Test func nodeIDsOfATransaction_areNeighbours() {
    var (one, other) = (NodeIDRun(), NodeIDRun())
    let ids = (0..<2_048).map { _ in one.next() }
    let more = (0..<2_048).map { _ in other.next() }
    func beginnings(_ ids: some Sequence<NodeID>) -> Set<[UInt8]> { Set(ids.map { Array($0.bytes[..<4]) }) }
    #expect(beginnings(ids[..<1_024]).count == 1 && beginnings(ids).count == 2)
    #expect(beginnings(ids + more).count == 4)
    #expect(Set(ids.map { Array($0.bytes[4...]) }).count == ids.count)
  }

  /// - a database of a version that stored leaves in the order of their IDs
  /// => the leaves are stored in the order of the log, with the same data
  @Test func leavesOfAnOlderDatabase_areKept() throws {
    let database = try DatabaseQueue()
    var migrator = DatabaseMigrator()
    FrameworkSchema.register(in: &migrator)
    try migrator.migrate(database, upTo: "zdc.3")
    try database.write { db in
      try db.execute(
        sql: """
          INSERT INTO zdc_local_user VALUES (1, x'01', 1, x'02', x'03', 4, NULL, 0);
          INSERT INTO zdc_zone (id, localUser, appTreeID, trunk, treeID, zoneRoot) VALUES (7, 1, 'app', 0, x'05', x'06');
          INSERT INTO zdc_leaf VALUES (7, x'bb', x'00', x'11', x'12', 1, 2, 3, x'13', 4, 0);
          INSERT INTO zdc_leaf VALUES (7, x'aa', x'bb', x'21', x'22', 2, 2, 3, x'23', 4, 1)
          """)
    }
    try migrator.migrate(database)
    try database.read { db in
      let rows = try Row.fetchAll(db, sql: "SELECT hex(node) || hex(parent) || hex(record), pending FROM zdc_leaf")
      #expect(rows.map { $0[0] as String } == ["BB0011", "AABB21"])
      // Neither leaf has a node, so the records of both are read again (M1).
      #expect(rows.map { $0[1] as Int } == [1, 1])
      let violation = try db.foreignKeyViolations().next()
      #expect(violation == nil)
    }
  }
}
