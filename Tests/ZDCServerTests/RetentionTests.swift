import Testing
import ZDCProtocol
import ZDCServer

/// Which rows and files are collected and when, and the answers about them afterwards.
@Suite struct RetentionTests {
  private static let day: UInt64 = 24 * 3_600_000

  /// - day 0 ticket, day 6 a part, day 12 still there, day 14 gone
  @Test func anIncompleteUploadIsKeptForSevenDaysAfterItsLastPart() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let large = BlobTests.Large()
      _ = try await server.ticket(large, .random(), account.home, token: token).expect(201)
      server.clock.advance(ms: 6 * Self.day)
      try await server.server.collect()
      var again = try await server.login(account)
      _ = try await server.part(1, of: large, token: again).expect(204)
      server.clock.advance(ms: 6 * Self.day)
      try await server.server.collect()
      again = try await server.login(account)
      #expect(try await server.parts(of: large, token: again).parts.map(\.index) == [1])
      server.clock.advance(ms: Self.day + 1)
      try await server.server.collect()
      again = try await server.login(account)
      let path = Routes.path(Routes.blobParts, large.blob.text)
      #expect(try await server.send(.GET, path, token: again).status == 404)
      #expect(try await server.blobs.all() == [])
    }
  }

  @Test func anUnattachedUpload_isCollected_andALaterCommitIsToldSo() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let large = BlobTests.Large(200_000)
      let node = NodeID.random()
      try await server.upload(large, node, account.home, token: token)
      server.clock.advance(ms: 7 * Self.day + 1)
      try await server.server.collect()
      let late = try await server.login(account)
      let (_, body) = try account.home.put([account.home.record(node, content: large.field)])
      let refused = try await server.commit(body, token: late)
      #expect((refused.status, refused.error?.code) == (410, .blobGone))
      #expect(try await server.blobs.all() == [])
    }
  }

  @Test func retentionIsWhatTheOperatorSays_forDeletedContentToo() async throws {
    try await TestServer.run({ $0.bounds.retentionMs = 2 * Self.day }) { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let node = NodeID.random()
      let large = BlobTests.Large(200_000)
      try await server.upload(large, node, zone, token: token)
      try await server.put([zone.record(node, content: large.field)], in: &zone, token: token)
      try await server.delete(node, in: &zone, token: token)
      server.clock.advance(ms: Self.day)
      try await server.server.collect()
      let still = try await server.content(large.blob, of: node, in: zone, token: try await server.login(account))
      #expect(still.status == 200)
      server.clock.advance(ms: Self.day + 1)
      try await server.server.collect()
      let late = try await server.content(large.blob, of: node, in: zone, token: try await server.login(account))
      #expect((late.status, late.error?.code) == (410, .blobGone))
      #expect(try await server.blobs.all() == [])
      let (_, stranger) = try await server.newAccount()
      #expect(try await server.content(large.blob, of: node, in: zone, token: stranger).status == 404)
    }
  }

  /// More than one batch of records, and no content at all: all of it goes in one pass.
  @Test func aCollectionContinuesUntilNothingIsLeft() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let nodes = (0..<600).map { _ in NodeID.random() }
      for _ in 0..<3 { try await server.put(nodes.map { zone.record($0) }, in: &zone, token: token) }
      server.clock.advance(ms: 31 * Self.day)
      try await server.server.collect()
      let usage = try await server.store.read { try $0.usage(of: account.userID) }
      #expect(usage.records == 604)
    }
  }

  @Test func expiredSessionsAreForgotten() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, _) = try await server.newAccount()
      let user = account.userID
      #expect(try await server.store.read { try $0.sessions(of: user).count } == 1)
      server.clock.advance(ms: Self.day + 1)
      try await server.server.collect()
      #expect(try await server.store.read { try $0.sessions(of: user).count } == 0)
    }
  }

  @Test func aDeviceHasEightSessions_andTheOldestGoes() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, first) = try await server.newAccount()
      let other = try await server.login(account, device: .random())
      func status(_ token: [UInt8]) async throws -> Int {
        try await server.send(.GET, Routes.zones, token: token).status
      }
      #expect(try await status(first) == 200)
      var tokens: [[UInt8]] = []
      for _ in 0..<8 {
        server.clock.advance(ms: 1)
        tokens.append(try await server.login(account))
      }
      #expect(try await status(first) == 401)
      for token in tokens + [other] { #expect(try await status(token) == 200) }
    }
  }
}
