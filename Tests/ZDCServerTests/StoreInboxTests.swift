import Testing
import ZDCProtocol

@testable import ZDCServer

/// How every metadata store keeps messages that wait for their recipients: a part of ``StoreContractTests``.
@Suite struct StoreInboxTests {
  typealias Maker = StoreContractTests.Maker
  static let stores = StoreContractTests.stores

  /// A store with one account, and its inbox.
  private struct World {
    let store: any MetadataStore
    let account: TestAccount
    let inbox: ZoneKey
    let zone: ZoneID

    var user: UserID { account.userID }

    func read<T: Sendable>(_ body: @escaping @Sendable (any MetadataReader) throws -> T) async throws -> T {
      try await store.read(body)
    }

    func write<T: Sendable>(_ body: @escaping @Sendable (any MetadataTransaction) throws -> T) async throws -> T {
      try await store.write([.zone(zone)], body)
    }

    /// Stores a message; returns its name and its bytes.
    @discardableResult
    func insert(
      _ id: MessageID = .random(), from sender: UserID, bytes: Int = 100, at receivedMs: UInt64 = 5,
      isRequest: Bool = false
    ) async throws -> (row: WaitingMessage, bytes: [UInt8]) {
      let envelope = MessageEnvelope(
        id: id, recipient: user, inbox: zone.tree, recipientEncGen: 1, sealed: randomBytes(bytes))
      let row = WaitingMessage(
        cursor: 0, sender: sender, messageID: id, length: envelope.bytes.count, receivedMs: receivedMs,
        isRequest: isRequest)
      try await write { [inbox] tx in try tx.insertEnvelope(envelope, row: row, in: inbox) }
      return (row, envelope.bytes)
    }

    func rows(after cursor: UInt64 = 0, limit: Int = 100) async throws -> [WaitingMessage] {
      try await read { [inbox] reader in try reader.envelopes(in: inbox, after: cursor, limit: limit) }
    }
  }

  private func withWorld(_ maker: Maker, _ body: @Sendable (World) async throws -> Void) async throws {
    try await StoreContractTests.withStore(maker) { store in
      let account = try TestAccount()
      _ = try await StoreCommitTests.World(store, account)
      let zone = try #require(account.zones[.inbox]).zone
      let inbox = try #require(try await store.read { try $0.zone(zone) }).key
      try await body(World(store: store, account: account, inbox: inbox, zone: zone))
    }
  }

  private static let (alice, bob) = (StoreContractTests.user(1).id, StoreContractTests.user(2).id)

  private static func node(_ row: WaitingMessage) -> NodeID { NodeID(message: row.messageID, from: row.sender) }

  /// - Three messages, two of them with the same ID from two senders
  @Test(arguments: stores) func envelopesComeInPagesInTheOrderOfTheirArrival(_ maker: Maker) async throws {
    try await withWorld(maker) { world in
      #expect(try await world.rows().isEmpty)
      let first = try await world.insert(from: Self.bob, isRequest: true)
      let second = try await world.insert(first.row.messageID, from: Self.alice, bytes: 200, at: 4)
      let third = try await world.insert(from: Self.bob)
      let all = try await world.rows()
      let sent = [first, second, third].enumerated().map { index, message in
        var row = message.row
        row.cursor = index < all.count ? all[index].cursor : 0
        return row
      }
      #expect(all == sent && all.map(\.cursor) == Set(all.map(\.cursor)).sorted())
      #expect(try await world.rows(limit: 2) == Array(sent.prefix(2)))
      #expect(try await world.rows(after: sent[1].cursor) == [sent[2]])
      #expect(try await world.rows(after: sent[2].cursor).isEmpty)
      #expect(try await world.rows(limit: 0).isEmpty)
      #expect(try await world.read { try $0.newestEnvelope(of: world.user) } == sent[2].cursor)
      #expect(try await world.read { try $0.newestEnvelope(of: Self.alice) } == nil)
    }
  }

  @Test(arguments: stores) func envelopesAreReadByTheirNames(_ maker: Maker) async throws {
    try await withWorld(maker) { world in
      let (first, second) = (
        try await world.insert(from: Self.bob), try await world.insert(from: Self.alice, bytes: 300)
      )
      let nodes = [Self.node(first.row), NodeID.random(), Self.node(second.row)]
      let outbox = try #require(world.account.zones[.outbox]).zone
      try await world.read { reader throws in
        let (inbox, other, id) = (world.inbox, try #require(try reader.zone(outbox)).key, first.row.messageID)
        #expect(try reader.envelope(id, from: Self.bob, in: inbox) == first.bytes)
        #expect(try reader.envelope(id, from: Self.alice, in: inbox) == nil)
        #expect(try reader.envelope(id, from: Self.bob, in: other) == nil)
        #expect(try reader.envelopes(ofNodes: nodes, in: inbox) == [nodes[0]: first.bytes, nodes[2]: second.bytes])
        let lengths = [nodes[0]: first.bytes.count, nodes[2]: second.bytes.count]
        #expect(try reader.envelopeLengths(ofNodes: nodes, in: inbox) == lengths)
        #expect(try reader.envelopes(ofNodes: nodes, in: other).isEmpty)
        #expect(try reader.envelopes(ofNodes: [], in: inbox).isEmpty)
        #expect(try reader.envelopeLengths(ofNodes: nodes, in: other).isEmpty)
      }
    }
  }

  /// - The newest message is removed, and another one arrives
  /// => its cursor is greater than that of the removed one
  @Test(arguments: stores) func aCursorIsNeverGivenTwice(_ maker: Maker) async throws {
    try await withWorld(maker) { world in
      let kept = try await world.insert(from: Self.bob)
      let removed = try await world.insert(from: Self.bob)
      let cursor = try #require(try await world.rows().last).cursor
      try await world.write { tx throws in
        try tx.removeEnvelopes(ofNodes: [Self.node(removed.row), .random()], in: world.inbox)
        try tx.removeEnvelopes(ofNodes: [], in: world.inbox)
      }
      #expect(try await world.rows().map(\.messageID) == [kept.row.messageID])
      try await world.insert(removed.row.messageID, from: Self.bob)
      #expect(try #require(try await world.rows().last).cursor > cursor)
    }
  }

  @Test(arguments: stores) func theSumsOfAnInboxAreThoseOfItsEnvelopes(_ maker: Maker) async throws {
    try await withWorld(maker) { world in
      @Sendable func usage(_ sender: UserID) async throws -> InboxUsage {
        try await world.read { try $0.inboxUsage(of: world.inbox, sender: sender) }
      }
      #expect(try await usage(Self.bob) == InboxUsage())
      let small = try await world.insert(from: Self.bob, bytes: 10, isRequest: true).bytes.count
      let large = try await world.insert(from: Self.alice, bytes: 500).bytes.count
      var sums = InboxUsage()
      sums.all = InboxUsage.Share(count: 2, bytes: small + large)
      (sums.requests, sums.sender) = (.init(count: 1, bytes: small), .init(count: 1, bytes: small))
      #expect(try await usage(Self.bob) == sums)
      sums.sender = .init()
      #expect(try await usage(world.user) == sums)
      try await world.write { try $0.setSender(Self.alice, to: [.hasWritten], of: world.inbox) }
      let counts = try await world.read { reader throws in
        let (own, other) = (try reader.inboxCounts(of: world.user), try reader.inboxCounts(of: Self.bob))
        return [own.envelopes, Int(own.bytes), own.senders, other.envelopes, Int(other.bytes), other.senders]
      }
      #expect(counts == [2, small + large, 1, 0, 0, 0])
    }
  }

  /// - A sender is known, then accepted, blocked, and unknown again
  /// => their requests, and no other's, are messages as soon as they are accepted, and stay that
  @Test(arguments: stores) func anAcceptedSenderMakesNoRequests(_ maker: Maker) async throws {
    try await withWorld(maker) { world in
      for sender in [Self.bob, Self.alice] { try await world.insert(from: sender, isRequest: true) }
      for state in [.hasWritten, [.hasWritten, .accepted], [.hasWritten, .blocked], []] as [SenderState] {
        try await world.write { try $0.setSender(Self.bob, to: state, of: world.inbox) }
        #expect(try await world.read { try $0.sender(Self.bob, of: world.inbox) } == state)
        #expect(try await world.read { try $0.sender(Self.alice, of: world.inbox) } == [])
        #expect(try await world.rows().map(\.isRequest) == [state == .hasWritten, true])
      }
      #expect(try await world.read { try $0.inboxCounts(of: world.user).senders } == 0)
    }
  }

  /// - Five requests, one of which is as old as the limit, and an old message
  /// => those that are older are removed, as many as the caller allows in each step
  @Test(arguments: stores) func oldRequestsAreRemovedInSteps(_ maker: Maker) async throws {
    try await withWorld(maker) { world in
      for age in UInt64(1)...5 { try await world.insert(from: Self.bob, at: age, isRequest: true) }
      try await world.insert(from: Self.alice, at: 1)
      func step() async throws -> Bool {
        try await world.store.write([.upkeep]) { try $0.removeRequests(receivedBefore: 4, limit: 2) }
      }
      #expect(try await step())
      #expect(try await world.rows().count == 4)
      #expect(try await !step())
      #expect(try await world.rows().map(\.receivedMs) == [4, 5, 1])
      #expect(try await !step())
    }
  }

  /// - The account's home names a friend, who accepts it and is then removed
  /// => the owner shares a zone as long as the list names the friend, and the friend while they follow it as well
  @Test(arguments: stores) func aZoneIsSharedWhileItsListNamesTheOther(_ maker: Maker) async throws {
    try await StoreContractTests.withStore(maker) { store in
      let (owner, friend) = (
        try await StoreCommitTests.World(store, try TestAccount()),
        try await StoreCommitTests.World(store, try TestAccount())
      )
      let (first, second, home) = (owner.account.userID, friend.account.userID, owner.account.home)
      func shares() async throws -> [Bool] {
        try await store.read { [try $0.shares(first, aZoneWith: second), try $0.shares(second, aZoneWith: first)] }
      }
      #expect(try await shares() == [false, false])
      let list = try home.list(adding: [home.member(second).entry])
      try await owner.commit { _, _, delta in delta.change(to: ZoneDelta.ListChange(acl: list, grants: [])) }
      #expect(try await shares() == [true, false])
      try await store.write([.zone(home.zone), .account(second)]) { tx throws in
        try tx.putMembership(of: second, in: try #require(try tx.zone(home.zone)).key, now: 5)
      }
      #expect(try await shares() == [true, true])
      try await owner.commit { _, _, delta in delta.change(to: ZoneDelta.ListChange(acl: home.acl, grants: [])) }
      #expect(try await shares() == [false, false])
    }
  }
}
