import Testing
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Messages to users who close their accounts while the messages wait.
struct ClosedRecipientTests {
  /// - one of two recipients closes their account after the call
  /// => the other one gets the message; explain says why the rest waits, until the app deletes the message
  @Test func theRestWaits_untilTheAppDeletesTheMessage() async throws {
    try await TestWorld.run { world in
      let pair = try await MessageTests.Pair(world)
      let (alice, bob, carol) = (pair.alice, pair.bob, try await world.device("carol", account: "carol"))
      try await alice.meet(carol)
      try await carol.acceptMessages(of: alice)
      let message = try await alice.send("to both", to: bob, carol)
      try await #require(try bob.zdc.localUserManager).closeAccount(bob.localUserID)
      try await alice.sync()
      for _ in 0..<2 {
        let queue = try await alice.write { _, cloud in cloud.explainQueue() }
        #expect(queue.map(\.kind) == ["deliver"])
        #expect(queue.first?.reason == .serverSaid && queue.first?.detail == "accountClosed")
        world.clock.advance(by: .seconds(86_400))
        alice.network.resetCounts()
        try await alice.sync()
        #expect(alice.network.count("POST", Routes.messages) == 1)
      }
      try await alice.write { _, cloud in
        guard let node = cloud.node(id: message.uuid) else { return }
        try cloud.delete(node)
      }
      try await alice.sync()
      #expect(try await alice.queueCount() == 0)
      #expect(try await alice.messages(.outbox) == [])
      #expect(alice.recorder.take().filter { $0.hasPrefix("sent") } == ["sent to both"])
      try await carol.sync()
      #expect(try await carol.messages(from: alice) == ["alice: to both"])
    }
  }
}
