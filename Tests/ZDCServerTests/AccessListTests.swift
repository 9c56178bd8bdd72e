import Testing
import ZDCProtocol
import ZDCServer

/// Which access lists the server stores, and the cost of membership for a user who did not ask for it.
@Suite struct AccessListTests {
  /// - A put with an access list in front that no operation names: signed by a random key, listing another user
  /// => refused; the members, the other user's zones and the next commit are as if it had not been sent
  @Test("S1: a list that no acl operation names is refused and not stored")
  func smuggledListIsRefused() async throws {
    let folder = TestServer.newFolder()
    defer { TestServer.remove(folder) }
    try await TestServer.run(in: folder) { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let (victim, victimToken) = try await server.newAccount()
      var zone = account.home
      let forged = try zone.list(adding: [zone.member(victim.userID).entry], signer: SigningKey())
      let record = zone.record(.random())
      let commit = try zone.commit([.put(.init(record))])
      let body = TestZone.body(commit, records: [record], smuggling: forged)
      let refused = try await server.commit(body, token: token)
      #expect((refused.status, refused.error?.code) == (400, .invalidRequest))
      #expect(try await server.zones(token: victimToken).zones.count == 4)
      #expect(try await server.page(zone.zone, token: victimToken).status == 404)
      try await server.put([zone.record(.random())], in: &zone, token: token)
    }
    #expect(try TestStores.findings(in: folder).isEmpty)
  }

  @Test("S1: one zone of a request cannot bring a list for another one")
  func listOfAnotherZoneIsRefused() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let (victim, victimToken) = try await server.newAccount()
      let home = account.home
      let prefs = try #require(account.zones[.prefs])
      let forged = try home.list(adding: [home.member(victim.userID, [.read, .write, .share]).entry])
      var body: [UInt8] = []
      for zone in [home, prefs].sorted(by: { $0.zone < $1.zone }) {
        let record = zone.record(.random())
        let commit = try zone.commit([.put(.init(record))])
        // The list of home precedes the commit of prefs, whose operations name no list.
        body +=
          zone.zone == prefs.zone
          ? TestZone.body(commit, records: [record], smuggling: forged) : TestZone.body(commit, records: [record])
      }
      #expect(try await server.commit(body, token: token).status == 400)
      #expect(try await server.page(home.zone, token: victimToken).status == 404)
    }
  }

  @Test("S1: an acl operation without its list is refused")
  func operationWithoutItsListIsRefused() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let zone = account.home
      let list = try zone.list(adding: [])
      let commit = try zone.commit([.acl(version: list.fields.version, hash: list.hash)]) { $0.aclHash = list.hash }
      #expect(try await server.commit(TestZone.body(commit), token: token).error?.code == .invalidRequest)
    }
  }

  /// - A member's wrap is for another of their keys, under the same hash
  /// => the grant is missing, although the hash did not change
  @Test("A7: an entry whose wrap is for another key needs its grant")
  func wrapForAnotherKeyNeedsItsGrant() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let (friend, _) = try await server.newAccount()
      var zone = account.home
      let member = zone.member(friend.userID)
      let first = try await server.share(&zone, with: member, token: token)
      var entry = member.entry
      entry.encGen = 2
      let second = try zone.list(adding: [entry], after: first)
      let answer = try await server.commit(try zone.change(to: second).body, token: token)
      #expect((answer.status, answer.error?.security) == (422, .grantMissing))
    }
  }

  /// - The zone's key changes, and the list names a member's wrap of the old one
  /// => the grant is missing, although the hash did not change
  @Test("A7: a wrap of the zone's old key needs its grant")
  func wrapOfTheOldKeyNeedsItsGrant() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let (friend, _) = try await server.newAccount()
      var zone = account.home
      let member = zone.member(friend.userID)
      zone.acl = try await server.share(&zone, with: member, token: token)
      let answer = try await server.commit(try zone.rotation(keeping: [member.entry]).body, token: token)
      #expect((answer.status, answer.error?.security) == (422, .grantMissing))
    }
  }

  // MARK: Membership without consent

  /// - Another account lists the victim in its zones and commits in them
  /// => the victim's list, event stream and audit are as before; the offer is listed on request, and readable
  @Test("S10: another user's zone is in no list and no stream, only offered")
  func foreignZonesAreOnlyOffered() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (owner, token) = try await server.newAccount()
      let (victim, victimToken) = try await server.newAccount()
      var zone = owner.home
      var events = try await server.events(token: victimToken).makeAsyncIterator()
      _ = try await events.next()
      let list = try await server.share(&zone, with: zone.member(victim.userID), token: token)
      let record = zone.record(.random())
      let commit = try zone.commit([.put(.init(record))]) { $0.aclHash = list.hash }
      _ = try await server.commit(TestZone.body(commit, records: [record]), token: token).expect(200)
      let own = try await server.zones(token: victimToken)
      #expect(Set(own.zones.map(\.zone)) == Set(victim.zones.values.map(\.zone)))
      // The victim's own commit is the first event that comes.
      var home = victim.home
      try await server.put([home.record(.random())], in: &home, token: victimToken)
      #expect(try await events.next()?.decode(HeadEvent.self).status.zone == home.zone)
      var again = try await server.events(token: victimToken).makeAsyncIterator()
      #expect(try await again.next()?.decode(ZoneList.self).zones.count == 4)
      let offered = try await server.zones("?offered=1", token: victimToken)
      #expect(offered.zones.map(\.zone) == [zone.zone])
      #expect(try await server.page(zone.zone, token: victimToken).status == 200)
      #expect(try await server.zones("?offered=1", token: token).zones.isEmpty)
    }
  }

  /// - 101 zones of other users list the victim
  /// => a page has 100 of them and says where the next one begins
  @Test("S10: offers come in pages") func offersComeInPages() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (victim, victimToken) = try await server.newAccount()
      let (owner, _) = try await server.newAccount()
      let (id, member) = (owner.userID, victim.userID)
      try await server.store.write([.account(id)]) { tx in
        for number in 0..<101 {
          let tree = TreeID.derive(owner: id, trunk: .home, appTreeID: "org.example.app\(number)")
          let list = try owner.home.list(adding: [owner.home.member(member).entry])
          let head = ZoneHead(zone: ZoneID(trunkOf: tree), seq: 0, hash: owner.home.headHash, acl: list)
          let row = TreeRow(tree: tree, trunk: .home, appTreeID: "org.example.app\(number)")
          var delta = ZoneDelta(
            target: .new(row, owner: id), head: head, commit: try owner.home.commit([]), receivedMs: 1)
          delta.change(to: ZoneDelta.ListChange(acl: list, grants: []))
          _ = try tx.apply(CommitDelta(zones: [delta]))
        }
      }
      let first = try await server.zones("?offered=1", token: victimToken)
      let next = try #require(first.next)
      let second = try await server.zones("?offered=1&after=\(next)", token: victimToken)
      #expect((first.zones.count, second.zones.count, second.next) == (100, 1, nil))
      #expect(Set((first.zones + second.zones).map(\.zone)).count == 101)
      #expect(try await server.zones(token: victimToken).zones.count == 4)
    }
  }

  // MARK: Permission to commit

  @Test("P2: a member with r only cannot grow the log with puts or others' keys, a stranger not at all")
  func readersCommitNothing() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (owner, token) = try await server.newAccount()
      let (reader, readerToken) = try await server.newAccount()
      let (stranger, strangerToken) = try await server.newAccount()
      var zone = owner.home
      let list = try await server.share(&zone, with: zone.member(reader.userID), token: token)
      let record = zone.record(.random()) { $0.writer = reader.userID }
      let put = try zone.commit(by: reader, [.put(.init(record))], list: list)
      let refused = try await server.commit(TestZone.body(put, records: [record]), token: readerToken)
      #expect(refused.error?.code == .forbidden)
      let retire = try zone.commit(by: reader, [.retireKey(user: owner.userID, gen: 2)], list: list)
      let body = TestZone.body(retire)
      #expect(try await server.commit(body, token: readerToken).error?.code == .forbidden)
      let own = try zone.commit(by: stranger, [.retireKey(user: stranger.userID, gen: 1)], list: list)
      #expect(try await server.commit(TestZone.body(own), token: strangerToken).error?.code == .notFound)
      #expect(try await server.page(zone.zone, token: token).headers[WireHeaders.zoneHead]?.hasPrefix("1:") == true)
    }
  }
}
