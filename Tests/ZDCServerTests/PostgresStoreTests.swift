import Foundation
import Synchronization
import Testing
import ZDCProtocol

@testable import ZDCServer
@testable import ZDCServerPostgres

/// Features of the store over PostgreSQL alone: turns, positions, and the lock of the database.
@Suite struct PostgresStoreTests {
  private func withStore(
    connections: Int = 4, on server: TestPostgres? = nil, _ body: (PostgresStore, String) async throws -> Void
  ) async throws {
    let server = try server ?? TestPostgres.shared()
    let url = try server.newDatabase()
    let store = try PostgresStore(url: url, connections: connections)
    let result: Result<Void, any Error>
    do { result = .success(try await body(store, url)) } catch { result = .failure(error) }
    try await store.close()
    try server.remove(url)
    try result.get()
  }

  private func register(_ account: TestAccount, in store: PostgresStore) async throws {
    try await store.write([.account(account.userID)]) { tx in
      let registration = try Accounts.Registration(account.registration())
      _ = try Accounts.register(registration, mode: .open, invites: [], now: 1, in: tx)
    }
  }

  // MARK: - Turns

  @Test func writesOfOneSubjectWaitForEachOther_andOthersDoNot() {
    var turns = SubjectTurns<String>()
    let (a, b) = (WriteSubject.zone(.init(tree: .zero, root: .zero)), WriteSubject.upkeep)
    let first = turns.add("first", [a])
    let both = turns.add("both", [a, b])
    let second = turns.add("second", [b])
    let free = turns.add("free", [])
    #expect(first.ready == "first" && both.ready == nil && second.ready == nil && free.ready == "free")
    #expect(turns.end(first.number).map(\.job) == ["both"])
    #expect(turns.end(free.number).isEmpty)
    #expect(turns.end(both.number).map(\.job) == ["second"])
    #expect(turns.end(second.number).isEmpty)
    #expect(turns.add("third", [a, b]).ready == "third")
  }

  // MARK: - Timeouts

  /// => a statement of the store has the store's own limit, whatever the database's owner has set
  @Test func theOwnersLimitDoesNotCount() async throws {
    try await withStore { store, url in
      let database = try #require(url.split(separator: "?").first?.split(separator: "/").last)
      try PostgresConnection(url).run("ALTER DATABASE \(database) SET statement_timeout = '500ms'")
      let other = try PostgresConnection(url)
      let error = #expect(throws: PostgresError.self) { try other.run("SELECT pg_sleep(1)") }
      #expect(error?.state == "57014")
      try await store.perform { _ = try $0.run("SELECT pg_sleep(1)") }
    }
  }

  /// => statements of reads and writes end after a minute; a COMMIT, which may wait for a standby, and the statements of a
  /// copy have no limit
  @Test func statementsAreBounded_andCommitsAreNot() async throws {
    try await withStore { store, url in
      let other = try PostgresConnection(url)
      try other.run("CREATE TABLE seen(setting text)")
      try other.run(
        """
        CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN INSERT INTO seen VALUES (current_setting('statement_timeout')); RETURN NULL; END $$
        """)
      try other.run(
        """
        CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON room DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
        EXECUTE FUNCTION note()
        """)
      let limit = "SELECT current_setting('statement_timeout')"
      let read = try await store.read { try PostgresStore.own($0).db.first(limit) { $0.text(0) } }
      let write = try await store.write([.upkeep]) { tx in
        try tx.probeFreeSpace()
        return try PostgresStore.own(tx).db.first(limit) { $0.text(0) }
      }
      let copied = try await store.readRows { reader in
        try #require(reader as? PostgresRows).db.first(limit) { $0.text(0) }
      }
      #expect([read, write, copied] == ["1min", "1min", "0"])
      #expect(try other.all("SELECT setting FROM seen") { $0.text(0) } == ["0"])
    }
  }

  /// => a statement that took too long, and a write on a server that is a standby now, can be repeated
  @Test(arguments: ["SET LOCAL statement_timeout = 1", "SET LOCAL transaction_read_only = on"])
  func aStatementThatCannotEnd_isARetryableError(_ setting: String) async throws {
    try await withStore { store, _ in
      let error = await #expect(throws: ServerError.self) {
        try await store.write([]) { tx in
          let db = try PostgresStore.own(tx).db
          try db.run(setting)
          try db.run("INSERT INTO room SELECT '' FROM pg_sleep(600)")
        }
      }
      #expect(error?.retryable == true && error?.status == 503)
      _ = try await store.write([.upkeep]) { try $0.probeFreeSpace() }
    }
  }

  /// - A machine takes the connection and never answers
  /// => opening it fails, although the URL says nothing about that
  @Test(.timeLimit(.minutes(5))) func aSilentMachineIsNotWaitedFor() async throws {
    try await ScriptedStore.with([]) { silent in
      let url = "postgres://zdc@127.0.0.1:\(silent.port)/zdc?sslmode=disable&gssencmode=disable"
      let error = #expect(throws: PostgresError.self) { try PostgresConnection(url) }
      #expect(error?.isUnavailable == true)
    }
  }

  // MARK: - Positions

  @Test func aSnapshotIsReadAsPostgreSQLWritesIt() throws {
    let snapshot = try #require(Snapshot("10:15:11,13"))
    #expect((9...15).map { snapshot.hasSeen($0) } == [true, true, false, true, false, true, false])
    #expect(snapshot.text == "10:15:11,13" && Snapshot("7:7:")?.hasSeen(7) == false)
    for text in ["", "1", "1:2", "0:1:", "3:2:", "1:5:x", "1:5:5", "1:5:0", "1:2:3:4"] {
      #expect(Snapshot(text) == nil, "\(text)")
    }
    let busy = Snapshot(xmin: 5, xmax: 99, running: Array(5..<60))
    #expect(busy.text == "5:5:")
  }

  @Test func aPositionIsGoodForOneUserAndOneEra() throws {
    let (user, other) = (UserID(1, 2, 3, 4), UserID(1, 2, 3, 5))
    let snapshot = try #require(Snapshot("1000:1200:\((1_000..<1_030).map { "\($0)" }.joined(separator: ","))"))
    let seal = SnapshotSeal(key: [1, 2, 3], user: user)
    let position = seal.seal(snapshot)
    #expect(seal.open(position) == snapshot && seal.seal(snapshot) == position)
    #expect(SnapshotSeal(key: [1, 2, 3], user: other).open(position) == nil)
    #expect(SnapshotSeal(key: [1, 2, 4], user: user).open(position) == nil)
    #expect(seal.open(FeedPosition("")) == nil && seal.open(FeedPosition(position.text + "y")) == nil)
  }

  /// - A transaction is open while 32 writers commit to 8 zones, and a reader follows the positions of their owner
  /// => each commit is in an answer; at the end, the answer to the last position is empty
  @Test func aReaderMissesNoCommitOfConcurrentWriters() async throws {
    try await withStore { store, url in
      let account = try TestAccount()
      try await register(account, in: store)
      let zones = try await Self.newZones(8, of: account, in: store)
      let paused = try PostgresConnection(url)
      try paused.run("BEGIN")
      try paused.run("SELECT pg_current_xact_id()::text")
      let isDone = Mutex(false)
      async let seen = Self.follow(account.userID, in: store) { isDone.withLock { $0 } }
      let written = try await withThrowingTaskGroup(of: [ZoneStatus].self) { group in
        for writer in 0..<32 {
          group.addTask {
            var statuses: [ZoneStatus] = []
            for round in 0..<4 {
              statuses.append(try await Self.commit(to: zones[(writer + round) % zones.count], of: account, in: store))
            }
            return statuses
          }
        }
        return try await group.reduce(into: []) { $0 += $1 }
      }
      try paused.run("COMMIT")
      isDone.withLock { $0 = true }
      let newest = Dictionary(written.map { ($0.zone, $0.seq) }, uniquingKeysWith: max)
      let found = try await seen
      #expect(written.count == 128)
      for zone in zones { #expect(found.seqs[zone.zone] == newest[zone.zone], "a commit was missed") }
      let again = try await store.read { try $0.zones(of: account.userID, since: found.position) }
      #expect(again.own.isEmpty && again.position == found.position)
    }
  }

  /// - A commit begins before another one, and ends after a list was read that has the other one
  /// => the next list has it
  @Test func aCommitThatEndsLate_isInTheNextList() async throws {
    try await withStore { store, url in
      let account = try TestAccount()
      try await register(account, in: store)
      let zones = try await Self.newZones(2, of: account, in: store)
      let user = account.userID
      let start = try await store.read { try $0.zones(of: user, since: nil).position }
      let late = try PostgresConnection(url)
      try late.run("BEGIN")
      try late.run(
        "UPDATE zones SET seq = seq + 1, changed = pg_current_xact_id() WHERE root = $1", .id(zones[0].zone.root))
      let status = try await Self.commit(to: zones[1], of: account, in: store)
      let first = try await store.read { try $0.zones(of: user, since: start) }
      #expect(first.own == [status])
      try late.run("COMMIT")
      let second = try await store.read { try $0.zones(of: user, since: first.position) }
      #expect(second.own.map(\.zone) == [zones[0].zone])
    }
  }

  /// - The era ends, as after a crash
  /// => an old position gives the whole list, and no position is given before there is a new era
  @Test func aPositionOfAnotherEraIsUnknown() async throws {
    // A second connection would begin an era when it is opened.
    try await withStore(connections: 1) { store, url in
      let account = try TestAccount()
      try await register(account, in: store)
      let user = account.userID
      let position = try await store.read { try $0.zones(of: user, since: nil).position }
      #expect(try await store.read { try $0.zones(of: user, since: position).own.isEmpty })
      let other = try PostgresConnection(url)
      try other.run("DELETE FROM era")
      let without = try await store.read { try $0.zones(of: user, since: position) }
      #expect(without.own.count == 4 && without.position == FeedPosition(""))
      try PostgresSchema.beginEra(other)
      let next = try await store.read { try $0.zones(of: user, since: position) }
      #expect(next.own.count == 4 && next.position != position)
    }
  }

  /// - PostgreSQL crashes while 32 writers commit, each into its own zone, and two transactions are paused
  /// => the position of before gives the whole list, with each commit that was acknowledged, and none twice
  @Test func aCrashOfTheDatabase_losesNoChange() async throws {
    let server = try TestPostgres.another()
    try await withStore(on: server) { store, url in
      let account = try TestAccount()
      try await register(account, in: store)
      let zones = try await Self.newZones(34, of: account, in: store)
      let user = account.userID
      let before = try await store.read { try $0.zones(of: user, since: nil).position }
      let paused = try zones.suffix(2).map { try Self.pausedChange(of: $0, url) }
      let hasCrashed = Mutex(false)
      async let acknowledged = Self.commit(to: zones.prefix(32), of: account, in: store) {
        hasCrashed.withLock { $0 }
      }
      while try await store.read({ try $0.zones(of: user, since: before).own.count }) < 16 {
        try await Task.sleep(for: .milliseconds(20))
      }
      try Self.crash(url) { hasCrashed.withLock { $0 = true } }
      let counts = try await acknowledged
      withExtendedLifetime(paused) {}
      let after = try await Self.untilAnswered { try await store.read { try $0.zones(of: user, since: before) } }
      #expect(after.position != before && after.own.count == 4 + 34)
      let seqs = Dictionary(uniqueKeysWithValues: after.own.map { ($0.zone, $0.seq) })
      // The last commit of a writer may have been stored without an answer.
      for (zone, count) in zip(zones, counts) { #expect((count...count + 1).contains(try #require(seqs[zone.zone]))) }
      for zone in zones.suffix(2) { #expect(seqs[zone.zone] == 0) }
      #expect(counts.reduce(0, +) > 0)
      // Other connections of the store may still have to notice.
      let status = try await Self.untilAnswered { try await Self.commit(to: zones[0], of: account, in: store) }
      let next = try await Self.untilAnswered { try await store.read { try $0.zones(of: user, since: after.position) } }
      #expect(next.own == [status])
    }
  }

  // MARK: - The database

  @Test func aSecondServerIsRefused_untilTheFirstHasEnded() async throws {
    try await withStore { store, url in
      let error = #expect(throws: PostgresOpenError.self) { try PostgresStore(url: url) }
      #expect(error?.reason == .inUse && error?.description.contains("another server") == true)
      try await store.close()
      try await PostgresStore(url: url, connections: 1).close()
    }
  }

  @Test func aNewerDatabaseIsLeftAlone() async throws {
    try await withStore { store, url in
      try await store.close()
      let db = try PostgresConnection(url)
      try db.run("UPDATE schema_version SET version = 99")
      let error = #expect(throws: PostgresOpenError.self) { try PostgresStore(url: url) }
      #expect(error?.reason == .newer)
      #expect(try db.first("SELECT version FROM schema_version") { $0.int(0) } == 99)
    }
  }

  @Test func anUnreachableDatabaseIsAnError() throws {
    let error = #expect(throws: PostgresOpenError.self) { try PostgresStore(url: "postgres:///x?host=/nowhere") }
    #expect(error?.reason == .unavailable)
  }

  /// - All connections of the store are ended
  /// => calls fail as retryable at most once for each connection, then they work again
  @Test func lostConnectionsAreReplaced() async throws {
    try await withStore { store, url in
      let account = try TestAccount()
      try await register(account, in: store)
      let user = account.userID
      for _ in 0..<8 { _ = try await store.read { try $0.user(user) } }
      let db = try PostgresConnection(url)
      // With a time, which is in ms, this returns when they have ended: until then, calls succeed.
      try db.run(
        """
        SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()
        """)
      var failures = 0
      while true {
        do {
          let row = try await store.write([.account(user)]) { try $0.user(user) }
          #expect(row?.id == user)
          break
        } catch let error as ServerError {
          #expect(error.retryable && error.status == 503)
          failures += 1
          try await Task.sleep(for: .milliseconds(10))
        }
      }
      #expect(failures > 0)
    }
  }

  /// - Another process keeps the row of a zone locked
  /// => a commit of the zone fails as retryable; one of another zone is not delayed
  @Test func aLockThatIsNotFree_isARetryableError() async throws {
    try await withStore { store, url in
      let account = try TestAccount()
      try await register(account, in: store)
      let zones = try await Self.newZones(2, of: account, in: store)
      let other = try PostgresConnection(url)
      try other.run("BEGIN")
      try other.run("SELECT 1 FROM zones WHERE root = $1 FOR UPDATE", .id(zones[0].zone.root))
      async let blocked = Self.commit(to: zones[0], of: account, in: store)
      _ = try await Self.commit(to: zones[1], of: account, in: store)
      do {
        _ = try await blocked
        Issue.record("the commit did not wait for the lock")
      } catch let error as ServerError { #expect(error.retryable && error.status == 503) }
      try other.run("COMMIT")
      #expect(try await Self.commit(to: zones[0], of: account, in: store).seq == 1)
    }
  }
}

extension PostgresStoreTests {
  private static func newZones(
    _ count: Int, of account: TestAccount, in store: PostgresStore
  ) async throws -> [TestZone] {
    let home = account.home
    var zones: [TestZone] = []
    for _ in 0..<count {
      let zone = try TestZone(
        owner: home.owner, signKey: home.signKey, trunk: .home, app: home.acl.fields.appTreeID, root: .random())
      let list = zone.acl
      try await store.write([.zone(zone.zone)]) { tx in
        let head = ZoneHead(zone: zone.zone, seq: 0, hash: zone.headHash, acl: list)
        var delta = ZoneDelta(
          target: .newZone(owner: zone.owner), head: head, commit: try home.commit([]), receivedMs: 5)
        delta.change(to: ZoneDelta.ListChange(acl: list, grants: []))
        _ = try tx.apply(CommitDelta(zones: [delta]))
      }
      zones.append(zone)
    }
    return zones
  }

  /// Appends an empty commit to a zone.
  private static func commit(
    to zone: TestZone, of account: TestAccount, in store: PostgresStore
  ) async throws
    -> ZoneStatus
  {
    let home = account.home
    return try await store.write([.zone(zone.zone)]) { tx in
      let row = try #require(try tx.zone(zone.zone))
      let head = ZoneHead(zone: zone.zone, seq: row.seq + 1, hash: .random(), acl: home.acl)
      let delta = ZoneDelta(target: .existing(row.key), head: head, commit: try home.commit([]), receivedMs: 9)
      return try #require(try tx.apply(CommitDelta(zones: [delta])).first)
    }
  }

  /// A transaction that has changed a zone and does not end.
  private static func pausedChange(of zone: TestZone, _ url: String) throws -> PostgresConnection {
    let connection = try PostgresConnection(url)
    try connection.run("BEGIN")
    try connection.run(
      "UPDATE zones SET seq = seq + 1, changed = pg_current_xact_id() WHERE root = $1", .id(zone.zone.root))
    return connection
  }

  /// Commits to each zone until the database is not available; returns the number of acknowledged commits of each. The
  /// commits of a writer that waits for a connection in the meantime do not fail: it stops once the database has crashed.
  private static func commit(
    to zones: some Collection<TestZone> & Sendable, of account: TestAccount, in store: PostgresStore,
    until hasCrashed: @escaping @Sendable () -> Bool
  ) async throws -> [UInt64] {
    try await withThrowingTaskGroup(of: (Int, UInt64).self) { group in
      for (index, zone) in zones.enumerated() {
        group.addTask {
          var count: UInt64 = 0
          while !hasCrashed(), !Task.isCancelled {
            do { count = try await commit(to: zone, of: account, in: store).seq } catch let error as ServerError
              where error.retryable
            { break }
          }
          return (index, count)
        }
      }
      return try await group.reduce(into: Array(repeating: 0, count: zones.count)) { $0[$1.0] = $1.1 }
    }
  }

  /// Kills one of PostgreSQL's processes. It then ends the others, and recovers from its log.
  private static func crash(_ url: String, willCrash: () -> Void) throws {
    let connection = try PostgresConnection(url)
    let process = try #require(try connection.first("SELECT pg_backend_pid()") { $0.int(0) })
    willCrash()
    kill(pid_t(process), SIGKILL)
  }

  private static func untilAnswered<T>(_ body: () async throws -> T) async throws -> T {
    for _ in 0..<600 {
      do { return try await body() } catch { try await Task.sleep(for: .milliseconds(100)) }
    }
    return try await body()
  }

  /// Asks for changes until the writers are done, and once more; returns the newest number of each zone.
  private static func follow(
    _ user: UserID, in store: PostgresStore, until isDone: @Sendable () -> Bool
  ) async throws -> (seqs: [ZoneID: UInt64], position: FeedPosition) {
    var (seqs, position) = ([ZoneID: UInt64](), try await store.read { try $0.zones(of: user, since: nil).position })
    while true {
      try Task.checkCancellation()
      let isLast = isDone()
      let since = position
      let list = try await store.read { try $0.zones(of: user, since: since) }
      for status in list.own { seqs[status.zone] = max(seqs[status.zone] ?? 0, status.seq) }
      position = list.position
      if isLast { return (seqs, position) }
    }
  }
}
