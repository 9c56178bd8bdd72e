import Foundation
import Testing
import ZDCProtocol
import ZDCServer
import ZDCServerSQLite

/// The share that one account or address can take of a server with other users. The table is in SECURITY.md.
@Suite(.timeLimit(.minutes(20))) struct LimitTests {
  // MARK: Bodies

  /// - One address, or twenty, hold as much of unfinished registrations as they can
  /// => one gets an eighth of the room, all together a quarter, and a signed-in user's commits are taken all the same
  @Test("S3: unfinished bodies of strangers leave room for the commits of users", arguments: [(1, 8), (20, 4)])
  func strangersLeaveRoomForUsers(addresses: Int, share: Int) async throws {
    try await TestServer.run {
      $0.bounds.bufferedBodyBytes = 1 << 20
      _ = $0.trustedProxies.add("127.0.0.1")
    } _: { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let port = server.server.port
      let piece = [UInt8](repeating: 0x20, count: 60_000)
      let sockets = try await RawConnection.onThread {
        try (0..<20).map { number in
          let client = "x-forwarded-for: 198.51.100.\(number % addresses)"
          let head = "POST \(Routes.accounts) HTTP/1.1\r\nHost: x\r\n\(client)\r\nContent-Length: 100000\r\n\r\n"
          let socket = try RawSocket(port: port)
          socket.transmit(Array(head.utf8) + piece)
          return socket
        }
      }
      // Each socket is either held or answered; then nothing more of them comes in.
      let room = (1 << 20) / share
      while server.server.bufferedBytes < room / piece.count * piece.count { await Task.yield() }
      for _ in 0..<20 { try await server.put([zone.record(.random())], in: &zone, token: token) }
      #expect(zone.seq == 20)
      #expect(server.server.bufferedBytes <= room)
      #expect(sockets.count == 20)
    }
  }

  @Test("S3: a closed server refuses a registration before it reads it")
  func closedServerReadsNoRegistration() async throws {
    try await TestServer.run {
      $0.registration = .closed
    } _: { (server: TestServer) async throws in
      let head = "POST \(Routes.accounts) HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 100000\r\n\r\n"
      let talk = try await RawConnection.exchange(port: server.server.port, head) { _ in nil }
      #expect((talk.status, talk.error?.code) == (403, .registrationClosed))
    }
  }

  @Test("S3: a registration has 128 KiB at most")
  func longRegistrationIsRefused() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let answer = try await server.send(.POST, Routes.accounts, body: [UInt8](repeating: 0x20, count: 140_000))
      #expect((answer.status, answer.error?.code) == (413, .limitExceeded))
    }
  }

  // MARK: Identity chains

  /// - An account appends links with as many claims as fit
  /// => the chain stays below 1 MiB, the refused link changes nothing, and the chain is still readable
  @Test("S2: a chain that reaches its limit is readable, and the next link is refused")
  func chainEndsAtItsLimit() async throws {
    try await TestServer.run {
      $0.bounds.accountWorkPerMinute = nil
    } _: { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var last = account.genesis
      var bytes = last.bytes.count
      var refusal: Answer?
      for _ in 0..<700 where refusal == nil {
        let link = try account.claims(2_000, after: last)
        let answer = try await server.sendJSON(
          .POST, Routes.links, AppendLinkRequest(link: WireBytes(link.bytes)), token: token)
        guard answer.status == 201 else {
          refusal = answer
          continue
        }
        last = link
        bytes += link.bytes.count
      }
      #expect(refusal?.error?.code == .refused && refusal?.error?.security == .limitExceeded)
      #expect(bytes <= 1 << 20 && bytes > (1 << 20) - 4_096)
      let chain = try await server.send(.GET, Routes.path(Routes.chain, account.userID.text), token: token)
      #expect(try chain.items().last == .link(last))
      let audit: AuditReport = try await server.send(.GET, Routes.audit, token: token).json()
      #expect(audit.sections[0].fields.contains { $0.value == last.hash.text })
    }
  }

  @Test("S2: a link with more than 2 KiB of claims is refused")
  func longClaimsAreRefused() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let link = try TestAccount.signed(
        account.claimFields(
          [IdentityLink.Claim(type: IdentityLink.Claim.handle, value: [UInt8](repeating: 0x61, count: 2_046))],
          after: account.genesis), root: account.rootKey, sign: account.signKey)
      let answer = try await server.sendJSON(
        .POST, Routes.links, AppendLinkRequest(link: WireBytes(link)), token: token)
      #expect((answer.status, answer.error?.security) == (422, .limitExceeded))
    }
  }

  /// - Two devices append different links to one chain at the same time, again and again
  /// => of each pair exactly one is taken: verification is outside of the store's writer, the comparison inside
  @Test("S2: links that race for one place are taken once")
  func racingLinksAreTakenOnce() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var last = account.genesis
      for _ in 0..<8 {
        let links = [try account.claims(100, after: last), try account.claims(200, after: last)]
        let statuses = try await withThrowingTaskGroup(of: (Int, Int).self) { group in
          for (index, link) in links.enumerated() {
            let request = AppendLinkRequest(link: WireBytes(link.bytes))
            group.addTask {
              (index, try await server.sendJSON(.POST, Routes.links, request, token: token).status)
            }
          }
          return try await group.reduce(into: [0, 0]) { $0[$1.0] = $1.1 }
        }
        #expect(statuses.sorted() == [201, 409])
        last = statuses[0] == 201 ? links[0] : links[1]
      }
      let chain = try await server.send(.GET, Routes.path(Routes.chain, account.userID.text), token: token)
      #expect(try chain.items().count == 9)
    }
  }

  @Test("S2, S4: calls that verify or read much are limited for each user")
  func expensiveCallsAreLimited() async throws {
    try await TestServer.run {
      $0.bounds.accountWorkPerMinute = 3
    } _: { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let (_, other) = try await server.newAccount()
      _ = try await server.send(.GET, Routes.audit, token: token).expect(200)
      _ = try await server.send(.GET, Routes.zones + "?offered=1", token: token).expect(200)
      let link = AppendLinkRequest(link: WireBytes(try account.claims(10, after: account.genesis).bytes))
      _ = try await server.sendJSON(.POST, Routes.links, link, token: token).expect(201)
      let refused = try await server.send(.GET, Routes.audit, token: token)
      #expect((refused.status, refused.error?.code) == (429, .tooManyRequests))
      #expect(try await server.send(.GET, Routes.audit, token: other).status == 200)
      server.clock.advance(ms: 20_001)
      #expect(try await server.send(.GET, Routes.audit, token: token).status == 200)
    }
  }

  @Test("S10: event streams of one user are counted") func streamsAreCounted() async throws {
    try await TestServer.run({ $0.bounds.eventStreamsPerUser = 2 }) { (server: TestServer) async throws in
      let (_, token) = try await server.newAccount()
      let (_, other) = try await server.newAccount()
      let open = [try await server.events(token: token), try await server.events(token: token)]
      #expect(try await server.send(.GET, Routes.events, token: token).error?.code == .tooManyRequests)
      let others = try await server.events(token: other)
      withExtendedLifetime((open, others)) {}
    }
  }

  // MARK: Stored bytes

  /// - All records are removed behind the server's back
  /// => the audit reports the counts that were kept with each commit: it reads none of them
  @Test("S4: an audit reads no rows of records, nodes and contents", .needsFolder)
  func auditReadsCounts() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let folder = try await server.branch(10, in: &zone, token: token)
      let content = TestZone.Content()
      try await server.put(
        [zone.record(.random(), content: content.field())], contents: [content], in: &zone, token: token)
      try await server.put([zone.record(folder.fields.node, tag: .random())], in: &zone, token: token)
      try await server.delete(folder.fields.node, descendants: 10, in: &zone, token: token)
      try TestServer.sql("DELETE FROM records; DELETE FROM nodes;", in: server.folder)
      let report: AuditReport = try await server.send(.GET, Routes.audit, token: token).json()
      let stored = Dictionary(uniqueKeysWithValues: report.sections[5].fields.map { ($0.name, $0.value) })
      #expect(stored["live nodes (id, parent id, tag of the name, key generations)"] == "5")
      #expect(stored["sealed records"] == "17")
      #expect(stored["sealed contents"] == "1")
      #expect(stored["signed commits"] == "9")
    }
  }

  @Test("S4, S8: the counts are those of the rows, also after retention", .needsFolder)
  func countsAgreeWithTheRows() async throws {
    let folder = TestServer.newFolder()
    defer { TestServer.remove(folder) }
    try await TestServer.run(in: folder) { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let parent = try await server.branch(10, in: &zone, token: token)
      try await server.put([zone.record(parent.fields.node, tag: .random())], in: &zone, token: token)
      try await server.delete(parent.fields.node, descendants: 10, in: &zone, token: token)
      server.clock.advance(ms: 31 * 24 * 3_600_000)
      try await server.server.collect()
      let again = try await server.login(account)
      let report: AuditReport = try await server.send(.GET, Routes.audit, token: again).json()
      #expect(report.sections[5].fields.first { $0.name == "sealed records" }?.value == "4")
    }
    #expect(try DataFolder.check(path: folder).findings == [])
  }

  /// - The wall clock jumps ahead by 40 days while a replaced record is kept
  /// => nothing is collected; a day later it is
  @Test("S16: a server whose clock jumps ahead keeps what it has for a day")
  func jumpAheadKeepsRecords() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let record = zone.record(.random())
      try await server.put([record], in: &zone, token: token)
      try await server.put([zone.record(record.fields.node, tag: .random())], in: &zone, token: token)
      func stored() async throws -> UInt64 {
        try await server.store.read { try $0.usage(of: account.userID).records }
      }
      let before = try await stored()
      server.clock.jump(ms: 40 * 24 * 3_600_000)
      try await server.server.collect()
      #expect(try await stored() == before)
      server.clock.advance(ms: 24 * 3_600_000)
      try await server.server.collect()
      #expect(try await stored() == before - 1)
    }
  }

  @Test("S8: an account has 64 apps at most")
  func treesAreCounted() async throws {
    try await TestServer.run {
      $0.bounds.treesPerUser = 3
    } _: { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      func create(_ app: String) async throws -> Answer {
        let bundle = try Trunk.allCases.flatMap { trunk in
          try TestZone(owner: account.userID, signKey: account.signKey, trunk: trunk, app: app).birth
        }
        return try await server.send(.PUT, Routes.path(Routes.tree, app), token: token, body: bundle)
      }
      #expect(try await create("org.example.second").status == 201)
      #expect(try await create("org.example.third").status == 201)
      let refused = try await create("org.example.fourth")
      #expect((refused.status, refused.error?.code) == (413, .limitExceeded))
    }
  }

  /// - An account without any content puts records of 32 KiB again and again
  /// => it ends in `quotaExceeded`; a delete is still taken
  @Test("S8: records, commits and lists are counted")
  func recordsAreCounted() async throws {
    try await TestServer.run({
      $0.bounds.quotaBytes = 1 << 20
      $0.bounds.recordQuotaBytes = 2 << 20
    }) { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let doomed = zone.record(.random())
      try await server.put([doomed], in: &zone, token: token)
      var refused: Answer?
      for _ in 0..<12 where refused == nil {
        let records = (0..<8).map { _ in zone.record(.random()) { $0.sealedPrivate = randomBytes(32_000) } }
        let (commit, body) = try zone.put(records)
        let answer = try await server.commit(body, token: token)
        if answer.status == 200 { zone.accepted(commit, records: records) } else { refused = answer }
      }
      #expect(refused?.error?.code == .quotaExceeded)
      #expect(refused?.error?.quota?.limit == 2 << 20)
      try await server.delete(doomed.fields.node, in: &zone, token: token)
    }
  }
}

extension TestAccount {
  /// A link with claims of trees that take about that many bytes.
  func claims(_ count: Int, after last: IdentityLink) throws -> IdentityLink {
    let value = [UInt8](repeating: UInt8(truncatingIfNeeded: count), count: 160)
    let claim = IdentityLink.Claim(type: IdentityLink.Claim.tree, value: value)
    return try claims(Array(repeating: claim, count: max(count / 163, 1)), after: last)
  }

  func claims(_ claims: [IdentityLink.Claim], after last: IdentityLink) throws -> IdentityLink {
    try Self.sign(claimFields(claims, after: last), root: rootKey, sign: signKey)
  }

  fileprivate func claimFields(_ claims: [IdentityLink.Claim], after last: IdentityLink) -> IdentityLink.Fields {
    var fields = IdentityLink.Fields(
      kind: .claims, timeMs: 3, rootPub: rootKey.publicBytes, signPub: signKey.publicBytes, encPub: genesis.encPub)
    fields.seq = last.seq + 1
    fields.prev = last.hash
    fields.userID = userID
    fields.keyringHash = genesis.keyringHash
    fields.claims = claims
    return fields
  }

  /// The link that puts a new root key in place.
  func rootRotation(to newRoot: SigningKey) throws -> IdentityLink {
    var fields = IdentityLink.Fields(
      kind: .rotateRoot, timeMs: 2, rootPub: newRoot.publicBytes, signPub: signKey.publicBytes,
      encPub: genesis.encPub)
    fields.seq = 1
    fields.prev = genesis.hash
    fields.userID = userID
    fields.keyringHash = genesis.keyringHash
    return try Self.sign(fields, root: rootKey, newRoot: newRoot, sign: signKey)
  }
}
