import AsyncHTTPClient
import Testing
import ZDCProtocol
import ZDCServer

/// A zone with many members who are all online.
@Suite struct MemberLoadTests {
  /// - 100 members with open streams, and one more who opens a stream and never reads; the owner commits three times
  /// => the store does not write for each member; every stream has all three events with equal pages
  @Test("P-1: a commit reaches the streams of 100 members in one write") func aCommitReaches100Members() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (owner, token) = try await server.newAccount()
      var zone = owner.home
      let members = try await Self.members(100, of: &zone, server, token)
      let silent = try await Self.members(1, of: &zone, server, token)
      let socket = try await Self.openStream(server, silent[0])
      try await Self.withCrowd(of: server) { crowd in
        try await Self.commit(in: &zone, server, token, crowd, members)
      }
      withExtendedLifetime(socket) {}
    }
  }

  private static func commit(
    in zone: inout TestZone, _ server: TestServer, _ token: [UInt8], _ crowd: ClientOver, _ members: [[UInt8]]
  ) async throws {
    var streams: [EventSequence.Iterator] = []
    for member in members {
      var events = try await crowd.events(token: member).makeAsyncIterator()
      #expect(try await events.next()?.decode(ZoneList.self).zones.last?.zone == zone.zone)
      streams.append(events)
    }
    #expect(server.server.eventStreams == members.count + 1)
    let before = server.store.writeStatistics.writes
    for _ in 0..<3 { try await server.put([zone.record(.random())], in: &zone, token: token) }
    // Upkeep may write at any time, a few times; a write for each member would be 300.
    let writes = server.store.writeStatistics.writes - before
    #expect(writes >= 3 && writes < 50, "\(writes) writes")
    var data: Set<[String]> = []
    for index in streams.indices {
      var events: [String] = []
      for _ in 0..<3 { events.append(try #require(try await streams[index].next()).data) }
      data.insert(events)
    }
    #expect(data.count == 1 && data.first?.count == 3)
  }

  /// Runs the body with a client that opens many connections.
  private static func withCrowd(of server: TestServer, _ body: (ClientOver) async throws -> Void) async throws {
    var configuration = HTTPClient.Configuration()
    configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 256
    let http = HTTPClient(configuration: configuration)
    let outcome: Result<Void, any Error>
    do { outcome = .success(try await body(ClientOver(origin: server.origin, client: http))) } catch {
      outcome = .failure(error)
    }
    try await http.shutdown()
    try outcome.get()
  }

  /// Adds members by one list; each accepts the zone.
  ///
  /// - Returns: their sessions' tokens.
  private static func members(
    _ count: Int, of zone: inout TestZone, _ server: TestServer, _ token: [UInt8]
  ) async throws -> [[UInt8]] {
    var accounts: [(account: TestAccount, token: [UInt8])] = []
    for _ in 0..<count { accounts.append(try await server.newAccount()) }
    let members = accounts.map { [zone] in zone.member($0.account.userID) }
    let list = try zone.list(adding: members.map(\.entry))
    let (commit, body) = try zone.change(to: list, grants: members.map(\.grant))
    _ = try await server.commit(body, token: token).expect(200)
    zone.accepted(commit)
    zone.acl = list
    for account in accounts { _ = try await server.accept(zone.zone, token: account.token).expect(200) }
    return accounts.map(\.token)
  }

  private static func openStream(_ server: TestServer, _ token: [UInt8]) async throws -> RawSocket {
    let head = "GET \(Routes.events) HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(ZBase32.encode(token))\r\n\r\n"
    let port = server.server.port
    return try await RawConnection.onThread {
      let socket = try RawSocket(port: port, receiveBuffer: 4_096)
      socket.transmit(Array(head.utf8))
      _ = socket.receive()
      return socket
    }
  }
}
