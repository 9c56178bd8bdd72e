import Testing
import ZDCProtocol
import ZDCServer

/// A whole log in one answer.
@Suite struct WholeLogTests {
  /// Appends commits of 37 KB each to the log, past the checks of a request.
  private static func grow(_ zone: TestZone, by count: Int, _ server: TestServer) async throws -> TestZone {
    try await server.store.write([.zone(zone.zone)]) { tx in
      var zone = zone
      let key = try #require(try tx.zone(zone.zone)).key
      for _ in 0..<count {
        let commit = try zone.commit((0..<1_000).map { .retireKey(user: zone.owner, gen: $0) })
        zone.accepted(commit)
        let head = ZoneHead(zone: zone.zone, seq: zone.seq, hash: commit.hash, acl: zone.acl)
        let delta = ZoneDelta(target: .existing(key), head: head, commit: commit, receivedMs: 1)
        _ = try tx.apply(CommitDelta(zones: [delta]))
      }
      return zone
    }
  }

  private static func path(_ zone: TestZone, after: UInt64? = nil) -> String {
    let path = Routes.path(Routes.zoneCommits, zone.zone.tree.text, zone.zone.root.text)
    return path + "?whole=1" + (after.map { "&after=\($0)" } ?? "")
  }

  private static func numbers(_ answer: Answer) throws -> [UInt64] {
    try answer.items().compactMap { if case .commit(_, let commit) = $0 { commit.fields.seq } else { nil } }
  }

  /// - A log of 6 MB
  /// => one answer has all of it, with list and grant and without records; from a number on it has the rest
  @Test("P-5: a whole log is one answer, which can be resumed") func theLogIsOneAnswer() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      try await server.put([zone.record(.random())], in: &zone, token: token)
      zone = try await Self.grow(zone, by: 160, server)
      let page = try await server.page(zone.zone, token: token)
      #expect(page.headers[WireHeaders.more] == "1" && page.bytes.count <= Limits.pageBytes)
      let whole = try await server.send(.GET, Self.path(zone), token: token).expect(200)
      #expect(whole.bytes.count > Limits.pageBytes)
      #expect(try Self.numbers(whole) == Array(0...161))
      #expect(try whole.items().count == 164)
      #expect(whole.headers[WireHeaders.zoneHead] == "161:\(zone.headHash.text)")
      #expect(whole.headers[WireHeaders.more] == nil)
      let rest = try await server.send(.GET, Self.path(zone, after: 100), token: token).expect(200)
      #expect(try Self.numbers(rest) == Array(101...161))
      #expect(try await server.send(.GET, Self.path(zone, after: 161), token: token).bytes.isEmpty)
      #expect(try await server.send(.GET, Self.path(zone, after: .max), token: token).bytes.isEmpty)
      let (_, stranger) = try await server.newAccount()
      #expect(try await server.send(.GET, Self.path(zone), token: stranger).status == 404)
    }
  }

  @Test("K-14: a former member's whole log ends with their removal") func aFormerMembersLogEnds() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (owner, token) = try await server.newAccount()
      let (member, memberToken) = try await server.newAccount()
      var zone = owner.home
      try await server.add(zone.member(member.userID), to: &zone, token: token)
      try await server.remove(member.userID, from: &zone, token: token)
      try await server.put([zone.record(.random())], in: &zone, token: token)
      let log = try await server.send(.GET, Self.path(zone), token: memberToken).expect(200)
      #expect(try Self.numbers(log) == [0, 1, 2])
      #expect(log.headers[WireHeaders.zoneHead]?.hasPrefix("2:") == true)
    }
  }

  /// - A client opens streams of a log of 30 MB and reads none of them
  /// => each takes a bounded part of the memory for answers, however long the log; when the user's part is used up,
  ///   further ones have to be retried later
  @Test("P-5: streams of logs that no client reads are bounded") func untakenStreamsAreBounded() async throws {
    try await TestServer.run({ $0.bounds.bufferedAnswerBytes = 64 << 20 }) { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let zone = try await Self.grow(account.home, by: 800, server)
      var sockets: [RawSocket] = []
      var answer: Answer?
      let path = Self.path(zone)
      while answer?.status != 429, sockets.count < 50 {
        let head = "GET \(path) HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(ZBase32.encode(token))\r\n\r\n"
        let port = server.server.port
        sockets.append(
          try await RawConnection.onThread {
            let socket = try RawSocket(port: port, receiveBuffer: 4_096)
            socket.transmit(Array(head.utf8))
            // The answer has begun: the stream has its share.
            _ = socket.receive()
            return socket
          })
        #expect(server.server.unsentBytes <= (64 << 20) / 8)
        if sockets.count >= 4 { answer = try await server.send(.GET, path + "&after=700", token: token) }
      }
      #expect(answer?.error?.code == .tooManyRequests)
      #expect(server.server.unsentBytes > 0)
      withExtendedLifetime(sockets) {}
    }
  }
}
