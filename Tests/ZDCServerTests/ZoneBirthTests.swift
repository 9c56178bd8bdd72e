import Testing
import ZDCProtocol
import ZDCServer

/// S-13: zones that begin in a tree that exists, with a root that no zone has yet (PROTOCOL, "Zone log").
@Suite struct ZoneBirthTests {
  /// A zone about to begin, and the commit that puts the pointer to it.
  private struct Birth {
    var zone: TestZone
    var pointer: NodeRecord
    var commit: ZoneCommit

    var body: [UInt8] { TestZone.body(commit, records: [pointer]) + zone.birth }
  }

  private func birth(of root: NodeID = .random(), in home: TestZone) throws -> Birth {
    let fields = home.acl.fields
    let zone = try TestZone(
      owner: home.owner, signKey: home.signKey, trunk: fields.trunk, app: fields.appTreeID, root: root)
    let pointer = home.record(.random()) { $0.isPointer = true }
    return Birth(zone: zone, pointer: pointer, commit: try home.commit([.put(.init(pointer))]))
  }

  /// - A request puts a pointer in home and begins the zone that it names; it is sent again; both zones get more
  /// commits => one zone, listed as the owner's, that holds its nodes; the data folder is whole
  @Test func aZoneBeginsWithItsPointer() async throws {
    let folder = TestServer.newFolder()
    defer { TestServer.remove(folder) }
    try await TestServer.run(in: folder) { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var home = account.home
      let birth = try birth(in: home)
      var zone = birth.zone
      let first: CommitResponse = try await server.commit(birth.body, token: token).json()
      let again: CommitResponse = try await server.commit(birth.body, token: token).json()
      #expect(first == again)
      #expect(Set(first.zones.map(\.head)) == [birth.commit.hash, zone.headHash])
      home.accepted(birth.commit, records: [birth.pointer])
      let content = TestZone.Content()
      let file = zone.record(.random(), content: content.field())
      try await server.put([file], contents: [content], in: &zone, token: token)
      try await server.put([home.record(.random())], in: &home, token: token)
      #expect(try await server.zones(token: token).zones.map(\.zone).contains(zone.zone))
      let outline = try await server.page(zone.zone, token: token).outline()
      #expect(outline == "acl, grant, commit 0, commit 1, record v1, record v1")
      let path = Routes.path(Routes.node, zone.zone.tree.text, file.fields.node.text)
      let status: ZoneStatus = try await server.send(.GET, path, token: token).json()
      #expect(status.zone == zone.zone)
    }
    #expect(try TestStores.findings(in: folder).isEmpty)
  }

  /// - An account has all but one of the zones that it may have, and begins two, one after the other
  /// => the second one is refused, and nothing of its request is there; other accounts are not concerned
  @Test func anAccountHasABoundedNumberOfZones() async throws {
    try await TestServer.run({ $0.bounds.zonesPerUser = 5 }) { (server: TestServer) async throws in
      for _ in 0..<2 {
        let (account, token) = try await server.newAccount()
        var home = account.home
        let first = try birth(in: home)
        _ = try await server.commit(first.body, token: token).expect(200)
        home.accepted(first.commit, records: [first.pointer])
        let refused = try await server.commit(try birth(in: home).body, token: token)
        #expect((refused.status, refused.error?.security) == (422, .tooManyZones))
        #expect(try await server.zones(token: token).zones.count == 5)
        try await server.put([home.record(.random())], in: &home, token: token)
      }
    }
  }

  /// - An account has so many zones that their list does not fit into the user's share of answers
  /// => the list, a stream that would begin with it, and the audit are refused for now
  @Test(.timeLimit(.minutes(5))) func longListsOfZonesAreCounted() async throws {
    try await TestServer.run({ $0.bounds.bufferedAnswerBytes = 8 * 200_000 }) { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let home = account.home
      let roots = (0..<1_600).map { _ in NodeID.random() }
      let subjects = roots.map { WriteSubject.zone(ZoneID(tree: home.zone.tree, root: $0)) }
      let commit = try home.commit([])
      try await server.store.write(Set(subjects)) { tx in
        for root in roots {
          let zone = ZoneID(tree: home.zone.tree, root: root)
          let head = ZoneHead(zone: zone, seq: 0, hash: try #require(CommitHash(randomBytes(32))), acl: home.acl)
          var delta = ZoneDelta(
            target: .newZone(owner: account.userID), head: head, commit: commit, receivedMs: 5)
          delta.change(to: ZoneDelta.ListChange(acl: home.acl, grants: []))
          _ = try tx.apply(CommitDelta(zones: [delta]))
        }
      }
      for path in [Routes.zones, Routes.audit, Routes.events] {
        #expect(try await server.send(.GET, path, token: token).status == 429, "\(path)")
      }
      #expect(server.server.unsentBytes == 0 && server.server.eventStreams == 0)
    }
  }

  /// - Home has moved on when the request comes; the pointer's commit is signed again, the genesis is not
  /// => 409 that names home, and no zone; then one zone
  @Test func aLateRequestBeginsNoZone() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var home = account.home
      var birth = try birth(in: home)
      try await server.put([home.record(.random())], in: &home, token: token)
      let late = try await server.commit(birth.body, token: token)
      #expect(late.status == 409)
      #expect(late.headers[WireHeaders.zone] == "\(home.zone.tree.text)/\(home.zone.root.text)")
      #expect(try await server.page(birth.zone.zone, token: token).status == 404)
      birth.commit = try home.commit([.put(.init(birth.pointer))])
      _ = try await server.commit(birth.body, token: token).expect(200)
      #expect(try await server.zones(token: token).zones.filter { $0.zone.tree == home.zone.tree }.count == 2)
      let other = try TestZone(
        owner: home.owner, signKey: home.signKey, trunk: .home, app: home.acl.fields.appTreeID,
        root: birth.zone.zone.root)
      #expect(try await server.commit(other.birth, token: token).error?.code == .zoneExists)
    }
  }

  /// - The owner shares the new zone; the member reads both zones, uploads content for a new node and commits it
  /// => home does not exist for the member; the content is attached to the new zone, and read by the owner
  @Test func aMemberOfTheNewZoneSeesOnlyIt() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let (friend, friendToken) = try await server.newAccount()
      let birth = try birth(in: account.home)
      var zone = birth.zone
      _ = try await server.commit(birth.body, token: token).expect(200)
      zone.acl = try await server.share(&zone, with: zone.member(friend.userID, [.read, .write]), token: token)
      #expect(try await server.page(zone.zone, token: friendToken).status == 200)
      #expect(try await server.page(account.home.zone, token: friendToken).status == 404)
      let node = NodeID.random()
      let large = BlobTests.Large(70_000)
      try await server.upload(large, node, zone, token: friendToken)
      let record = zone.record(node, content: large.field) { $0.writer = friend.userID }
      let commit = try zone.commit(by: friend, [.put(.init(record))], list: zone.acl)
      _ = try await server.commit(TestZone.body(commit, records: [record]), token: friendToken).expect(200)
      #expect(try await server.content(large.blob, of: node, in: zone, token: token).bytes == large.bytes)
    }
  }

  @Test func aZoneBeginsOnlyWithANewRoot() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let (stranger, strangerToken) = try await server.newAccount()
      var home = account.home
      let node = home.record(.random())
      try await server.put([node], in: &home, token: token)
      let known = try birth(of: node.fields.node, in: home)
      let refused = try await server.commit(known.zone.birth, token: token)
      #expect((refused.status, refused.error?.security) == (422, .splitMismatch))
      let foreign = try birth(in: home)
      #expect(try await server.commit(foreign.zone.birth, token: strangerToken).status == 403)
      // The stranger's key under the owner's tree.
      let forged = try TestZone(
        owner: account.userID, signKey: stranger.signKey, trunk: .home, app: home.acl.fields.appTreeID, root: .random())
      #expect(try await server.commit(forged.birth, token: token).error?.security == .aclSignatureInvalid)
    }
  }

  /// - A node of home is put in the new zone, and the other way round
  /// => each node is in one zone of its tree
  @Test func aNodeIsInOneZone() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var home = account.home
      let birth = try birth(in: home)
      var zone = birth.zone
      _ = try await server.commit(birth.body, token: token).expect(200)
      home.accepted(birth.commit, records: [birth.pointer])
      let (here, there) = (home.record(.random()), zone.record(.random()))
      try await server.put([here], in: &home, token: token)
      try await server.put([there], in: &zone, token: token)
      let taken = try await server.commit(try zone.put([zone.record(here.fields.node)]).body, token: token)
      #expect((taken.status, taken.error?.security) == (422, .recordBindingMismatch))
      let back = try await server.commit(try home.put([home.record(there.fields.node)]).body, token: token)
      #expect((back.status, back.error?.security) == (422, .recordBindingMismatch))
    }
  }
}
