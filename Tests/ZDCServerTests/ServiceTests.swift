import AsyncHTTPClient
import NIOCore
import Testing
import ZDCProtocol
import ZDCServer
import ZDCServerSQLite

@Suite struct ServiceTests {
  @Test func aRestartKeepsEverything() async throws {
    let folder = TestServer.newFolder()
    defer { TestServer.remove(folder) }
    let account = try TestAccount()
    let zone = try await TestServer.run(in: folder) { (server: TestServer) async throws in
      _ = try await server.sendJSON(.POST, Routes.accounts, account.registration()).expect(201)
      let token = try await server.login(account)
      var zone = account.home
      let content = TestZone.Content()
      let record = zone.record(.random(), content: content.field())
      try await server.put([record], contents: [content], in: &zone, token: token)
      return zone
    }
    try await TestServer.run(in: folder) { (server: TestServer) async throws in
      let token = try await server.login(account)
      let page = try await server.page(zone.zone, token: token)
      #expect(page.headers[WireHeaders.zoneHead] == "1:\(zone.headHash.text)")
      #expect(try page.outline() == "acl, grant, commit 0, commit 1, record v1, record v1")
    }
  }

  @Test func aSessionOutlivesTheServer() async throws {
    let folder = TestServer.newFolder()
    defer { TestServer.remove(folder) }
    let token = try await TestServer.run(in: folder) { try await $0.newAccount().token }
    try await TestServer.run(in: folder) { (server: TestServer) async throws in
      #expect(try await server.send(.GET, Routes.zones, token: token).status == 200)
    }
  }

  @Test(.needsFolder) func twoServersDoNotShareAFolder() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      #expect {
        try DataFolder(path: server.folder)
      } throws: { error in
        if case .inUse? = (error as? StoreOpenError)?.reason { true } else { false }
      }
    }
  }

  @Test func zonesAfterTheCursorAreListed() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let before: ZoneList = try await server.send(.GET, Routes.zones, token: token).json()
      #expect(before.zones.count == 4)
      try await server.put([zone.record(.random())], in: &zone, token: token)
      func list(since position: FeedPosition?) async throws -> ZoneList {
        let text = try #require(position).text
        return try await server.send(.GET, Routes.zones + "?since=\(text)", token: token).json()
      }
      let after = try await list(since: before.feedPosition)
      #expect(after.zones.map(\.zone) == [zone.zone])
      #expect(try await list(since: after.feedPosition).zones.isEmpty)
      #expect(try await list(since: FeedPosition("x")).zones.count == 4)
    }
  }

  @Test func anEventStreamReportsEveryHead_withItsPage() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let (other, otherToken) = try await server.newAccount()
      var zone = account.home
      var foreign = other.home
      let stream = try await server.events(token: token)
      var events = stream.makeAsyncIterator()
      let first = try await events.next()
      #expect(first?.name == "zones")
      #expect(try first?.decode(ZoneList.self).zones.count == 4)
      let position = try #require(first?.id)
      #expect(try await server.zones("?since=\(position)", token: token).zones.isEmpty)
      let small = zone.record(.random())
      // Another user's commit is not announced. The own one comes with its page, a large one without.
      try await server.put([foreign.record(.random())], in: &foreign, token: otherToken)
      try await server.put([small], in: &zone, token: token)
      try await server.put((0..<200).map { _ in zone.record(.random()) }, in: &zone, token: token)
      let second = try await events.next()
      let head = try #require(try second?.decode(HeadEvent.self))
      #expect((second?.name, second?.id) == ("head", ""))
      #expect((head.status.zone, head.status.seq) == (zone.zone, 1))
      var page = Bundle.Reader(try #require(head.page).bytes)
      #expect(try page.all().last == .record(recordReceivedMs: server.clock.nowMs, dataReceivedMs: 0, small))
      let third = try await events.next()
      let large = try #require(try third?.decode(HeadEvent.self))
      #expect((large.status.seq, large.page) == (2, nil))
    }
  }

  @Test func stoppingEndsEventStreams() async throws {
    let ended = try await TestServer.run { (server: TestServer) async throws in
      let (_, token) = try await server.newAccount()
      let stream = try await server.events(token: token)
      var events = stream.makeAsyncIterator()
      _ = try await events.next()
      return stream
    }
    var rest = ended.makeAsyncIterator()
    #expect(try await rest.next() == nil)
  }

  @Test func readyDiffersFromHealthy_andMetricsCount() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      #expect(try await server.send(.GET, Routes.health).text == "ok\n")
      #expect(try await server.send(.GET, Routes.ready).status == 200)
      let info: ServerInfo = try await server.send(.GET, Routes.info).json()
      #expect((info.protocols, info.registration) == ([1], "open"))
      let (account, token) = try await server.newAccount()
      var zone = account.home
      try await server.put([zone.record(.random())], in: &zone, token: token)
      let text = try await server.send(.GET, Routes.metrics).text
      #expect(text.contains("zdc_requests_total{route=\"/v1/commits\",method=\"POST\",status=\"200\"} 1\n"))
      #expect(text.contains("zdc_commits_total 1\n"))
      #expect(text.contains("# TYPE zdc_event_streams gauge\nzdc_event_streams 0\n"))
      #expect(!text.contains(account.userID.text))
    }
  }

  @Test func unknownPathsAndMethodsAreDistinguished() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      #expect(try await server.send(.GET, "/v2/nothing").error?.code == .notFound)
      let answer = try await server.send(.PUT, Routes.zones)
      #expect((answer.status, answer.error?.code) == (405, .methodNotAllowed))
      #expect(answer.headers["allow"] == "GET")
      let blob = Routes.path(Routes.deviceLink, DeviceLinkID.random().text)
      #expect(try await server.send(.POST, blob).headers["allow"] == "PUT, GET")
      #expect(answer.headers["www-authenticate"] == nil)
    }
  }

  @Test func aRequestWithoutASessionLearnsHowToAuthenticate() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let answer = try await server.send(.GET, Routes.zones)
      #expect((answer.status, answer.headers["www-authenticate"]) == (401, "Bearer"))
    }
  }

  /// - A monitor asks with HEAD, then with GET, on one connection
  /// => what follows the first answer's head is the second answer
  @Test func anAnswerToHEADHasNoBody() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let port = server.server.port
      let talk = try await RawConnection.onThread {
        let socket = try RawSocket(port: port)
        for (method, more) in [("HEAD", ""), ("GET", "Connection: close\r\n")] {
          socket.transmit(Array("\(method) /healthz HTTP/1.1\r\nHost: x\r\n\(more)\r\n".utf8))
        }
        var received: [UInt8] = []
        while case .bytes(let bytes) = socket.receive() { received += bytes }
        return String(decoding: received, as: UTF8.self)
      }
      let answers = talk.split(separator: "\r\n\r\n", omittingEmptySubsequences: false)
      #expect(answers.count == 3)
      #expect(answers.first?.hasPrefix("HTTP/1.1 405") == true)
      #expect(answers.dropFirst().first?.hasPrefix("HTTP/1.1 200") == true)
    }
  }

  @Test func everyQueryNumberIsReadEvenIfItHasNoEffect() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (_, token) = try await server.newAccount()
      for query in ["?after=x", "?after=18446744073709551616", "?offered=1&after=-1", "?offered=x"] {
        #expect(
          try await server.send(.GET, Routes.zones + query, token: token).error?.code == .invalidRequest, "\(query)")
      }
    }
  }

  @Test func deeplyNestedJSONIsRefusedUnread() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let bomb = [UInt8](repeating: UInt8(ascii: "["), count: 10_000)
      #expect(try await server.send(.POST, Routes.challenge, body: bomb).error?.code == .invalidRequest)
      let long = [UInt8](repeating: UInt8(ascii: " "), count: 20_000)
      #expect(try await server.send(.POST, Routes.challenge, body: long).status == 413)
    }
  }

  @Test func aRequestThatRunsWhenTheServerStopsIsFinished() async throws {
    let (body, answer) = AsyncStream<[UInt8]>.makeStream()
    let folder = TestServer.newFolder()
    defer { TestServer.remove(folder) }
    let result = try await TestServer.run(in: folder) { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let commit = try account.home.put([account.home.record(.random())]).body
      // The server has the first half when it gets the signal to stop; the second half follows.
      let request = Task { try await server.upload(Routes.commits, token: token, body: body, length: commit.count) }
      answer.yield(Array(commit[..<100]))
      while try await server.send(.GET, Routes.metrics).text.contains("zdc_open_requests 1\n") == false {}
      let stop = Task { try await server.server.stop() }
      while server.server.isReady { await Task.yield() }
      answer.yield(Array(commit[100...]))
      answer.finish()
      let status = try await request.value
      try await stop.value
      return status
    }
    #expect(result == 200)
  }

  /// A planted clear text shows that the search would find one; the data folder holds only sealed data.
  @Test(.needsFolder) func theFolderHoldsWhatWasSent_andNothingInClear() async throws {
    let folder = TestServer.newFolder()
    defer { TestServer.remove(folder) }
    let canary = Array("canary-of-a-careless-client".utf8)
    let token = try await TestServer.run(in: folder) { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      var careless = TestZone.Content(canary.count + 200)
      careless.bytes.replaceSubrange(100..<100 + canary.count, with: canary)
      let record = zone.record(.random(), content: careless.field())
      try await server.put([record], contents: [careless], in: &zone, token: token)
      #expect(!server.log.text.contains("canary"))
      return token
    }
    #expect(try TestServer.folder(folder, holds: canary))
    // The session's token is a secret that the server was given: it may store only its hash.
    #expect(try !TestServer.folder(folder, holds: token))
    #expect(try !TestServer.folder(folder, holds: Array(ZBase32.encode(token).utf8)))
  }

  @Test func logsHoldNoIdsAndNoTokens() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let record = zone.record(.random())
      try await server.put([record], in: &zone, token: token)
      _ = try await server.page(zone.zone, after: 0, token: token)
      _ = try await server.send(.GET, Routes.path(Routes.chain, account.userID.text), token: token)
      let log = server.log.text
      #expect(log.contains("/v1/trees/{treeID}/zones/{zoneRoot}/commits"))
      for secret in [
        ZBase32.encode(token), account.userID.text, account.lookupID.text, zone.zone.tree.text, zone.zone.root.text,
        record.fields.node.text, "after=0",
      ] {
        #expect(!log.contains(secret))
      }
    }
  }
}
