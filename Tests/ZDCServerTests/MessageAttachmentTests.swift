import Testing
import ZDCProtocol
import ZDCServer

/// Content of an outbox that messages name: its readers, and how long they may read it.
@Suite struct MessageAttachmentTests {
  /// Alice has content in her outbox, which a message to Bob may name. Carol knows both.
  private struct World {
    let (alice, bob, carol): (Person, Person, Person)
    let message = MessageID.random()
    let large = BlobTests.Large(70_000)
    var outbox: TestZone

    struct Person {
      let account: TestAccount
      let token: [UInt8]
      var id: UserID { account.userID }

      init(_ server: TestServer) async throws { (account, token) = try await server.newAccount() }

      func trunk(_ trunk: Trunk) throws -> TestZone { try #require(account.zones[trunk]) }
    }

    init(_ server: TestServer) async throws {
      (alice, bob, carol) = (
        try await Person(server), try await Person(server), try await Person(server)
      )
      outbox = try alice.trunk(.outbox)
      try await server.upload(large, node, outbox, token: alice.token)
      try await server.put([outbox.record(node, content: large.field)], in: &outbox, token: alice.token)
    }

    var node: NodeID {
      get throws { try #require(NodeID(message.bytes)) }
    }

    func envelope(
      to other: Person, id: MessageID? = nil, naming content: NodeRecord.Content? = nil
    ) throws -> MessageEnvelope {
      MessageEnvelope(
        id: id ?? message, recipient: other.id, inbox: try other.trunk(.inbox).zone.tree, recipientEncGen: 1,
        sealed: randomBytes(1_200), attachment: .init(content ?? large.field))
    }

    /// A request that takes the message over, with its content.
    func adoption(by person: Person) throws -> [UInt8] {
      let inbox = try person.trunk(.inbox)
      let record = inbox.record(NodeID(message: message, from: alice.id), content: large.field)
      let source = AttachedContent(tree: outbox.zone.tree, node: try node, blob: large.blob)
      return Bundle.attaching([source]) + (try inbox.put([record]).body)
    }

    func status(_ server: TestServer, for person: Person) async throws -> Int {
      try await server.content(large.blob, of: node, in: outbox, token: person.token).status
    }
  }

  private func run(_ body: (TestServer, inout World) async throws -> Void) async throws {
    try await TestServer.run { (server: TestServer) async throws in
      var world = try await World(server)
      try await body(server, &world)
    }
  }

  @Test func onlyTheAddresseeReadsTheContent_andTheReferenceIsTheirs() async throws {
    try await run { server, world in
      #expect(try await world.status(server, for: world.bob) == 404)
      #expect(try await server.commit(world.adoption(by: world.bob), token: world.bob.token).error?.code == .blobGone)
      #expect(try await server.deliver([world.envelope(to: world.bob)], from: world.alice.token) == [.delivered])
      #expect(try await world.status(server, for: world.bob) == 200)
      #expect(try await world.status(server, for: world.carol) == 404)
      let stolen = try world.adoption(by: world.carol)
      #expect(try await server.commit(stolen, token: world.carol.token).error?.code == .blobGone)
      _ = try await server.commit(world.adoption(by: world.bob), token: world.bob.token).expect(200)
      let inbox = try world.bob.trunk(.inbox)
      let node = NodeID(message: world.message, from: world.alice.id)
      let read = try await server.content(world.large.blob, of: node, in: inbox, token: world.bob.token)
      #expect(read.bytes == world.large.bytes)
      // The outbox is closed to the recipient once the envelope is gone; the inbox's copy outlives the outbox's.
      #expect(try await world.status(server, for: world.bob) == 404)
      try await server.delete(world.node, in: &world.outbox, token: world.alice.token)
      server.clock.advance(ms: 31 * 86_400_000)
      try await server.server.collect()
      let token = try await server.login(world.bob.account)
      #expect(try await server.content(world.large.blob, of: node, in: inbox, token: token).bytes == world.large.bytes)
    }
  }

  @Test func anEnvelopeThatNamesOtherContent_isRefused() async throws {
    try await run { server, world in
      var (other, length, root) = (world.large.field, world.large.field, world.large.field)
      other.blobID = .random()
      length.cipherLength += 1
      root.contentRoot = ContentRoot(1, 2, 3, 4)
      for content in [other, length, root] {
        let results = try await server.deliver(
          [world.envelope(to: world.bob, naming: content)], from: world.alice.token)
        #expect(results == [.attachmentMissing])
      }
      // The content of another message, and that of another user.
      let renamed = try world.envelope(to: world.bob, id: .random())
      #expect(try await server.deliver([renamed], from: world.alice.token) == [.attachmentMissing])
      let foreign = try world.envelope(to: world.bob)
      #expect(try await server.deliver([foreign], from: world.carol.token) == [.attachmentMissing])
      #expect(try await server.inbox(world.bob.trunk(.inbox).zone.tree, token: world.bob.token).messages.isEmpty)
      #expect(try await world.status(server, for: world.bob) == 404)
    }
  }

  @Test func contentIsServedWhileTheSenderKeepsIt_andTheEnvelopeWaits() async throws {
    try await run { server, world in
      let name = MessageName(sender: world.alice.id, id: world.message)
      let tree = try world.bob.trunk(.inbox).zone.tree
      let path = Routes.path(Routes.inboxMessage, tree.text, name.sender.text, name.id.text)
      #expect(try await server.deliver([world.envelope(to: world.bob)], from: world.alice.token) == [.delivered])
      _ = try await server.send(.DELETE, path, token: world.bob.token).expect(204)
      #expect(try await world.status(server, for: world.bob) == 404)
      #expect(try await server.deliver([world.envelope(to: world.bob)], from: world.alice.token) == [.delivered])
      #expect(try await world.status(server, for: world.bob) == 200)
      try await server.delete(world.node, in: &world.outbox, token: world.alice.token)
      #expect(try await world.status(server, for: world.bob) == 404)
      #expect(try await server.commit(world.adoption(by: world.bob), token: world.bob.token).error?.code == .blobGone)
      #expect(
        try await server.deliver([world.envelope(to: world.carol)], from: world.alice.token) == [.attachmentMissing])
    }
  }
}
