import Foundation
import Synchronization
import Testing
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// What a recipient's devices know about the sender of a message that another of the recipient's devices has taken over.
struct MessageSenderTests {
  typealias Pair = MessageTests.Pair

  /// Whether the callback of each new message found its sender.
  private final class Findings: Sendable {
    private let found = Mutex<[Bool]>([])

    init(_ device: TestDevice, _ sender: TestDevice) throws {
      let sender = try sender.localUserID
      device.recorder.on(.new, times: 10) { [self] node, transaction in
        guard node.senderID == sender else { return }
        let isFound = transaction.user(id: sender) != nil
        found.withLock { $0.append(isFound) }
      }
    }

    var all: [Bool] { found.withLock { $0 } }
  }

  private static func send(_ pair: Pair, _ text: String = "hello") async throws {
    try await pair.alice.send(text, to: pair.bob)
    try await pair.alice.sync()
    try await pair.bob.sync()
  }

  private static func chainRequests(_ device: TestDevice) -> Int {
    device.network.requests.count { $0.route.pattern == Routes.chains }
  }

  /// - Bob's phone takes two messages of Alice over; his tablet, which has not met her, and a phone on which he logs in
  ///   later read them from the inbox's log
  /// => each finds her in the callback that announces the message, after one request for her chain
  @Test func theOtherDevicesFindTheSender() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let tablet = try await world.device("bob's tablet", account: "bob")
      try await tablet.sync()
      let seen = try Findings(tablet, pair.alice)
      let before = Self.chainRequests(tablet)
      for text in ["hello", "again"] {
        try await Self.send(pair, text)
        try await tablet.sync()
      }
      #expect(seen.all == [true, true])
      #expect(Self.chainRequests(tablet) == before + 1)
      let later = try await world.device("bob's new phone", account: "bob")
      let seenLater = try Findings(later, pair.alice)
      try await later.sync()
      #expect(seenLater.all == [true, true])
      #expect(try await later.messages(from: pair.alice) == ["alice: again", "alice: hello"])
    }
  }

  /// - The server refuses the tablet's request for Alice's chain
  /// => the message is announced all the same, and the next one with Alice once a pause has passed
  @Test func aRefusedChainDelaysNoMessage() async throws {
    try await TestWorld.run { world in
      let hostile = HostileServer(world.server)
      let pair = try await Pair(world)
      let tablet = try await TestDevice("tablet", server: world.server, clock: world.clock, through: hostile)
      try await tablet.login(words: try #require(world.words(of: "bob")))
      try await tablet.sync()
      let seen = try Findings(tablet, pair.alice)
      hostile.tell(.refuse("POST", Routes.chains, status: 403, code: "forbidden"), to: "tablet")
      try await Self.send(pair)
      try await tablet.sync()
      #expect(seen.all == [false])
      hostile.stopTampering()
      world.clock.advance(by: .seconds(601))
      try await Self.send(pair, "again")
      try await tablet.sync()
      #expect(seen.all == [false, true])
      try await tablet.close()
    }
  }

  /// - The connection breaks while the tablet asks for Alice's chain
  /// => the pull ends; the message is announced in it or in the next one, once
  @Test func aLostRequestForTheChainIsNoLoop() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let tablet = try await world.device("bob's tablet", account: "bob")
      try await tablet.sync()
      let seen = try Findings(tablet, pair.alice)
      try await Self.send(pair)
      tablet.network.fail(.loseRequest, "POST", Routes.chains)
      _ = try? await tablet.sync()
      try await tablet.sync()
      #expect(seen.all.count == 1)
    }
  }

  /// - Bob accepts Alice's messages on his phone, and his tablet reads the first one from the log; then the phone is off
  /// => the tablet takes Alice's next message over: it is no request
  /// - Bob writes to Carol from the phone, whose message the tablet reads; the phone is off, and Carol answers
  /// => likewise
  @Test func whoIsKnownOnOneDevice_isKnownOnTheOthers() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world, areFriends: false)
      let carol = try await world.device("carol", account: "carol")
      let tablet = try await world.device("bob's tablet", account: "bob")
      for other in [pair.bob, tablet] { try await carol.meet(other) }
      try await carol.acceptMessages(of: pair.bob)
      try await pair.bob.meet(carol)
      try await pair.bob.acceptMessages(of: pair.alice)
      try await pair.bob.send("to Carol", to: carol)
      try await Self.send(pair)
      try await tablet.sync()
      try await carol.sync()
      try await pair.alice.send("while the phone is off", to: pair.bob)
      try await carol.send("an answer", to: pair.bob)
      try await pair.alice.sync()
      try await carol.sync()
      try await tablet.sync()
      #expect(
        try await tablet.messages(from: pair.alice, carol)
          == ["alice: hello", "alice: while the phone is off", "carol: an answer"])
      try await world.settle(pair.bob, tablet)
    }
  }

  /// - The tablet has declined Alice, and the phone accepts her
  /// => the tablet's decision stays: her next message is a request there
  @Test func aDevicesOwnDecisionStays() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world, areFriends: false)
      let tablet = try await world.device("bob's tablet", account: "bob")
      try await tablet.syncManager.declineMessages(
        fromUserID: try pair.alice.localUserID, forLocalUserID: try tablet.localUserID)
      try await pair.bob.acceptMessages(of: pair.alice)
      try await Self.send(pair)
      try await tablet.sync()
      try await pair.alice.send("again", to: pair.bob)
      try await pair.alice.sync()
      try await tablet.sync()
      #expect(try await tablet.messages(from: pair.alice) == ["alice: hello"])
      #expect(
        try await tablet.syncManager.messageRequests(forLocalUserID: try tablet.localUserID).map(\.senderID)
          == [try pair.alice.localUserID])
    }
  }
}
