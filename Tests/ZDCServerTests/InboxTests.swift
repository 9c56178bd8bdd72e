import Testing
import ZDCProtocol
import ZDCServer

/// Mailboxes: permissions, limits, and the messages that a commit adopts.
@Suite struct InboxTests {
  struct User {
    let account: TestAccount
    let token: [UInt8]
    var id: UserID { account.userID }
    var inbox: TestZone { get throws { try #require(account.zones[.inbox]) } }

    init(_ server: TestServer) async throws { (account, token) = try await server.newAccount() }

    /// A sealed message to another user. The server opens none.
    func envelope(
      to other: User, id: MessageID = .random(), encGen: UInt32 = 1, length: Int = 1_200
    ) throws -> MessageEnvelope {
      MessageEnvelope(
        id: id, recipient: other.id, inbox: try other.inbox.zone.tree, recipientEncGen: encGen,
        sealed: randomBytes(length))
    }
  }

  private static func run(
    _ change: (inout Configuration) -> Void = { _ in },
    _ body: (TestServer, _ alice: User, _ bob: User) async throws -> Void
  ) async throws {
    try await TestServer.run(change) { (server: TestServer) async throws in
      try await body(server, try await User(server), try await User(server))
    }
  }

  @Test func aMessageIsDelivered_listed_readAndDeletedByItsOwnerOnly() async throws {
    try await Self.run { server, alice, bob in
      let envelope = try alice.envelope(to: bob)
      #expect(try await server.deliver([envelope], from: alice.token) == [.delivered])
      let tree = try bob.inbox.zone.tree
      let waiting = try #require(try await server.inbox(tree, token: bob.token).messages.first)
      #expect(waiting.name == MessageName(sender: alice.id, id: envelope.id))
      #expect(waiting.isRequest && waiting.length == envelope.bytes.count)
      #expect(try await server.read([waiting.name], tree, token: bob.token) == [envelope])
      for path in ["", "/read"] {
        let method: Method = path.isEmpty ? .GET : .POST
        let route = Routes.path(Routes.inbox, tree.text) + path
        let refused = try await server.send(method, route, token: alice.token, body: path.isEmpty ? nil : [])
        #expect(refused.error?.code == .notFound)
      }
      let message = Routes.path(Routes.inboxMessage, tree.text, alice.id.text, envelope.id.text)
      #expect(try await server.send(.DELETE, message, token: alice.token).error?.code == .notFound)
      for _ in 0..<2 { _ = try await server.send(.DELETE, message, token: bob.token).expect(204) }
      #expect(try await server.inbox(tree, token: bob.token).messages.isEmpty)
    }
  }

  @Test func theSameEnvelopeAgainIsDelivered_andAnotherOneWithItsIdExists() async throws {
    try await Self.run { server, alice, bob in
      let envelope = try alice.envelope(to: bob)
      let other = try alice.envelope(to: bob, id: envelope.id)
      #expect(
        try await server.deliver([envelope, envelope, other], from: alice.token) == [.delivered, .delivered, .exists])
      // Ids belong to senders: no sender can take another's.
      let carol = try await User(server)
      #expect(try await server.deliver([carol.envelope(to: bob, id: envelope.id)], from: carol.token) == [.delivered])
      #expect(try await server.inbox(bob.inbox.zone.tree, token: bob.token).messages.count == 2)
    }
  }

  @Test func aCommitThatPutsTheMessagesNodeTakesItOver() async throws {
    try await Self.run { server, alice, bob in
      let (first, second) = (try alice.envelope(to: bob), try alice.envelope(to: bob))
      _ = try await server.deliver([first, second], from: alice.token)
      var inbox = try bob.inbox
      let node = NodeID(message: first.id, from: alice.id)
      try await server.put([inbox.record(node), inbox.record(.random())], in: &inbox, token: bob.token)
      #expect(try await server.inbox(inbox.zone.tree, token: bob.token).messages.map(\.messageID) == [second.id])
      #expect(try await server.deliver([first], from: alice.token) == [.exists])
      // A commit that is refused takes nothing over.
      let late = try bob.inbox.put([bob.inbox.record(NodeID(message: second.id, from: alice.id))]).body
      #expect(try await server.commit(late, token: bob.token).status == 409)
      #expect(try await server.inbox(inbox.zone.tree, token: bob.token).messages.count == 1)
    }
  }

  @Test func oneRefusedEnvelopeChangesNothingForTheOthers() async throws {
    try await Self.run { server, alice, bob in
      let nobody = UserID(1, 2, 3, 4)
      let lost = MessageEnvelope(
        id: .random(), recipient: nobody, inbox: try bob.inbox.zone.tree, recipientEncGen: 1, sealed: [1])
      let home = MessageEnvelope(
        id: .random(), recipient: bob.id, inbox: bob.account.home.zone.tree, recipientEncGen: 1, sealed: [1])
      let stale = try alice.envelope(to: bob, encGen: 2)
      let good = try alice.envelope(to: bob)
      let results = try await server.deliver([lost, home, stale, good], from: alice.token)
      #expect(results == [.notFound, .notFound, .recipientKeyStale, .delivered])
      let own = try alice.envelope(to: alice)
      #expect(try await server.deliver(raw: [own], from: alice.token).error?.code == .invalidRequest)
      #expect(try await server.deliver(raw: [], from: alice.token).error?.code == .invalidRequest)
    }
  }

  @Test func aBlockedSenderIsRefused_andAnAcceptedOneIsNoRequest() async throws {
    try await Self.run { server, alice, bob in
      let tree = try bob.inbox.zone.tree
      _ = try await server.deliver([alice.envelope(to: bob)], from: alice.token)
      try await server.set(alice.id, .accepted, tree, token: bob.token)
      #expect(try await server.inbox(tree, token: bob.token).messages.map(\.isRequest) == [false])
      _ = try await server.deliver([alice.envelope(to: bob)], from: alice.token)
      #expect(try await server.inbox(tree, token: bob.token).messages.map(\.isRequest) == [false, false])
      try await server.set(alice.id, .blocked, tree, token: bob.token)
      #expect(try await server.deliver([alice.envelope(to: bob)], from: alice.token) == [.blocked])
      let path = Routes.path(Routes.sender, tree.text, alice.id.text)
      _ = try await server.send(.DELETE, path, token: bob.token).expect(204)
      #expect(try await server.deliver([alice.envelope(to: bob)], from: alice.token) == [.delivered])
      #expect(try await server.inbox(tree, token: bob.token).messages.last?.isRequest == true)
    }
  }

  @Test func whoWasWrittenTo_orSharesAZone_isKnown() async throws {
    try await Self.run { server, alice, bob in
      _ = try await server.deliver([bob.envelope(to: alice)], from: bob.token)
      _ = try await server.deliver([alice.envelope(to: bob)], from: alice.token)
      #expect(try await server.inbox(bob.inbox.zone.tree, token: bob.token).messages.map(\.isRequest) == [false])
      let carol = try await User(server)
      var home = bob.account.home
      try await server.add(home.member(carol.id), to: &home, token: bob.token)
      _ = try await server.deliver([carol.envelope(to: bob)], from: carol.token)
      #expect(try await server.inbox(bob.inbox.zone.tree, token: bob.token).messages.last?.isRequest == false)
      // Being listed makes no user known: anyone can list anyone.
      _ = try await server.deliver([bob.envelope(to: carol)], from: bob.token)
      #expect(try await server.inbox(carol.inbox.zone.tree, token: carol.token).messages.map(\.isRequest) == [false])
      let dave = try await User(server)
      var other = dave.account.home
      try await server.add(other.member(alice.id), to: &other, token: dave.token)
      _ = try await server.deliver([dave.envelope(to: alice)], from: dave.token)
      #expect(try await server.inbox(alice.inbox.zone.tree, token: alice.token).messages.last?.isRequest == true)
    }
  }

  /// - a sender accepts the recipient's messages; another recipient blocks a user to whom they have written
  /// => only what a user has delivered makes others known to them
  @Test func aSendersOwnDecision_doesNotMakeThemKnown() async throws {
    try await Self.run { server, alice, bob in
      try await server.set(bob.id, .accepted, alice.inbox.zone.tree, token: alice.token)
      _ = try await server.deliver([alice.envelope(to: bob)], from: alice.token)
      #expect(try await server.inbox(bob.inbox.zone.tree, token: bob.token).messages.map(\.isRequest) == [true])
      try await server.set(alice.id, .blocked, bob.inbox.zone.tree, token: bob.token)
      _ = try await server.deliver([bob.envelope(to: alice)], from: bob.token)
      #expect(try await server.inbox(alice.inbox.zone.tree, token: alice.token).messages.map(\.isRequest) == [false])
    }
  }

  @Test func aMailboxIsBounded() async throws {
    try await Self.run({
      ($0.bounds.inboxes.all.count, $0.bounds.inboxes.sender.count, $0.bounds.inboxes.requests.bytes) = (5, 3, 3_000)
    }) { server, alice, bob in
      let tree = try bob.inbox.zone.tree
      func send(_ count: Int, _ user: User) async throws -> [DeliveryResult] {
        try await server.deliver((0..<count).map { _ in try user.envelope(to: bob) }, from: user.token)
      }
      #expect(try await send(3, alice) == [.delivered, .delivered, .mailboxFull])
      try await server.set(alice.id, .accepted, tree, token: bob.token)
      #expect(try await send(2, alice) == [.delivered, .mailboxFull])
      let carol = try await User(server)
      try await server.set(carol.id, .accepted, tree, token: bob.token)
      #expect(try await send(3, carol) == [.delivered, .delivered, .mailboxFull])
      // Adopted messages make room.
      let first = try #require(try await server.inbox(tree, token: bob.token).messages.first)
      var inbox = try bob.inbox
      try await server.put(
        [inbox.record(NodeID(message: first.messageID, from: alice.id))], in: &inbox, token: bob.token)
      #expect(try await send(1, carol) == [.delivered])
    }
  }

  /// - Two accepted senders deliver messages, with room for three of one sender's or for three of all
  /// => the fourth is refused; with a limit for each sender, the other sender's arrives
  @Test(arguments: [false, true]) func aMailboxIsBoundedInBytes(isForEachSender: Bool) async throws {
    try await Self.run({
      if isForEachSender { $0.bounds.inboxes.sender.bytes = 4_500 } else { $0.bounds.inboxes.all.bytes = 4_500 }
    }) { server, alice, bob in
      let carol = try await User(server)
      for sender in [alice, carol] {
        try await server.set(sender.id, .accepted, try bob.inbox.zone.tree, token: bob.token)
      }
      let four = try (0..<4).map { _ in try alice.envelope(to: bob) }
      let results = try await server.deliver(four, from: alice.token)
      #expect(results == [.delivered, .delivered, .delivered, .mailboxFull])
      let other = try await server.deliver([carol.envelope(to: bob)], from: carol.token)
      #expect(other == [isForEachSender ? .delivered : .mailboxFull])
    }
  }

  @Test func anEnvelopeAboveOneMiB_isRefused() async throws {
    try await Self.run { server, alice, bob in
      let tooLong = try alice.envelope(to: bob, length: Limits.envelopeBytes)
      let refused = try await server.deliver(raw: [tooLong], from: alice.token)
      #expect(refused.status == 422 && refused.error?.security == .limitExceeded)
      #expect(try await server.inbox(bob.inbox.zone.tree, token: bob.token).messages.isEmpty)
    }
  }

  /// - Messages that take more than the recipient's quota are delivered, before and after the account is full
  /// => they wait, and leave the recipient as much room as before
  @Test func aFullAccountGetsMessages_andTheyDoNotCount() async throws {
    try await Self.run({ $0.bounds.quotaBytes = 1_000 }) { server, alice, bob in
      var home = bob.account.home
      for _ in 0..<2 {
        let three = try (0..<3).map { _ in try alice.envelope(to: bob) }
        #expect(try await server.deliver(three, from: alice.token) == [.delivered, .delivered, .delivered])
        let content = TestZone.Content(400)
        try await server.put(
          [home.record(.random(), content: content.field())], contents: [content], in: &home, token: bob.token)
      }
      let more = TestZone.Content(400)
      let (_, body) = try home.put([home.record(.random(), content: more.field())], contents: [more])
      #expect(try await server.commit(body, token: bob.token).error?.code == .quotaExceeded)
      #expect(try await server.deliver([alice.envelope(to: bob)], from: alice.token) == [.delivered])
    }
  }

  /// - Ten strangers deliver a hundred messages each, then a friend one
  /// => a hundred requests wait, and the friend's message arrives
  @Test func aFloodOfStrangersStaysBounded() async throws {
    try await Self.run { server, alice, bob in
      let tree = try bob.inbox.zone.tree
      try await server.set(alice.id, .accepted, tree, token: bob.token)
      for _ in 0..<10 {
        let stranger = try await User(server)
        _ = try await server.deliver((0..<100).map { _ in try stranger.envelope(to: bob) }, from: stranger.token)
      }
      #expect(try await server.deliver([alice.envelope(to: bob)], from: alice.token) == [.delivered])
      let waiting = try await server.inbox(tree, token: bob.token).messages
      #expect(waiting.count { $0.isRequest } == 100 && waiting.count == 101)
    }
  }

  @Test func messagesAreLimitedPerSender() async throws {
    try await Self.run({ $0.bounds.messagesPerMinute = 2 }) { server, alice, bob in
      let five = try (0..<5).map { _ in try alice.envelope(to: bob) }
      _ = try await server.deliver(five, from: alice.token)
      let refused = try await server.deliver(raw: [alice.envelope(to: bob)], from: alice.token)
      #expect(refused.error?.code == .tooManyRequests && refused.error?.retryAfterMs ?? 0 > 0)
      #expect(try await server.deliver([bob.envelope(to: alice)], from: bob.token) == [.delivered])
    }
  }

  @Test func aRequestGoesAfterThirtyDays_andAKnownSendersMessageStays() async throws {
    try await Self.run { server, alice, bob in
      let carol = try await User(server)
      let tree = try bob.inbox.zone.tree
      try await server.set(carol.id, .accepted, tree, token: bob.token)
      _ = try await server.deliver([alice.envelope(to: bob)], from: alice.token)
      _ = try await server.deliver([carol.envelope(to: bob)], from: carol.token)
      server.clock.advance(ms: 31 * 24 * 3_600_000)
      try await server.server.collect()
      let token = try await server.login(bob.account)
      #expect(try await server.inbox(tree, token: token).messages.map(\.sender) == [carol.id])
    }
  }

  @Test func devicesLearnOfAMessageByEventAndByTheListOfZones() async throws {
    try await Self.run { server, alice, bob in
      #expect(try await server.zones(token: bob.token).newestMessage == nil)
      var events = try await server.events(token: bob.token).makeAsyncIterator()
      _ = try await events.next()
      _ = try await server.deliver([alice.envelope(to: bob)], from: alice.token)
      #expect(try await events.next()?.name == "message")
      let waiting = try await server.inbox(bob.inbox.zone.tree, token: bob.token).messages
      let newest = try await server.zones(token: bob.token).newestMessage
      #expect(newest != nil && newest == waiting.last?.cursor)
    }
  }

  @Test func aListOfMessagesComesInPages() async throws {
    try await Self.run({ $0.bounds.inboxes.sender.count = 1_000 }) { server, alice, bob in
      let tree = try bob.inbox.zone.tree
      try await server.set(alice.id, .accepted, tree, token: bob.token)
      for _ in 0..<2 {
        _ = try await server.deliver((0..<130).map { _ in try alice.envelope(to: bob, length: 10) }, from: alice.token)
      }
      let first = try await server.inbox(tree, token: bob.token)
      #expect(first.messages.count == 250)
      let second = try await server.inbox(tree, after: try #require(first.next), token: bob.token)
      #expect(second.messages.count == 10 && second.next == nil)
      #expect(Set((first.messages + second.messages).map(\.cursor)).count == 260)
    }
  }

  @Test func aClosedAccountGetsNoMessages_andSendsNone() async throws {
    try await Self.run { server, alice, bob in
      _ = try await server.deliver([alice.envelope(to: bob)], from: alice.token)
      let closing = try AppendLinkRequest(link: WireBytes(bob.account.closing().bytes))
      _ = try await server.sendJSON(.POST, Routes.links, closing, token: bob.token).expect(201)
      #expect(try await server.deliver([alice.envelope(to: bob)], from: alice.token) == [.accountClosed])
      #expect(try await server.deliver(raw: [bob.envelope(to: alice)], from: bob.token).error?.code == .accountClosed)
    }
  }

  @Test func theAuditNamesTheMailbox() async throws {
    try await Self.run { server, alice, bob in
      _ = try await server.deliver([alice.envelope(to: bob)], from: alice.token)
      let report: AuditReport = try await server.send(.GET, Routes.audit, token: bob.token).json()
      let fields = try #require(report.sections.first { $0.title == "mailbox" }).fields
      #expect(fields.first?.value == "1" && fields.last?.value == "1")
    }
  }
}

extension ServerClient {
  func deliver(raw envelopes: [MessageEnvelope], from token: [UInt8]) async throws -> Answer {
    var writer = Bundle.Writer()
    for envelope in envelopes { writer.append(envelope: envelope.bytes) }
    return try await send(.POST, Routes.messages, token: token, body: writer.bytes)
  }

  func deliver(_ envelopes: [MessageEnvelope], from token: [UInt8]) async throws -> [DeliveryResult] {
    let answer: DeliveryResponse = try await deliver(raw: envelopes, from: token).json()
    return answer.results
  }

  func inbox(_ tree: TreeID, after: UInt64 = 0, token: [UInt8]) async throws -> MessageList {
    try await send(.GET, Routes.path(Routes.inbox, tree.text) + "?after=\(after)", token: token).json()
  }

  func read(_ names: [MessageName], _ tree: TreeID, token: [UInt8]) async throws -> [MessageEnvelope] {
    let path = Routes.path(Routes.inboxEnvelopes, tree.text)
    return try await send(.POST, path, token: token, body: MessageName.bytes(of: names)).items().compactMap {
      if case .envelope(let envelope) = $0 { envelope } else { nil }
    }
  }

  func set(_ user: UserID, _ state: SenderRequest.State, _ tree: TreeID, token: [UInt8]) async throws {
    let path = Routes.path(Routes.sender, tree.text, user.text)
    _ = try await sendJSON(.PUT, path, SenderRequest(state: state), token: token).expect(204)
  }
}
