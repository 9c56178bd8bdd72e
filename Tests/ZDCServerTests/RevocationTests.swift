import Testing
import ZDCProtocol
import ZDCServer

/// The effects of ending a session, removing a device and replacing a root key.
@Suite(.timeLimit(.minutes(20))) struct RevocationTests {
  /// The stream's next event after the first one; nil: it has ended.
  private func stream(_ server: TestServer, _ token: [UInt8]) async throws -> EventSequence.Iterator {
    var events = try await server.events(token: token).makeAsyncIterator()
    _ = try await events.next()
    return events
  }

  @Test("S11: logging out ends the session's event stream, and no other session's")
  func logoutEndsItsStream() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, first) = try await server.newAccount()
      let second = try await server.login(account)
      var zone = account.home
      var ended = try await stream(server, first)
      var other = try await stream(server, second)
      _ = try await server.send(.DELETE, Routes.session, token: first).expect(204)
      try await server.put([zone.record(.random())], in: &zone, token: second)
      #expect(try await ended.next() == nil)
      #expect(try await other.next()?.name == "head")
    }
  }

  @Test("S11: the ninth session of a device ends the first one with its stream")
  func trimmedSessionEndsItsStream() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, first) = try await server.newAccount()
      var zone = account.home
      var ended = try await stream(server, first)
      var last = first
      for _ in 0..<8 {
        server.clock.advance(ms: 1_000)
        last = try await server.login(account)
      }
      try await server.put([zone.record(.random())], in: &zone, token: last)
      #expect(try await ended.next() == nil)
    }
  }

  /// - An account has as many devices as it may, one of which has logged in again, and a new one logs in
  /// => the device that has logged in longest ago is removed, with its session and its stream; no other one is
  @Test func aNewDeviceTakesThePlaceOfTheOneUsedLongestAgo() async throws {
    try await TestServer.run({ $0.bounds.devicesPerUser = 3 }) { (server: TestServer) async throws in
      let (account, first) = try await server.newAccount()
      var tokens = [first]
      for _ in 0..<2 {
        server.clock.advance(ms: 1_000)
        tokens.append(try await server.login(account, device: .random()))
      }
      server.clock.advance(ms: 1_000)
      let again = try await server.login(account)
      var (ended, kept) = (try await stream(server, tokens[1]), try await stream(server, tokens[2]))
      server.clock.advance(ms: 1_000)
      let new = try await server.login(account, device: .random())
      var zone = account.home
      try await server.put([zone.record(.random())], in: &zone, token: new)
      #expect(try await ended.next() == nil)
      #expect(try await kept.next()?.name == "head")
      #expect(try await server.send(.GET, Routes.zones, token: tokens[1]).status == 401)
      for token in [first, again, tokens[2], new] {
        #expect(try await server.send(.GET, Routes.zones, token: token).status == 200)
      }
      #expect(try await server.store.read { try $0.devices(of: account.userID).count } == 3)
    }
  }

  /// - Devices log in, and only the first one again after their sessions have expired
  /// => devices without a session are removed first, the oldest first
  @Test func devicesWithoutASessionGoFirst() async throws {
    try await TestServer.run({ $0.bounds.devicesPerUser = 3 }) { (server: TestServer) async throws in
      let (account, _) = try await server.newAccount()
      let devices = (0..<2).map { _ in DeviceID.random() }
      for device in devices {
        server.clock.advance(ms: 1_000)
        _ = try await server.login(account, device: device)
      }
      server.clock.advance(ms: 25 * 3_600_000)
      try await server.server.collect()
      _ = try await server.login(account)
      let new = DeviceID.random()
      _ = try await server.login(account, device: new)
      let left = try await server.store.read { try $0.devices(of: account.userID).map(\.id) }
      #expect(Set(left) == [account.deviceID, devices[1], new])
    }
  }

  @Test("S11: a session that expires ends its stream at the next heartbeat")
  func expiredSessionEndsItsStream() async throws {
    try await TestServer.run({ $0.bounds.heartbeatSeconds = 1 }) { (server: TestServer) async throws in
      let (_, token) = try await server.newAccount()
      var events = try await stream(server, token)
      server.clock.advance(ms: 24 * 3_600_000)
      #expect(try await events.next() == nil)
    }
  }

  /// - A session ends while one of its requests is on its way: the cache still has it, the store has not
  /// => no stream is opened that would never end
  @Test("S11: a session that has just ended opens no stream")
  func endedSessionOpensNoStream() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      _ = try await server.send(.GET, Routes.zones, token: token).expect(200)
      try await server.store.write([.account(account.userID)]) { tx in
        for session in try tx.sessions(of: account.userID) { try tx.removeSession(tokenHash: session.tokenHash) }
      }
      #expect(try await server.send(.GET, Routes.events, token: token).status == 401)
      #expect(server.server.eventStreams == 0)
    }
  }

  @Test("S12: a new root key ends the logins of all other devices")
  func rootRotationEndsOtherDevices() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let other = DeviceID.random()
      let thief = try await server.login(account, device: other)
      let request = AppendLinkRequest(
        link: WireBytes(try account.rootRotation(to: SigningKey()).bytes), lookupID: .random(),
        loginKey: WireBytes(SigningKey().publicBytes))
      _ = try await server.sendJSON(.POST, Routes.links, request, token: token).expect(201)
      #expect(try await server.send(.GET, Routes.zones, token: thief).status == 401)
      #expect(try await server.send(.GET, Routes.zones, token: token).status == 200)
      let challenge: ChallengeResponse = try await server.sendJSON(
        .POST, Routes.challenge, ChallengeRequest(userID: account.userID)
      ).json()
      var login = try account.deviceLogin(challenge, origin: server.origin)
      login.deviceID = other
      login.signature = WireBytes(try account.deviceKey.sign("device-login", login.signedBytes))
      #expect(try await server.sendJSON(.POST, Routes.deviceLogin, login).status == 401)
    }
  }
}
