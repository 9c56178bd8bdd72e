import Testing
import ZDCProtocol
import ZDCServer

/// The directory of handles: `setHandle` of every store, and the routes.
@Suite(.timeLimit(.minutes(5))) struct HandleTests {
  static let hold: UInt64 = 30 * 86_400_000

  // MARK: The stores' contract

  private func user(_ number: UInt8) -> UserRow {
    let id = UserID([UInt8](repeating: number, count: 32))!
    return UserRow(
      id: id, lookup: LookupID([UInt8](repeating: number, count: 16))!, loginKey: [number],
      genesis: LinkHash(reinterpreting: id), linkSeq: 0, linkHead: LinkHash(reinterpreting: id), signGen: 1,
      encGen: 1, createdMs: 1)
  }

  private func set(
    _ name: String?, of user: UserRow, at now: UInt64, in store: any MetadataStore
  ) async throws -> Bool {
    let handle = name.flatMap { Handle($0) }
    return try await store.write([.account(user.id)]) { tx in
      try tx.setHandle(handle, of: user.id, now: now, freeBefore: now - min(now, Self.hold))
    }
  }

  private func found(_ beginning: String, limit: Int = 20, in store: any MetadataStore) async throws -> [String] {
    try await store.read {
      try $0.handles(beginning: beginning, limit: limit).map { "\($0.handle) \($0.user.bytes[0])" }
    }
  }

  @Test(
    "a handle has one user; one that was given up is reserved, the last one only", arguments: StoreContractTests.stores)
  func contract(_ maker: StoreContractTests.Maker) async throws {
    try await StoreContractTests.withStore(maker) { (store: any MetadataStore) async throws in
      let (a, b) = (user(1), user(2))
      try await store.write([.account(a.id), .account(b.id)]) { tx in
        try tx.insertUser(a)
        try tx.insertUser(b)
      }
      #expect(try await set("alice", of: a, at: 10, in: store))
      #expect(try await set("alice", of: a, at: 11, in: store))
      #expect(try await !set("alice", of: b, at: 12, in: store))
      #expect(try await set("alicia", of: b, at: 13, in: store))
      #expect(try await found("ali", in: store) == ["@alice 1", "@alicia 2"])
      #expect(try await found("ali", limit: 1, in: store) == ["@alice 1"])
      #expect(try await found("alic.", in: store) == [])
      #expect(try await found("alicia", in: store) == ["@alicia 2"])

      #expect(try await set("ann", of: a, at: 100, in: store))
      #expect(try await found("ali", in: store) == ["@alicia 2"])
      #expect(try await !set("alice", of: b, at: 100 + Self.hold, in: store))
      #expect(
        try await store.read { try $0.handles(of: a.id) }
          == [HandleRow(handle: Handle("alice")!, releasedMs: 100), HandleRow(handle: Handle("ann")!, releasedMs: nil)])
      #expect(try await set("alice", of: a, at: 200, in: store))
      #expect(try await set("anna", of: a, at: 300, in: store))
      // "ann" was given up before "alice", and is free.
      #expect(try await set("ann", of: b, at: 301, in: store))
      #expect(try await set("alice", of: b, at: 301 + Self.hold, in: store))
      #expect(try await set(nil, of: a, at: 400, in: store))
      #expect(try await found("ann", in: store) == [])
      #expect(try await found("alice", in: store) == ["@alice 2"])
    }
  }

  @Test("two users who ask at the same time: one gets it", arguments: StoreContractTests.stores)
  func atTheSameTime(_ maker: StoreContractTests.Maker) async throws {
    try await StoreContractTests.withStore(maker) { (store: any MetadataStore) async throws in
      let users = (1...8).map { user($0) }
      try await store.write(Set(users.map { .account($0.id) })) { tx in for user in users { try tx.insertUser(user) } }
      let winners = try await withThrowingTaskGroup(of: Bool.self) { group in
        for user in users { group.addTask { try await set("alice", of: user, at: 5, in: store) } }
        return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
      }
      #expect(winners == 1)
      #expect(try await found("alice", in: store).count == 1)
    }
  }

  // MARK: The routes

  private func look(_ text: String, _ server: TestServer, _ token: [UInt8]) async throws -> [HandleList.Entry] {
    let answer = try await server.send(.GET, Routes.path(Routes.handles, text), token: token)
    #expect(answer.status == 200)
    #expect(answer.bytes.count == HandleList.byteCount)
    return try HandleList.read(answer.bytes, beginning: text)
  }

  private func claim(
    _ claims: [IdentityLink.Claim], _ account: TestAccount, after last: IdentityLink, _ server: TestServer,
    _ token: [UInt8]
  ) async throws -> (answer: Answer, link: IdentityLink) {
    let link = try account.claims(claims, after: last)
    return (
      try await server.sendJSON(.POST, Routes.links, AppendLinkRequest(link: WireBytes(link.bytes)), token: token), link
    )
  }

  @Test("a claim is found at once, by its beginning; an unknown one gets an answer of the same length")
  func claims() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (alice, token) = try await server.newAccount()
      let (bob, bobToken) = try await server.newAccount()
      #expect(try await look("alice", server, bobToken) == [])
      let handle = try #require(Handle("alice"))
      let first = try await claim([.handle(handle)], alice, after: alice.genesis, server, token)
      #expect(first.answer.status == 201)
      #expect(try await look("ali", server, bobToken) == [HandleList.Entry(handle: handle, user: alice.userID)])
      let taken = try await claim([.handle(handle)], bob, after: bob.genesis, server, bobToken)
      #expect((taken.answer.status, taken.answer.error?.code) == (409, .handleTaken))
      // The refused link is not in the chain.
      let other = try await claim([.handle(Handle("bob"))], bob, after: bob.genesis, server, bobToken)
      #expect(other.answer.status == 201)
      let none = try await claim([.handle(nil)], alice, after: first.link, server, token)
      #expect(none.answer.status == 201)
      #expect(try await look("alice", server, bobToken) == [])
      server.clock.advance(ms: Self.hold)
      let renewed = try await server.login(bob)
      let again = try await claim([.handle(handle)], bob, after: other.link, server, renewed)
      #expect(again.answer.error?.code == .handleTaken)
      server.clock.advance(ms: 1_000)
      #expect(try await claim([.handle(handle)], bob, after: other.link, server, renewed).answer.status == 201)
    }
  }

  @Test("what is no handle is refused: also two of them, and a beginning that none can have")
  func refusals() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (alice, token) = try await server.newAccount()
      let typed = { (text: String) in IdentityLink.Claim(type: IdentityLink.Claim.handle, value: Array(text.utf8)) }
      for claims in [[typed("Alice")], [typed("al")], [typed("alice"), typed("bob")], [typed("--")]] {
        let refused = try await claim(claims, alice, after: alice.genesis, server, token)
        #expect((refused.answer.status, refused.answer.error?.code) == (400, .invalidRequest))
      }
      for text in ["al", "Alice", "1al", "a..b", "%00%00%00"] {
        let answer = try await server.send(.GET, Routes.path(Routes.handles, text), token: token)
        #expect((answer.status, answer.error?.code) == (400, .invalidRequest), "\(text)")
      }
      #expect(try await server.send(.GET, Routes.path(Routes.handles, "alice")).status == 401)
    }
  }

  @Test("look-ups of a user are limited; those of others are not affected")
  func lookupsAreLimited() async throws {
    try await TestServer.run({ $0.bounds.lookupsPerMinute = 3 }) { (server: TestServer) async throws in
      let (_, token) = try await server.newAccount()
      let (_, other) = try await server.newAccount()
      for _ in 0..<6 { _ = try await look("alice", server, token) }
      let refused = try await server.send(.GET, Routes.path(Routes.handles, "alice"), token: token)
      #expect((refused.status, refused.error?.code) == (429, .tooManyRequests))
      _ = try await look("alice", server, other)
      server.clock.advance(ms: 20_000)
      _ = try await look("alice", server, token)
    }
  }

  @Test("a closed account has no handle, and no other user gets it for 30 days")
  func closed() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (alice, token) = try await server.newAccount()
      let (bob, bobToken) = try await server.newAccount()
      let handle = try #require(Handle("alice"))
      let first = try await claim([.handle(handle)], alice, after: alice.genesis, server, token)
      let closing = AppendLinkRequest(link: WireBytes(try alice.closing(after: first.link).bytes))
      #expect(try await server.sendJSON(.POST, Routes.links, closing, token: token).status == 201)
      #expect(try await look("alice", server, bobToken) == [])
      let refused = try await claim([.handle(handle)], bob, after: bob.genesis, server, bobToken)
      #expect(refused.answer.error?.code == .handleTaken)
    }
  }
}
