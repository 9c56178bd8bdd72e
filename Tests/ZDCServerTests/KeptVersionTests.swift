import Testing
import ZDCProtocol
import ZDCServer

/// What the server says about versions that were replaced or deleted: `POST …/kept` (PROTOCOL 4.4).
@Suite struct KeptVersionTests {
  private static let day: UInt64 = 24 * 3_600_000

  private static func kept(
    _ names: [(NodeID, RecordHash)], in zone: TestZone, token: [UInt8], _ server: TestServer
  ) async throws -> Answer {
    let path = Routes.path(Routes.kept, zone.zone.tree.text, zone.zone.root.text)
    return try await server.send(.POST, path, token: token, body: TestServer.recordNames(names))
  }

  /// Returns the states as texts: `-` not stored, `r` the record, `c` with content; a live one without a number of days.
  private static func states(
    _ names: [(NodeID, RecordHash)], in zone: TestZone, token: [UInt8], _ server: TestServer
  ) async throws -> [String] {
    let answer = try await kept(names, in: zone, token: token, server).expect(200)
    let now = server.clock.nowMs
    return try KeptState.all(answer.bytes, count: names.count).map { state in
      let days = state.untilMs == 0 ? "" : " \((state.untilMs - now) / day)"
      return (state.hasRecord ? state.hasContent ? "c" : "r" : "-") + days
    }
  }

  /// - a small and a large content, replaced, renamed and deleted
  /// => each version is stored with its content until the retention is over, a live one without a date
  @Test func eachVersionIsStoredUntilItsRetentionIsOver() async throws {
    try await TestServer.run({ $0.bounds.retentionMs = 3 * Self.day }) { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let (node, other) = (NodeID.random(), NodeID.random())
      let (small, large) = (TestZone.Content(), BlobTests.Large(200_000))
      let first = zone.record(node, content: small.field())
      try await server.put([first], contents: [small], in: &zone, token: token)
      try await server.upload(large, other, zone, token: token)
      let second = zone.record(other, content: large.field)
      try await server.put([second], in: &zone, token: token)
      let names = { (records: [NodeRecord]) in records.map { ($0.fields.node, $0.hash) } }
      #expect(try await Self.states(names([first, second]), in: zone, token: token, server) == ["c", "c"])
      // Another version of the same content, and one without any.
      let renamed = zone.record(node, content: small.field())
      let folder = zone.record(.random())
      try await server.put([renamed, folder], in: &zone, token: token)
      server.clock.advance(ms: Self.day)
      let later = try await server.login(account)
      try await server.delete(other, in: &zone, token: later)
      let all = names([first, second, renamed, folder]) + [(node, .zero), (other, first.hash)]
      #expect(
        try await Self.states(all, in: zone, token: later, server) == ["c 2", "c 3", "c", "r", "-", "-"])
      server.clock.advance(ms: 2 * Self.day + 1)
      try await server.server.collect()
      let late = try await server.login(account)
      #expect(
        try await Self.states(all, in: zone, token: late, server) == ["-", "c 0", "c", "r", "-", "-"])
      server.clock.advance(ms: Self.day)
      try await server.server.collect()
      #expect(
        try await Self.states(all, in: zone, token: try await server.login(account), server)
          == ["-", "-", "c", "r", "-", "-"])
    }
  }

  /// - deleted content is released for the sake of new content
  /// => the record is stored on, without its content
  @Test func contentThatAQuotaReleases_isNoLongerStored() async throws {
    try await TestServer.run({ $0.bounds.quotaBytes = 300_000 }) { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let (node, other) = (NodeID.random(), NodeID.random())
      let (large, next) = (BlobTests.Large(200_000), BlobTests.Large(200_000))
      try await server.upload(large, node, zone, token: token)
      let record = zone.record(node, content: large.field)
      try await server.put([record], in: &zone, token: token)
      try await server.delete(node, in: &zone, token: token)
      #expect(try await Self.states([(node, record.hash)], in: zone, token: token, server) == ["c 30"])
      try await server.upload(next, other, zone, token: token)
      #expect(try await Self.states([(node, record.hash)], in: zone, token: token, server) == ["r 30"])
    }
  }

  /// A deleted node that is put again under its ID may name the content that is kept for it.
  @Test func aDeletedNodeIsPutAgainWithItsContent() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let (node, other) = (NodeID.random(), NodeID.random())
      let (small, large) = (TestZone.Content(), BlobTests.Large(200_000))
      try await server.upload(large, other, zone, token: token)
      try await server.put(
        [zone.record(node, content: small.field()), zone.record(other, content: large.field)], contents: [small],
        in: &zone, token: token)
      for id in [node, other] { try await server.delete(id, in: &zone, token: token) }
      let again = [zone.record(node, content: small.field()), zone.record(other, content: large.field)]
      try await server.put(again, in: &zone, token: token)
      #expect(
        try await Self.states(again.map { ($0.fields.node, $0.hash) }, in: zone, token: token, server) == ["c", "c"])
      for (id, blob) in [(node, small.blob), (other, large.blob)] {
        #expect(try await server.content(blob, of: id, in: zone, token: token).status == 200)
      }
      server.clock.advance(ms: 31 * Self.day)
      try await server.server.collect()
      let late = try await server.login(account)
      for (id, blob) in [(node, small.blob), (other, large.blob)] {
        #expect(try await server.content(blob, of: id, in: zone, token: late).status == 200)
      }
    }
  }

  @Test func whoMayNotReadTheZone_learnsNothing() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let node = NodeID.random()
      let record = zone.record(node)
      try await server.put([record], in: &zone, token: token)
      let (member, memberToken) = try await server.newAccount()
      // Replaced before the member comes, and again afterwards.
      server.clock.advance(ms: 1_000)
      let second = zone.record(node)
      try await server.put([second], in: &zone, token: token)
      server.clock.advance(ms: 1_000)
      try await server.add(zone.member(member.userID, [.read]), to: &zone, token: token)
      server.clock.advance(ms: 1_000)
      try await server.put([zone.record(node)], in: &zone, token: token)
      let names = [(node, record.hash), (node, second.hash)]
      #expect(try await Self.states(names, in: zone, token: memberToken, server).map { $0.prefix(1) } == ["-", "r"])
      let (_, stranger) = try await server.newAccount()
      #expect(try await Self.kept(names, in: zone, token: stranger, server).status == 404)
      _ = try await server.commit(
        try zone.change(to: try zone.list(removing: member.userID), grants: []).body, token: token
      )
      .expect(200)
      #expect(try await Self.kept(names, in: zone, token: memberToken, server).status == 404)
    }
  }

  @Test func whatIsNoListOfRecords_isRefused() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let path = Routes.path(Routes.kept, account.home.zone.tree.text, account.home.zone.root.text)
      #expect(try await server.send(.POST, path, token: token, body: [1, 2, 3]).status == 400)
      let many = [UInt8](repeating: 0, count: 48 * (Limits.recordsPerRequest + 1))
      #expect(try await server.send(.POST, path, token: token, body: many).status == 413)
      #expect(try await server.send(.POST, path, token: token, body: []).bytes == [])
      #expect(throws: ZDCSecurityError.self) { try KeptState.all([3] + [UInt8](repeating: 0, count: 8), count: 1) }
      #expect(throws: ZDCSecurityError.self) { try KeptState.all([0] + [UInt8](repeating: 1, count: 8), count: 1) }
      #expect(throws: ZDCSecurityError.self) { try KeptState.all([], count: 1) }
    }
  }
}
