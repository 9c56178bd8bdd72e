import Synchronization
import Testing
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Messages with lost answers and killed processes.
struct MessageFaultTests {
  typealias Pair = MessageTests.Pair

  @Test(arguments: [Routes.messages, Routes.commits], [true, false])
  func aLostAnswer_deliversEachMessageOnce(route: String, isAnswer: Bool) async throws {
    try await TestWorld.run { world in
      let fault: Fault = isAnswer ? .loseResponse : .loseRequest
      let pair = try await Pair(world)
      try await pair.alice.send("hello", to: pair.bob)
      pair.alice.network.fail(fault, "POST", route)
      _ = try? await pair.alice.sync()
      try await pair.alice.sync()
      #expect(pair.alice.recorder.take().filter { $0 == "sent hello" }.count == 1)
      pair.bob.network.fail(fault, "POST", route == Routes.messages ? Routes.inboxEnvelopes : route)
      _ = try? await pair.bob.sync()
      try await pair.bob.sync()
      #expect(try await pair.bob.messages(from: pair.alice) == ["alice: hello"])
      #expect(pair.bob.recorder.take().filter { $0.hasPrefix("new") }.count == 1)
    }
  }

  /// The sending device dies after each of its transactions in turn.
  @Test(arguments: 1...8) func aSenderThatDies_deliversOnceAfterItsNextStart(commits: Int) async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      try await pair.alice.send("hello", to: pair.bob)
      pair.alice.die(afterCommits: commits)
      _ = try? await pair.alice.sync()
      try await pair.alice.relaunch()
      try await pair.alice.sync()
      try await pair.bob.sync()
      #expect(try await pair.bob.messages(from: pair.alice) == ["alice: hello"])
      #expect(try await pair.alice.messages(.outbox) == ["me: hello"])
      #expect(try await pair.alice.sync().stillQueued.isEmpty)
    }
  }

  /// The receiving device dies after each of its transactions in turn.
  @Test(arguments: 1...8) func aReceiverThatDies_hasTheMessageOnceAfterItsNextStart(commits: Int) async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      try await pair.alice.send("hello", to: pair.bob)
      try await pair.alice.sync()
      pair.bob.die(afterCommits: commits)
      _ = try? await pair.bob.sync()
      try await pair.bob.relaunch()
      try await pair.bob.sync()
      #expect(try await pair.bob.messages(from: pair.alice) == ["alice: hello"])
    }
  }

  @Test func anAppThatThrows_isToldAgain() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      struct Refusal: Error {}
      pair.alice.recorder.on(.sent) { _, _ in throw Refusal() }
      try await pair.alice.send("hello", to: pair.bob)
      _ = try? await pair.alice.sync()
      try await pair.alice.relaunch()
      try await pair.alice.sync()
      #expect(pair.alice.recorder.take().filter { $0 == "sent hello" }.count == 2)
      try await pair.bob.sync()
      #expect(try await pair.bob.messages(from: pair.alice) == ["alice: hello"])
    }
  }

  /// - the request with a message is lost, and its recipient replaces their keys before it is sent again
  /// => the server refuses the stored envelope; the message is sealed again with the same number, and arrives once
  @Test func anEnvelopeUnderAnOldKey_isSealedAgain() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let (alice, bob) = (pair.alice, pair.bob)
      alice.network.keepTraffic()
      alice.network.fail(.loseRequest, "POST", Routes.messages)
      let message = try await alice.send("hello", to: bob)
      _ = try? await alice.sync()
      #expect(alice.network.hasStruck)
      try await bob.zdc.localUserManager?.rotateKeys(for: try bob.localUserID)
      try await alice.sync()
      let explained = try await alice.write { _, cloud in cloud.explain(nodeID: message.uuid) }
      let refused = try #require(explained?.operations.first)
      #expect(refused.reason == .serverSaid && refused.detail == "recipientKeyStale")
      world.clock.advance(by: .seconds(3_600))
      try await alice.sync()
      let sent = Self.envelopes(sentBy: alice)
      try #require(sent.count == 2)
      #expect(sent[0].id == sent[1].id && sent[0].recipientEncGen < sent[1].recipientEncGen)
      // With another number, one of the two messages would come after a gap, which is a security error.
      try await alice.send("and more", to: bob)
      try await alice.sync()
      #expect(alice.recorder.take().filter { $0.hasPrefix("sent") } == ["sent hello", "sent and more"])
      try await bob.sync()
      #expect(try await bob.messages(from: alice) == ["alice: and more", "alice: hello"])
    }
  }

  /// The first envelope of each request that has reached the server, since the device keeps its traffic.
  private static func envelopes(sentBy device: TestDevice) -> [MessageEnvelope] {
    device.network.traffic.compactMap { bytes -> MessageEnvelope? in
      var reader = ZDCProtocol.Bundle.Reader(bytes)
      guard case .envelope(let envelope)? = try? reader.next() else { return nil }
      return envelope
    }
  }

  // MARK: Dependencies

  enum ListFault: CaseIterable, Sendable {
    case delayed, refused, lostRequest, lostAnswer
    /// The server goes back to the time before the list, whose answer was lost.
    case rewound
  }

  /// - the server delays, refuses or loses the commit of an access list, or is rewound after it
  /// => the invitation that depends on it is not sent before the list is in force, arrives once, and the tree can be read
  @Test(arguments: ListFault.allCases) func anInvitation_waitsUntilTheListIsInForce(fault: ListFault) async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let (alice, bob) = (pair.alice, pair.bob)
      try await alice.create("/list", "milk")
      try await alice.sync()
      let backup = fault == .rewound ? try await world.server.backup() : nil
      for device in [alice, bob] { await device.network.renewConnections() }
      let offers = Mutex<[Int]>([])
      let look = Fault.before {
        let count = try await bob.syncManager.offeredTrees(forLocalUserID: try bob.localUserID).count
        offers.withLock { $0.append(count) }
      }
      alice.network.fail(look, "POST", Routes.messages, times: 20)
      Self.strike(fault, alice, world.clock)
      try await alice.send("join", to: bob, after: try await alice.share(with: bob))
      _ = try? await alice.sync()
      if let backup {
        try await world.server.restore(backup)
        for device in [alice, bob] { await device.network.renewConnections() }
      }
      for _ in 0..<6 where try await alice.queueCount() > 0 {
        world.clock.advance(by: .seconds(600))
        _ = try? await alice.sync()
      }
      #expect(offers.withLock { !$0.isEmpty && $0.allSatisfy { $0 == 1 } }, "\(offers.withLock { $0 })")
      #expect(alice.recorder.take().count { $0 == "sent join" } == 1)
      try await bob.sync()
      #expect(try await bob.messages(from: alice) == ["alice: join"])
      try await bob.accept(alice)
      #expect(try await bob.tree(of: alice)?.hasPrefix("/list") == true)
      alice.network.restoreNetwork()
    }
  }

  private static func strike(_ fault: ListFault, _ device: TestDevice, _ clock: ManualClock) {
    let (network, route) = (device.network, Routes.commits)
    switch fault {
    case .delayed: network.fail(.before { clock.advance(by: .seconds(3_600)) }, "POST", route, times: 3)
    case .refused: network.fail(.answer(status: 503, code: "shuttingDown"), "POST", route, times: 3)
    case .lostRequest: network.fail(.loseRequest, "POST", route, times: 3)
    case .lostAnswer: network.fail(.loseResponse, "POST", route, times: 3)
    case .rewound: network.fail(.loseResponse, "POST", route, times: 2)
    }
  }
}
