import Synchronization
import Testing
import ZDCProtocol

@testable import ZDCServer
@testable import ZDCServerPostgres

/// Two servers over one database: what one of them does counts at the other.
@Suite(.timeLimit(.minutes(20)), .disabled(if: TestStores.haveNoFolder, "opens databases of its own, once"))
struct SharedServerTests {
  private typealias Member = TestServerPair.Member

  /// The stream's next event after the first one; nil: it has ended.
  private func stream(_ server: Member, _ token: [UInt8]) async throws -> EventSequence.Iterator {
    var events = try await server.events(token: token).makeAsyncIterator()
    _ = try await events.next()
    return events
  }

  // MARK: - A full disk

  /// - The database finds no room, then has some again
  /// => both servers refuse commits with 507 and answer reads; they stay in service, because a load balancer that takes out
  /// all of them refuses reads too; they accept commits again without a restart
  @Test func aFullDatabase_refusesCommitsAndAnswersReads() async throws {
    try await TestServerPair.run { pair in
      let (account, token) = try await pair.first.newAccount()
      var zone = account.home
      try Self.setFull(true, pair.url)
      let body = try zone.put([zone.record(.random())]).body
      for server in [pair.first, pair.second] {
        let refused = try await server.commit(body, token: token)
        #expect((refused.status, refused.error?.code, refused.error?.retryable) == (507, .storageFull, true))
        #expect(refused.headers["retry-after"] == "10")
        let ready = try await server.send(.GET, Routes.ready)
        #expect((ready.status, ready.text) == (200, "full\n"))
        _ = try await server.page(zone.zone, token: token).expect(200)
      }
      try Self.setFull(false, pair.url)
      for server in [pair.first, pair.second] {
        try await eventually { try await server.send(.GET, Routes.ready).text == "ok\n" }
        try await server.put([zone.record(.random())], in: &zone, token: token)
      }
    }
  }

  /// Makes PostgreSQL refuse rows of two tables, as it does when it cannot extend a file.
  private static func setFull(_ isFull: Bool, _ url: String) throws {
    let database = try PostgresConnection(url)
    guard isFull else {
      try database.run("DROP FUNCTION refuse CASCADE")
      return
    }
    try database.run(
      """
      CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$
      """)
    for table in ["commits", "room"] {
      try database.run("CREATE TRIGGER full_disk BEFORE INSERT ON \(table) EXECUTE FUNCTION refuse()")
    }
  }

  // MARK: - Versions

  /// - A newer version starts beside a server, and adds to the tables
  /// => the server continues to read and write; one of its version that starts later is refused
  @Test func aNewerVersionThatStarts_disturbsNoServer() async throws {
    try await TestServerPair.run { pair in
      let (account, token) = try await pair.first.newAccount()
      var zone = account.home
      let newer = try PostgresConnection(pair.url)
      newer.enqueue("ALTER TABLE users ADD of_a_newer_version int8")
      newer.enqueue("ALTER TABLE zones ADD of_a_newer_version int8")
      try newer.run("UPDATE schema_version SET version = version + 1")
      for server in [pair.first, pair.second] {
        try await server.put([zone.record(.random())], in: &zone, token: token)
      }
      _ = try await pair.second.newAccount()
      let refused = #expect(throws: PostgresOpenError.self) {
        try PostgresStore(url: pair.url, connections: 1, isShared: true)
      }
      #expect(refused?.reason == .newer)
    }
  }

  // MARK: - Limits

  /// - A user may look up two handles at once
  /// => one at each of two servers; two at the server that is left when the other one has stopped
  @Test("two servers allow as many calls as one") func limitsAreSharedByAllServers() async throws {
    try await TestServerPair.run {
      $0.bounds.lookupsPerMinute = 1
    } _: { pair in
      let tokens = (try await pair.first.newAccount().token, try await pair.first.newAccount().token)
      try await eventually { [pair.first, pair.second].allSatisfy { $0.coordination.processes == 2 } }
      func look(_ server: Member, _ token: [UInt8]) async throws -> Int {
        try await server.send(.GET, Routes.path(Routes.handles, "alice"), token: token).status
      }
      for server in [pair.first, pair.second] {
        #expect(try await look(server, tokens.0) == 200)
        #expect(try await look(server, tokens.0) == 429)
      }
      try await pair.second.server.stop()
      try await eventually { pair.first.coordination.processes == 1 }
      for status in [200, 200, 429] { #expect(try await look(pair.first, tokens.1) == status) }
    }
  }

  // MARK: - Announcements

  /// - A device commits at one server, then at the other
  /// => a stream of each server gets both commits, in order and with their pages
  @Test func aCommitReachesTheStreamsOfBothServers() async throws {
    try await TestServerPair.run { pair in
      let (account, token) = try await pair.first.newAccount()
      var zone = account.home
      var streams = [try await stream(pair.first, token), try await stream(pair.second, token)]
      for server in [pair.first, pair.second, pair.second, pair.first] {
        try await server.put([zone.record(.random())], in: &zone, token: token)
      }
      for index in streams.indices {
        for seq in UInt64(1)...4 {
          let event = try #require(try await streams[index].next()?.decode(HeadEvent.self))
          #expect(event.status.seq == seq && event.page != nil)
        }
      }
    }
  }

  /// - A session ends at one server
  /// => its stream at the other server ends, and the other server refuses it
  @Test func aSessionThatEnds_endsAtBothServers() async throws {
    try await TestServerPair.run { pair in
      let (_, token) = try await pair.first.newAccount()
      _ = try await pair.second.send(.GET, Routes.zones, token: token).expect(200)
      var events = try await stream(pair.second, token)
      _ = try await pair.first.send(.DELETE, Routes.session, token: token).expect(204)
      #expect(try await events.next() == nil)
      #expect(try await pair.second.send(.GET, Routes.zones, token: token).status == 401)
    }
  }

  /// - PostgreSQL has crashed, which empties the feed
  /// => the streams of all servers end, so that their clients read the whole list
  @Test func afterACrashOfTheDatabase_allStreamsEnd() async throws {
    try await TestServerPair.run { pair in
      let (_, token) = try await pair.first.newAccount()
      var streams = [try await stream(pair.first, token), try await stream(pair.second, token)]
      let database = try PostgresConnection(pair.url)
      try database.run("DELETE FROM era")
      try PostgresSchema.beginEra(database)
      for index in streams.indices { #expect(try await streams[index].next() == nil) }
      try await eventually { pair.first.coordination.isCurrent && pair.second.coordination.isCurrent }
      var next = try await stream(pair.second, token)
      _ = try await pair.first.send(.DELETE, Routes.session, token: token).expect(204)
      #expect(try await next.next() == nil)
    }
  }

  /// - A transaction appends an entry and stays open, while 64 others append theirs and end
  /// => a reader gets each of these, and the first one when its transaction ends; all of them once
  @Test func aReaderGetsEachEntryOnce() async throws {
    try await TestServerPair.run { pair in
      let received = Mutex<[UserID]>([])
      let database = try PostgresConnection(pair.url)
      let feed = try AnnouncementFeed(database, connect: pair.first.store.connect)
      feed.start { entry in
        if case .announcement(.message(let notice)) = entry { received.withLock { $0.append(notice.recipient) } }
      }
      let late = try PostgresConnection(pair.url)
      let last = UserID(8, 8, 8, 8)
      late.enqueue("BEGIN")
      try AnnouncementFeed.append(.announcement(.message(MessageNotice(recipient: last))), to: late)
      try late.flush()
      let users = (0..<64).map { UserID(7, 7, 7, $0) }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for user in users {
          group.addTask { [store = pair.second.store] in
            try await store.perform { db in
              db.enqueue("BEGIN")
              try AnnouncementFeed.append(.announcement(.message(MessageNotice(recipient: user))), to: db)
            }
          }
        }
        try await group.waitForAll()
      }
      try await eventually { received.withLock(\.count) == users.count }
      try late.run("COMMIT")
      try await eventually { received.withLock(\.last) == last }
      await feed.end()
      #expect(received.withLock { Set($0) } == Set(users + [last]))
      #expect(received.withLock(\.count) == users.count + 1)
    }
  }

  /// - More entries than a read takes are appended at the same time
  /// => the reader reports that it may have missed some, and continues at the end
  @Test func aReaderThatIsFarBehind_continuesAtTheEnd() async throws {
    try await TestServerPair.run { pair in
      let database = try PostgresConnection(pair.url)
      var reader = try FeedReader(atEndOf: database)
      func append(_ count: Int) throws {
        database.enqueue("BEGIN")
        for _ in 0..<count { try AnnouncementFeed.append(.announcement(.sessionsEnded([[1]])), to: database) }
        try database.run("COMMIT")
      }
      try append(FeedReader.mostEntries)
      #expect(try reader.next(database).count == FeedReader.mostEntries)
      try append(FeedReader.mostEntries + 1)
      let entries = try reader.next(database)
      guard case .announcement(.unknown)? = entries.first, entries.count == 1 else {
        Issue.record("\(entries.count) entries")
        return
      }
      #expect(try reader.next(database).isEmpty)
    }
  }

  /// - The removal of old entries fails
  /// => the entries that were read are returned all the same: no later read returns them
  @Test func aFailedRemovalLosesNoEntry() async throws {
    try await TestServerPair.run { pair in
      let (database, other) = (try PostgresConnection(pair.url), try PostgresConnection(pair.url))
      try database.run("SET lock_timeout = '50ms'")
      var reader = try FeedReader(atEndOf: database, kept: .seconds(-1))
      try AnnouncementFeed.append(.announcement(.sessionsEnded([[1]])), to: database)
      try database.flush()
      try other.run("BEGIN")
      try other.run("LOCK TABLE turns IN ACCESS EXCLUSIVE MODE")
      #expect(try reader.next(database).count == 1)
      #expect(throws: PostgresError.self) { try reader.prune(database) }
      try other.run("COMMIT")
      #expect(try reader.next(database).isEmpty)
    }
  }

  /// - A newer version of the server appends an entry that this one does not know
  /// => the reader reports that it may have missed something, and continues
  @Test func anEntryOfANewerVersion_doesNotStopTheReader() async throws {
    try await TestServerPair.run { pair in
      let database = try PostgresConnection(pair.url)
      var reader = try FeedReader(atEndOf: database)
      try database.run(
        "INSERT INTO feed(xid, entry) VALUES (pg_current_xact_id(), $1)", .bytes(Array(#"{"newer":{}}"#.utf8)))
      try AnnouncementFeed.append(.announcement(.sessionsEnded([[1]])), to: database)
      try database.flush()
      let entries = try reader.next(database)
      guard case .announcement(.unknown)? = entries.first, case .announcement(.sessionsEnded)? = entries.last else {
        Issue.record("\(entries)")
        return
      }
      #expect(entries.count == 2)
    }
  }

  // MARK: - Challenges and links

  /// => a challenge of one server is good at the other, and at both together once
  @Test func aChallengeIsUsedOnceAtBothServers() async throws {
    try await TestServerPair.run { pair in
      let (account, _) = try await pair.first.newAccount()
      let challenge = try await pair.first.challenge(account)
      let login = try account.login(challenge, origin: pair.second.origin, device: nil)
      _ = try await pair.second.sendJSON(.POST, Routes.login, login).expect(200)
      let again = try account.login(challenge, origin: pair.first.origin, device: nil)
      #expect(try await pair.first.sendJSON(.POST, Routes.login, again).status == 401)
    }
  }

  /// - 128 addresses have as many links as all may have, and a device of another address asks
  /// => the oldest of their links makes room; one of these addresses is refused
  @Test func manyAddressesKeepNoDeviceOut() async throws {
    try await TestServerPair.run { pair in
      let database = try PostgresConnection(pair.url)
      try database.run(
        """
        INSERT INTO device_links(id, key, expires_ms, party)
        SELECT decode(lpad(to_hex(n), 32, '0'), 'hex'), ''::bytea, 10000 + n, 'host ' || n / 8
        FROM generate_series(0, 1023) AS s(n)
        """)
      let (links, id) = (SharedLinks(database), DeviceLinkID.random())
      #expect(throws: ServerError.self) { try links.offer([1], as: .random(), from: "host 0", now: 1) }
      try links.offer([1], as: id, from: "other", now: 1)
      #expect(try links.link(id, now: 1) != nil)
      let left = try database.all("SELECT expires_ms FROM device_links WHERE party <> 'other' ORDER BY 1") { $0.int(0) }
      #expect(left == Array(10_001...11_023))
    }
  }

  /// - A new device waits at one server, and a device of the account answers at the other
  /// => the new device gets the answer
  @Test func aDeviceLinkIsAnsweredAtTheOtherServer() async throws {
    try await TestServerPair.run { pair in
      let (_, token) = try await pair.second.newAccount()
      let id = DeviceLinkID.random()
      let (nonce, sealed) = (DeviceLinkNonce.random(), randomBytes(2_000))
      let offer = DeviceLinkOffer(publicKey: randomBytes(IdentityLink.encPubBytes), nonce: nonce).bytes
      let (link, answer) = (Routes.path(Routes.deviceLink, id.text), Routes.path(Routes.deviceLinkAnswer, id.text))
      _ = try await pair.first.send(.PUT, link, body: offer).expect(204)
      #expect(try await pair.second.send(.GET, link, token: token).bytes == offer)
      #expect(try await pair.second.send(.PUT, link, body: randomBytes(offer.count)).status == 409)
      async let waiting = pair.first.send(.GET, answer)
      _ = try await pair.second.send(.PUT, answer, token: token, body: sealed).expect(204)
      #expect(try await waiting.bytes == sealed)
      #expect(try await pair.first.send(.PUT, answer, token: token, body: [2]).status == 409)
      let revealed = Routes.path(Routes.deviceLinkNonce, id.text)
      _ = try await pair.first.send(.PUT, revealed, body: nonce.bytes).expect(204)
      #expect(try await pair.second.send(.GET, revealed, token: token).bytes == nonce.bytes)
    }
  }

  /// - Four new devices wait at one server, longer than a moment, and are answered at the other
  /// => each gets its answer, and the server has asked the database twice for each, however long they wait
  @Test func devicesThatWaitAskTheDatabaseTwice() async throws {
    try await Self.withProxy { proxy, pair in
      let (_, token) = try await pair.second.newAccount()
      let ids = (0..<4).map { _ in DeviceLinkID.random() }
      let (key, nonce) = (randomBytes(IdentityLink.encPubBytes), DeviceLinkNonce.random())
      for id in ids {
        let offer = DeviceLinkOffer(publicKey: key, nonce: nonce).bytes
        _ = try await pair.second.send(.PUT, Routes.path(Routes.deviceLink, id.text), body: offer).expect(204)
      }
      let waiting = ids.map { id in
        Task { try await pair.first.send(.GET, Routes.path(Routes.deviceLinkAnswer, id.text)).expect(200).bytes }
      }
      let query = "SELECT key, answer, nonce"
      try await eventually { proxy.count(of: query) >= ids.count }
      try await Task.sleep(for: .seconds(2))
      #expect(proxy.count(of: query) == ids.count)
      for id in ids {
        let path = Routes.path(Routes.deviceLinkAnswer, id.text)
        for _ in 0..<2 { _ = try await pair.second.send(.PUT, path, token: token, body: id.bytes).expect(204) }
      }
      for (id, answer) in zip(ids, waiting) { #expect(try await answer.value == id.bytes) }
      #expect(proxy.count(of: query) == 2 * ids.count)
    }
  }

  /// Runs two servers, the first of which reaches the database by way of the proxy.
  private static func withProxy(_ body: (PostgresProxy, TestServerPair) async throws -> Void) async throws {
    let url = try TestPostgres.shared().newDatabase()
    try await PostgresProxy.with(url) { proxy in
      try await TestServerPair.run(url: url, way: proxy.url) { try await body(proxy, $0) }
    }
  }

  // MARK: - Turns and claims

  /// - B has lost three races at one server, and A sends a commit to the other
  /// => A's request waits until B has committed, and is answered with B's commit
  @Test func aRequestWaitsForATurnAtTheOtherServer() async throws {
    try await TestServerPair.run {
      $0.bounds.commitHoldMs = 60_000
    } _: { pair in
      let (account, a) = try await pair.first.newAccount()
      let b = try await pair.second.login(account, device: .random())
      var zone = account.home
      let stale = try zone.put([zone.record(.random())]).body
      try await pair.first.put([zone.record(.random())], in: &zone, token: a)
      for _ in 0..<ZoneQueue.losses { #expect(try await pair.second.commit(stale, token: b).status == 409) }
      try await eventually { pair.first.coordination.isBusy(zone.zone) }
      let mine = try zone.put([zone.record(.random())]).body
      let waiting = Task { [body = mine] in try await pair.first.commit(body, token: a) }
      try await pair.second.put([zone.record(.random())], in: &zone, token: b)
      let answer = try await waiting.value
      #expect(try answer.status == 409 && answer.outline() == "commit 2, record v1")
      try await pair.first.put([zone.record(.random())], in: &zone, token: a)
    }
  }

  /// => a part, an upload's removal and the upkeep are claimed at one server at a time, and a server that has ended has
  /// no claims
  @Test func claimsExcludeTheOtherServer_untilTheirServerEnds() async throws {
    try await TestServerPair.run { pair in
      let (first, second) = (pair.first.coordination, pair.second.coordination)
      let blob = BlobID.random()
      #expect(await first.claim(part: 1, of: blob))
      #expect(await !second.claim(part: 1, of: blob))
      #expect(await second.claim(part: 2, of: blob))
      #expect(await !second.claimRemoval(of: blob))
      await first.release(part: 1, of: blob)
      #expect(await !first.claimRemoval(of: blob))
      await second.release(part: 2, of: blob)
      #expect(await first.claimRemoval(of: blob))
      #expect(await !second.claim(part: 1, of: blob))
      #expect(await first.claimUpkeep())
      #expect(await !second.claimUpkeep())
      try await pair.first.server.stop()
      // PostgreSQL gives locks up a moment after their connection has ended.
      try await eventually { await second.claim(part: 1, of: blob) }
      try await eventually { await second.claimUpkeep() }
    }
  }

  // MARK: - Writes

  /// - Both servers get the same registration at the same moment, again and again
  /// => one succeeds, and the other reports that, or asks for a retry
  @Test func twoServersCreateOneAccountOnce() async throws {
    try await TestServerPair.run { pair in
      for _ in 0..<8 {
        let registration = try TestAccount().registration()
        async let one = pair.first.sendJSON(.POST, Routes.accounts, registration).status
        async let other = pair.second.sendJSON(.POST, Routes.accounts, registration).status
        let statuses = Set([try await one, try await other])
        #expect(statuses.contains(201) && statuses.isSubset(of: [200, 201, 409, 503]), "\(statuses)")
      }
    }
  }

  /// - Devices of one user commit to one zone at both servers, each with the head that it knows
  /// => every accepted commit is in the log once, in order
  @Test func twoServersKeepOneLog() async throws {
    try await TestServerPair.run { pair in
      let (account, token) = try await pair.first.newAccount()
      let start = account.home
      var accepted = 0
      var zone = start
      for round in 0..<10 {
        let bodies = try (0..<2).map { _ in try zone.put([zone.record(.random())]) }
        async let one = pair.first.commit(bodies[0].body, token: token).status
        async let other = pair.second.commit(bodies[1].body, token: token).status
        let statuses = [try await one, try await other]
        #expect(statuses.sorted() == [200, 409], "round \(round)")
        let winner = bodies[statuses[0] == 200 ? 0 : 1].commit
        zone.accepted(winner)
        accepted += 1
      }
      let zones = try await pair.second.zones(token: token).zones
      #expect(zones.first { $0.zone == zone.zone }?.seq == UInt64(accepted))
    }
  }

  /// - A server that keeps large content in its folder uses the database, and a second one starts
  /// => the second one is refused, whether it shares the database or not; it starts when the first one has ended
  @Test func aServerThatSharesNothing_excludesTheOthers() async throws {
    let url = try TestPostgres.shared().newDatabase()
    let alone = try PostgresStore(url: url, connections: 1)
    #expect(throws: PostgresOpenError.self) { try PostgresStore(url: url, connections: 1, isShared: true) }
    try await alone.close()
    let shared = try PostgresStore(url: url, connections: 1, isShared: true)
    #expect(throws: PostgresOpenError.self) { try PostgresStore(url: url, connections: 1) }
    try await shared.close()
    try TestPostgres.shared().remove(url)
  }

  private func eventually(_ condition: () async throws -> Bool) async throws {
    for _ in 0..<3_000 {
      if try await condition() { return }
      try await Task.sleep(for: .milliseconds(10))
    }
    Issue.record("the condition did not come true")
  }
}
