import AsyncHTTPClient
import Foundation
import NIOCore
import Testing
import ZDCProtocol
import ZDCServer

/// The alerts and the board in packaging/monitoring, and the table in docs/server.md, name what `/metrics` has.
@Suite struct MonitoringTests {
  private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()
  private static let folder = root.appending(path: "packaging/monitoring")

  private static func text(_ name: String) throws -> String {
    try String(contentsOf: folder.appending(path: name), encoding: .utf8)
  }

  private static func names(in text: String) -> Set<String> {
    Set(text.matches(of: /\bzdc_[a-z_]+/).map { String($0.output) })
  }

  @Test(arguments: ["alerts.yaml", "grafana.json"]) func everyMetricExists(_ file: String) async throws {
    let named = Self.names(in: try Self.text(file))
    #expect(named.count >= 3)
    try await TestServer.run { (server: TestServer) async throws in
      _ = try await server.newAccount()
      let metrics = String(decoding: try await server.send(.GET, Routes.metrics).expect(200).bytes, as: UTF8.self)
      let lines = metrics.split(separator: "\n").filter { $0.hasPrefix("# TYPE ") }
      #expect(named.subtracting(lines.map { String($0.split(separator: " ")[2]) }) == [])
      let labels = try #require(metrics.firstMatch(of: /zdc_requests_total\{(.*)\}/)).output.1
      #expect(labels.matches(of: /([a-z]+)=/).map { String($0.output.1) } == ["route", "method", "status"])
    }
  }

  /// - An alert or panel selects or groups by a label
  /// => it is one that Prometheus adds, or one of `zdc_requests_total`
  @Test(arguments: ["alerts.yaml", "grafana.json"]) func everyLabelExists(_ file: String) throws {
    let text = try Self.text(file)
    let grouped = text.matches(of: /\b(?:by|on) \(([a-z]+)\)/).map { String($0.output.1) }
    let selected = text.matches(of: /zdc_[a-z_]+\{([a-z]+)[=!]/).map { String($0.output.1) }
    #expect(!grouped.isEmpty && !selected.isEmpty)
    #expect(Set(grouped + selected).isSubset(of: ["instance", "route", "method", "status"]))
  }

  /// The table for operators has every metric with its type, in the order of `/metrics`.
  @Test func theDocumentListsEveryMetric() async throws {
    let page = try String(contentsOf: Self.root.appending(path: "docs/server.md"), encoding: .utf8)
    let rows = page.matches(of: /\| `(zdc_[a-z_]+)` \| ([a-z]+) \|/).map { "\($0.output.1) \($0.output.2)" }
    try await TestServer.run { (server: TestServer) async throws in
      let metrics = String(decoding: try await server.send(.GET, Routes.metrics).expect(200).bytes, as: UTF8.self)
      let types = metrics.split(separator: "\n").filter { $0.hasPrefix("# TYPE ") }.map { String($0.dropFirst(7)) }
      #expect(rows == types)
    }
  }

  /// - Content is downloaded
  /// => its bytes are counted once
  @Test func contentIsCountedOnce() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let (large, node) = (BlobTests.Large(300_000), NodeID.random())
      _ = try await server.ticket(large, node, zone, token: token).expect(201)
      for index in 0..<ContentGeometry.partCount(cipherLength: large.length) {
        _ = try await server.part(index, of: large, token: token).expect(204)
      }
      _ = try await server.complete(large, token: token).expect(200)
      try await server.put([zone.record(node, content: large.field)], in: &zone, token: token)
      let before = try await Self.sentBytes(server)
      let answer = try await server.content(large.blob, of: node, in: zone, token: token).expect(200)
      let sent = try await Self.sentBytes(server) - before
      #expect(sent >= answer.bytes.count && sent < answer.bytes.count + 50_000)
    }
  }

  /// - A client asks for content of 17 MB, and leaves when the first bytes arrive
  /// => what was sent is counted, without the rest
  @Test func aDownloadThatBreaksOff_countsWhatWasSent() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let (large, node) = (BlobTests.Large(), NodeID.random())
      try await server.upload(large, node, zone, token: token)
      try await server.put([zone.record(node, content: large.field)], in: &zone, token: token)
      let before = try await Self.sentBytes(server)
      let connections = server.server.connections
      let path = Routes.path(Routes.content, zone.zone.tree.text, node.text, large.blob.text)
      let head = "GET \(path) HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(ZBase32.encode(token))\r\n\r\n"
      let port = server.server.port
      try await RawConnection.onThread {
        let socket = try RawSocket(port: port, receiveBuffer: 4_096)
        socket.transmit(Array(head.utf8))
        while case .nothing = socket.receive() {}
      }
      while server.server.connections > connections { await Task.yield() }
      let sent = try await Self.sentBytes(server) - before
      #expect(sent > 0 && sent < large.bytes.count - 1_000_000, "\(sent) of \(large.bytes.count)")
    }
  }

  /// - A device waits for events while two commits are made
  /// => the first event, which is sent before the second one arrives, is counted
  @Test func eventsAreCounted() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let before = try await Self.sentBytes(server)
      let stream = try await ClientOver(origin: server.origin, client: .shared).openEvents(token: token)
      for _ in 0..<2 {
        let record = zone.record(.random()) { $0.sealedPrivate = randomBytes(30_000) }
        try await server.put([record], in: &zone, token: token)
      }
      var received = 0
      for try await bytes in stream.body {
        received += bytes.readableBytes
        if received > 60_000 { break }
      }
      #expect(try await Self.sentBytes(server) - before > 30_000)
    }
  }

  private static func sentBytes(_ server: TestServer) async throws -> Int {
    let metrics = String(decoding: try await server.send(.GET, Routes.metrics).expect(200).bytes, as: UTF8.self)
    return try #require(metrics.firstMatch(of: /zdc_sent_bytes_total ([0-9]+)/).flatMap { Int($0.output.1) })
  }

  /// The board covers every metric, so that a new one is not forgotten.
  @Test func theBoardShowsEveryMetric() async throws {
    let board = try Self.text("grafana.json")
    #expect(try JSONSerialization.jsonObject(with: Data(board.utf8)) is [String: Any])
    try await TestServer.run { (server: TestServer) async throws in
      let metrics = String(decoding: try await server.send(.GET, Routes.metrics).expect(200).bytes, as: UTF8.self)
      let all = metrics.split(separator: "\n").filter { $0.hasPrefix("# TYPE ") }.map { $0.split(separator: " ")[2] }
      #expect(Set(all.map(String.init)).subtracting(Self.names(in: board)) == [])
    }
  }
}
