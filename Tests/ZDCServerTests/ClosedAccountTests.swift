import Testing
import ZDCProtocol
import ZDCServer
import ZDCServerSQLite

/// A closed account is read-only for 30 days; then its data is removed (PROTOCOL 3.4).
@Suite struct ClosedAccountTests {
  private static let day: UInt64 = 24 * 3_600_000

  private static func close(_ account: TestAccount, _ server: TestServer, token: [UInt8]) async throws {
    let link = AppendLinkRequest(link: WireBytes(try account.closing().bytes))
    _ = try await server.sendJSON(.POST, Routes.links, link, token: token).expect(201)
    // The same link again is a lost answer.
    _ = try await server.sendJSON(.POST, Routes.links, link, token: token).expect(200)
  }

  /// An account with a small node, a large content and an upload that no commit has attached.
  private static func account(_ server: TestServer) async throws -> (TestAccount, TestZone, BlobTests.Large, NodeID) {
    let (account, token) = try await server.newAccount()
    var zone = account.home
    let (node, large) = (NodeID.random(), BlobTests.Large(200_000))
    try await server.upload(large, node, zone, token: token)
    try await server.put([zone.record(node, content: large.field), zone.record(.random())], in: &zone, token: token)
    try await server.upload(BlobTests.Large(300_000), .random(), zone, token: token)
    return (account, zone, large, node)
  }

  @Test func nothingIsWrittenAnyMore_andEverythingIsRead() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, zone, large, node) = try await Self.account(server)
      let token = try await server.login(account)
      try await Self.close(account, server, token: token)
      let (_, body) = try zone.put([zone.record(.random())])
      let claim = AppendLinkRequest(
        link: WireBytes(try account.claims(3, after: try account.closing()).bytes))
      let refusals = [
        try await server.commit(body, token: token),
        try await server.sendJSON(.POST, Routes.links, claim, token: token),
        try await server.ticket(BlobTests.Large(), .random(), zone, token: token),
      ]
      for refusal in refusals { #expect((refusal.status, refusal.error?.code) == (403, .accountClosed)) }
      server.clock.advance(ms: 30 * Self.day)
      try await server.server.collect()
      let late = try await server.login(account)
      #expect(try await server.page(zone.zone, token: late).status == 200)
      #expect(try await server.content(large.blob, of: node, in: zone, token: late).status == 200)
      #expect(try await server.send(.GET, Routes.keyring, token: late).status == 200)
    }
  }

  @Test func afterThirtyDays_onlyTheChainIsLeft() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, zone, _, _) = try await Self.account(server)
      let (other, _) = try await server.newAccount()
      try await Self.close(account, server, token: try await server.login(account))
      server.clock.advance(ms: 29 * Self.day)
      let running = try await server.login(account)
      server.clock.advance(ms: Self.day + 1)
      try await server.server.collect()
      #expect(try await server.send(.GET, Routes.keyring, token: running).status == 401)
      let request = try account.login(try await server.challenge(account), origin: server.origin)
      #expect(try await server.sendJSON(.POST, Routes.login, request).status == 401)
      let usage = try await server.store.read { try $0.usage(of: account.userID) }
      #expect(usage == UsageRow())
      #expect(try await server.store.read { try $0.zone(zone.zone) } == nil)
      #expect(try await server.store.read { try $0.trees(of: account.userID) } == [])
      #expect(try await server.blobs.all() == [])
      let token = try await server.login(other)
      let chain = try await server.send(.GET, Routes.path(Routes.chain, account.userID.text), token: token)
      #expect(chain.status == 200 && chain.bytes.count > 2 * 1_600)
      // The other account keeps everything, and the server continues its numbering.
      var home = other.home
      try await server.put([home.record(.random())], in: &home, token: token)
    }
  }

  /// Removing the newest commits must not give their positions to later ones: a client would miss those.
  @Test func aPositionIsNeverGivenTwice() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (other, _) = try await server.newAccount()
      let (account, _, _, _) = try await Self.account(server)
      try await Self.close(account, server, token: try await server.login(account))
      let before: ZoneList = try await server.send(.GET, Routes.zones, token: try await server.login(other)).json()
      server.clock.advance(ms: 30 * Self.day + 1)
      try await server.server.collect()
      let token = try await server.login(other)
      var home = other.home
      try await server.put([home.record(.random())], in: &home, token: token)
      let position = try #require(before.feedPosition)
      let since: ZoneList = try await server.send(.GET, "\(Routes.zones)?since=\(position.text)", token: token).json()
      #expect(since.zones.map(\.zone) == [home.zone])
    }
  }

  @Test(.needsFolder) func theCheckFindsNothingWrong() async throws {
    let folder = TestServer.newFolder()
    defer { TestServer.remove(folder) }
    try await TestServer.run(in: folder) { (server: TestServer) async throws in
      let (account, _, _, _) = try await Self.account(server)
      _ = try await server.newAccount()
      try await Self.close(account, server, token: try await server.login(account))
      server.clock.advance(ms: 30 * Self.day + 1)
      try await server.server.collect()
    }
    #expect(try TestStores.findings(in: folder).map(\.description) == [])
  }

  @Test(arguments: StoreContractTests.stores)
  func aStoreRemovesNoOpenAccount(_ maker: StoreContractTests.Maker) async throws {
    try await StoreContractTests.withStore(maker) { (store: any MetadataStore) async throws in
      let account = try TestAccount()
      let row = UserRow(
        id: account.userID, lookup: account.lookupID, loginKey: [1], genesis: account.genesis.hash, linkSeq: 0,
        linkHead: account.genesis.hash, signGen: 1, encGen: 1, createdMs: 1)
      try await store.write([.account(row.id)]) { tx in
        try tx.insertUser(row)
        try tx.setKeyring([1], of: row.id)
      }
      func remove() async throws -> Bool {
        try await store.write([.upkeep]) { try $0.removeClosedAccounts(closedBefore: 100, limit: 10) }.isMore
      }
      #expect(try await !remove())
      for (closedMs, isRemoved) in [(UInt64(100), false), (99, true)] {
        try await store.write([.account(row.id)]) { tx in
          var closed = row
          closed.closedMs = closedMs
          try tx.updateUser(closed)
        }
        #expect(try await remove() == isRemoved)
      }
      #expect(try await !remove())
      #expect(try await store.read { try $0.user(lookup: row.lookup) } == nil)
      #expect(try await store.read { try $0.user(row.id)?.closedMs } == 99)
    }
  }
}
