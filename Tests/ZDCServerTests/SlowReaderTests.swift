import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import NIOSSL
import Testing
import ZDCProtocol
import ZDCServer

/// Clients that ask and do not read (SECURITY, "Limits of a server").
@Suite(.timeLimit(.minutes(20))) struct SlowReaderTests {
  /// Makes commits whose pages are as long as an event may be, until `isEnough`.
  private func commit(
    in zone: inout TestZone, _ server: some ServerClient, token: [UInt8], atMost: Int, until isEnough: () -> Bool
  ) async throws {
    for _ in 0..<atMost where !isEnough() {
      try await server.put(
        [
          zone.record(.random()) { $0.sealedPrivate = randomBytes(30_000) },
          zone.record(.random()) { $0.sealedPrivate = randomBytes(30_000) },
        ], in: &zone, token: token)
    }
  }

  /// - A client opens the event stream and stops reading; commits are made by the same user
  /// => the stream is gone after some megabytes, which the sockets hold; nothing more piles up
  @Test("S5: an event stream that its reader does not take is closed", arguments: [false, true])
  func stalledEventStreamIsClosed(isTLS: Bool) async throws {
    try await TestCertificate.withFiles { files in
      try await TestServer.run({
        if isTLS { $0.tls = files }
        $0.bounds.pendingEventBytes = 256 << 10
      }) { (server: TestServer) async throws in
        let client = isTLS ? TestCertificate.client() : HTTPClient.shared
        let over = ClientOver(origin: server.origin, client: client)
        let (account, token) = try await over.newAccount()
        var zone = account.home
        let stream = try await over.openEvents(token: token)
        while server.server.eventStreams == 0 { await Task.yield() }
        try await commit(in: &zone, over, token: token, atMost: 600) { server.server.eventStreams == 0 }
        // The last commits may still be on their way to the stream.
        while server.server.eventStreams > 0 { await Task.yield() }
        withExtendedLifetime(stream) {}
        #expect(zone.seq > 0)
        if isTLS { try await client.shutdown() }
      }
    }
  }

  /// - A client asks for 17 MB of content and reads none of it
  /// => its connection is closed
  @Test("S5: a download that its reader does not take is closed")
  func stalledDownloadIsClosed() async throws {
    try await TestServer.run({ $0.bounds.stalledSeconds = 1 }) { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let node = NodeID.random()
      let large = BlobTests.Large()
      try await server.upload(large, node, zone, token: token)
      try await server.put([zone.record(node, content: large.field)], in: &zone, token: token)
      let path = Routes.path(Routes.content, zone.zone.tree.text, node.text, large.blob.text)
      let before = server.server.connections
      let socket = try await Self.ask(path, server, token)
      while server.server.connections <= before { await Task.yield() }
      while server.server.connections > before { await Task.yield() }
      withExtendedLifetime(socket) {}
    }
  }

  /// - A client asks for pages of 4 MB on many connections and reads none of them
  /// => at most its share is kept for it; further requests have to be retried later
  @Test("S5: answers that no client reads are bounded for each user")
  func untakenPagesAreBounded() async throws {
    try await TestServer.run({ $0.bounds.bufferedAnswerBytes = 64 << 20 }) { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      for _ in 0..<3 {
        let records = (0..<45).map { _ in zone.record(.random()) { $0.sealedPrivate = randomBytes(32_000) } }
        try await server.put(records, in: &zone, token: token)
      }
      let path = Routes.path(Routes.zoneCommits, zone.zone.tree.text, zone.zone.root.text) + "?records=1"
      var sockets: [RawSocket] = []
      for _ in 0..<12 { sockets.append(try await Self.ask(path, server, token)) }
      var answer = try await server.send(.GET, path, token: token)
      // On a busy machine the server may have closed the first ones already.
      while answer.status == 200 {
        sockets.append(try await Self.ask(path, server, token))
        answer = try await server.send(.GET, path, token: token)
      }
      #expect(answer.error?.code == .tooManyRequests)
      #expect(server.server.unsentBytes <= (64 << 20) / 8)
      let (_, other) = try await server.newAccount()
      #expect(try await server.send(.GET, Routes.zones, token: other).status == 200)
      withExtendedLifetime(sockets) {}
    }
  }

  private static func ask(_ path: String, _ server: TestServer, _ token: [UInt8]) async throws -> RawSocket {
    let port = server.server.port
    let head = "GET \(path) HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(ZBase32.encode(token))\r\n\r\n"
    return try await RawConnection.onThread {
      let socket = try RawSocket(port: port, receiveBuffer: 4_096)
      socket.transmit(Array(head.utf8))
      return socket
    }
  }

  @Test("S13: TLS before 1.2 is refused")
  func oldTLSIsRefused() async throws {
    try await TestCertificate.withFiles { files in
      try await TestServer.run({ $0.tls = files }) { (server: TestServer) async throws in
        for (version, isTaken) in [(TLSVersion.tlsv11, false), (.tlsv12, true), (.tlsv13, true)] {
          let client = TestCertificate.client(newest: version)
          let answer = try? await client.execute(
            HTTPClientRequest(url: server.origin + Routes.health), timeout: .seconds(60))
          #expect((answer?.status.code == 200) == isTaken, "\(version)")
          try await client.shutdown()
        }
      }
    }
  }
}

/// A separate client, such as one over TLS.
struct ClientOver: ServerClient {
  let origin: String
  let client: HTTPClient

  var http: HTTPClient { client }

  /// Opens the event stream; nothing reads it.
  func openEvents(token: [UInt8]) async throws -> HTTPClientResponse {
    var request = HTTPClientRequest(url: origin + Routes.events)
    request.headers.add(name: "authorization", value: "Bearer \(ZBase32.encode(token))")
    return try await client.execute(request, timeout: .seconds(30))
  }
}
