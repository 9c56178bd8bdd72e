import Testing
import ZDCProtocol
import ZDCServer

/// M-2: a commit attaches content of another node without sending it again (PROTOCOL 4.4).
@Suite struct AttachTests {
  /// An owner with a small and a large content blob, and a friend with access.
  private struct World {
    let owner: (account: TestAccount, token: [UInt8])
    let friend: (account: TestAccount, token: [UInt8])
    /// The owner's home.
    var source: TestZone
    /// The friend's home.
    var home: TestZone
    let small = TestZone.Content()
    let large = BlobTests.Large(70_000)
    let nodes = [NodeID.random(), NodeID.random()]

    var fields: [NodeRecord.Content] { [small.field(), large.field] }

    init(_ server: TestServer) async throws {
      owner = try await server.newAccount()
      friend = try await server.newAccount()
      (source, home) = (owner.account.home, friend.account.home)
      try await server.upload(large, nodes[1], source, token: owner.token)
      try await server.put(
        zip(nodes, fields).map { source.record($0, content: $1) }, contents: [small], in: &source, token: owner.token)
      source.acl = try await server.share(&source, with: source.member(friend.account.userID), token: owner.token)
    }

    func attachment(of index: Int) -> AttachedContent {
      AttachedContent(tree: source.zone.tree, node: nodes[index], blob: fields[index].blobID)
    }

    /// A request that puts new nodes of the friend with these contents.
    func request(
      _ records: [NodeRecord], attaching contents: [AttachedContent]
    ) throws -> (commit: ZoneCommit, body: [UInt8]) {
      let (commit, body) = try home.put(records)
      return (commit, Bundle.attaching(contents) + body)
    }
  }

  private func run(
    _ change: (inout Configuration) -> Void = { _ in }, _ body: (TestServer, inout World) async throws -> Void
  ) async throws {
    let folder = TestServer.newFolder()
    defer { TestServer.remove(folder) }
    try await TestServer.run(in: folder, change) { (server: TestServer) async throws in
      var world = try await World(server)
      try await body(server, &world)
    }
    #expect(try TestStores.findings(in: folder) == [])
  }

  /// - A friend attaches content of the owner's nodes to nodes in their tree; one of both deletes theirs, and it is
  ///   collected
  /// => the other's is untouched; the file goes with the last node that has it
  @Test(arguments: [true, false]) func bothNodesHaveTheContent(ownerDeletesFirst: Bool) async throws {
    try await run { server, world in
      let copies = world.fields.map { world.home.record(.random(), content: $0) }
      let (commit, body) = try world.request(copies, attaching: [0, 1].map(world.attachment))
      let first: CommitResponse = try await server.commit(body, token: world.friend.token).json()
      #expect(try await server.commit(body, token: world.friend.token).json() == first)
      world.home.accepted(commit, records: copies)
      let ids = copies.map(\.fields.node)
      let (owner, friend) = (world.owner.account, world.friend.account)
      func used(_ user: UserID) async throws -> UInt64 { try await server.store.read { try $0.contentBytes(of: user) } }
      #expect(try await used(friend.userID) == used(owner.userID))
      if ownerDeletesFirst {
        for node in world.nodes { try await server.delete(node, in: &world.source, token: world.owner.token) }
      } else {
        for node in ids { try await server.delete(node, in: &world.home, token: world.friend.token) }
      }
      server.clock.advance(ms: 31 * 86_400_000)
      try await server.server.collect()
      let kept = ownerDeletesFirst ? (ids, world.home, friend) : (world.nodes, world.source, owner)
      let token = try await server.login(kept.2)
      for (node, field) in zip(kept.0, world.fields) {
        let content = try await server.content(field.blobID, of: node, in: kept.1, token: token)
        #expect(content.bytes == (field.blobID == world.small.blob ? world.small.bytes : world.large.bytes))
      }
      #expect(try await used(ownerDeletesFirst ? owner.userID : friend.userID) == 0)
      #expect(try await server.blobs.all() == [world.large.blob])
      var rest = kept.1
      for node in kept.0 { try await server.delete(node, in: &rest, token: token) }
      server.clock.advance(ms: 31 * 86_400_000)
      try await server.server.collect()
      #expect(try await server.blobs.all().isEmpty)
    }
  }

  /// - One request puts a copy of a node in another zone, with its content, and deletes the node
  /// => the copy has the content
  @Test func aMoveToAnotherZoneTakesTheContentAlong() async throws {
    try await run { server, world in
      let token = world.owner.token
      let child = try TestZone(
        owner: world.source.owner, signKey: world.source.signKey, trunk: .home,
        app: world.source.acl.fields.appTreeID, root: .random())
      _ = try await server.commit(child.birth, token: token).expect(200)
      let copies = world.fields.map { child.record(.random(), content: $0) }
      let deletes = try world.source.commit(
        world.nodes.map { node in
          .delete(node: node, record: world.source.records[node]!.hash, liveDescendants: 0)
        })
      let body = Bundle.attaching([0, 1].map(world.attachment)) + TestZone.body(deletes)
      _ = try await server.commit(body + (try child.put(copies).body), token: token).expect(200)
      for (copy, bytes) in zip(copies, [world.small.bytes, world.large.bytes]) {
        let blob = try #require(copy.fields.content?.blobID)
        #expect(try await server.content(blob, of: copy.fields.node, in: child, token: token).bytes == bytes)
      }
    }
  }

  /// - A copy is replaced by another content and named again; a copy is deleted by the commit that puts it
  /// => the source is untouched
  @Test func aCopyIsReplacedAndNamedAgain() async throws {
    try await run { server, world in
      let (node, token) = (NodeID.random(), world.friend.token)
      for (version, field) in world.fields.enumerated() {
        var field = field
        field.dataVersion = UInt64(version + 1)
        let record = world.home.record(node, content: field)
        let (commit, body) = try world.request([record], attaching: [world.attachment(of: version)])
        _ = try await server.commit(body, token: token).expect(200)
        world.home.accepted(commit, records: [record])
      }
      // The small content is kept for the node.
      var field = world.small.field()
      field.dataVersion = 3
      try await server.put([world.home.record(node, content: field)], in: &world.home, token: token)
      let small = try await server.content(world.small.blob, of: node, in: world.home, token: token)
      #expect(small.bytes == world.small.bytes)
      let folder = world.home.record(.random())
      try await server.put([folder], in: &world.home, token: token)
      let below = world.fields.map { world.home.record(.random(), parent: folder.fields.node, content: $0) }
      let operations =
        below.map { ZoneOperation.put(.init($0)) }
        + [.delete(node: folder.fields.node, record: folder.hash, liveDescendants: 2)]
      let commit = try world.home.commit(operations)
      let body = Bundle.attaching([0, 1].map(world.attachment)) + TestZone.body(commit, records: below)
      _ = try await server.commit(body, token: token).expect(200)
      for (node, blob) in zip(world.nodes, [world.small.blob, world.large.blob]) {
        #expect(try await server.content(blob, of: node, in: world.source, token: world.owner.token).status == 200)
      }
    }
  }

  /// Content that the user may not read, that does not exist, or that the node does not have now: one answer.
  @Test func onlyReadableLiveContentIsAttached() async throws {
    try await run { server, world in
      let (stranger, strangerToken) = try await server.newAccount()
      let token = world.friend.token
      func refusal(
        _ source: AttachedContent, _ field: NodeRecord.Content, by zone: TestZone? = nil, _ token: [UInt8]
      ) async throws -> ServerError? {
        let zone = zone ?? world.home
        let body = try zone.put([zone.record(.random(), content: field)]).body
        return try await server.commit(Bundle.attaching([source]) + body, token: token).error
      }
      for index in [0, 1] {
        let (field, source) = (world.fields[index], world.attachment(of: index))
        #expect(try await refusal(source, field, by: stranger.home, strangerToken)?.code == .blobGone)
        var other = source
        other.node = world.nodes[1 - index]
        #expect(try await refusal(other, field, token)?.code == .blobGone)
        other = source
        other.tree = world.home.zone.tree
        #expect(try await refusal(other, field, token)?.code == .blobGone)
        var wrong = field
        wrong.contentRoot = ContentRoot(randomBytes(32))!
        #expect(try await refusal(source, wrong, token)?.security == .contentHashMismatch)
        wrong = field
        wrong.cipherLength += 1
        #expect(try await refusal(source, wrong, token)?.security == .contentHashMismatch)
      }
      // Replaced content is readable for the friend, and not attached.
      let new = TestZone.Content()
      server.clock.advance(ms: 1)
      let record = world.source.record(world.nodes[0], content: new.field(version: 2))
      try await server.put([record], contents: [new], in: &world.source, token: world.owner.token)
      #expect(try await refusal(world.attachment(of: 0), world.fields[0], token)?.code == .blobGone)
      // A former member.
      try await server.remove(world.friend.account.userID, from: &world.source, token: world.owner.token)
      #expect(try await refusal(world.attachment(of: 1), world.fields[1], token)?.code == .blobGone)
    }
  }

  @Test func anAttachmentIsNamedOnce() async throws {
    try await run { server, world in
      let body = try world.home.put([world.home.record(.random(), content: world.small.field())]).body
      let source = world.attachment(of: 0)
      let twice = try await server.commit(Bundle.attaching([source, source]) + body, token: world.friend.token)
      #expect(twice.error?.code == .invalidRequest)
      var content = Bundle.Writer()
      content.append(content: world.small.bytes, blob: world.small.blob)
      let both = Bundle.attaching([source]) + content.bytes + body
      #expect(try await server.commit(both, token: world.friend.token).error?.code == .invalidRequest)
    }
  }

  /// - The friend's quota has room for a part of the content only
  /// => refused, because it counts fully for the friend
  @Test func anAttachmentCountsForTheNewOwner() async throws {
    try await run {
      $0.bounds.quotaBytes = 100_000
    } _: { server, world in
      let first = try world.request(
        [world.home.record(.random(), content: world.large.field)], attaching: [world.attachment(of: 1)])
      _ = try await server.commit(first.body, token: world.friend.token).expect(200)
      world.home.accepted(first.commit)
      let second = try world.request(
        [world.home.record(.random(), content: world.large.field)], attaching: [world.attachment(of: 1)])
      let refused = try await server.commit(second.body, token: world.friend.token)
      #expect((refused.status, refused.error?.code) == (507, .quotaExceeded))
    }
  }
}

extension Bundle {
  /// The items that attach these contents.
  static func attaching(_ contents: [AttachedContent]) -> [UInt8] {
    var writer = Bundle.Writer()
    for content in contents { writer.append(attach: content) }
    return writer.bytes
  }
}
