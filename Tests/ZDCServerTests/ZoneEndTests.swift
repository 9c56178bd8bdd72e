import Testing
import ZDCProtocol
import ZDCServer

/// S-9: the owner ends a zone with a delete of its root (PROTOCOL 3.7).
@Suite struct ZoneEndTests {
  /// - The owner ends a zone that a friend follows; both continue as if they did not know
  /// => the friend reads the log to its last commit, and what was there; no commit, upload or new member follows
  @Test func theOwnerEndsAZone() async throws {
    try await SplitTests.run { server, world in
      let (friend, friendToken) = try await server.newAccount()
      let split = try world.home.split(world.top, members: [(friend.userID, [.read, .write])])
      _ = try await server.commit(split.body, token: world.token).expect(200)
      world.home.accepted(split)
      var zone = split.child
      _ = try await server.accept(zone.zone, token: friendToken).expect(200)
      server.clock.advance(ms: 1)
      let deep = try #require(zone.records[world.deep])
      let new = zone.byFriend(friend)
      let late = try zone.commit(by: friend, [.put(.init(new))], list: zone.acl)
      let end = try zone.end()
      _ = try await server.commit(TestZone.body(end), token: world.token).expect(200)
      _ = try await server.commit(TestZone.body(end), token: world.token).expect(200)
      zone.accepted(end)
      let page = try await server.page(zone.zone, token: friendToken)
      #expect(try page.outline() == "acl, grant, commit 0, commit 1")
      #expect(try await server.zones(token: friendToken).zones.contains { $0.zone == zone.zone && $0.head == end.hash })
      let stale = try await server.commit(TestZone.body(late, records: [new]), token: friendToken)
      #expect(try stale.status == 409 && stale.outline() == "commit 1")
      for (account, token) in [(world.account, world.token), (friend, friendToken)] {
        let record = zone.byFriend(account)
        let next = try zone.commit(by: account, [.put(.init(record))], list: zone.acl)
        let refused = try await server.commit(TestZone.body(next, records: [record]), token: token)
        #expect((refused.status, refused.error?.security) == (422, .commitChainBroken))
        #expect(try await server.records([deep], of: zone.zone, token: token).items().count == 1)
        let content = try await server.content(world.large.blob, of: world.deep, in: zone, token: token)
        #expect(content.bytes == world.large.bytes)
        let path = Routes.path(Routes.node, zone.zone.tree.text, world.deep.text)
        #expect(try await server.send(.GET, path, token: token).status == 404)
      }
      let request = BlobTicketRequest(
        blobID: .random(), treeID: zone.zone.tree, nodeID: .random(), cipherLength: 70_000, zoneRoot: zone.zone.root)
      #expect(try await server.sendJSON(.POST, Routes.blobs, request, token: friendToken).status == 404)
      #expect(try await server.commit(zone.birth, token: world.token).error?.code == .zoneExists)
    }
  }

  /// - A zone ends; its nodes are removed; then its records and content are older than the retention
  /// => the ids are free, and nothing but the log is left
  @Test func whatAZoneHadIsKeptLikeDeletedNodes() async throws {
    try await SplitTests.run { server, world in
      let zone = try await server.split(world.top, of: &world.home, token: world.token)
      let deep = try #require(zone.records[world.deep])
      _ = try await server.commit(TestZone.body(try zone.end()), token: world.token).expect(200)
      try await server.server.collect()
      try await server.put([world.home.record(world.deep)], in: &world.home, token: world.token)
      #expect(try await server.records([deep], of: zone.zone, token: world.token).items().count == 1)
      let content = try await server.content(world.large.blob, of: world.deep, in: zone, token: world.token)
      #expect(content.bytes == world.large.bytes)
      server.clock.advance(ms: 31 * 86_400_000)
      let token = try await server.login(world.account)
      try await server.server.collect()
      #expect(try await server.records([deep], of: zone.zone, token: token).error?.code == .gone)
      #expect(try await server.content(world.large.blob, of: world.deep, in: zone, token: token).status == 410)
      #expect(try await server.page(zone.zone, token: token).outline() == "acl, grant, commit 0, commit 1")
      #expect(try await server.state(zone.zone, token: token).status == 200)
    }
  }

  @Test func onlyTheOwnerEndsAZone_alone_andNeverATrunk() async throws {
    try await SplitTests.run { server, world in
      let (friend, friendToken) = try await server.newAccount()
      let split = try world.home.split(world.top, members: [(friend.userID, [.read, .write, .share])])
      _ = try await server.commit(split.body, token: world.token).expect(200)
      world.home.accepted(split)
      let zone = split.child
      func refusal(_ commit: ZoneCommit, _ token: [UInt8]) async throws -> ZDCSecurityError.Code? {
        try await server.commit(TestZone.body(commit), token: token).error?.security
      }
      let root = try #require(zone.records[zone.zone.root]?.hash)
      let end = ZoneOperation.delete(node: zone.zone.root, record: root, liveDescendants: 0)
      let byFriend = try zone.commit(by: friend, [end], list: zone.acl)
      #expect(try await refusal(byFriend, friendToken) == .writerNotAuthorized)
      let counted = ZoneOperation.delete(node: zone.zone.root, record: root, liveDescendants: 3)
      #expect(try await refusal(try zone.commit([counted]), world.token) == .nonCanonicalEncoding)
      let file = ZoneOperation.delete(node: world.file, record: zone.records[world.file]!.hash, liveDescendants: 0)
      #expect(try await refusal(try zone.commit([file, end]), world.token) == .nonCanonicalEncoding)
      let other = ZoneOperation.delete(node: zone.zone.root, record: .zero, liveDescendants: 0)
      #expect(try await refusal(try zone.commit([other]), world.token) == .recordHashMismatch)
      #expect(try await refusal(try world.home.end(), world.token) == .writerNotAuthorized)
      _ = try await server.commit(TestZone.body(try zone.end()), token: world.token).expect(200)
    }
  }
}

extension TestZone {
  /// The commit that ends the zone.
  func end() throws -> ZoneCommit {
    try commit([.delete(node: zone.root, record: records[zone.root]?.hash ?? .zero, liveDescendants: 0)])
  }

  /// A new node of a member, under the zone's second key.
  fileprivate func byFriend(_ friend: TestAccount) -> NodeRecord {
    record(zone.root.next) { ($0.writer, $0.keyGen, $0.parentKeyGen) = (friend.userID, 2, 2) }
  }
}

extension NodeID {
  /// Another id, the same each time.
  fileprivate var next: NodeID { NodeID([bytes[0] ^ 1] + bytes.dropFirst())! }
}
