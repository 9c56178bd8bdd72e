import Testing
import ZDCProtocol
import ZDCServer

@Suite struct BlobTests {
  /// Content of three parts: two full ones and a short one.
  struct Large {
    var blob = BlobID.random()
    let bytes: [UInt8]
    private let isShared: Bool

    init(_ count: Int? = nil) {
      bytes = count.map(randomBytes) ?? Self.shared
      isShared = count == nil
    }

    private static let shared = randomBytes(2 * 128 * ContentGeometry.leafBytes + 100_000)
    private static let sharedLeafHashes = Large().computedLeafHashes()

    var length: UInt64 { UInt64(bytes.count) }

    func part(_ index: Int) -> [UInt8] {
      let range = ContentGeometry.partRange(index, cipherLength: length)
      return Array(bytes[Int(range.lowerBound)..<Int(range.upperBound)])
    }

    func hash(ofPart index: Int, _ bytes: [UInt8]) -> [UInt8] {
      MerkleTree.partHash(bytes, part: index, cipherLength: length)
    }

    var leafHashes: [MerkleHash] { isShared ? Self.sharedLeafHashes : computedLeafHashes() }

    private func computedLeafHashes() -> [MerkleHash] {
      (0..<ContentGeometry.leafCount(cipherLength: length)).map { index in
        let range = ContentGeometry.leafRange(index, cipherLength: length)
        return MerkleTree.leafHash(bytes[Int(range.lowerBound)..<Int(range.upperBound)])
      }
    }

    var root: ContentRoot { ContentRoot(reinterpreting: MerkleTree.root(leafHashes: leafHashes)) }

    var field: NodeRecord.Content {
      NodeRecord.Content(dataVersion: 1, blobID: blob, cipherLength: length, contentRoot: root)
    }
  }

  private func ticket(
    _ large: Large, _ node: NodeID, _ zone: TestZone, _ server: TestServer, _ token: [UInt8]
  )
    async throws -> Answer
  {
    let request = BlobTicketRequest(
      blobID: large.blob, treeID: zone.zone.tree, nodeID: node, cipherLength: large.length)
    return try await server.sendJSON(.POST, Routes.blobs, request, token: token)
  }

  private func putPart(
    _ index: Int, _ large: Large, _ server: TestServer, _ token: [UInt8], bytes: [UInt8]? = nil, hash: [UInt8]? = nil
  ) async throws -> Answer {
    let bytes = bytes ?? large.part(index)
    let hash = hash ?? large.hash(ofPart: index, bytes)
    return try await server.send(
      .PUT, Routes.path(Routes.blobPart, large.blob.text, "\(index)"), token: token,
      headers: [(WireHeaders.partHash, ZBase32.encode(hash))], body: bytes)
  }

  private func complete(_ large: Large, _ server: TestServer, _ token: [UInt8]) async throws -> Answer {
    try await server.send(.POST, Routes.path(Routes.blobComplete, large.blob.text), token: token)
  }

  private func upload(
    _ large: Large, _ node: NodeID, _ zone: TestZone, _ server: TestServer, _ token: [UInt8]
  ) async throws {
    _ = try await ticket(large, node, zone, server, token).expect(201)
    for index in [2, 0, 1] { _ = try await putPart(index, large, server, token).expect(204) }
    _ = try await complete(large, server, token).expect(200)
  }

  @Test func partsInAnyOrder_thenTheCommit_thenRangesOfIt() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let large = Large()
      let node = NodeID.random()
      try await upload(large, node, zone, server, token)
      let status = try await complete(large, server, token).json(BlobStatus.self)
      #expect(status.contentRoot == large.root)
      #expect(status.parts.map(\.index) == [0, 1, 2])
      let record = zone.record(node, content: large.field)
      try await server.put([record], in: &zone, token: token)

      let path = Routes.path(Routes.content, zone.zone.tree.text, node.text, large.blob.text)
      let whole = try await server.send(.GET, path, token: token)
      #expect(whole.bytes == large.bytes)
      #expect(whole.headers["etag"] == "\"\(large.blob.text)\"")
      let middle = try await server.send(.GET, path, token: token, headers: [("range", "bytes=100000-300000")])
      #expect((middle.status, middle.bytes) == (206, Array(large.bytes[100_000...300_000])))
      #expect(middle.headers["content-range"] == "bytes 100000-300000/\(large.length)")
      let end = try await server.send(.GET, path, token: token, headers: [("range", "bytes=-7")])
      #expect(end.bytes == Array(large.bytes.suffix(7)))
      let beyond = try await server.send(.GET, path, token: token, headers: [("range", "bytes=\(large.length)-")])
      #expect((beyond.status, beyond.error?.code) == (416, .rangeNotSatisfiable))
      let leaves = Routes.path(Routes.leafHashes, zone.zone.tree.text, node.text, large.blob.text)
      let some = try await server.send(.GET, leaves + "?from=3&count=2", token: token)
      #expect(some.bytes == large.leafHashes[3].bytes + large.leafHashes[4].bytes)

      let (_, stranger) = try await server.newAccount()
      #expect(try await server.send(.GET, path, token: stranger).status == 404)
      #expect(try await server.send(.GET, leaves, token: stranger).status == 404)
    }
  }

  @Test func aProofIsMadeOfTheStoredHashes() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let large = Large()
      let node = NodeID.random()
      try await upload(large, node, zone, server, token)
      try await server.put([zone.record(node, content: large.field)], in: &zone, token: token)
      let path = Routes.path(Routes.leafProof, zone.zone.tree.text, node.text, large.blob.text)
      let leaves = ContentGeometry.leafCount(cipherLength: large.length)
      for (from, count) in [(0, 1), (1, 1), (5, 2), (leaves - 1, 1), (0, leaves), (3, .max)] as [(UInt64, UInt64)] {
        let answer = try await server.send(.GET, path + "?from=\(from)&count=\(count)", token: token)
        let proof = try stride(from: 0, to: answer.bytes.count, by: 32).map { start in
          try #require(MerkleHash(answer.bytes[start..<start + 32]))
        }
        let proven = ContentGeometry.provenLeaves(from: from, count: count, cipherLength: large.length)
        let hashes = proven.flatMap { large.leafHashes[Int($0.lowerBound)..<Int($0.upperBound)] }
        let root = MerkleTree.root(leafCount: leaves, leaves: proven, leafHashes: hashes, proof: proof)
        #expect(root == MerkleHash(reinterpreting: large.root))
      }
      let one = try await server.send(.GET, path + "?from=7", token: token).bytes
      #expect(one == (try await server.send(.GET, path + "?from=7&count=1", token: token).bytes))
      let beyond = try await server.send(.GET, path + "?from=\(leaves)", token: token)
      #expect((beyond.status, beyond.error?.code) == (416, .rangeNotSatisfiable))
      #expect(try await server.send(.GET, path + "?from=x", token: token).status == 400)
      let (_, stranger) = try await server.newAccount()
      #expect(try await server.send(.GET, path + "?from=0", token: stranger).status == 404)
    }
  }

  @Test func aPartIsWhatItsHashSays() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let large = Large()
      _ = try await ticket(large, .random(), account.home, server, token).expect(201)
      let lying = try await putPart(0, large, server, token, hash: randomBytes(32))
      #expect(lying.error?.security == .contentHashMismatch)
      #expect(try await putPart(0, large, server, token).status == 204)
      #expect(try await putPart(0, large, server, token).status == 204)
      let other = try await putPart(0, large, server, token, bytes: randomBytes(large.part(0).count))
      #expect(other.error?.code == .conflict)
      #expect(try await putPart(1, large, server, token, bytes: [1, 2, 3]).status == 400)
      #expect(try await putPart(9, large, server, token, bytes: [1]).status == 400)
      let early = try await complete(large, server, token)
      #expect((early.error?.code, early.headers["retry-after"]) == (.blobIncomplete, "1"))
    }
  }

  @Test func aTicketIsBoundToItsFacts_andToItsOwner() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let (other, stranger) = try await server.newAccount()
      let large = Large()
      let node = NodeID.random()
      #expect(try await ticket(large, node, account.home, server, token).status == 201)
      #expect(try await ticket(large, node, account.home, server, token).status == 201)
      #expect(try await ticket(large, .random(), account.home, server, token).error?.code == .conflict)
      #expect(try await ticket(large, node, other.home, server, stranger).error?.code == .conflict)
      #expect(try await ticket(Large(), node, account.home, server, stranger).error?.code == .notFound)
      let parts = Routes.path(Routes.blobParts, large.blob.text)
      #expect(try await server.send(.GET, parts, token: stranger).status == 404)
      #expect(try await putPart(0, large, server, stranger).status == 404)
      #expect(try await ticket(Large(100), node, account.home, server, token).status == 400)
    }
  }

  @Test func aBlobBelongsToTheNodeOfItsTicket() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let zone = account.home
      let large = Large()
      try await upload(large, .random(), zone, server, token)
      let elsewhere = zone.record(.random(), content: large.field)
      #expect(try await server.commit(try zone.put([elsewhere]).body, token: token).error?.security == .blobNotYours)
    }
  }

  @Test func aCommitWaitsForItsContent_andReportsWhy() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let zone = account.home
      let large = Large()
      let node = NodeID.random()
      let record = zone.record(node, content: large.field)
      let body = try zone.put([record]).body
      #expect(try await server.commit(body, token: token).error?.code == .blobGone)
      _ = try await ticket(large, node, zone, server, token)
      #expect(try await server.commit(body, token: token).error?.code == .blobIncomplete)
      for index in 0..<3 { _ = try await putPart(index, large, server, token).expect(204) }
      _ = try await complete(large, server, token)
      let wrongRoot = NodeRecord.Content(
        dataVersion: 1, blobID: large.blob, cipherLength: large.length, contentRoot: .zero)
      let lie = try zone.put([zone.record(node, content: wrongRoot)]).body
      #expect(try await server.commit(lie, token: token).error?.security == .contentHashMismatch)
      #expect(try await server.commit(body, token: token).status == 200)
    }
  }

  /// - The server looks for files that no row knows, again and again
  /// => it refuses no part of an upload that it meets
  @Test func aSearchForUnknownFiles_refusesNoPart() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let large = Large(128 * ContentGeometry.leafBytes + 10_000)
      _ = try await ticket(large, .random(), account.home, server, token).expect(201)
      let search = Task { while !Task.isCancelled { try await server.server.collect() } }
      defer { search.cancel() }
      for _ in 0..<100 { _ = try await putPart(1, large, server, token).expect(204) }
      search.cancel()
      // It may be cancelled in the middle of a round.
      do { try await search.value } catch is CancellationError {}
    }
  }

  @Test func anAbortedUploadIsGone() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let large = Large()
      try await upload(large, .random(), account.home, server, token)
      let path = Routes.path(Routes.blob, large.blob.text)
      #expect(try await server.send(.DELETE, path, token: token).status == 204)
      #expect(try await complete(large, server, token).status == 404)
      #expect(try await server.blobs.all() == [])
    }
  }

  @Test func smallContentRidesAlong_andComesBackInBatches() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let contents = [TestZone.Content(300), TestZone.Content(Limits.inlineContentBytes)]
      let records = contents.map { zone.record(.random(), content: $0.field()) }
      var damaged = contents[0]
      damaged.bytes[0] ^= 1
      let (_, lie) = try zone.put([records[0]], contents: [damaged])
      #expect(try await server.commit(lie, token: token).error?.security == .contentHashMismatch)
      let (_, none) = try zone.put([records[0]])
      #expect(try await server.commit(none, token: token).error?.code == .blobGone)
      try await server.put(records, contents: contents, in: &zone, token: token)
      let path = Routes.path(Routes.contents, zone.zone.tree.text, zone.zone.root.text)
      let asked = zip(records, contents).flatMap { $0.fields.node.bytes + $1.blob.bytes } + randomBytes(32)
      let answer = try await server.send(.POST, path, token: token, body: asked)
      #expect(try answer.items() == contents.map { .content($0.blob, $0.bytes[...]) })
      let single = Routes.path(
        Routes.content, zone.zone.tree.text, records[0].fields.node.text, contents[0].blob.text)
      let range = try await server.send(.GET, single, token: token, headers: [("range", "bytes=10-19")])
      #expect(range.bytes == Array(contents[0].bytes[10...19]))
      // A rename keeps the content and the time when it came.
      let received = server.clock.nowMs
      server.clock.advance(ms: 1_000)
      let renamed = zone.record(records[0].fields.node, tag: .random())
      try await server.put([renamed], in: &zone, token: token)
      #expect(
        try await server.page(zone.zone, after: 1, token: token).items().last
          == .record(recordReceivedMs: received + 1_000, dataReceivedMs: received, renamed))
    }
  }

  /// => 1,000 contents may be asked for at once, and one more is refused
  @Test(arguments: [-1, 0, 1]) func aThousandSmallContents_areOneRequest(more: Int) async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let content = TestZone.Content(300)
      let record = zone.record(.random(), content: content.field())
      try await server.put([record], contents: [content], in: &zone, token: token)
      let unknown = (1..<Limits.blobsPerRequest + more).flatMap { _ in randomBytes(32) }
      let path = Routes.path(Routes.contents, zone.zone.tree.text, zone.zone.root.text)
      let asked = unknown + record.fields.node.bytes + content.blob.bytes
      let answer = try await server.send(.POST, path, token: token, body: asked)
      if more > 0 {
        #expect((answer.status, answer.error?.code) == (413, .limitExceeded))
      } else {
        #expect(try answer.items() == [.content(content.blob, content.bytes[...])])
      }
    }
  }

  /// An account that learns the id of another account's small content can neither read nor remove it.
  @Test func aSmallContentIsItsNodesAlone_whateverItsId() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (owner, token) = try await server.newAccount()
      let (stranger, other) = try await server.newAccount()
      var (zone, elsewhere) = (owner.home, stranger.home)
      let content = TestZone.Content(300)
      let record = zone.record(.random(), content: content.field())
      try await server.put([record], contents: [content], in: &zone, token: token)
      let claim = elsewhere.record(.random(), content: content.field())
      let (_, empty) = try elsewhere.put([claim])
      #expect(try await server.commit(empty, token: other).error?.code == .blobGone)
      var mine = TestZone.Content(400)
      mine.blob = content.blob
      let own = elsewhere.record(.random(), content: mine.field())
      try await server.put([own], contents: [mine], in: &elsewhere, token: other)
      for (zone, record, content, token) in [(zone, record, content, token), (elsewhere, own, mine, other)] {
        let path = Routes.path(Routes.content, zone.zone.tree.text, record.fields.node.text, content.blob.text)
        #expect(try await server.send(.GET, path, token: token).bytes == content.bytes)
      }
      let foreign = Routes.path(
        Routes.content, elsewhere.zone.tree.text, record.fields.node.text, content.blob.text)
      #expect(try await server.send(.GET, foreign, token: other).status != 200)
      // Nor does an upload under this id.
      var large = Large()
      large.blob = content.blob
      #expect(try await ticket(large, .random(), elsewhere, server, other).status == 201)
      let path = Routes.path(Routes.content, zone.zone.tree.text, record.fields.node.text, content.blob.text)
      #expect(try await server.send(.GET, path, token: token).bytes == content.bytes)
    }
  }

  @Test func aSmallContentComesForOneNode() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let zone = account.home
      let content = TestZone.Content(300)
      let records = [NodeID.random(), .random()].map { zone.record($0, content: content.field()) }
      let (_, body) = try zone.put(records, contents: [content])
      #expect(try await server.commit(body, token: token).error?.security == .blobNotYours)
    }
  }

  @Test func replacedContentIsKeptForThirtyDays() async throws {
    let folder = TestServer.newFolder()
    defer { TestServer.remove(folder) }
    try await TestServer.run(in: folder) { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let before = TestZone.Content()
      let new = TestZone.Content()
      let node = NodeID.random()
      let first = zone.record(node, content: before.field())
      try await server.put([first], contents: [before], in: &zone, token: token)
      let second = zone.record(node, content: new.field(version: 2))
      try await server.put([second], contents: [new], in: &zone, token: token)
      let path = Routes.path(Routes.content, zone.zone.tree.text, node.text, before.blob.text)
      #expect(try await server.send(.GET, path, token: token).bytes == before.bytes)
      let records = Routes.path(Routes.records, zone.zone.tree.text, zone.zone.root.text)
      server.clock.advance(ms: 29 * 24 * 3_600_000)
      try await server.server.collect()
      let again = try await server.login(account)
      #expect(try await server.send(.GET, path, token: again).status == 200)
      server.clock.advance(ms: 2 * 24 * 3_600_000)
      try await server.server.collect()
      let late = try await server.login(account)
      let gone = try await server.send(.GET, path, token: late)
      #expect((gone.status, gone.error?.code) == (410, .blobGone))
      let (_, stranger) = try await server.newAccount()
      #expect(try await server.send(.GET, path, token: stranger).status == 404)
      let answer = try await server.send(
        .POST, records, token: late, body: TestServer.recordNames([(node, first.hash), (node, second.hash)]))
      #expect(try answer.items().count == 1)
      let old = try await server.send(.POST, records, token: late, body: TestServer.recordNames([(node, first.hash)]))
      #expect((old.status, old.error?.code) == (410, .gone))
    }
  }
}
