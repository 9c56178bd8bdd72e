import Synchronization
import Testing
import ZDCProtocol

@testable import ZDCServer
@testable import ZDCServerPostgres

/// Content that several writes of different subjects concern at the same moment. Another connection stands for the
/// other write, or for another process.
@Suite(.disabled(if: TestStores.haveNoFolder, "opens databases of its own, once")) struct PostgresContentTests {
  private final class Other: Sendable {
    private let db: Mutex<PostgresConnection>

    init(_ url: String) throws { db = Mutex(try PostgresConnection(url)) }

    func run(_ sql: String, blob: BlobRow? = nil) throws {
      _ = try db.withLock { db in
        if let blob { try db.run(sql, .int(blob.key)) } else { try db.run(sql) }
      }
    }
  }

  private struct Fixture: Sendable {
    let store: PostgresStore
    /// The other write.
    let other: Other
    let account: TestAccount
    let zone: ZoneKey

    /// Stores content that a node of the home had until `replacedMs`.
    func kept(replacedMs: UInt64? = 1) async throws -> BlobRow {
      var row = BlobRow(
        id: .random(), zone: zone, node: .random(), cipherLength: 70_000, state: .attached, isInline: false,
        owner: nil, contentRoot: .random(), touchedMs: 1, replacedMs: replacedMs)
      row.key = try await store.write([.upload(row.id)]) { [row] in try $0.insertTicket(row) }
      return row
    }

    func ticket(_ id: BlobID = .random(), touchedMs: UInt64 = 1) async throws -> BlobRow {
      var row = BlobRow(
        id: id, zone: zone, node: .random(), cipherLength: 70_000, state: .receiving, isInline: false,
        owner: account.userID, contentRoot: nil, touchedMs: touchedMs)
      row.key = try await store.write([.upload(id)]) { [row] in try $0.insertTicket(row) }
      return row
    }

    func exists(_ row: BlobRow) async throws -> Bool { try await store.read { try !$0.blobs([row.key]).isEmpty } }

    /// Returns when a statement of the store waits for a lock of the other connection.
    func waitForWaiter() async throws {
      let watcher = try PostgresConnection(url)
      let query = """
        SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' LIMIT 1
        """
      while try watcher.first(query, row: { _ in true }) == nil { await Task.yield() }
    }

    let url: String
  }

  private func withFixture(_ body: (Fixture) async throws -> Void) async throws {
    let server = try TestPostgres.shared()
    let url = try server.newDatabase()
    let store = try PostgresStore(url: url, connections: 3)
    let result: Result<Void, any Error>
    do {
      let account = try TestAccount()
      let zone = try await store.write([.account(account.userID)]) { tx in
        let registration = try Accounts.Registration(account.registration())
        _ = try Accounts.register(registration, mode: .open, invites: [], now: 1, in: tx)
        return try #require(try tx.zone(account.home.zone)).key
      }
      let other = try Other(url)
      result = .success(
        try await body(Fixture(store: store, other: other, account: account, zone: zone, url: url)))
    } catch { result = .failure(error) }
    try await store.close()
    try server.remove(url)
    try result.get()
  }

  // MARK: - Collection

  /// - While old content is collected, a commit attaches it again
  /// => it stays, and its file is not named as one to remove
  @Test func contentThatIsAttachedAgain_isNotCollected() async throws {
    try await withFixture { fixture in
      let row = try await fixture.kept()
      try fixture.other.run("BEGIN")
      try fixture.other.run("UPDATE blobs SET replaced_ms = NULL WHERE id = $1", blob: row)
      async let collected = fixture.store.write([.upkeep]) {
        try $0.collect(replacedBefore: 10, abandonedBefore: 10, limit: 100)
      }
      try await fixture.waitForWaiter()
      try fixture.other.run("COMMIT")
      #expect(try await collected.files == [])
      #expect(try await fixture.exists(row))
    }
  }

  /// - While an upload is collected because of its age, a part of it arrives
  /// => it stays
  @Test func anUploadThatContinues_isNotCollected() async throws {
    try await withFixture { fixture in
      let row = try await fixture.ticket()
      try fixture.other.run("BEGIN")
      try fixture.other.run("UPDATE blobs SET touched_ms = 20 WHERE id = $1", blob: row)
      async let collected = fixture.store.write([.upkeep]) {
        try $0.collect(replacedBefore: 10, abandonedBefore: 10, limit: 100)
      }
      try await fixture.waitForWaiter()
      try fixture.other.run("COMMIT")
      #expect(try await collected.files == [])
      #expect(try await fixture.exists(row))
    }
  }

  // MARK: - Writes that found content

  /// - A ticket needs the room of retained content, which a commit attaches again
  /// => it stays
  @Test func contentThatIsAttachedAgain_makesNoRoom() async throws {
    try await withFixture { fixture in
      let row = try await fixture.kept()
      try await fixture.store.write([.upload(.random())]) { tx in
        try fixture.other.run("UPDATE blobs SET replaced_ms = NULL WHERE id = $1", blob: row)
        try tx.removeBlobs([row])
      }
      #expect(try await fixture.exists(row))
    }
  }

  /// - A commit finds content that its node had before, or the content of another node; then that is collected
  /// => the commit is refused: it would name content that is lost
  @Test(arguments: [true, false]) func contentThatIsCollected_isNotAttached(asReference: Bool) async throws {
    try await withFixture { fixture in
      let row = try await fixture.kept()
      let error = await #expect(throws: ServerError.self) {
        try await fixture.store.write([.zone(fixture.account.home.zone)]) { tx in
          let keeper = ContentKeeper(store: try PostgresStore.own(tx), zone: fixture.zone, now: 9)
          try fixture.other.run("DELETE FROM blobs WHERE id = $1", blob: row)
          guard asReference else { return try keeper.attach([row], replacedMs: nil) }
          let new = row.reference(for: .random(), in: fixture.zone, now: 9, replacedMs: nil)
          _ = try keeper.insertReferences([(row.key, new)])
        }
      }
      #expect(error?.code == .blobGone)
    }
  }

  /// - A commit has found the content of another node, and has not ended
  /// => that content is not deleted before the commit's own row can be seen
  @Test func contentOfAnotherNode_staysUntilTheCommitHasEnded() async throws {
    try await withFixture { fixture in
      let row = try await fixture.kept(replacedMs: nil)
      try fixture.other.run("SET lock_timeout = '50ms'")
      let refusal = try await fixture.store.write([.zone(fixture.account.home.zone)]) { tx -> String? in
        let keeper = ContentKeeper(store: try PostgresStore.own(tx), zone: fixture.zone, now: 9)
        let new = row.reference(for: .random(), in: fixture.zone, now: 9, replacedMs: nil)
        _ = try keeper.insertReferences([(row.key, new)])
        do { try fixture.other.run("DELETE FROM blobs WHERE id = $1", blob: row) } catch let error as PostgresError {
          return error.state
        }
        return nil
      }
      #expect(refusal == "55P03")
      try fixture.other.run("DELETE FROM blobs WHERE id = $1", blob: row)
      #expect(try await fixture.store.read { try $0.file(row.id) } != nil)
    }
  }

  /// - Two processes issue a ticket with the same ID, neither of which has seen the other's
  /// => the second one fails as retryable, and finds the first one's when it is repeated
  @Test func anIDHasOneTicket() async throws {
    try await withFixture { fixture in
      let row = try await fixture.ticket()
      let error = await #expect(throws: ServerError.self) { _ = try await fixture.ticket(row.id) }
      #expect(error?.retryable == true && error?.status == 503)
      #expect(try await fixture.store.read { try $0.file(row.id)?.key } == row.key)
    }
  }

  /// - A database of the version before has two tickets with one ID
  /// => the one that was used stays
  @Test func aSecondTicketIsRemovedWithTheUpdate() async throws {
    try await withFixture { fixture in
      let row = try await fixture.ticket()
      try await fixture.store.close()
      let db = try PostgresConnection(fixture.url)
      try db.run("DROP INDEX uploads_by_id")
      try db.run("ALTER TABLE device_links DROP COLUMN nonce")
      try db.run("UPDATE schema_version SET version = 4")
      try db.run(
        """
        INSERT INTO blobs(blob_id, zone, node, length, state, owner, touched_ms)
        SELECT blob_id, zone, node, length, state, owner, touched_ms FROM blobs
        """)
      let again = try PostgresStore(url: fixture.url, connections: 1)
      try await again.close()
      #expect(try db.all("SELECT id FROM blobs") { $0.int(0) } == [row.key])
    }
  }
}
