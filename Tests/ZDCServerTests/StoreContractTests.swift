import GRDB
import Synchronization
import Testing
import ZDCProtocol
import ZDCServer
import ZDCServerMemory
import ZDCServerPostgres
import ZDCServerSQLite

/// The contract of every metadata store. A new store is one more line in `stores`. Other suites over `stores` have the
/// rest of it, and ``StoreSuiteTests`` lists functions that none of them calls.
@Suite struct StoreContractTests {
  struct Maker: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let open: @Sendable (_ folder: String) throws -> any MetadataStore
  }

  static let stores = [
    Maker(testDescription: "SQLite") { try SQLiteStore(path: $0 + ".sqlite") },
    Maker(testDescription: "memory") { _ in MemoryStore() },
    Maker(testDescription: "PostgreSQL") { _ in
      try PostgresStore(url: TestPostgres.shared().newDatabase(), connections: 3)
    },
  ]

  static func withStore(_ maker: Maker, _ body: (any MetadataStore) async throws -> Void) async throws {
    let folder = TestServer.newFolder()
    defer { for suffix in [".sqlite", ".sqlite-wal", ".sqlite-shm"] { TestServer.remove(folder + suffix) } }
    let store = try maker.open(folder)
    try await body(store)
    try await store.close()
  }

  /// An account that only its row describes.
  static func user(_ number: UInt8) -> UserRow {
    let id = UserID([UInt8](repeating: number, count: 32))!
    return UserRow(
      id: id, lookup: LookupID([UInt8](repeating: number, count: 16))!, loginKey: [number],
      genesis: LinkHash(reinterpreting: id), linkSeq: 0, linkHead: LinkHash(reinterpreting: id), signGen: 1,
      encGen: 1, createdMs: 1)
  }

  @Test(arguments: stores) func aWriteThatThrowsLeavesNothing(_ maker: Maker) async throws {
    try await Self.withStore(maker) { (store: any MetadataStore) async throws in
      let row = Self.user(1)
      struct Stop: Error {}
      await #expect(throws: Stop.self) {
        try await store.write([.account(row.id)]) { tx in
          try tx.insertUser(row)
          throw Stop()
        }
      }
      #expect(try await store.read { try $0.user(row.id) } == nil)
    }
  }

  @Test func theMemoryStoreRefusesAChangeThatTheWriteDidNotName() async throws {
    let (store, row) = (MemoryStore(), Self.user(1))
    let error = await #expect(throws: UnnamedSubject.self) {
      try await store.write([.account(Self.user(2).id), .upkeep]) { try $0.insertUser(row) }
    }
    #expect(error?.subject == .account(row.id))
    #expect(try await store.read { try $0.user(row.id) } == nil)
  }

  /// All links of a user or none, and those of the first user whatever the limit.
  @Test(arguments: stores) func linksOfSeveralUsers_endAtALimit(_ maker: Maker) async throws {
    try await Self.withStore(maker) { (store: any MetadataStore) async throws in
      let users = [Self.user(1), Self.user(2)]
      let links = [try TestAccount().genesis, try TestAccount().genesis]
      try await store.write(Set(users.map { .account($0.id) })) { tx in
        for (user, link) in zip(users, links) {
          try tx.insertUser(user)
          try tx.appendLink(link, to: user.id)
        }
      }
      let all = users.map { ChainPosition(user: $0.id, count: 0) }
      let both = links.reduce(0) { $0 + $1.bytes.count }
      #expect(try await store.read { try $0.links(after: all, limit: both) } == links.map(\.bytes))
      #expect(try await store.read { try $0.links(after: all, limit: both - 1) } == [links[0].bytes])
      #expect(try await store.read { try $0.links(after: all, limit: 0) } == [links[0].bytes])
    }
  }

  @Test(arguments: stores) func writesThatShareADurableStepFailByThemselves(_ maker: Maker) async throws {
    try await Self.withStore(maker) { (store: any MetadataStore) async throws in
      struct Odd: Error {}
      let outcomes = await withTaskGroup(of: (UInt8, Bool).self) { group in
        for number in UInt8(1)...100 {
          let row = Self.user(number)
          group.addTask {
            let done: Void? = try? await store.write([.account(row.id)]) { tx in
              try tx.insertUser(row)
              if number % 2 == 1 { throw Odd() }
            }
            return (number, done != nil)
          }
        }
        return await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
      }
      for number in UInt8(1)...100 {
        let row = Self.user(number)
        #expect(outcomes[number] == (number % 2 == 0))
        #expect(try await store.read { try $0.user(row.id) } == (number % 2 == 0 ? row : nil))
      }
      #expect(store.writeStatistics.writes == 100)
      #expect(store.writeStatistics.groups <= 100)
    }
  }

  @Test(arguments: stores) func effectsRunAfterTheCommit_inOrder_andNotForFailures(_ maker: Maker) async throws {
    try await Self.withStore(maker) { (store: any MetadataStore) async throws in
      let seen = Mutex<[Int]>([])
      struct Stop: Error {}
      for number in 0..<5 {
        try? await store.write([]) { tx in
          tx.afterCommit { seen.withLock { $0.append(number) } }
          if number == 2 { throw Stop() }
        }
      }
      #expect(seen.withLock { $0 } == [0, 1, 3, 4])
    }
  }

  @Test func synchronousIsFull_andTheLogIsAheadOfTheFile() async throws {
    let path = TestServer.newFolder()
    defer { for suffix in ["", "-wal", "-shm"] { TestServer.remove(path + suffix) } }
    let store = try SQLiteStore(path: path)
    #expect(try await store.settings() == ["2", "wal"])
    try await store.close()
  }

  @Test func aNewerDatabaseIsLeftAlone() async throws {
    let path = TestServer.newFolder()
    defer { for suffix in ["", "-wal", "-shm"] { TestServer.remove(path + suffix) } }
    try await SQLiteStore(path: path).close()
    let queue = try DatabaseQueue(path: path)
    try await queue.write { try $0.execute(sql: "PRAGMA user_version = 99") }
    try queue.close()
    let before = try TestServer.bytes(of: path)
    #expect {
      try SQLiteStore(path: path)
    } throws: { error in
      if case .newer? = (error as? StoreOpenError)?.reason { true } else { false }
    }
    #expect(try TestServer.bytes(of: path) == before)
  }

  @Test func aFileThatIsNoDatabaseIsLeftAlone() async throws {
    let path = TestServer.newFolder()
    defer { TestServer.remove(path) }
    try TestServer.write(randomBytes(8_192), to: path)
    let before = try TestServer.bytes(of: path)
    #expect {
      try SQLiteStore(path: path)
    } throws: { error in
      if case .damaged? = (error as? StoreOpenError)?.reason { true } else { false }
    }
    #expect(try TestServer.bytes(of: path) == before)
  }
}
