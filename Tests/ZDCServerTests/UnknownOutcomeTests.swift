import Testing
import ZDCProtocol

@testable import ZDCServer

/// The connection to PostgreSQL breaks at a COMMIT, so the server cannot know whether the database has committed. The client
/// sends the same request again, to another server.
@Suite(.timeLimit(.minutes(20)), .disabled(if: TestStores.haveNoFolder, "opens databases of its own, once"))
struct UnknownOutcomeTests {
  private typealias Member = TestServerPair.Member

  private struct Service {
    let pair: TestServerPair
    let proxy: PostgresProxy
    let fault: PostgresProxy.Fault

    /// Sends a request to the server whose connection breaks, and then again to the other one.
    func sendTwice(_ request: (Member) async throws -> Answer) async throws -> Answer {
      proxy.breakNextWrite(fault)
      let lost = try await request(pair.first)
      #expect(proxy.hasBroken)
      #expect((lost.status, lost.error?.code, lost.error?.retryable) == (503, .shuttingDown, true))
      #expect(lost.headers["retry-after"] == "2")
      return try await request(pair.second)
    }
  }

  private func withService(
    _ fault: PostgresProxy.Fault, _ change: (inout Configuration) -> Void = { _ in },
    _ body: (Service) async throws -> Void
  ) async throws {
    let url = try TestPostgres.shared().newDatabase()
    try await PostgresProxy.with(url) { proxy in
      try await TestServerPair.run(change, url: url, way: proxy.url) { pair in
        try await body(Service(pair: pair, proxy: proxy, fault: fault))
      }
    }
  }

  /// => the commit is in the log once, each server's streams get it once, and the server whose connection broke continues
  @Test(arguments: PostgresProxy.Fault.allCases)
  func aCommitIsInTheLogOnce(_ fault: PostgresProxy.Fault) async throws {
    try await withService(fault) { service in
      let (first, second) = (service.pair.first, service.pair.second)
      let (account, token) = try await first.newAccount()
      var zone = account.home
      var streams: [EventSequence.Iterator] = []
      for server in [first, second] {
        var events = try await server.events(token: token).makeAsyncIterator()
        _ = try await events.next()
        streams.append(events)
      }
      let record = zone.record(.random())
      let (commit, body) = try zone.put([record])
      let answer = try await service.sendTwice { try await $0.commit(body, token: token) }
      #expect(try answer.json(CommitResponse.self).zones.map(\.seq) == [1])
      zone.accepted(commit, records: [record])
      try await first.put([zone.record(.random())], in: &zone, token: token)
      let page = try await second.page(zone.zone, token: token)
      let commits = try page.outline().split(separator: ", ").filter { $0.hasPrefix("commit") }
      #expect(commits == ["commit 0", "commit 1", "commit 2"])
      for index in streams.indices {
        for seq in UInt64(1)...2 {
          #expect(try await streams[index].next()?.decode(HeadEvent.self).status.seq == seq)
        }
      }
    }
  }

  /// - The server has the database alone
  /// => its streams get the commit whose outcome it did not learn, before the next one
  @Test func aCommitIsAnnouncedByASingleServer() async throws {
    let (folder, url) = (TestServer.newFolder(), try TestPostgres.shared().newDatabase())
    defer { TestServer.remove(folder) }
    try await PostgresProxy.with(url) { proxy in
      let server = try await ServerProcess.serve(folder: folder, ["--database", proxy.url])
      let (account, token) = try await server.newAccount()
      var zone = account.home
      var events = try await server.events(token: token).makeAsyncIterator()
      _ = try await events.next()
      let record = zone.record(.random())
      let (commit, body) = try zone.put([record])
      proxy.breakNextWrite(.afterCommit)
      #expect(try await server.commit(body, token: token).status == 503)
      _ = try await server.commit(body, token: token).expect(200)
      zone.accepted(commit, records: [record])
      try await server.put([zone.record(.random())], in: &zone, token: token)
      for seq in UInt64(1)...2 {
        #expect(try await events.next()?.decode(HeadEvent.self).status.seq == seq)
      }
      #expect(await server.stop() == 0)
    }
    try TestPostgres.shared().remove(url)
  }

  /// => the account exists, and its invite cannot be used for another one
  @Test(arguments: PostgresProxy.Fault.allCases)
  func aRegistrationUsesOneInvite(_ fault: PostgresProxy.Fault) async throws {
    try await withService(fault) {
      ($0.registration, $0.invites) = (.invite, ["code"])
    } _: { service in
      let account = try TestAccount()
      let registration = account.registration(invite: "code")
      let answer = try await service.sendTwice { try await $0.sendJSON(.POST, Routes.accounts, registration) }
      #expect(answer.status == (fault == .afterCommit ? 200 : 201))
      _ = try await service.pair.first.login(account)
      let other = try TestAccount().registration(invite: "code")
      let refused = try await service.pair.first.sendJSON(.POST, Routes.accounts, other)
      #expect(refused.error?.code == .inviteRequired)
    }
  }

  /// => the ticket, the part and the end of an upload can be repeated, and the content is whole
  @Test(arguments: PostgresProxy.Fault.allCases)
  func anUploadContinues(_ fault: PostgresProxy.Fault) async throws {
    try await withService(fault) { service in
      let (account, token) = try await service.pair.first.newAccount()
      var zone = account.home
      let (large, node) = (BlobTests.Large(70_000), NodeID.random())
      let home = zone
      _ = try await service.sendTwice { try await $0.ticket(large, node, home, token: token) }.expect(201)
      _ = try await service.sendTwice { try await $0.part(0, of: large, token: token) }.expect(204)
      _ = try await service.sendTwice { try await $0.complete(large, token: token) }.expect(200)
      try await service.pair.first.put([zone.record(node, content: large.field)], in: &zone, token: token)
      let content = try await service.pair.second.content(large.blob, of: node, in: zone, token: token)
      #expect(content.bytes == large.bytes)
    }
  }

  /// => a challenge is used up, whatever became of its session; the next one opens another session
  @Test(arguments: PostgresProxy.Fault.allCases)
  func aLoginNeedsANewChallenge(_ fault: PostgresProxy.Fault) async throws {
    try await withService(fault) { service in
      let (account, _) = try await service.pair.first.newAccount()
      let challenge = try await service.pair.first.challenge(account)
      let request = try account.login(challenge, origin: service.pair.first.origin, device: nil)
      service.proxy.breakNextWrite(fault)
      #expect(try await service.pair.first.sendJSON(.POST, Routes.login, request).status == 503)
      #expect(try await service.pair.first.sendJSON(.POST, Routes.login, request).status == 401)
      _ = try await service.pair.first.login(account)
    }
  }

  /// => the message waits in the inbox once
  @Test(arguments: PostgresProxy.Fault.allCases)
  func aMessageIsDeliveredOnce(_ fault: PostgresProxy.Fault) async throws {
    try await withService(fault) { service in
      let (_, sender) = try await service.pair.first.newAccount()
      let (recipient, token) = try await service.pair.second.newAccount()
      let inbox = try #require(recipient.zones[.inbox]).zone.tree
      let envelope = MessageEnvelope(
        id: .random(), recipient: recipient.userID, inbox: inbox, recipientEncGen: 1, sealed: randomBytes(1_200))
      let answer = try await service.sendTwice { server in
        try await server.deliver(raw: [envelope], from: sender)
      }
      #expect(try answer.json(DeliveryResponse.self).results == [.delivered])
      #expect(try await service.pair.first.inbox(inbox, token: token).messages.map(\.messageID) == [envelope.id])
    }
  }
}
