import Testing
import ZDCProtocol
import ZDCServer

@Suite struct CommitTests {
  @Test func aCommitIsTaken_andComesBackAsAPage() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let folder = zone.record(.random())
      let file = zone.record(.random(), parent: folder.fields.node)
      try await server.put([folder, file], in: &zone, token: token)
      let page = try await server.page(zone.zone, token: token).expect(200)
      #expect(try page.outline() == "acl, grant, commit 0, commit 1, record v1, record v1, record v1")
      #expect(page.headers[WireHeaders.zoneHead] == "1:\(zone.headHash.text)")
      #expect(page.headers[WireHeaders.more] == nil)
      guard case .record(let received, let data, let record)? = try page.items().last else { return }
      #expect((record, received, data) == (file, server.clock.nowMs, 0))
    }
  }

  @Test func aLostAnswerIsGivenAgain() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let zone = account.home
      let (_, body) = try zone.put([zone.record(.random())])
      let first: CommitResponse = try await server.commit(body, token: token).json()
      server.clock.advance(ms: 5_000)
      let again: CommitResponse = try await server.commit(body, token: token).json()
      #expect(first == again)
    }
  }

  @Test func theSecondWriterGetsThePageThatItMissed() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let stale = account.home
      var zone = account.home
      try await server.put([zone.record(.random())], in: &zone, token: token)
      let (_, body) = try stale.put([stale.record(.random())])
      let answer = try await server.commit(body, token: token)
      #expect(answer.status == 409)
      #expect(answer.headers["content-type"] == Bundle.mediaType)
      #expect(answer.headers[WireHeaders.zoneHead] == "1:\(zone.headHash.text)")
      #expect(try answer.outline() == "commit 1, record v1")
      // The loser leaves no trace: the same nodes can be put on the new head.
      try await server.put([zone.record(.random())], in: &zone, token: token)
      #expect(zone.seq == 2)
    }
  }

  @Test func aPullBeyondTheServersHeadGetsAnEmptyPage() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      zone.seq = 7
      let (_, body) = try zone.put([zone.record(.random())])
      let answer = try await server.commit(body, token: token)
      #expect((answer.status, answer.bytes.count) == (409, 0))
      #expect(answer.headers[WireHeaders.zoneHead]?.hasPrefix("0:") == true)
    }
  }

  @Test func anotherUsersZoneIsNotFound() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, _) = try await server.newAccount()
      let (_, stranger) = try await server.newAccount()
      #expect(try await server.page(account.home.zone, token: stranger).status == 404)
      let (_, body) = try account.home.put([account.home.record(.random())])
      #expect(try await server.commit(body, token: stranger).status == 403)
      let node = Routes.path(Routes.node, account.home.zone.tree.text, account.home.zone.root.text)
      #expect(try await server.send(.GET, node, token: stranger).error?.code == .notFound)
    }
  }

  @Test func aForgedSignatureIsRefused() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let record = account.home.record(.random())
      let commit = try account.home.commit([.put(.init(record))])
      let forged = try ZoneCommit(commit.fields) { try SigningKey().sign("commit", $0) }
      let answer = try await server.commit(TestZone.body(forged, records: [record]), token: token)
      #expect((answer.status, answer.error?.security) == (422, .signatureInvalid))
    }
  }

  @Test func everyPutComesWithItsRecord() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let record = account.home.record(.random())
      let commit = try account.home.commit([.put(.init(record))])
      #expect(try await server.commit(TestZone.body(commit), token: token).error?.security == .objectMissing)
      let extra = TestZone.body(commit, records: [record, account.home.record(.random())])
      #expect(try await server.commit(extra, token: token).error?.code == .invalidRequest)
    }
  }

  @Test func aRecordThatIsNotWhatItsPutSaysIsRefused() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let zone = account.home
      let wrongWriter = zone.record(.random()) { $0.writer = .zero }
      let (_, body) = try zone.put([wrongWriter])
      #expect(try await server.commit(body, token: token).error?.security == .recordBindingMismatch)
      let wrongVersion = zone.record(.random()) { $0.recordVersion = 2 }
      let (_, second) = try zone.put([wrongVersion])
      #expect(try await server.commit(second, token: token).error?.security == .recordRollback)
      let wrongTree = zone.record(.random()) { $0.tree = .zero }
      let (_, third) = try zone.put([wrongTree])
      #expect(try await server.commit(third, token: token).error?.security == .recordBindingMismatch)
    }
  }

  /// A member could otherwise sign a put that no client accepts with its record, and take over the content of another node.
  @Test func aPutThatDiffersFromItsRecordIsRefused() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let folder = zone.record(.random())
      try await server.put([folder], in: &zone, token: token)
      let record = zone.record(.random())
      let elsewhere = zone.record(.random()) { ($0.keyGen, $0.parentKeyGen) = (2, 2) }
      let puts: [(NodeRecord, (inout ZoneOperation.Put) -> Void)] = [
        (record, { $0.node = .random() }), (record, { $0.parent = folder.fields.node }),
        (elsewhere, { $0.keyGen = 1 }), (elsewhere, { $0.parentKeyGen = 1 }),
        (elsewhere, { ($0.keyGen, $0.parentKeyGen) = (1, 1) }),
      ]
      for (index, (record, change)) in puts.enumerated() {
        var put = ZoneOperation.Put(record)
        change(&put)
        let body = TestZone.body(try zone.commit([.put(put)]), records: [record])
        let expected: ZDCSecurityError.Code = [2, 3].contains(index) ? .staleKeyGeneration : .recordBindingMismatch
        #expect(try await server.commit(body, token: token).error?.security == expected, "\(index)")
      }
    }
  }

  /// Zero stands for the parent of the root.
  @Test func aNodeWithTheIDZeroIsRefused() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let body = try account.home.put([account.home.record(.zero)]).body
      #expect(try await server.commit(body, token: token).error?.security == .nonCanonicalEncoding)
    }
  }

  @Test func twoLiveSiblingsWithOneName_areRefused_alsoAcrossCommits() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let tag = NameTag.random()
      let twins = [zone.record(.random(), tag: tag), zone.record(.random(), tag: tag)]
      #expect(try await server.commit(try zone.put(twins).body, token: token).error?.security == .duplicateName)
      try await server.put([twins[0]], in: &zone, token: token)
      #expect(try await server.commit(try zone.put([twins[1]]).body, token: token).error?.security == .duplicateName)
      // Under another parent the name is free.
      let below = zone.record(.random(), parent: twins[0].fields.node, tag: tag)
      try await server.put([below], in: &zone, token: token)
    }
  }

  @Test func twoNodesSwapTheirNamesInOneCommit() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let a = zone.record(.random())
      let b = zone.record(.random())
      try await server.put([a, b], in: &zone, token: token)
      let swapped = [
        zone.record(a.fields.node, tag: b.fields.nameTag), zone.record(b.fields.node, tag: a.fields.nameTag),
      ]
      try await server.put(swapped, in: &zone, token: token)
      let late = zone.record(.random(), tag: a.fields.nameTag)
      #expect(try await server.commit(try zone.put([late]).body, token: token).error?.security == .duplicateName)
    }
  }

  @Test func aNewNodeTakesTheNameOfOneThatIsRenamedOrDeletedLaterInTheCommit() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let old = zone.record(.random())
      let doomed = zone.record(.random())
      try await server.put([old, doomed], in: &zone, token: token)
      let heir = zone.record(.random(), tag: old.fields.nameTag)
      let renamed = zone.record(old.fields.node, tag: .random())
      let second = zone.record(.random(), tag: doomed.fields.nameTag)
      let commit = try zone.commit([
        .put(.init(heir)), .put(.init(second)), .put(.init(renamed)),
        .delete(node: doomed.fields.node, record: doomed.hash, liveDescendants: 0),
      ])
      let body = TestZone.body(commit, records: [heir, renamed, second])
      #expect(try await server.commit(body, token: token).status == 200)
    }
  }

  @Test func aDeleteSaysHowManyItTakesAlong() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let folder = zone.record(.random())
      let inner = zone.record(.random(), parent: folder.fields.node)
      let leaves = (0..<3).map { _ in zone.record(.random(), parent: inner.fields.node) }
      try await server.put([folder, inner] + leaves, in: &zone, token: token)
      let wrong = try zone.commit([.delete(node: folder.fields.node, record: folder.hash, liveDescendants: 3)])
      #expect(try await server.commit(TestZone.body(wrong), token: token).error?.security == .moveMismatch)
      let right = try zone.commit([.delete(node: folder.fields.node, record: folder.hash, liveDescendants: 4)])
      #expect(try await server.commit(TestZone.body(right), token: token).status == 200)
      zone.accepted(right)
      // Only the root's record is live; the log has all commits.
      let outline = try await server.page(zone.zone, token: token).outline()
      #expect(outline == "acl, grant, commit 0, commit 1, commit 2, record v1")
      let gone = Routes.path(Routes.node, zone.zone.tree.text, leaves[0].fields.node.text)
      #expect(try await server.send(.GET, gone, token: token).status == 404)
      // The names are free again.
      try await server.put([zone.record(.random(), tag: folder.fields.nameTag)], in: &zone, token: token)
    }
  }

  @Test func aMoveBelowItselfIsRefused() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let a = zone.record(.random())
      let b = zone.record(.random(), parent: a.fields.node)
      try await server.put([a, b], in: &zone, token: token)
      let cycle = zone.record(a.fields.node, parent: b.fields.node)
      #expect(try await server.commit(try zone.put([cycle]).body, token: token).error?.security == .treeCycle)
    }
  }

  @Test func fiveWritersIntoOneZone_allGetThrough() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let start = account.home
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<5 {
          group.addTask {
            var zone = start
            var left = 4
            while left > 0 {
              let (commit, body) = try zone.put([zone.record(.random())])
              let answer = try await server.commit(body, token: token)
              if answer.status == 200 {
                zone.accepted(commit)
                left -= 1
              } else {
                guard answer.status == 409, case .commit(_, let last)? = try answer.lastCommit() else {
                  throw Unexpected(status: answer.status, text: answer.text)
                }
                zone.accepted(last)
              }
            }
          }
        }
        try await group.waitForAll()
      }
      let page = try await server.page(start.zone, token: token)
      #expect(page.headers[WireHeaders.zoneHead]?.hasPrefix("20:") == true)
      #expect(try page.items().count == 2 + 21 + 21)
    }
  }

  @Test func aPageEndsBeforeTheHead_andSaysSo() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      // Two commits of records of 30 KiB: together more than a page.
      for _ in 0..<2 {
        let puts = (0..<100).map { _ in zone.record(.random()) { $0.sealedPrivate = randomBytes(30_000) } }
        try await server.put(puts, in: &zone, token: token)
      }
      let first = try await server.page(zone.zone, token: token)
      #expect(first.bytes.count <= Limits.pageBytes)
      #expect(first.headers[WireHeaders.more] == "1")
      #expect(try first.items().filter { if case .commit = $0 { true } else { false } }.count == 2)
      let second = try await server.page(zone.zone, after: 1, token: token)
      #expect(second.headers[WireHeaders.more] == nil)
      #expect(try second.items().count == 101)
      let none = try await server.page(zone.zone, after: 2, token: token)
      #expect((none.status, none.bytes.count) == (200, 0))
      let beyond = try await server.page(zone.zone, after: 99, token: token)
      #expect(beyond.headers[WireHeaders.zoneHead] == "2:\(zone.headHash.text)")
    }
  }

  @Test func onlyTheLiveRecordOfANodeIsInAPage_replacedOnesComeByHash() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let first = zone.record(.random())
      try await server.put([first], in: &zone, token: token)
      let second = zone.record(first.fields.node)
      try await server.put([second], in: &zone, token: token)
      #expect(try await server.page(zone.zone, after: 0, token: token).outline() == "commit 1, commit 2, record v2")
      let path = Routes.path(Routes.records, zone.zone.tree.text, zone.zone.root.text)
      let node = first.fields.node
      let wanted = [(node, first.hash), (node, .zero), (.random(), second.hash), (node, second.hash)]
      let answer = try await server.send(.POST, path, token: token, body: TestServer.recordNames(wanted))
      #expect(try answer.outline() == "record v1, record v2")
      #expect(try await server.send(.POST, path, token: token, body: [1, 2, 3]).status == 400)
    }
  }

  @Test func severalZonesInOneRequest_allOrNone() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var home = account.home
      var prefs = account.zones[.prefs]!
      let stale = try prefs.put([prefs.record(.random())]).body
      try await server.put([prefs.record(.random())], in: &prefs, token: token)
      let (commit, body) = try home.put([home.record(.random())])
      let late = try await server.commit(body + stale, token: token)
      #expect(late.status == 409)
      #expect(late.headers[WireHeaders.zone] == "\(prefs.zone.tree.text)/\(prefs.zone.root.text)")
      #expect(try await server.page(home.zone, token: token).headers[WireHeaders.zoneHead]?.hasPrefix("0:") == true)
      let fresh = try prefs.put([prefs.record(.random())])
      let both = body + fresh.body
      let first: CommitResponse = try await server.commit(both, token: token).json()
      let again: CommitResponse = try await server.commit(both, token: token).json()
      #expect(first == again)
      #expect(Set(first.zones.map(\.head)) == [commit.hash, fresh.commit.hash])
      let twice = try await server.commit(body + body, token: token)
      #expect(twice.error?.code == .invalidRequest)
      home.accepted(commit)
    }
  }

  @Test func aRecordBelowARotatedKey_mustFollow() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let folder = zone.record(.random())
      let file = zone.record(.random(), parent: folder.fields.node)
      try await server.put([folder, file], in: &zone, token: token)
      try await server.rotate(&zone, token: token)
      let old = zone.record(folder.fields.node) { $0.parentKeyGen = 2 }
      #expect(try await server.commit(try zone.put([old]).body, token: token).error?.security == .staleKeyGeneration)
      for node in [folder.fields.node, file.fields.node] {
        let new = zone.record(node) { ($0.keyGen, $0.parentKeyGen) = (2, 2) }
        try await server.put([new], in: &zone, token: token)
      }
    }
  }

  @Test func hostileBundlesAreRefused() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let record = account.home.record(.random())
      let body = try account.home.put([record]).body
      for end in stride(from: 0, to: body.count, by: 37) {
        let answer = try await server.commit(Array(body[..<end]), token: token)
        #expect([400, 413, 422].contains(answer.status))
      }
      // A length of four gigabytes in an item's head.
      let lying = try await server.commit([2, 255, 255, 255, 255, 0], token: token)
      #expect(lying.error?.security == .limitExceeded)
      let long = try await server.commit([UInt8](repeating: 0, count: Limits.commitRequestBytes + 1), token: token)
      #expect(long.status == 413)
    }
  }
}
