import Foundation
import Testing
import ZDCProtocol
import ZDCServer

/// Input that no client of ours sends, through a plain socket: a typed answer or a closed connection, little memory
/// used, and the server keeps running (SECURITY 5.7, 37).
@Suite(.timeLimit(.minutes(20))) struct HostileInputTests {
  private static func head(
    _ method: String, _ path: String, token: [UInt8]? = nil, _ fields: String...
  ) -> String {
    let authorization = token.map { ["Authorization: Bearer \(ZBase32.encode($0))"] } ?? []
    let lines = ["\(method) \(path) HTTP/1.1", "Host: localhost", "Connection: close"] + authorization + fields
    return lines.joined(separator: "\r\n") + "\r\n\r\n"
  }

  private func shouldContinue(_ server: TestServer) async throws {
    #expect(try await server.send(.GET, Routes.health).status == 200)
  }

  // MARK: Lengths

  /// The answer comes before a byte of the body was sent.
  @Test(arguments: [1_370_000_000, Int.max]) func announcedLength_isRefusedUnread(length: Int) async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (_, token) = try await server.newAccount()
      let head = Self.head("POST", Routes.commits, token: token, "Content-Length: \(length)")
      let talk = try await RawConnection.exchange(port: server.server.port, head) { _ in nil }
      #expect((talk.status, talk.error?.code) == (413, .limitExceeded))
      try await shouldContinue(server)
    }
  }

  @Test(arguments: [
    "Content-Length: 9223372036854775808", "Content-Length: 18446744073709551616", "Content-Length: -1",
    "Content-Length: 1e9", "Transfer-Encoding: chunked\r\nContent-Length: 3", "Content-Length: 1\r\nContent-Length: 2",
  ])
  func lengthThatIsNone_endsTheConnection(field: String) async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let head = Self.head("POST", Routes.challenge, field)
      let talk = try await RawConnection.exchange(port: server.server.port, head) { _ in nil }
      #expect(talk.isClosed)
      #expect(talk.answer.isEmpty || [400, 413].contains(talk.status))
      try await shouldContinue(server)
    }
  }

  @Test(arguments: ["7fffffffffffffff", "8000000000000000", "ffffffffffffffffff", "-1"])
  func chunkOfThatLength_isNotWaitedFor(size: String) async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let head = Self.head("POST", Routes.accounts, "Transfer-Encoding: chunked")
      let talk = try await RawConnection.exchange(port: server.server.port, head + "\(size)\r\n") { _ in
        [UInt8](repeating: 0x20, count: 65_536)
      }
      #expect(talk.isClosed)
      #expect(talk.answer.isEmpty || [400, 413].contains(talk.status))
      #expect(talk.sent < 64 << 20)
      try await shouldContinue(server)
    }
  }

  /// A connection is closed first, then what came over it is let go. Hangs if it is not.
  private static func untilNothingIsBuffered(_ server: TestServer) async throws {
    while server.server.bufferedBytes > 0 { try await Task.sleep(for: .milliseconds(5)) }
  }

  /// - A body in chunks that never ends
  /// => refused at the route's limit; the client has sent no more than that and the sockets' buffers
  @Test func bodyWithoutEnd_isCutAtTheLimit() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let head = Self.head("POST", Routes.accounts, "Transfer-Encoding: chunked")
      let chunk = Array("10000\r\n".utf8) + [UInt8](repeating: 0x20, count: 65_536) + Array("\r\n".utf8)
      let talk = try await RawConnection.exchange(port: server.server.port, head) { _ in chunk }
      #expect(talk.isClosed)
      #expect(talk.answer.isEmpty || talk.error?.code == .limitExceeded)
      #expect(talk.sent < Limits.jsonBytes + 32 << 20)
      try await Self.untilNothingIsBuffered(server)
      try await shouldContinue(server)
    }
  }

  /// - A client goes away in the middle of a part that the server is writing
  /// => the client's error: neither counted nor logged as one of the server
  @Test func bodyThatBreaksOff_isNoErrorOfTheServer() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let large = BlobTests.Large()
      let part = large.part(0)
      let ticket = BlobTicketRequest(
        blobID: large.blob, treeID: account.home.zone.tree, nodeID: .random(), cipherLength: large.length)
      _ = try await server.sendJSON(.POST, Routes.blobs, ticket, token: token).expect(201)
      let head = Self.head(
        "PUT", Routes.path(Routes.blobPart, large.blob.text, "0"), token: token, "Content-Length: \(part.count)",
        "\(WireHeaders.partHash): \(ZBase32.encode(large.hash(ofPart: 0, part)))")
      let port = server.server.port
      _ = try await RawConnection.onThread {
        try RawSocket(port: port).transmit(Array(head.utf8) + part.prefix(1_000_000))
      }
      var counts = ""
      while !counts.contains("parts/{index}\",method=\"PUT\"") {
        counts = try await server.send(.GET, Routes.metrics).text
      }
      #expect(!counts.contains("status=\"5"))
    }
  }

  @Test func headWithoutEnd_isCut() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let line = Array("X-Field: \(String(repeating: "x", count: 4_000))\r\n".utf8)
      let talk = try await RawConnection.exchange(port: server.server.port, "GET / HTTP/1.1\r\n") { _ in line }
      #expect(talk.isClosed && talk.answer.isEmpty)
      // The buffers of both sockets take megabytes that the server never reads.
      #expect(talk.sent < 32 << 20)
      try await shouldContinue(server)
    }
  }

  /// The head of a request that the server answers, whose path, names and values have so many bytes.
  private static func head(counting count: Int) -> String {
    var (text, left) = ("GET \(Routes.health) HTTP/1.1\r\n", count - Routes.health.utf8.count)
    func add(_ name: String, _ value: String) {
      text += "\(name): \(value)\r\n"
      left -= name.utf8.count + value.utf8.count
    }
    add("Host", "localhost")
    add("Connection", "close")
    while left > 0 { add("X", String(repeating: "x", count: min(left, 4_000) - 1)) }
    return text + "\r\n"
  }

  /// => a head with 80 KiB of path, names and values is answered, the connection of one with a byte more ends without an
  /// answer
  @Test(arguments: [-1, 0, 1]) func longestHead_isAnswered(more: Int) async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let head = Self.head(counting: (80 << 10) + more)
      let talk = try await RawConnection.exchange(port: server.server.port, head) { _ in nil }
      #expect(talk.isClosed)
      #expect(talk.status == (more > 0 ? nil : 200))
      try await shouldContinue(server)
    }
  }

  /// Items and commits that announce more than there is.
  @Test(
    arguments: [
      [1, 0xFF, 0xFF, 0xFF, 0xFF], [5, 0x7F, 0xFF, 0xFF, 0xFF, 1], [1, 0, 0, 0, 0], [0xFF, 0, 0, 0, 0],
    ] as [[UInt8]])
  func itemsOfThatLength_areRefused(body: [UInt8]) async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (_, token) = try await server.newAccount()
      let answer = try await server.commit(body, token: token)
      #expect([400, 413, 422].contains(answer.status))
      #expect(answer.error != nil)
    }
  }

  /// - A commit whose signed bytes announce 65,535 operations, the most that the field can say
  /// => refused by the count, before any of them is looked for
  @Test func announcedOperations_areRefusedByTheirNumber() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let zone = account.home
      let commit = try zone.put([zone.record(.random())]).commit
      var bytes = commit.bytes
      // The count precedes one put of 73 bytes and the signature.
      let place = bytes.count - 64 - 73 - 2
      #expect(bytes[place...place + 1].elementsEqual([0, 1]))
      bytes.replaceSubrange(place...place + 1, with: [0xFF, 0xFF])
      let length = bytes.count + 8
      let item = [1, 0, 0, UInt8(length >> 8), UInt8(length & 0xFF)] + [UInt8](repeating: 0, count: 8)
      let answer = try await server.commit(item + bytes, token: token)
      #expect(answer.error?.security == .limitExceeded)
    }
  }

  /// Numbers at the end of their range, wherever a request has one.
  @Test func numbersAtTheirEnd_areAnswered() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let large = BlobTests.Large(200_000)
      let node = NodeID.random()
      try await server.upload(large, node, zone, token: token)
      try await server.put([zone.record(node, content: large.field)], in: &zone, token: token)
      let blob = Routes.path(Routes.content, zone.zone.tree.text, node.text, large.blob.text)
      let commits = Routes.path(Routes.zoneCommits, zone.zone.tree.text, zone.zone.root.text)
      for number in ["9223372036854775807", "9223372036854775808", "18446744073709551615"] {
        for (path, statuses) in [
          ("\(commits)?after=\(number)", [200]), ("\(Routes.zones)?since=\(number)", [200]),
          ("\(blob)/leaves?from=\(number)", [416]), ("\(blob)/leaves?from=1&count=\(number)", [200]),
          ("\(blob)/proof?from=\(number)&count=\(number)", [416]), ("\(blob)/proof?from=1&count=\(number)", [200]),
        ] {
          let answer = try await server.send(.GET, path, token: token)
          #expect(statuses.contains(answer.status), "\(path) gave \(answer.status)")
        }
        for range in ["bytes=\(number)-", "bytes=0-\(number)", "bytes=-\(number)", "bytes=\(number)-\(number)"] {
          let answer = try await server.send(.GET, blob, token: token, headers: [("range", range)])
          #expect([206, 416].contains(answer.status), "\(range) gave \(answer.status)")
        }
        let ticket = """
          {"blobID":"\(BlobID.random().text)","treeID":"\(zone.zone.tree.text)",\
          "nodeID":"\(NodeID.random().text)","cipherLength":\(number)}
          """
        let refused = try await server.send(.POST, Routes.blobs, token: token, body: Array(ticket.utf8))
        #expect([400, 413].contains(refused.status) && refused.error != nil, "\(number) gave \(refused.text)")
      }
    }
  }

  // MARK: Compression

  /// Nothing is ever inflated: neither a bomb nor a well-meant body is looked at.
  @Test(arguments: ["gzip", "deflate", "br", "identity, gzip", "x-unknown"])
  func compressedBody_isRefusedUnread(encoding: String) async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let head = Self.head(
        "POST", Routes.challenge, "Content-Type: application/json", "Content-Encoding: \(encoding)",
        "Content-Length: 16000")
      let talk = try await RawConnection.exchange(port: server.server.port, head) { _ in nil }
      #expect((talk.status, talk.error?.code) == (400, .invalidRequest))
      try await shouldContinue(server)
    }
  }

  // MARK: Many slow connections

  /// - 48 connections, each with a head or a body that comes byte by byte
  /// => all are closed; a proper request in between is answered
  @Test func slowConnections_areAllClosed() async throws {
    try await TestServer.run {
      $0.bounds.idleSeconds = 1
    } _: { (server: TestServer) async throws in
      let port = server.server.port
      let body = Self.head("POST", Routes.challenge, "Content-Length: 5000")
      let closed = try await withThrowingTaskGroup(of: Bool.self) { group in
        for number in 0..<48 {
          let start = [body, "POST /v1/auth/challenge HTTP/1.1\r\nX: ", "P"][number % 3]
          group.addTask { try await RawConnection.isCutOff(port: port, after: start) { "x" } }
        }
        try await shouldContinue(server)
        return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
      }
      #expect(closed == 48)
      try await Self.untilNothingIsBuffered(server)
    }
  }

  @Test("S3: a body that comes too slowly is closed, however long a connection may be idle")
  func slowBodyIsClosed() async throws {
    try await TestServer.run {
      ($0.bounds.bodySeconds, $0.bounds.bytesPerWindow) = (1, 100)
    } _: { (server: TestServer) async throws in
      let head = Self.head("POST", Routes.challenge, "Content-Length: 5000")
      #expect(try await RawConnection.isCutOff(port: server.server.port, after: head) { "x" })
      let fast = String(repeating: " ", count: 1_000)
      let talk = try await RawConnection.exchange(port: server.server.port, head) { $0 < 5 ? Array(fast.utf8) : nil }
      #expect(talk.error?.code == .invalidRequest)
    }
  }

  /// - Bodies that one user does not finish fill that user's share of what the server keeps
  /// => the user's next one has to be retried later, another user's is accepted; when they are gone there is room
  @Test("S3: unfinished bodies are bounded for each user") func unfinishedBodies_areBoundedForEachUser() async throws {
    try await TestServer.run {
      $0.bounds.bufferedBodyBytes = 8 << 20
    } _: { (server: TestServer) async throws in
      let running = server.server
      let (_, token) = try await server.newAccount()
      let (_, otherToken) = try await server.newAccount()
      let most = [UInt8](repeating: 0x20, count: 600_000)
      let head = Self.head("POST", Routes.commits, token: token, "Content-Length: 2000000")
      var socket: RawSocket? = try await RawConnection.onThread {
        let socket = try RawSocket(port: running.port)
        socket.transmit(Array(head.utf8) + most)
        return socket
      }
      while running.bufferedBytes < most.count { await Task.yield() }
      let told = try await server.commit(most, token: token)
      #expect((told.status, told.error?.code) == (429, .tooManyRequests))
      #expect(running.bufferedBytes == most.count)
      #expect([400, 422].contains(try await server.commit(most, token: otherToken).status))
      #expect(socket != nil)
      socket = nil
      while running.bufferedBytes > 0 { await Task.yield() }
      #expect([400, 422].contains(try await server.commit(most, token: token).status))
    }
  }
}
