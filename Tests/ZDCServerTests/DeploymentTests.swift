import Foundation
import Testing
import ZDCProtocol

@testable import ZDCServer
@testable import zdc_server

/// The server as most people run it: behind a proxy, by its command line.
@Suite struct DeploymentTests {
  @Test("S9: on loopback with an origin, registration is by invite and /metrics needs a token")
  func originEndsTheDevelopmentDefaults() async throws {
    try await TestServer.run({ $0.origins = ["https://sync.example.org"] }) { (server: TestServer) async throws in
      let info: ServerInfo = try await server.send(.GET, Routes.info).json()
      #expect(info.registration == "invite")
      #expect(try await server.send(.GET, Routes.metrics).status == 404)
    }
    try await TestServer.run({
      $0.origins = ["https://sync.example.org"]
      $0.registration = .open
    }) { (server: TestServer) async throws in
      let info: ServerInfo = try await server.send(.GET, Routes.info).json()
      #expect(info.registration == "open")
    }
  }

  @Test("M16: an event stream is neither buffered nor transformed, and its connection is not reused")
  func eventStreamIsNotBuffered() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (_, token) = try await server.newAccount()
      let head = """
        GET \(Routes.events) HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(ZBase32.encode(token))\r\n\r\n
        """
      let port = server.server.port
      let text = try await RawConnection.onThread {
        let socket = try RawSocket(port: port)
        socket.transmit(Array(head.utf8))
        guard case .bytes(let bytes) = socket.receive() else { return "" }
        return String(decoding: bytes, as: UTF8.self).lowercased()
      }
      #expect(text.contains("x-accel-buffering: no\r\n"))
      #expect(text.contains("cache-control: no-store, no-transform\r\n"))
      #expect(text.contains("connection: close\r\n"))
    }
  }

  /// - Clients behind one proxy, which names them
  /// => each has its own calls; without trust in the proxy they would share them
  @Test("S9: behind a trusted proxy, calls are counted for each client", arguments: [true, false])
  func clientsOfAProxyAreCountedApart(isTrusted: Bool) async throws {
    try await TestServer.run {
      $0.bounds.accountCallsPerMinute = 1
      if isTrusted { _ = $0.trustedProxies.add("127.0.0.1") }
    } _: { (server: TestServer) async throws in
      var statuses: [Int] = []
      for client in ["198.51.100.1", "198.51.100.2", "198.51.100.2"] {
        let body = [UInt8](try JSONEncoder().encode(ChallengeRequest(lookupID: .random())))
        let answer = try await server.send(
          .POST, Routes.challenge, headers: [("x-forwarded-for", "203.0.113.9, \(client)")], body: body)
        statuses.append(answer.status)
      }
      #expect(statuses == (isTrusted ? [200, 200, 429] : [200, 429, 429]))
    }
  }

  /// - A request has an ID, from a trusted proxy or from another client
  /// => the answer and the log have it only if the proxy is trusted, and one of the server's otherwise
  @Test(arguments: [true, false], ["4f1c-a2", "two words", String(repeating: "x", count: 65)])
  func requestsHaveAnID(isTrusted: Bool, id: String) async throws {
    try await TestServer.run {
      if isTrusted { _ = $0.trustedProxies.add("127.0.0.1") }
    } _: { (server: TestServer) async throws in
      let answers = [
        try await server.send(.GET, Routes.health, headers: [("x-request-id", id)]).expect(200),
        try await server.send(.GET, "/v1/nothing").expect(404),
      ]
      let named = answers.map { $0.headers["x-request-id"] ?? "" }
      #expect((named[0] == id) == (isTrusted && id == "4f1c-a2"))
      #expect(Set(named).count == 2)
      for name in named { #expect(!name.isEmpty && server.log.text.contains("\"request\": \(name)")) }
    }
  }

  /// - A second server is started on the data folder of a running one
  /// => it is refused with a message that says what to do, and the first one still answers
  @Test func twoServersDoNotShareADataFolder() async throws {
    let folder = TestServer.newFolder()
    defer { TestServer.remove(folder) }
    let server = try await ServerProcess.serve(folder: folder)
    let second = try await ServerProcess.run(
      ["serve", "--data", folder, "--listen", "127.0.0.1:0"], withErrors: true)
    #expect(second.status == 69)
    #expect(second.output.contains("is in use by another server"), "\(second.output)")
    #expect(second.output.contains("choose another --data folder"))
    _ = try await server.newAccount()
    #expect(await server.stop() == 0)
  }

  /// - More connections than the process may have files
  /// => those that are accepted leave room: parts and commits work
  @Test("S6: connections leave room for files") func connectionsLeaveRoomForFiles() async throws {
    let folder = TestServer.newFolder()
    defer { TestServer.remove(folder) }
    let server = try await ServerProcess.serve(folder: folder, openFiles: 256)
    let (account, token) = try await server.newAccount()
    var zone = account.home
    let large = BlobTests.Large(300_000)
    let node = NodeID.random()
    _ = try await server.ticket(large, node, zone, token: token).expect(201)
    let port = try #require(Int(server.origin.split(separator: ":").last ?? ""))
    let sockets = try await RawConnection.onThread {
      try (0..<270).map { _ in
        let socket = try RawSocket(port: port)
        socket.transmit(Array("GET \(Routes.health) HTTP/1.1\r\nHost: x\r\n\r\n".utf8))
        return socket
      }
    }
    // The server has answered as many as it accepts; these hold their connections.
    let accepted = try await RawConnection.onThread {
      sockets.prefix(185).filter { if case .bytes = $0.receive() { true } else { false } }.count
    }
    #expect(accepted == 185)
    for index in 0..<ContentGeometry.partCount(cipherLength: large.length) {
      _ = try await server.part(index, of: large, token: token).expect(204)
    }
    _ = try await server.complete(large, token: token).expect(200)
    try await server.put([zone.record(node, content: large.field)], in: &zone, token: token)
    #expect(try await server.content(large.blob, of: node, in: zone, token: token).status == 200)
    withExtendedLifetime(sockets) {}
    #expect(await server.stop() == 0)
  }

  @Test("S6: an address has its share of the connections, and loopback and proxies have none")
  func connectionsAreShared() throws {
    var proxies = TrustedProxies()
    let isAdded = proxies.add("10.0.0.1")
    #expect(isAdded)
    let table = ConnectionTable(perAddress: 2, exempt: proxies)
    let client = try #require(IPAddress("2001:db8::1"))
    let neighbour = try #require(IPAddress("2001:db8::2"))
    let first = try #require(table.open(client))
    #expect(table.open(neighbour) != nil)
    #expect(table.open(client) == nil)
    #expect(table.open(IPAddress("192.0.2.1")) != nil)
    table.close(first)
    #expect(table.open(client) != nil)
    for address in ["127.0.0.1", "10.0.0.1"] {
      for _ in 0..<5 { #expect(table.open(IPAddress(address)) != nil) }
    }
    #expect(table.count == 13)
    var bounds = Configuration.Bounds()
    #expect(bounds.connectionsPerAddress == bounds.connections / 8)
    bounds.connections = 16
    #expect(bounds.connectionsPerAddress == 8)
  }

  #if os(Linux)
    @Test("C11: the server leaves no core dump") func noCoreDumps() async throws {
      let folder = TestServer.newFolder()
      defer { TestServer.remove(folder) }
      let server = try await ServerProcess.serve(folder: folder)
      let process = "/proc/\(server.processIdentifier)/"
      let limits = try String(contentsOfFile: process + "limits", encoding: .utf8)
      #expect(limits.contains(#/Max core file size +0 +0 /#))
      let filter = try String(contentsOfFile: process + "coredump_filter", encoding: .utf8)
      #expect(UInt64(filter.filter(\.isHexDigit), radix: 16) == 0)
      #expect(await server.stop() == 0)
    }
  #endif

  // MARK: Command line

  @Test("M15: SIGHUP stops the server as SIGTERM does") func hangUpStops() async throws {
    let folder = TestServer.newFolder()
    defer { TestServer.remove(folder) }
    let server = try await ServerProcess.serve(folder: folder)
    #expect(try await server.send(.GET, Routes.health).status == 200)
    #expect(await server.hangUp() == 0)
  }

  @Test("M15: settings that an operator may not intend cause warnings") func doubtfulSettingsCauseWarnings() {
    var settings = Configuration()
    #expect(ServeWarnings.all(settings, hasInvites: false).contains { $0.contains("--admin-socket") })
    settings.adminSocket = "admin.sock"
    #expect(ServeWarnings.all(settings, hasInvites: false) == [])
    settings.host = "0.0.0.0"
    let warnings = ServeWarnings.all(settings, hasInvites: false)
    #expect(warnings.contains { $0.hasPrefix("plain HTTP on 0.0.0.0") })
    #expect(warnings.contains { $0.contains("--invite-file") })
    #expect(ServeWarnings.all(settings, hasInvites: true).count == 1)
    settings.host = "127.0.0.1"
    settings.origins = ["https://sync.example.org"]
    #expect(ServeWarnings.all(settings, hasInvites: true).contains { $0.contains("--trusted-proxy") })
  }

  @Test(
    "M14: numbers that make no sense are refused",
    arguments: [
      ["--drain", "9223372036854775807"], ["--drain", "0"], ["--idle-timeout", "9223372036854775807"],
      ["--retention", "18446744073709551615"], ["--max-streams", "-1"], ["--max-streams", "9223372036854775807"],
      ["--max-account-calls", "0"], ["--max-account-calls", "9223372036854775807"], ["--max-content-bytes", "1"],
      ["--quota", "18446744073709551615"],
    ])
  func hugeNumbersAreRefused(option: [String]) async throws {
    let folder = TestServer.newFolder()
    defer { TestServer.remove(folder) }
    // A port that is taken: a server that accepts the option ends with 69 instead of running.
    try await TestServer.run { (server: TestServer) async throws in
      let listen = ["--listen", "127.0.0.1:\(server.server.port)"]
      let ended = try await ServerProcess.run(["serve", "--data", folder] + listen + option)
      #expect(ended.status == 64)
    }
  }

  @Test("M15: a file that does not exist is reported as missing, with 66")
  func missingFilesAreMissing() async throws {
    let folder = TestServer.newFolder()
    defer { TestServer.remove(folder) }
    let none = folder + "-none"
    for option in [
      ["--invite-file", none], ["--metrics-token-file", none], ["--tls-cert", none, "--tls-key", none],
    ] {
      let ended = try await ServerProcess.run(["serve", "--data", folder, "--listen", "127.0.0.1:0"] + option)
      #expect(ended.status == 66, "\(option[0])")
    }
  }
}
