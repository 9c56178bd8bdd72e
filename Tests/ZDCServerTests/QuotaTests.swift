import Testing
import ZDCProtocol
import ZDCServer

/// How much a user may store, and which content is removed first when it is too much.
@Suite struct QuotaTests {
  private func run(_ quota: UInt64, _ body: (TestServer, TestAccount, [UInt8]) async throws -> Void) async throws {
    try await TestServer.run({ $0.bounds.quotaBytes = quota }) { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      try await body(server, account, token)
    }
  }

  @Test func aTicketThatDoesNotFit_isRefusedWithItsCost() async throws {
    try await run(300_000) { server, account, token in
      _ = try await server.ticket(BlobTests.Large(200_000), .random(), account.home, token: token).expect(201)
      // The first one counts although nothing of it has come.
      let answer = try await server.ticket(BlobTests.Large(150_000), .random(), account.home, token: token)
      #expect((answer.status, answer.error?.code) == (507, .quotaExceeded))
      #expect(answer.error?.quota == ServerError.Quota(used: 200_000, limit: 300_000, needed: 150_000))
      #expect(answer.headers["retry-after"] == "60")
      #expect(try await server.ticket(BlobTests.Large(100_000), .random(), account.home, token: token).status == 201)
      let (other, stranger) = try await server.newAccount()
      #expect(try await server.ticket(BlobTests.Large(300_000), .random(), other.home, token: stranger).status == 201)
    }
  }

  @Test func anAbortedUploadMakesRoom() async throws {
    try await run(300_000) { server, account, token in
      let first = BlobTests.Large(200_000)
      try await server.upload(first, .random(), account.home, token: token)
      let second = BlobTests.Large(200_000)
      #expect(try await server.ticket(second, .random(), account.home, token: token).status == 507)
      let path = Routes.path(Routes.blob, first.blob.text)
      _ = try await server.send(.DELETE, path, token: token).expect(204)
      #expect(try await server.ticket(second, .random(), account.home, token: token).status == 201)
    }
  }

  @Test func aCommitBeyondTheQuota_changesNothing_andAllThatNeedsNoRoomIsTaken() async throws {
    let folder = TestServer.newFolder()
    defer { TestServer.remove(folder) }
    let account = try TestAccount()
    var zone = account.home
    let (node, doomed) = (NodeID.random(), NodeID.random())
    try await TestServer.run(in: folder) { (server: TestServer) async throws in
      _ = try await server.sendJSON(.POST, Routes.accounts, account.registration()).expect(201)
      let token = try await server.login(account)
      let contents = [TestZone.Content(20_000), TestZone.Content(20_000)]
      try await server.put(
        [zone.record(node, content: contents[0].field()), zone.record(doomed, content: contents[1].field())],
        contents: contents, in: &zone, token: token)
    }
    try await TestServer.run(in: folder, { $0.bounds.quotaBytes = 10_000 }) { (server: TestServer) async throws in
      let token = try await server.login(account)
      let more = TestZone.Content(400)
      let (_, body) = try zone.put([zone.record(.random(), content: more.field())], contents: [more])
      let refused = try await server.commit(body, token: token)
      #expect(refused.error?.quota == ServerError.Quota(used: 40_000, limit: 10_000, needed: 400))
      #expect(try await server.page(zone.zone, token: token).headers[WireHeaders.zoneHead]?.hasPrefix("1:") == true)
      try await server.put([zone.record(.random())], in: &zone, token: token)
      try await server.put([zone.record(node, tag: .random())], in: &zone, token: token)
      try await server.delete(doomed, in: &zone, token: token)
    }
  }

  @Test func keptVersionsGoFirst_theOldestFirst() async throws {
    try await run(100_000) { server, account, token in
      var zone = account.home
      let node = NodeID.random()
      var versions: [TestZone.Content] = []
      for number in UInt64(1)...5 {
        let content = TestZone.Content(30_000)
        server.clock.advance(ms: 1_000)
        try await server.put(
          [zone.record(node, content: content.field(version: number))], contents: [content], in: &zone, token: token)
        versions.append(content)
      }
      var answers: [Int] = []
      for version in versions {
        answers.append(try await server.content(version.blob, of: node, in: zone, token: token).status)
      }
      #expect(answers == [410, 410, 200, 200, 200])
    }
  }

  /// Content that fills the account can be replaced: the replaced version makes the room.
  @Test func replacedContent_freesQuotaForTheSameRequest_andItsFileIsRemoved() async throws {
    try await run(250_000) { server, account, token in
      var zone = account.home
      let node = NodeID.random()
      let large = BlobTests.Large(200_000)
      try await server.upload(large, node, zone, token: token)
      try await server.put([zone.record(node, content: large.field)], in: &zone, token: token)
      let small = TestZone.Content(60_000)
      try await server.put(
        [zone.record(node, content: small.field(version: 2))], contents: [small], in: &zone, token: token)
      #expect(try await server.content(large.blob, of: node, in: zone, token: token).error?.code == .blobGone)
      #expect(try await server.blobs.all() == [])
    }
  }

  /// - A full account; one commit deletes a folder, puts a node of it again with the content that it had, and brings a
  ///   new content
  /// => the commit is refused: nothing that will be live makes room
  @Test func aPutAfterADelete_freesNoQuota() async throws {
    try await run(100_000) { server, account, token in
      var zone = account.home
      let (folder, node) = (zone.record(.random()), NodeID.random())
      let kept = TestZone.Content(50_000)
      try await server.put([folder], in: &zone, token: token)
      try await server.put(
        [zone.record(node, parent: folder.fields.node, content: kept.field())], contents: [kept], in: &zone,
        token: token)
      let delete = ZoneOperation.delete(node: folder.fields.node, record: folder.hash, liveDescendants: 1)
      zone.records[node] = nil
      let again = zone.record(node, content: kept.field())
      func commit(_ size: Int) async throws -> Answer {
        let new = TestZone.Content(size)
        let records = [again, zone.record(.random(), content: new.field())]
        let commit = try zone.commit([delete] + records.map { .put(.init($0)) })
        return try await server.commit(TestZone.body(commit, records: records, contents: [new]), token: token)
      }
      #expect(try await commit(60_000).error?.code == .quotaExceeded)
      #expect(try await commit(40_000).status == 200)
      #expect(try await server.content(kept.blob, of: node, in: zone, token: token).bytes == kept.bytes)
    }
  }

  /// - A member uploads content for the owner's tree, which a commit attaches later
  /// => it counts for the member at first: the owner's kept content stays and the owner has room; then for the owner
  @Test("P9: an upload counts for the member who sends it until a commit attaches it")
  func anUploadCountsForTheMemberWhoSendsIt() async throws {
    try await run(300_000) { server, owner, token in
      let (member, memberToken) = try await server.newAccount()
      var zone = owner.home
      let (node, place) = (NodeID.random(), NodeID.random())
      let versions = [TestZone.Content(60_000), TestZone.Content(40_000)]
      for (number, content) in versions.enumerated() {
        let record = zone.record(node, content: content.field(version: UInt64(number + 1)))
        try await server.put([record], contents: [content], in: &zone, token: token)
      }
      let list = try await server.share(&zone, with: zone.member(member.userID, [.read, .write]), token: token)
      let large = BlobTests.Large(200_000)
      try await server.upload(large, place, zone, token: memberToken)
      func ticket(_ length: Int, in zone: TestZone, _ token: [UInt8]) async throws -> ServerError.Code? {
        let upload = BlobTests.Large(length)
        let answer = try await server.ticket(upload, .random(), zone, token: token)
        guard answer.status == 201 else { return answer.error?.code }
        _ = try await server.send(.DELETE, Routes.path(Routes.blob, upload.blob.text), token: token).expect(204)
        return nil
      }
      #expect(try await ticket(150_000, in: zone, memberToken) == .quotaExceeded)
      #expect(try await ticket(190_000, in: zone, token) == nil)
      #expect(try await server.content(versions[0].blob, of: node, in: zone, token: token).status == 200)
      let record = zone.record(place, content: large.field) { $0.writer = member.userID }
      let commit = try zone.commit(by: member, [.put(.init(record))], list: list)
      _ = try await server.commit(TestZone.body(commit, records: [record]), token: memberToken).expect(200)
      #expect(try await ticket(100_000, in: zone, token) == .quotaExceeded)
      #expect(try await ticket(300_000, in: member.home, memberToken) == nil)
    }
  }

  /// - A member uploads what the owner has no room for any more when the commit comes
  /// => the commit is refused, nothing of the owner's that is live goes, and the member does not learn the owner's figures
  @Test func anUploadOfAMember_needsTheOwnersRoom() async throws {
    try await run(300_000) { server, owner, token in
      let (member, memberToken) = try await server.newAccount()
      var zone = owner.home
      let list = try await server.share(&zone, with: zone.member(member.userID, [.read, .write]), token: token)
      zone.acl = list
      let (place, node) = (NodeID.random(), NodeID.random())
      let large = BlobTests.Large(200_000)
      try await server.upload(large, place, zone, token: memberToken)
      let own = BlobTests.Large(150_000)
      try await server.upload(own, node, zone, token: token)
      try await server.put([zone.record(node, content: own.field)], in: &zone, token: token)
      let tooMuch = try await server.ticket(BlobTests.Large(160_000), .random(), zone, token: memberToken)
      #expect((tooMuch.error?.code, tooMuch.error?.quota) == (.quotaExceeded, nil))
      let record = zone.record(place, content: large.field) { $0.writer = member.userID }
      let commit = try zone.commit(by: member, [.put(.init(record))], list: list)
      let refused = try await server.commit(TestZone.body(commit, records: [record]), token: memberToken)
      #expect((refused.error?.code, refused.error?.quota) == (.quotaExceeded, nil))
      #expect(try await server.content(own.blob, of: node, in: zone, token: token).status == 200)
    }
  }
}
