import Testing
import ZDCAccounts
import ZDCClientStore
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// E-10: messages under a key that their sender has declared compromised after they were sent.
struct CompromisedKeyTests {
  typealias Pair = MessageTests.Pair
  typealias Forger = HostileMessageTests.Forger

  /// Replaces a user's keys because others may have them.
  private static func declare(_ device: TestDevice) async throws {
    let users = try #require(try device.zdc.localUserManager)
    try await users.rotateKeys(for: device.localUserID, areCompromised: true)
    try await device.sync()
  }

  /// The requests of a device, as `name: whether the key is compromised`.
  private static func requests(_ device: TestDevice, from sender: TestDevice) async throws -> [String] {
    let name = try sender.localUserID
    return try await device.syncManager.messageRequests(forLocalUserID: try device.localUserID).map {
      "\($0.senderID == name ? sender.name : "someone else"): \($0.isKeyCompromised)"
    }
  }

  /// - Alice sends a message and declares her key compromised, before any device of Bob has read the message
  /// => it is a request with a mark, on both devices, and is downloaded once by each
  /// - Bob accepts it
  /// => it is in the inbox of both
  @Test func aMessageUnderACompromisedKey_waitsForTheUser() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let (alice, bob) = (pair.alice, pair.bob)
      let tablet = try await world.device("bob's tablet", account: "bob")
      try await tablet.meet(alice)
      try await tablet.acceptMessages(of: alice)
      try await alice.send("before", to: bob)
      try await alice.sync()
      try await Self.declare(alice)
      for device in [bob, tablet] {
        for _ in 0..<3 { try await device.sync() }
        #expect(try await device.messages(from: alice) == [])
        #expect(try await Self.requests(device, from: alice) == ["alice: true"])
        #expect(device.network.count("POST", Routes.inboxEnvelopes) == 1, "\(device.name)")
        #expect(device.recorder.take().isEmpty)
      }
      try await bob.acceptMessages(of: alice)
      #expect(try await bob.messages(from: alice) == ["alice: before"])
      try await alice.send("after", to: bob)
      try await alice.sync()
      for device in [bob, tablet] {
        try await device.sync()
        #expect(try await device.messages(from: alice) == ["alice: after", "alice: before"])
        #expect(try await Self.requests(device, from: alice) == [])
      }
    }
  }

  @Test func aMessageThatIsInTheInbox_stays() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      try await pair.alice.send("before", to: pair.bob)
      try await pair.alice.sync()
      try await pair.bob.sync()
      try await Self.declare(pair.alice)
      try await pair.bob.sync()
      let tablet = try await world.device("bob's tablet", account: "bob")
      for device in [pair.bob, tablet] {
        try await device.sync()
        #expect(try await device.messages(from: pair.alice) == ["alice: before"])
        #expect(try await Self.requests(device, from: pair.alice) == [])
      }
    }
  }

  /// Keys that were replaced for another reason stay trusted.
  @Test func aMessageUnderAReplacedKey_comesIntoTheInbox() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      try await pair.alice.send("before", to: pair.bob)
      try await pair.alice.sync()
      let users = try #require(try pair.alice.zdc.localUserManager)
      try await users.rotateKeys(for: pair.alice.localUserID)
      try await pair.bob.sync()
      #expect(try await pair.bob.messages(from: pair.alice) == ["alice: before"])
    }
  }

  /// - a thief has Alice's old key and a session, and sends messages after her declaration
  /// => each is a request; Bob's decision about the first is none about the second
  @Test func aStolenKey_getsNothingIntoTheInbox() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let (alice, bob) = (pair.alice, pair.bob)
      let thief = try await Forger(pair)
      let envelopes = try (1...2).map { try thief.envelope(thief.fields("forged \($0)", seq: UInt64($0))).bytes }
      try await Self.declare(alice)
      #expect(try await alice.api.deliver([envelopes[0]]) == [.delivered])
      try await bob.sync()
      #expect(try await Self.requests(bob, from: alice) == ["alice: true"])
      try await bob.acceptMessages(of: alice)
      #expect(try await bob.messages(from: alice) == ["alice: forged 1"])
      #expect(try await alice.api.deliver([envelopes[1]]) == [.delivered])
      try await bob.sync()
      #expect(try await bob.messages(from: alice) == ["alice: forged 1"])
      #expect(try await Self.requests(bob, from: alice) == ["alice: true"])
    }
  }

  /// - the message is a burn
  /// => it deletes nothing
  /// - Bob declines it
  /// => it is gone, and Alice's next message still needs no acceptance
  @Test func aBurnUnderACompromisedKey_deletesNothing_andCanBeDeclined() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let (alice, bob) = (pair.alice, pair.bob)
      try await alice.send("hello", to: bob)
      for device in [alice, bob] { try await device.sync() }
      try await alice.write { _, cloud in
        for node in try cloud.trunkNode(.outbox).map({ try cloud.children(ofNodeID: $0.uuid) }) ?? [] {
          try cloud.burn(node)
        }
      }
      try await alice.sync()
      try await Self.declare(alice)
      try await bob.sync()
      #expect(try await bob.messages(from: alice) == ["alice: hello"])
      #expect(try await Self.requests(bob, from: alice) == ["alice: true"])
      try await bob.syncManager.declineMessages(
        fromUserID: alice.localUserID, forLocalUserID: bob.localUserID)
      #expect(try await Self.requests(bob, from: alice) == [])
      try await alice.send("again", to: bob)
      for device in [alice, bob] { try await device.sync() }
      #expect(try await bob.messages(from: alice) == ["alice: again", "alice: hello"])
      let held = try await bob.database.read { transaction in
        try transaction.zones.zones(localUser: 1).reduce(0) {
          try $0 + HeldMessageStore(transaction, inbox: $1.id).all().count
        }
      }
      #expect(held == 0)
    }
  }
}
