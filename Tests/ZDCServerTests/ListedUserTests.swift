import GRDB
import GRDBSQLite
import Testing
import ZDCProtocol

@testable import ZDCServer
@testable import ZDCServerSQLite

/// The cost of access lists that name a user who has accepted nothing.
@Suite struct ListedUserTests {
  /// - 20,000 zones of other users list the victim
  /// => list, memberships and positions of the victim read as many pages of the database as before
  @Test("G-1: being listed in 20,000 zones costs a user nothing", .needsFolder)
  func listedInManyZones_costsNothing() async throws {
    let path = TestServer.newFolder() + ".sqlite"
    defer { for suffix in ["", "-wal", "-shm"] { TestServer.remove(path + suffix) } }
    let victim = try TestAccount()
    let store = try SQLiteStore(path: path)
    let user = victim.userID
    try await store.write([.account(user)]) { tx in
      let registration = try Accounts.Registration(victim.registration())
      _ = try Accounts.register(registration, mode: .open, invites: [], now: 1, in: tx)
    }
    let position = try await store.read { try $0.zones(of: user, since: nil).position }
    let before = try await Self.pagesRead(by: store, user, position)
    try await store.write([.account(user)]) { tx in
      let db = try #require(tx as? SQLiteTransaction).db
      let insert = try db.prepared(
        "INSERT INTO members(user_id, zone, permissions, joined_seq, joined_ms) VALUES (?, ?, 1, 1, 1)")
      for zone in Int64(100)..<20_100 { try insert.run(.id(user), .int(zone)) }
    }
    #expect(before > 0)
    #expect(try await Self.pagesRead(by: store, user, position) == before)
    try await store.close()
  }

  private static func pagesRead(by store: SQLiteStore, _ user: UserID, _ position: FeedPosition) async throws -> Int {
    try await store.read { reader in
      let connection = try #require(reader as? SQLiteTransaction).db.sqliteConnection
      _ = pages(connection)
      #expect(try reader.zones(of: user, since: nil).own.count == 4)
      #expect(try reader.zones(of: user, since: position).own.isEmpty)
      #expect(try reader.memberships(of: user).isEmpty)
      return pages(connection)
    }
  }

  /// Returns the number of pages that the connection has used since the last call.
  private static func pages(_ connection: OpaquePointer?) -> Int {
    var total = 0
    for counter in [SQLITE_DBSTATUS_CACHE_HIT, SQLITE_DBSTATUS_CACHE_MISS] {
      var (current, highest): (Int32, Int32) = (0, 0)
      sqlite3_db_status(connection, counter, &current, &highest, 1)
      total += Int(current)
    }
    return total
  }
}
