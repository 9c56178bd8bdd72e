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
}
