import Testing
import ZDCProtocol
import ZDCServer

/// Two servers over one database, whose machines' clocks differ by an hour.
@Suite(.timeLimit(.minutes(20)), .disabled(if: TestStores.haveNoFolder, "opens databases of its own, once"))
struct SkewedClockTests {
  private static let hour: UInt64 = 3_600_000

  private func run(
    _ change: (inout Configuration) -> Void = { _ in }, _ body: (TestServerPair) async throws -> Void
  ) async throws {
    try await TestServerPair.run(change, skewMs: Self.hour, body)
  }

  /// => a challenge of each server opens a session at the other one, and none opens two
  @Test func aChallengeIsGoodAtBothServers_once() async throws {
    try await run { pair in
      let (account, _) = try await pair.first.newAccount()
      for (one, other) in [(pair.first, pair.second), (pair.second, pair.first)] {
        let challenge = try await one.challenge(account)
        let login = try account.login(challenge, origin: other.origin, device: nil)
        _ = try await other.sendJSON(.POST, Routes.login, login).expect(200)
        // Each login removes the used challenges that have expired.
        _ = try await pair.second.login(account)
        let again = try account.login(challenge, origin: one.origin, device: nil)
        #expect(try await one.sendJSON(.POST, Routes.login, again).status == 401)
      }
    }
  }

  /// - Sessions last half an hour
  /// => a session of each server is good at the other one
  @Test func aSessionLastsAsLongAtBothServers() async throws {
    try await run {
      $0.bounds.sessionMs = Self.hour / 2
    } _: { pair in
      let (account, token) = try await pair.first.newAccount()
      _ = try await pair.second.send(.GET, Routes.zones, token: token).expect(200)
      let other = try await pair.second.login(account, device: .random())
      _ = try await pair.first.send(.GET, Routes.zones, token: other).expect(200)
      let sessions: SessionList = try await pair.second.send(.GET, Routes.sessions, token: token).json()
      #expect(sessions.sessions.count == 2)
    }
  }

  /// => a device link that is offered at one server is open at the other one
  @Test func aDeviceLinkIsOpenAtBothServers() async throws {
    try await run { pair in
      let (_, token) = try await pair.first.newAccount()
      for (one, other) in [(pair.first, pair.second), (pair.second, pair.first)] {
        let (id, key) = (DeviceLinkID.random(), randomBytes(DeviceLinkOffer.byteCount))
        let link = Routes.path(Routes.deviceLink, id.text)
        _ = try await one.send(.PUT, link, body: key).expect(204)
        #expect(try await other.send(.GET, link, token: token).bytes == key)
      }
    }
  }

  /// - Content is kept for half an hour, and one file is deleted at each server
  /// => neither server removes it now, and both date it alike
  @Test func contentIsKeptForItsTime() async throws {
    try await run {
      $0.bounds.retentionMs = Self.hour / 2
    } _: { pair in
      let (account, token) = try await pair.first.newAccount()
      var zone = account.home
      var dates: [UInt64] = []
      for (one, other) in [(pair.first, pair.second), (pair.second, pair.first)] {
        let (large, node) = (BlobTests.Large(70_000), NodeID.random())
        try await one.upload(large, node, zone, token: token)
        try await one.put([zone.record(node, content: large.field)], in: &zone, token: token)
        try await one.delete(node, in: &zone, token: token)
        for server in [one, other] { try await server.server.collect() }
        #expect(try await other.content(large.blob, of: node, in: zone, token: token).bytes == large.bytes)
        dates.append(try await one.send(.GET, Routes.info).json(ServerInfo.self).timeMs)
      }
      #expect(max(dates[0], dates[1]) - min(dates[0], dates[1]) < Self.hour / 2)
    }
  }

  /// - Two devices commit at the two servers in turn; each commit is sent to the other server again
  /// => both servers have one log with each commit once, and its dates do not go back
  @Test func commitsAtBothServersAreOneLog() async throws {
    try await run { pair in
      let (account, token) = try await pair.first.newAccount()
      var zone = account.home
      for number in 0..<20 {
        let (one, other) = number % 2 == 0 ? (pair.first, pair.second) : (pair.second, pair.first)
        let record = zone.record(.random())
        let (commit, body) = try zone.put([record])
        for server in [one, other] { _ = try await server.commit(body, token: token).expect(200) }
        zone.accepted(commit, records: [record])
      }
      var logs: [[UInt64]] = []
      for server in [pair.first, pair.second] {
        let items = try await server.page(zone.zone, token: token).expect(200).items()
        var dates: [UInt64] = []
        for case .commit(let receivedMs, let commit) in items {
          #expect(commit.fields.seq == UInt64(dates.count))
          dates.append(receivedMs)
        }
        #expect(dates.count == 21)
        logs.append(dates)
      }
      #expect(logs[0] == logs[1])
      #expect(logs[0] == logs[0].sorted())
    }
  }
}
