import Testing
import ZDCProtocol
import ZDCServer

/// Pages of several zones in one answer.
@Suite struct ZonePagesTests {
  private static func pages(
    _ server: TestServer, _ positions: [(TestZone, UInt64?)], token: [UInt8]
  ) async throws -> [ZonePage] {
    let asked = positions.map { ZonePosition(zone: $0.0.zone, after: $0.1) }
    return try await pages(server, asked, token: token)
  }

  private static func pages(
    _ server: TestServer, _ positions: [ZonePosition], token: [UInt8]
  ) async throws -> [ZonePage] {
    let body = ZonePosition.bytes(of: positions)
    let answer = try await server.send(.POST, Routes.zonePages + "?records=1", token: token, body: body).expect(200)
    #expect(answer.bytes.count <= Limits.pageBytes)
    return try ZonePage.all(answer.bytes)
  }

  private static func commits(_ page: ZonePage) throws -> [UInt64] {
    var reader = Bundle.Reader(Array(page.log?.body ?? []))
    return try reader.all().compactMap { if case .commit(_, let commit) = $0 { commit.fields.seq } else { nil } }
  }

  /// - A user asks for own zones, one that they are a member of, one that they were removed from, and an unknown one
  /// => each has the page that it has alone, in the order asked
  @Test func everyZoneHasItsPage() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (owner, token) = try await server.newAccount()
      let (member, memberToken) = try await server.newAccount()
      var (shared, left, own) = (owner.home, try #require(owner.zones[.prefs]), member.home)
      try await server.add(shared.member(member.userID), to: &shared, token: token)
      try await server.add(left.member(member.userID), to: &left, token: token)
      try await server.remove(member.userID, from: &left, token: token)
      try await server.put([left.record(.random())], in: &left, token: token)
      try await server.put([own.record(.random())], in: &own, token: memberToken)
      let hidden = try #require(owner.zones[.inbox])
      let asked = [(hidden, nil), (left, nil), (own, 0), (shared, 1), (own, 99)] as [(TestZone, UInt64?)]
      let pages = try await Self.pages(server, asked, token: memberToken)
      #expect(pages.map(\.zone) == asked.map(\.0.zone))
      #expect(pages.map { $0.log?.seq } == [nil, 2, 1, 1, 1])
      #expect(try pages.map(Self.commits) == [[], [0, 1, 2], [1], [], []])
      #expect(pages.allSatisfy { $0.log?.hasMore != true })
      for (page, (zone, after)) in zip(pages, asked) where page.log != nil {
        let alone = try await server.page(zone.zone, after: after, token: memberToken)
        let log = try #require(page.log)
        #expect(Array(log.body) == alone.bytes)
        #expect(alone.headers[WireHeaders.zoneHead] == "\(log.seq):\(log.head.text)")
      }
    }
  }

  /// - Two zones have more than fits into one answer
  /// => the answer stays within its limit; asking again from there gives each commit once
  @Test func theAnswerEndsAtItsLimit_andIsContinued() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zones = [account.home, try #require(account.zones[.prefs]), try #require(account.zones[.inbox])]
      for index in 0..<2 {
        for _ in 0..<5 {
          try await server.put(
            (0..<900).map { _ in zones[index].record(.random()) }, in: &zones[index], token: token)
        }
      }
      var next: [ZoneID: UInt64] = [:]
      var got: [ZoneID: [UInt64]] = [:]
      var requests = 0
      while !zones.allSatisfy({ got[$0.zone]?.last == $0.seq }) {
        let asked = zones.filter { got[$0.zone]?.last != $0.seq }
          .map { ZonePosition(zone: $0.zone, after: next[$0.zone]) }
        for page in try await Self.pages(server, asked, token: token) {
          let commits = try Self.commits(page)
          got[page.zone, default: []] += commits
          next[page.zone] = commits.last ?? next[page.zone]
          #expect(page.log?.hasMore == (commits.last != page.log?.seq))
        }
        requests += 1
      }
      #expect((2...4).contains(requests))
      #expect(zones.map { got[$0.zone] } == [[0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5], [0]])
    }
  }

  @Test func requestsAreBounded() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let positions = [ZonePosition](repeating: ZonePosition(zone: account.home.zone, after: 0), count: 64)
      #expect(try await Self.pages(server, positions, token: token).count == 64)
      let more = ZonePosition.bytes(of: positions + positions.prefix(1))
      #expect(try await server.send(.POST, Routes.zonePages, token: token, body: more).status == 413)
      let torn = Array(more.prefix(100))
      #expect(try await server.send(.POST, Routes.zonePages, token: token, body: torn).status == 400)
      #expect(try await server.send(.POST, Routes.zonePages, token: token, body: []).bytes.isEmpty)
    }
  }
}
