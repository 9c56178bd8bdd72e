import Testing
import ZDCProtocol
import ZDCServer

/// The server's checks of members: their keys and accounts, what they may read and how much they may add.
@Suite struct MemberRulesTests {
  /// An owner's home, and another account.
  private struct Pair {
    let server: TestServer
    let owner: TestAccount
    let token: [UInt8]
    let other: TestAccount
    let otherToken: [UInt8]
    var zone: TestZone

    init(_ server: TestServer) async throws {
      self.server = server
      (owner, token) = try await server.newAccount()
      (other, otherToken) = try await server.newAccount()
      zone = owner.home
    }

    mutating func add(_ permissions: ZoneACL.Permissions = [.read, .write]) async throws {
      try await server.add(zone.member(other.userID, permissions), to: &zone, token: token)
    }

    /// A commit of the other user that puts a new node.
    mutating func putByOther(bytes: Int = 200) async throws -> Answer {
      let record = zone.record(.random()) { fields in
        fields.writer = other.userID
        fields.sealedPrivate = randomBytes(bytes)
      }
      let commit = try zone.commit(by: other, [.put(.init(record))], list: zone.acl)
      let answer = try await server.commit(TestZone.body(commit, records: [record]), token: otherToken)
      if answer.status == 200 { zone.accepted(commit, records: [record]) }
      return answer
    }

    func change(to list: ZoneACL, grants: [Grant] = []) async throws -> Answer {
      try await server.commit(try zone.change(to: list, grants: grants).body, token: token)
    }

    func append(_ link: IdentityLink, token: [UInt8]) async throws {
      let request = AppendLinkRequest(link: WireBytes(link.bytes))
      _ = try await server.sendJSON(.POST, Routes.links, request, token: token).expect(201)
    }
  }

  private static func run(
    _ change: (inout Configuration) -> Void = { _ in }, _ body: (TestServer, inout Pair) async throws -> Void
  ) async throws {
    try await TestServer.run(change) { (server: TestServer) async throws in
      var pair = try await Pair(server)
      try await body(server, &pair)
    }
  }

  // MARK: Replaced data

  /// - A record and its content are replaced before a member is added, and again afterwards
  /// => the member reads only what was replaced while they were a member; the owner reads all
  @Test("K-11: a new member does not read what was replaced before") func replacedDataIsForMembersOfItsTime()
    async throws
  {
    try await Self.run { server, pair in
      let node = NodeID.random()
      let contents = (0..<3).map { _ in TestZone.Content() }
      var records: [NodeRecord] = []
      for (index, content) in contents.enumerated() {
        server.clock.advance(ms: 1_000)
        if index == 2 { try await pair.add() }
        server.clock.advance(ms: 1_000)
        records.append(pair.zone.record(node, content: content.field(version: UInt64(index + 1))))
        try await server.put([records[index]], contents: [content], in: &pair.zone, token: pair.token)
      }
      let names = records.map { (node, $0.hash) }
      let path = Routes.path(Routes.records, pair.zone.zone.tree.text, pair.zone.zone.root.text)
      func read(_ names: [(NodeID, RecordHash)], _ token: [UInt8]) async throws -> Answer {
        try await server.send(.POST, path, token: token, body: TestServer.recordNames(names))
      }
      #expect(try await read(names, pair.token).outline() == "record v1, record v2, record v3")
      #expect(try await read(names, pair.otherToken).outline() == "record v2, record v3")
      #expect(try await read([names[0]], pair.otherToken).error?.code == .gone)
      let small = Routes.path(Routes.contents, pair.zone.zone.tree.text, pair.zone.zone.root.text)
      let asked = contents.flatMap { node.bytes + $0.blob.bytes }
      #expect(try await server.send(.POST, small, token: pair.token, body: asked).items().count == 3)
      #expect(try await server.send(.POST, small, token: pair.otherToken, body: asked).items().count == 2)
      var answers: [Int] = []
      for content in contents {
        answers.append(try await server.content(content.blob, of: node, in: pair.zone, token: pair.otherToken).status)
      }
      #expect(answers == [410, 200, 200])
    }
  }

  // MARK: Keys and accounts of members

  @Test("K-9: a new wrap for an old key or an unknown user is refused and names the user")
  func newWrapsAreForCurrentKeys() async throws {
    try await Self.run { server, pair in
      try await pair.append(try pair.other.encryptionRotation(), token: pair.otherToken)
      let stale = pair.zone.member(pair.other.userID)
      let refused = try await pair.change(to: try pair.zone.list(adding: [stale.entry]), grants: [stale.grant])
      #expect((refused.status, refused.error?.security) == (422, .recipientKeyStale))
      #expect(refused.error?.user == pair.other.userID)
      let stranger = pair.zone.member(UserID(randomBytes(32))!)
      let unknown = try await pair.change(to: try pair.zone.list(adding: [stranger.entry]), grants: [stranger.grant])
      #expect(unknown.error?.security == .recipientKeyStale && unknown.error?.user == stranger.entry.user)
      let current = pair.zone.member(pair.other.userID, encGen: 2)
      #expect(
        try await pair.change(to: try pair.zone.list(adding: [current.entry]), grants: [current.grant]).status == 200)
    }
  }

  /// - A member's key is rotated; then another user is added, the member's permissions change, and the zone's key is
  ///   rotated
  /// => only the rotation needs a wrap for the new key
  @Test("K-9: wraps that stay may be for an old key, those of a rotation may not") func keptWrapsMayBeOld() async throws
  {
    try await Self.run { server, pair in
      try await pair.add()
      try await pair.append(try pair.other.encryptionRotation(), token: pair.otherToken)
      let (third, _) = try await server.newAccount()
      try await server.add(pair.zone.member(third.userID), to: &pair.zone, token: pair.token)
      var entry = try #require(pair.zone.acl.fields.entry(for: pair.other.userID))
      entry.permissions = [.read]
      let list = try pair.zone.list(adding: [entry])
      let (commit, body) = try pair.zone.change(to: list)
      _ = try await server.commit(body, token: pair.token).expect(200)
      pair.zone.accepted(commit)
      pair.zone.acl = list
      let others = list.fields.entries.filter { $0.user != pair.owner.userID }
      let stale = try pair.zone.rotation(wrappingFor: others)
      let refused = try await server.commit(stale.body, token: pair.token)
      #expect(refused.error?.security == .recipientKeyStale && refused.error?.user == pair.other.userID)
      let current = others.map { other in
        var entry = other
        if entry.user == pair.other.userID { entry.encGen = 2 }
        return entry
      }
      let rotation = try pair.zone.rotation(wrappingFor: current)
      #expect(try await server.commit(rotation.body, token: pair.token).status == 200)
    }
  }

  @Test("K-10: a closed account is not added, and does not keep others from being removed")
  func closedAccountsAreNotAdded() async throws {
    try await Self.run { server, pair in
      let (member, memberToken) = try await server.newAccount()
      try await server.add(pair.zone.member(member.userID), to: &pair.zone, token: pair.token)
      try await pair.append(try member.closing(), token: memberToken)
      try await pair.append(try pair.other.closing(), token: pair.otherToken)
      let new = pair.zone.member(pair.other.userID)
      let refused = try await pair.change(to: try pair.zone.list(adding: [new.entry]), grants: [new.grant])
      #expect((refused.status, refused.error?.code) == (403, .accountClosed))
      #expect(refused.error?.user == pair.other.userID)
      let kept = pair.zone.acl.fields.entries.filter { $0.user == member.userID }
      #expect(try await server.commit(try pair.zone.rotation(wrappingFor: kept).body, token: pair.token).status == 200)
    }
  }

  /// - The owner splits a node off for a member of its zone and another user, who have both closed their accounts
  /// => the other user is refused; the member stays one
  @Test("K-10: a member with a closed account stays one in a zone that is split off")
  func closedMembersStayInASplit() async throws {
    try await Self.run { server, pair in
      let (member, memberToken) = try await server.newAccount()
      try await server.add(pair.zone.member(member.userID), to: &pair.zone, token: pair.token)
      let node = NodeID.random()
      try await server.put([pair.zone.record(node)], in: &pair.zone, token: pair.token)
      try await pair.append(try member.closing(), token: memberToken)
      try await pair.append(try pair.other.closing(), token: pair.otherToken)
      let rights: ZoneACL.Permissions = [.read, .write]
      let larger = try pair.zone.split(node, members: [(member.userID, rights), (pair.other.userID, rights)])
      let refused = try await server.commit(larger.body, token: pair.token)
      #expect((refused.status, refused.error?.code) == (403, .accountClosed))
      #expect(refused.error?.user == pair.other.userID)
      let split = try pair.zone.split(node, members: [(member.userID, rights)])
      #expect(try await server.commit(split.body, token: pair.token).status == 200)
    }
  }

  @Test("K-16: after the owner has closed their account, members read and commit nothing")
  func zonesOfClosedAccountsAreReadOnly() async throws {
    try await Self.run { server, pair in
      try await pair.add()
      _ = try await pair.putByOther().expect(200)
      try await pair.append(try pair.owner.closing(), token: pair.token)
      let refused = try await pair.putByOther()
      #expect((refused.status, refused.error?.code) == (403, .accountClosed))
      #expect(refused.error?.user == pair.owner.userID)
      #expect(try await server.page(pair.zone.zone, token: pair.otherToken).status == 200)
      let upload = try await server.ticket(BlobTests.Large(200_000), .random(), pair.zone, token: pair.otherToken)
      #expect(upload.error?.code == .accountClosed)
    }
  }

  // MARK: Amounts

  @Test("K-19: a member's commits in a zone are limited, the owner's are not") func membersCommitsAreLimited()
    async throws
  {
    try await Self.run({ $0.bounds.memberCommitsPerMinute = 2 }) { server, pair in
      try await pair.add()
      for _ in 0..<4 { _ = try await pair.putByOther().expect(200) }
      let refused = try await pair.putByOther()
      #expect((refused.status, refused.error?.code) == (429, .tooManyRequests))
      #expect(refused.error?.retryAfterMs == 30_000)
      for _ in 0..<10 { try await server.put([pair.zone.record(.random())], in: &pair.zone, token: pair.token) }
      var own = pair.other.home
      for _ in 0..<10 { try await server.put([own.record(.random())], in: &own, token: pair.otherToken) }
      server.clock.advance(ms: 30_000)
      #expect(try await pair.putByOther().status == 200)
    }
  }

  @Test("K-19: the bytes that a member adds to a zone are limited") func membersBytesAreLimited() async throws {
    try await Self.run({ $0.bounds.memberBytesPerMinute = 1_000 }) { server, pair in
      try await pair.add()
      #expect(try await pair.putByOther(bytes: 10_000).status == 200)
      let refused = try await pair.putByOther()
      #expect((refused.status, refused.error?.code) == (429, .tooManyRequests))
      server.clock.advance(ms: 10 * 60_000)
      #expect(try await pair.putByOther().status == 200)
    }
  }

  /// - The owner's records have no room left
  /// => members and puts are refused; the owner deletes, removes a member and rotates keys all the same
  @Test("K-19: an owner without room for records can still remove members") func fullOwnersRemoveMembers() async throws
  {
    try await Self.run({ $0.bounds.recordQuotaBytes = 40_000 }) { server, pair in
      try await pair.add([.read, .write, .share])
      let doomed = pair.zone.record(.random())
      try await server.put([doomed], in: &pair.zone, token: pair.token)
      while try await pair.putByOther(bytes: 2_000).status == 200 {}
      let put = try pair.zone.put([pair.zone.record(.random()) { $0.sealedPrivate = randomBytes(3_000) }])
      #expect(try await server.commit(put.body, token: pair.token).error?.code == .quotaExceeded)
      try await server.delete(doomed.fields.node, in: &pair.zone, token: pair.token)
      let rotation = try pair.zone.rotation()
      _ = try await server.commit(rotation.body, token: pair.token).expect(200)
      #expect(try await pair.putByOther().status == 404)
    }
  }

  // MARK: Uploads

  /// - A member with `w`, one without and a stranger ask for a ticket for a node that does not exist yet
  /// => the zone that the ticket names decides
  @Test func ticketsNameTheZoneOfANewNode() async throws {
    try await Self.run { server, pair in
      let (reader, readerToken) = try await server.newAccount()
      let (_, stranger) = try await server.newAccount()
      try await pair.add()
      try await server.add(pair.zone.member(reader.userID), to: &pair.zone, token: pair.token)
      func ticket(_ root: NodeID?, _ token: [UInt8]) async throws -> Int {
        let request = BlobTicketRequest(
          blobID: .random(), treeID: pair.zone.zone.tree, nodeID: .random(), cipherLength: 100_000, zoneRoot: root)
        return try await server.sendJSON(.POST, Routes.blobs, request, token: token).status
      }
      let root = pair.zone.zone.root
      #expect(try await [ticket(nil, pair.otherToken), ticket(root, pair.otherToken)] == [201, 201])
      #expect(try await [ticket(.random(), pair.otherToken), ticket(.random(), pair.token)] == [404, 404])
      #expect(try await [ticket(root, readerToken), ticket(root, stranger), ticket(nil, stranger)] == [404, 404, 404])
    }
  }
}
