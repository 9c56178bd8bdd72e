import Dispatch
import Testing
import ZDCProtocol
import ZDCServer

@Suite struct SessionTests {
  @Test func aChallengeLooksTheSameForKnownAndUnknown() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, _) = try await server.newAccount()
      let known = try await server.challenge(account)
      let unknown = try await server.challenge(try TestAccount())
      #expect(known.nonce.bytes.count == unknown.nonce.bytes.count)
      #expect(known.expiresMs == unknown.expiresMs)
      let both = ChallengeRequest(lookupID: account.lookupID, userID: account.userID)
      #expect(try await server.sendJSON(.POST, Routes.challenge, both).status == 400)
    }
  }

  @Test func whateverIsWrongWithALogin_theAnswerIsTheSame() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, _) = try await server.newAccount()
      let origin = server.origin
      func refusal(_ request: LoginRequest) async throws -> ServerError? {
        try await server.sendJSON(.POST, Routes.login, request).error
      }
      let unknown = try TestAccount()
      let stranger = try await refusal(try unknown.login(try await server.challenge(unknown), origin: origin))
      var forged = try account.login(try await server.challenge(account), origin: origin)
      forged.signature.bytes[5] ^= 1
      let phished = try account.login(try await server.challenge(account), origin: "https://evil.example")
      let invented = try account.login(
        ChallengeResponse(nonce: WireBytes(randomBytes(32)), expiresMs: server.clock.nowMs + 1_000), origin: origin)
      var prolonged = try await server.challenge(account)
      prolonged.expiresMs += 1
      #expect(stranger?.code == .unauthorized)
      #expect(try await refusal(forged) == stranger)
      #expect(try await refusal(phished) == stranger)
      #expect(try await refusal(invented) == stranger)
      #expect(try await refusal(try account.login(prolonged, origin: origin)) == stranger)
    }
  }

  /// => the server knows its origin in upper case too, but a signature holds only for the spelling that was signed
  @Test("B4: an origin in upper case is the server's own, exactly as it was signed")
  func originInUpperCase_isAcceptedAsItWasSigned() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, _) = try await server.newAccount()
      func status(_ origin: String, sent: String? = nil) async throws -> Int {
        var request = try account.login(try await server.challenge(account), origin: origin)
        if let sent { request.origin = sent }
        return try await server.sendJSON(.POST, Routes.login, request).status
      }
      let upper = server.origin.uppercased()
      #expect(upper != server.origin)
      #expect(try await status(upper) == 200)
      #expect(try await status(upper, sent: server.origin) == 401)
      #expect(try await status(server.origin, sent: upper) == 401)
      #expect(try await status("HTTPS://EVIL.EXAMPLE") == 401)
    }
  }

  /// The store's writer serves everyone: a stranger's signature is verified before it is needed.
  @Test(.needsFolder) func aWrongLogin_doesNotNeedTheWriter() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, _) = try await server.newAccount()
      var forged = try account.login(try await server.challenge(account), origin: server.origin)
      forged.signature.bytes[5] ^= 1
      let gate = DispatchSemaphore(value: 0)
      async let writer: Void = server.store.write([]) { _ in gate.wait() }
      let answer = await Task { try await server.sendJSON(.POST, Routes.login, forged) }.result
      gate.signal()
      try await writer
      #expect(try answer.get().status == 401)
    }
  }

  @Test func aChallengeWorksOnce_andForTwoMinutes() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, _) = try await server.newAccount()
      let request = try account.login(try await server.challenge(account), origin: server.origin)
      #expect(try await server.sendJSON(.POST, Routes.login, request).status == 200)
      #expect(try await server.sendJSON(.POST, Routes.login, request).status == 401)
      let late = try account.login(try await server.challenge(account), origin: server.origin)
      server.clock.advance(ms: 120_000)
      #expect(try await server.sendJSON(.POST, Routes.login, late).status == 401)
    }
  }

  @Test func aDeviceOpensItsNextSessionWithItsOwnKey_untilItIsTakenAway() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      func deviceLogin() async throws -> Answer {
        let challenge: ChallengeResponse = try await server.sendJSON(
          .POST, Routes.challenge, ChallengeRequest(userID: account.userID)
        ).json()
        let request = try account.deviceLogin(challenge, origin: server.origin)
        return try await server.sendJSON(.POST, Routes.deviceLogin, request)
      }
      let second = try await deviceLogin().json(SessionResponse.self)
      let list: SessionList = try await server.send(.GET, Routes.sessions, token: token).json()
      #expect(list.sessions.map(\.isCurrent).filter { $0 }.count == 1)
      #expect(list.sessions.count == 2)
      let path = Routes.path(Routes.sessionOfDevice, account.deviceID.text)
      #expect(try await server.send(.DELETE, path, token: token).status == 204)
      #expect(try await server.send(.GET, Routes.zones, token: token).status == 401)
      #expect(try await server.send(.GET, Routes.zones, token: second.token.bytes).status == 401)
      #expect(try await deviceLogin().status == 401)
    }
  }

  @Test func devicesAreListed_alsoWithoutASession() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, _) = try await server.newAccount()
      let other = DeviceID.random()
      _ = try await server.login(account, device: other)
      let start = server.clock.nowMs
      server.clock.advance(ms: 25 * 3_600_000)
      let token = try await server.login(account)
      let list: SessionList = try await server.send(.GET, Routes.sessions, token: token).json()
      #expect(list.devices.count == 2)
      let device = SessionList.Device(
        deviceID: account.deviceID, createdMs: start, lastLoginMs: server.clock.nowMs, isCurrent: true)
      #expect(list.devices.contains(device))
      #expect(list.devices.contains(.init(deviceID: other, createdMs: start, lastLoginMs: nil, isCurrent: false)))
    }
  }

  @Test func aSessionEndsWhenItIsEnded_orAfterADay() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, first) = try await server.newAccount()
      let second = try await server.login(account)
      #expect(try await server.send(.DELETE, Routes.session, token: first).status == 204)
      #expect(try await server.send(.GET, Routes.zones, token: first).status == 401)
      #expect(try await server.send(.GET, Routes.zones, token: second).status == 200)
      server.clock.advance(ms: 24 * 3_600_000)
      #expect(try await server.send(.GET, Routes.zones, token: second).status == 401)
    }
  }

  @Test func everyRouteThatNeedsASessionRefusesWithoutOne() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      for route in [Routes.zones, Routes.events, Routes.keyring, Routes.audit, Routes.sessions] {
        #expect(try await server.send(.GET, route).error?.code == .unauthorized)
        #expect(try await server.send(.GET, route, token: randomBytes(32)).error?.code == .unauthorized)
      }
      #expect(try await server.commit([], token: randomBytes(32)).status == 401)
    }
  }

  @Test func callsOnAccountsAreLimitedPerAddress() async throws {
    try await TestServer.run {
      $0.bounds.accountCallsPerMinute = 3
    } _: { (server: TestServer) async throws in
      let account = try TestAccount()
      for _ in 0..<3 { _ = try await server.challenge(account) }
      let request = ChallengeRequest(lookupID: account.lookupID)
      let answer = try await server.sendJSON(.POST, Routes.challenge, request)
      #expect((answer.status, answer.error?.code, answer.error?.retryable) == (429, .tooManyRequests, true))
      #expect(answer.headers["retry-after"] == "20")
      server.clock.advance(ms: 20_001)
      #expect(try await server.sendJSON(.POST, Routes.challenge, request).status == 200)
    }
  }
}
