import GRDB
import Testing
import ZDCClientStore
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// A mailbox full of strangers' messages costs its user's devices a bounded number of requests and rows, and delays neither
/// a known sender nor another user.
struct MailboxFloodTests {
  typealias Pair = MessageTests.Pair
  typealias Forger = HostileMessageTests.Forger

  private static let strangers = 10
  private static let messagesOfEach = 99

  /// Fills Bob's mailbox with messages of strangers. His server takes them for users whom he has accepted, so it has room
  /// for more of them than for requests. His devices know none of the senders.
  private static func flood(_ bob: TestDevice, _ world: TestWorld) async throws {
    let inbox = TreeID.derive(owner: try bob.userID, trunk: .inbox, appTreeID: TestDevice.treeID)
    for number in 0..<strangers {
      let stranger = try await world.device("stranger \(number)", account: "stranger \(number)")
      try await stranger.meet(bob)
      try await bob.api.setSender(try stranger.userID, to: .accepted, in: inbox)
      let forger = try await Forger(alice: stranger, bob: bob)
      let envelopes = try (1...messagesOfEach).map { try forger.envelope(forger.fields("buy", seq: UInt64($0))).bytes }
      let results = try await stranger.api.deliver(envelopes)
      try #require(results.allSatisfy { $0 == .delivered })
    }
  }

  /// The rows of all tables that are about messages.
  private static func rows(_ device: TestDevice) async throws -> [String: Int] {
    try await device.database.read { transaction in
      let tables = [
        "zdc_message_seen", "zdc_message_number", "zdc_message_device", "zdc_message_peer", "zdc_held_message",
        "zdc_member_head", "zdc_user", "zdc_node", "zdc_security_event",
      ]
      return try tables.reduce(into: [:]) {
        $0[$1] = try Int.fetchOne(transaction.database, sql: "SELECT COUNT(*) FROM \($1)") ?? 0
      }
    }
  }

  /// - strangers fill Bob's mailbox, and Alice's message is the last one in it
  /// => one pull brings it, in as many requests as a full mailbox has pages, and downloads nothing of the others
  /// => of the strangers, Bob's device keeps no row, and his list of requests has as many as the mailbox
  @Test func aFullMailbox_costsBoundedRequestsAndRows() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      try await pair.alice.send("first", to: pair.bob)
      for device in [pair.alice, pair.bob] { try await device.sync() }
      try await Self.flood(pair.bob, world)
      let before = try await Self.rows(pair.bob)
      try await pair.alice.send("last", to: pair.bob)
      try await pair.alice.sync()
      pair.bob.network.resetCounts()
      try await pair.bob.sync()
      #expect(try await pair.bob.messages(from: pair.alice) == ["alice: first", "alice: last"])
      #expect(pair.bob.network.count("GET", Routes.inbox) == 4)
      #expect(pair.bob.network.count("POST", Routes.inboxEnvelopes) == 1)
      #expect(pair.bob.network.count("POST", Routes.chains) <= 2)
      #expect(pair.bob.network.count() <= 16, "\(pair.bob.network.counts())")
      var expected = before
      for table in ["zdc_message_seen", "zdc_node"] { expected[table, default: 0] += 1 }
      #expect(try await Self.rows(pair.bob) == expected)
      let requests = try await pair.bob.syncManager.messageRequests(forLocalUserID: try pair.bob.localUserID)
      #expect(requests.count == Self.strangers * Self.messagesOfEach && requests.count <= Limits.inboxEnvelopes)
      for _ in 0..<2 { try await pair.bob.sync() }
      #expect(pair.bob.network.count("POST", Routes.inboxEnvelopes) == 1)
      #expect(try await Self.rows(pair.bob) == expected)
    }
  }

  /// - Bob's mailbox has no room left, and Alice writes to him and to Carol
  /// => Carol has the message at once
  /// - Bob declines a stranger
  /// => he gets it, too
  @Test func aFullMailbox_delaysNoOtherRecipient() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let carol = try await world.device("carol", account: "carol")
      try await pair.alice.meet(carol)
      try await carol.acceptMessages(of: pair.alice)
      try await Self.flood(pair.bob, world)
      let last = try await world.device("the last stranger", account: "the last stranger")
      try await last.meet(pair.bob)
      let forger = try await Forger(alice: last, bob: pair.bob)
      let rest = try (1...11).map { try forger.envelope(forger.fields("buy", seq: UInt64($0))).bytes }
      let results = try await last.api.deliver(rest)
      #expect(results == Array(repeating: .delivered, count: 10) + [.mailboxFull])
      try await pair.alice.send("hello", to: pair.bob, carol)
      try await pair.alice.sync()
      try await carol.sync()
      #expect(try await carol.messages(from: pair.alice) == ["alice: hello"])
      #expect(pair.alice.recorder.take().count { $0 == "sent hello" } == 1)
      #expect(try await pair.alice.queueCount() == 1)
      try await pair.bob.syncManager.declineMessages(
        fromUserID: last.localUserID, forLocalUserID: pair.bob.localUserID)
      world.clock.advance(by: .seconds(3_600))
      try await pair.alice.sync()
      try await pair.bob.sync()
      #expect(try await pair.bob.messages(from: pair.alice) == ["alice: hello"])
      #expect(pair.alice.recorder.take().count { $0 == "sent hello" } == 1)
    }
  }
}
