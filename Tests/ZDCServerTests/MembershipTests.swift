import Testing
import ZDCProtocol
import ZDCServer
import ZDCServerSQLite

/// Zones of other users: acceptance, events and lists for members, and what a former member may still see.
@Suite struct MembershipTests {
  /// An owner whose home has a second member, who may read and write.
  private struct Shared {
    let server: TestServer
    let owner: TestAccount
    let token: [UInt8]
    let member: TestAccount
    let memberToken: [UInt8]
    var zone: TestZone

    init(_ server: TestServer, _ permissions: ZoneACL.Permissions = [.read, .write]) async throws {
      self.server = server
      (owner, token) = try await server.newAccount()
      (member, memberToken) = try await server.newAccount()
      zone = owner.home
      try await server.add(zone.member(member.userID, permissions), to: &zone, token: token)
    }

    mutating func put() async throws {
      try await server.put([zone.record(.random())], in: &zone, token: token)
    }

    var status: ZoneStatus { ZoneStatus(zone: zone.zone, seq: zone.seq, head: zone.headHash) }
  }

  private static func run(
    _ change: (inout Configuration) -> Void = { _ in }, _ body: (TestServer, inout Shared) async throws -> Void
  ) async throws {
    try await TestServer.run(change) { (server: TestServer) async throws in
      var shared = try await Shared(server)
      try await body(server, &shared)
    }
  }

  /// - A member accepts while a stream of theirs is open, then the owner and the member commit
  /// => the stream gets the accepted head, and all later ones with their pages; the list has own zones first
  @Test func anAcceptedZone_isInListAndStream() async throws {
    try await Self.run { server, shared in
      let before = try await server.zones(token: shared.memberToken)
      #expect(before.zones.count == 4)
      var events = try await server.events(since: before.feedPosition, token: shared.memberToken).makeAsyncIterator()
      #expect(try await events.next()?.decode(ZoneList.self).zones.isEmpty == true)
      let accepted: ZoneStatus = try await server.accept(shared.zone.zone, token: shared.memberToken).json()
      #expect(accepted == shared.status)
      #expect(try await events.next()?.decode(HeadEvent.self) == HeadEvent(status: shared.status, page: nil))
      let since = "?since=\(before.feedPosition?.text ?? "")"
      let changed = try await server.zones(since, token: shared.memberToken)
      #expect(changed.zones == [shared.status])
      try await shared.put()
      let event = try #require(try await events.next()?.decode(HeadEvent.self))
      #expect(event.status == shared.status)
      var page = Bundle.Reader(try #require(event.page).bytes)
      #expect(try page.all().count == 2)
      let later = try await server.zones("?since=\(changed.feedPosition?.text ?? "")", token: shared.memberToken)
      #expect(later.zones == [shared.status])
      #expect(try await server.zones(token: shared.memberToken).zones.last == shared.status)
      #expect(try await server.zones("?offered=1", token: shared.memberToken).zones.isEmpty)
    }
  }

  @Test func acceptanceIsIdempotent_andEndsOnRequest() async throws {
    try await Self.run { server, shared in
      let zone = shared.zone.zone
      var events = try await server.events(token: shared.memberToken).makeAsyncIterator()
      _ = try await events.next()
      for _ in 0..<2 { _ = try await server.accept(zone, token: shared.memberToken).expect(200) }
      _ = try await events.next()
      for _ in 0..<2 { _ = try await server.forget(zone, token: shared.memberToken).expect(204) }
      try await shared.put()
      // The member's own commit is the next event: the second acceptance and the owner's commit gave none.
      var home = shared.member.home
      try await server.put([home.record(.random())], in: &home, token: shared.memberToken)
      #expect(try await events.next()?.decode(HeadEvent.self).status.zone == home.zone)
      #expect(try await server.zones(token: shared.memberToken).zones.count == 4)
      #expect(try await server.zones("?offered=1", token: shared.memberToken).zones == [shared.status])
    }
  }

  @Test func onlyMembersWhoMayReadAccept() async throws {
    try await Self.run { server, shared in
      let (_, stranger) = try await server.newAccount()
      #expect(try await server.accept(shared.zone.zone, token: stranger).error?.code == .notFound)
      let nowhere = ZoneID(tree: TreeID(randomBytes(32))!, root: .random())
      #expect(try await server.accept(nowhere, token: shared.memberToken).error?.code == .notFound)
      #expect(try await server.forget(nowhere, token: shared.memberToken).status == 204)
      #expect(try await server.accept(shared.zone.zone, token: shared.token).error?.code == .invalidRequest)
      #expect(try await server.forget(shared.zone.zone, token: stranger).status == 204)
    }
  }

  @Test func acceptedZonesAreBounded_andEndedOnesGiveWay() async throws {
    try await Self.run({
      $0.bounds.memberships = 2
      $0.bounds.acceptancesPerMinute = 1_000_000
    }) { server, shared in
      var zones = [try #require(shared.owner.zones[.inbox]), try #require(shared.owner.zones[.prefs])]
      for index in zones.indices {
        try await server.add(zones[index].member(shared.member.userID), to: &zones[index], token: shared.token)
        _ = try await server.accept(zones[index].zone, token: shared.memberToken).expect(200)
      }
      let refused = try await server.accept(shared.zone.zone, token: shared.memberToken)
      #expect((refused.status, refused.error?.security) == (422, .tooManyZones))
      try await server.remove(shared.member.userID, from: &zones[0], token: shared.token)
      _ = try await server.accept(shared.zone.zone, token: shared.memberToken).expect(200)
      let listed = try await server.zones(token: shared.memberToken).zones.map(\.zone)
      #expect(Set(listed.suffix(2)) == [zones[1].zone, shared.zone.zone] && listed.count == 6)
    }
  }

  @Test func acceptancesAreLimitedPerUser() async throws {
    try await Self.run({
      $0.bounds.memberships = 3
      $0.bounds.acceptancesPerMinute = 1
    }) { server, shared in
      for _ in 0..<3 {
        _ = try await server.accept(shared.zone.zone, token: shared.memberToken).expect(200)
        _ = try await server.forget(shared.zone.zone, token: shared.memberToken).expect(204)
      }
      #expect(try await server.accept(shared.zone.zone, token: shared.memberToken).error?.code == .tooManyRequests)
      server.clock.advance(ms: 60_000)
      #expect(try await server.accept(shared.zone.zone, token: shared.memberToken).status == 200)
    }
  }

  // MARK: Removal

  /// - A member is removed, and the owner commits again
  /// => the head of the removing commit is the last event and the last status of the zone that the member gets
  @Test("K-14: a removed member's last event and last status are those of the removing commit")
  func removalIsTheLastNews() async throws {
    try await Self.run { server, shared in
      _ = try await server.accept(shared.zone.zone, token: shared.memberToken).expect(200)
      var other = try #require(shared.owner.zones[.prefs])
      try await server.add(other.member(shared.member.userID), to: &other, token: shared.token)
      _ = try await server.accept(other.zone, token: shared.memberToken).expect(200)
      let before = try await server.zones(token: shared.memberToken).feedPosition?.text ?? ""
      var events = try await server.events(token: shared.memberToken).makeAsyncIterator()
      _ = try await events.next()
      try await server.remove(shared.member.userID, from: &shared.zone, token: shared.token)
      let last = shared.status
      for _ in 0..<2 { try await shared.put() }
      #expect(try await events.next()?.decode(HeadEvent.self).status == last)
      var home = shared.member.home
      try await server.put([home.record(.random())], in: &home, token: shared.memberToken)
      #expect(try await events.next()?.decode(HeadEvent.self).status.zone == home.zone)
      let since = try await server.zones("?since=\(before)", token: shared.memberToken)
      #expect(since.zones.map(\.zone) == [home.zone, last.zone] && since.zones.last == last)
      #expect(try await server.zones(token: shared.memberToken).zones.contains(last))
      let again = try await server.zones("?since=\(since.feedPosition?.text ?? "")", token: shared.memberToken)
      #expect(again.zones.isEmpty)
      // A stream that begins now gets nothing of the zone either.
      var later = try await server.events(since: since.feedPosition, token: shared.memberToken).makeAsyncIterator()
      #expect(try await later.next()?.decode(ZoneList.self).zones.isEmpty == true)
      try await shared.put()
      try await server.put([home.record(.random())], in: &home, token: shared.memberToken)
      #expect(try await later.next()?.decode(HeadEvent.self).status.zone == home.zone)
    }
  }

  /// - A member who never accepted is removed
  /// => nothing is sent to them
  @Test("G-1: a removal is no event for a member who has not accepted")
  func removalWithoutAcceptance_isSilent() async throws {
    try await Self.run { server, shared in
      var events = try await server.events(token: shared.memberToken).makeAsyncIterator()
      _ = try await events.next()
      try await server.remove(shared.member.userID, from: &shared.zone, token: shared.token)
      var home = shared.member.home
      try await server.put([home.record(.random())], in: &home, token: shared.memberToken)
      #expect(try await events.next()?.decode(HeadEvent.self).status.zone == home.zone)
      #expect(try await server.zones(token: shared.memberToken).zones.count == 4)
    }
  }

  @Test("K-14: a former member reads the log up to the removing commit, and nothing else")
  func aFormerMemberReadsUpToTheRemoval() async throws {
    try await Self.run { server, shared in
      let content = TestZone.Content()
      let record = shared.zone.record(.random(), content: content.field())
      try await server.put([record], contents: [content], in: &shared.zone, token: shared.token)
      try await server.remove(shared.member.userID, from: &shared.zone, token: shared.token)
      let last = shared.status
      try await shared.put()
      let zone = shared.zone.zone
      let page = try await server.page(zone, token: shared.memberToken)
      #expect(try page.outline() == "acl, commit 0, acl, grant, commit 1, commit 2, acl, commit 3")
      #expect(page.headers[WireHeaders.zoneHead] == "\(last.seq):\(last.head.text)")
      #expect(page.headers[WireHeaders.more] == nil)
      #expect(try await server.page(zone, after: 3, token: shared.memberToken).bytes.isEmpty)
      #expect(try await server.page(zone, after: 9, token: shared.memberToken).bytes.isEmpty)
      let records = Routes.path(Routes.records, zone.tree.text, zone.root.text)
      let body = TestServer.recordNames([(record.fields.node, record.hash)])
      #expect(try await server.send(.POST, records, token: shared.memberToken, body: body).status == 404)
      let node = record.fields.node
      #expect(
        try await server.content(content.blob, of: node, in: shared.zone, token: shared.memberToken).status == 404)
      let place = Routes.path(Routes.node, zone.tree.text, node.text)
      #expect(try await server.send(.GET, place, token: shared.memberToken).status == 404)
      #expect(try await server.accept(zone, token: shared.memberToken).status == 404)
      let (_, stranger) = try await server.newAccount()
      #expect(try await server.page(zone, token: stranger).status == 404)
    }
  }

  /// - A removed member is added again
  /// => they read everything at once, but follow the zone only after they accept it again
  @Test func aMemberWhoReturns_acceptsAgain() async throws {
    try await Self.run { server, shared in
      let zone = shared.zone.zone
      _ = try await server.accept(zone, token: shared.memberToken).expect(200)
      try await server.remove(shared.member.userID, from: &shared.zone, token: shared.token)
      let last = shared.status
      try await server.add(shared.zone.member(shared.member.userID), to: &shared.zone, token: shared.token)
      #expect(try await server.zones(token: shared.memberToken).zones.last == last)
      #expect(try await server.zones("?offered=1", token: shared.memberToken).zones == [shared.status])
      let page = try await server.page(zone, token: shared.memberToken)
      #expect(page.headers[WireHeaders.zoneHead]?.hasPrefix("3:") == true)
      _ = try await server.accept(zone, token: shared.memberToken).expect(200)
      #expect(try await server.zones(token: shared.memberToken).zones.last == shared.status)
    }
  }

  /// - A member removes themselves
  /// => they are treated like one who was removed
  @Test func leavingIsLikeBeingRemoved() async throws {
    try await Self.run { server, shared in
      let zone = shared.zone.zone
      _ = try await server.accept(zone, token: shared.memberToken).expect(200)
      let member = shared.member
      let signer = shared.member.signKey
      var fields = shared.zone.acl.fields
      (fields.version, fields.prev, fields.writer) = (fields.version + 1, shared.zone.acl.hash, member.userID)
      fields.entries.removeAll { $0.user == member.userID }
      let list = try ZoneACL(fields) { try signer.sign("acl", $0) }
      let commit = try shared.zone.commit(by: member, [.acl(version: fields.version, hash: list.hash)], list: list)
      let body = TestZone.body(commit, records: [], smuggling: list)
      _ = try await server.commit(body, token: shared.memberToken).expect(200)
      let last = ZoneStatus(zone: zone, seq: commit.fields.seq, head: commit.hash)
      #expect(try await server.zones(token: shared.memberToken).zones.last == last)
      #expect(try await server.page(zone, after: 1, token: shared.memberToken).outline() == "acl, commit 2")
    }
  }

  // MARK: The check of a folder

  @Test(.needsFolder) func aFolderWithMembersIsSound_andWrongOnesAreFound() async throws {
    let folder = TestServer.newFolder()
    defer { TestServer.remove(folder) }
    try await TestServer.run(in: folder) { (server: TestServer) async throws in
      var shared = try await Shared(server)
      _ = try await server.accept(shared.zone.zone, token: shared.memberToken).expect(200)
      let (other, _) = try await server.newAccount()
      try await server.add(shared.zone.member(other.userID), to: &shared.zone, token: shared.token)
      try await server.remove(other.userID, from: &shared.zone, token: shared.token)
    }
    #expect(try TestStores.findings(in: folder).isEmpty)
    try TestServer.sql("UPDATE members SET joined_seq = 7 WHERE left_seq IS NOT NULL", in: folder)
    #expect(try TestStores.findings(in: folder).map(\.kind) == [.accessList])
    try TestServer.sql("UPDATE members SET joined_seq = 2 WHERE left_seq IS NOT NULL", in: folder)
    #expect(try TestStores.findings(in: folder).isEmpty)
    try TestServer.sql("INSERT INTO memberships VALUES (3, 1, 1, 1, 1, NULL)", in: folder)
    #expect(try TestStores.findings(in: folder).map(\.kind) == [.accessList])
  }
}
