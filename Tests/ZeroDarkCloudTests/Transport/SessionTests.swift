import Foundation
import Testing
import ZDCCrypto
import ZDCProtocol
import ZDCServer

@testable import ZDCAccounts
@testable import ZDCClientAPI
@testable import ZeroDarkCloud

@Suite struct SessionTests {
  private func api(_ device: NetworkDevice) async throws -> ServerAPI {
    let user = try await device.users.createAccount().localUser
    return try await device.users.serverAPI(for: ZDCLocalUserManager.userID(user.uuid))
  }

  @Test func theFirstRequestOpensTheSession_othersUseIt() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let api = try await api(device)
      #expect(try await api.zones(since: nil).zones.count == 4)
      _ = try await api.audit()
      // The server does not know the device's key yet, so the access key vouches for it. No login is refused.
      #expect(device.transport.count("/v1/auth/") == 2)
      #expect(device.transport.count("/v1/auth/login") == 1)
    }
  }

  @Test func concurrentRequests_openOneSession() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let api = try await api(device)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<20 { group.addTask { _ = try await api.zones(since: nil) } }
        try await group.waitForAll()
      }
      #expect(device.transport.count("/v1/auth/login") == 1)
      #expect(device.transport.count("GET /v1/zones") == 20)
    }
  }

  /// - the server does not answer the challenge, and one of two requests that wait for the session is cancelled
  /// => it ends at once, and the other one gets its answer
  @Test(.timeLimit(.minutes(10))) func aCancelledRequest_doesNotWaitForTheSession() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let api = try await api(device)
      let (arrived, arrive) = AsyncStream.makeStream(of: Void.self)
      let (released, release) = AsyncStream.makeStream(of: Void.self)
      device.transport.set(
        .init(before: { request in
          guard request.path == Routes.challenge else { return }
          arrive.yield()
          for await _ in released { return }
        }))
      let cancelled = Task { _ = try await api.zones(since: nil) }
      for await _ in arrived { break }
      let other = Task { try await api.zones(since: nil) }
      cancelled.cancel()
      await #expect(throws: CancellationError.self) { try await cancelled.value }
      release.finish()
      #expect(try await other.value.zones.count == 4)
    }
  }

  @Test func aForgottenSessionIsOpenedAgainByTheDevicesKey_andTheRequestSucceeds() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let api = try await api(device)
      _ = try await api.zones(since: nil)
      let token = try await api.session.currentToken()
      try await api.endSession()
      // Simulates a request that still holds the ended session's token.
      await api.session.adopt(
        SessionResponse(token: WireBytes(ZBase32.decode(token) ?? []), userID: .zero, expiresMs: 0))
      #expect(try await api.zones(since: nil).zones.count == 4)
      #expect(device.transport.count("/v1/auth/login") == 1)
      #expect(device.transport.count("/v1/auth/device") == 1)
    }
  }

  // MARK: Between launches

  @Test func theNextLaunchReusesTheSession() async throws {
    try await NetworkWorld.run { world in
      let first = try world.device("a")
      let user = try await first.users.createAccount().localUser
      let token = try await first.api(user).session.currentToken()
      try first.close()
      let files = try FileManager.default.contentsOfDirectory(
        at: world.folder.appendingPathComponent("a"), includingPropertiesForKeys: nil)
      for file in files {
        let bytes = try Data(contentsOf: file)
        #expect(bytes.range(of: Data(ZBase32.decode(token) ?? [])) == nil)
        #expect(bytes.range(of: Data(token.utf8)) == nil)
      }
      let again = try world.device("a")
      let api = try await again.api(user)
      #expect(try await api.zones(since: nil).zones.count == 4)
      #expect(again.transport.requests == ["GET /v1/zones"])
      #expect(try await api.sessions().sessions.count == 1)
    }
  }

  @Test func aKeptSessionThatIsRefused_costsOneLoginOfTheDevice() async throws {
    try await NetworkWorld.run { world in
      let first = try world.device("a")
      let user = try await first.users.createAccount().localUser
      try await end(try await first.api(user).session.currentToken(), user, first)
      try first.close()
      let again = try world.device("a")
      _ = try await again.api(user).zones(since: nil)
      #expect(
        again.transport.requests == [
          "GET /v1/zones", "POST /v1/auth/challenge", "POST /v1/auth/device", "GET /v1/zones",
        ])
    }
  }

  /// Two managers on one file simulate two processes.
  @Test func anotherProcessUsesTheSession_andItsSuccessor() async throws {
    try await NetworkWorld.run { world in
      let mine = try world.device("a")
      let user = try await mine.users.createAccount().localUser
      _ = try await mine.api(user).zones(since: nil)
      let theirs = try world.device("a")
      _ = try await theirs.api(user).zones(since: nil)
      try await end(try await mine.api(user).session.currentToken(), user, mine)
      _ = try await mine.api(user).zones(since: nil)
      _ = try await theirs.api(user).zones(since: nil)
      #expect(theirs.transport.count("/v1/auth/") == 0)
      #expect(theirs.transport.count("GET /v1/zones") == 3)
    }
  }

  /// Ends a session on the server without notifying the device.
  private func end(_ token: String, _ user: ZDCLocalUser, _ device: NetworkDevice) async throws {
    let userID = try ZDCLocalUserManager.userID(user.uuid)
    let row = try await device.connection.asyncRead { try $0.localUsers.user(userID) }
    let session = Session(connection: device.users.connection, credentials: try #require(row).credentials)
    await session.adopt(ZBase32.decode(token) ?? [])
    try await ServerAPI(connection: device.users.connection, session: session).endSession()
  }

  // MARK: Refusals

  @Test func aPersistentRefusal_isTriedTwiceAndThenReported() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let api = try await api(device)
      device.transport.set(
        .init(after: { request, response in
          guard request.path.hasPrefix("/v1/zones") else { return response }
          let body = #"{"code":"unauthorized","message":"m","retryable":false}"#
          return TransportResponse(
            status: 401, headers: ["content-type": "application/json"], body: TransportBody(bytes: Array(body.utf8)))
        }))
      let error = await #expect(throws: ServerError.self) { try await api.zones(since: nil) }
      #expect(error?.code == .unauthorized)
      #expect(device.transport.count("GET /v1/zones") == 2)
    }
  }

  @Test func aServerThatDoesNotKnowItsOwnAddress_refusesTheLogin() async throws {
    try await NetworkWorld.run({
      $0.origins = ["https://sync.example.com"]
      $0.registration = .open
    }) { world in
      let device = try world.device()
      let api = try await api(device)
      let error = await #expect(throws: ServerError.self) { try await api.zones(since: nil) }
      #expect(error?.code == .unauthorized)
    }
  }

  @Test func aServerOfAnotherProtocol_isNamedAsSuch() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      device.transport.set(
        .init(after: { request, response in
          guard request.path == Routes.info else { return response }
          let body = #"{"name":"x","version":"9","protocols":[2,3],"registration":"open","timeMs":1}"#
          return TransportResponse(status: 200, headers: [:], body: TransportBody(bytes: Array(body.utf8)))
        }))
      let error = await #expect(throws: ServerError.self) { try await device.users.createAccount() }
      #expect(error?.code == .unsupportedProtocol)
    }
  }

  @Test func theEventStreamBeginsWithTheZones() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let api = try await api(device)
      for try await event in api.events(since: nil) {
        guard case .zones(let list) = event else {
          Issue.record("the first event is \(event)")
          break
        }
        #expect(list.zones.count == 4)
        break
      }
    }
  }

  @Test func withoutAListener_theConnectionIsRefused() async throws {
    let url = try await NetworkWorld.run { $0.server.url }
    let transport = try AsyncHTTPTransport(serverURL: url)
    let error = await #expect(throws: TransportError.self) { try await transport.send(.get(Routes.info)) }
    #expect(error == TransportError(.refused, origin: url))
  }

  @Test func encryptionThatTheServerDoesNotSupport_isReported() async throws {
    try await NetworkWorld.run { world in
      let url = "https://127.0.0.1:\(world.server.port)"
      let transport = try AsyncHTTPTransport(serverURL: url)
      let error = await #expect(throws: TransportError.self) { try await transport.send(.get(Routes.info)) }
      #expect(error == TransportError(.tls, origin: url))
    }
  }

  @Test func invalidCertificates_areRefusedImmediately() {
    #expect(throws: TransportError(.tls, origin: "https://a.b")) {
      try AsyncHTTPTransport(serverURL: "https://a.b", caCertificates: Array("no certificate".utf8))
    }
  }

  @Test func aCancelledRequestEndsWithACancellation() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let api = try await api(device)
      let stream = api.events(since: nil)
      let reader = Task { for try await _ in stream {} }
      // The stream is open once its request was sent.
      while device.transport.count("/v1/events") == 0 { await Task.yield() }
      reader.cancel()
      let result = await reader.result
      if case .failure(let error) = result { #expect(error is CancellationError) }
    }
  }
}
