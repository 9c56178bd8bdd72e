import Foundation
import Synchronization
import Testing
import ZDCProtocol
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// A server that refuses every push. The tests count requests and bytes, and check the reported result.
@Suite(.timeLimit(.minutes(20))) struct PushBudgetTests {
  /// A device with two small nodes and a large one queued.
  private static func device(_ world: TestWorld) async throws -> TestDevice {
    let a = try await world.device("A")
    try await a.sync()
    try await a.create("/small", "1")
    try await a.create("/folder")
    try await a.create("/large", TestContent(data: EndToEndTests.bytes(200_000, seed: 1)))
    a.network.resetCounts()
    return a
  }

  private static func bytesSent(_ device: TestDevice) -> Int {
    device.network.requests.reduce(0) { $0 + $1.bytesSent }
  }

  @Test(
    "F2, F3: a server that always claims that content is gone gets it twice, and the result says what is queued",
    arguments: [(410, "blobGone"), (409, "blobIncomplete"), (507, "quotaExceeded"), (507, "storageFull")])
  func permanentRefusal_isBounded_andReported(status: Int, code: String) async throws {
    try await TestWorld.run { world in
      let a = try await Self.device(world)
      let queued = try await a.queueCount()
      a.network.fail(.answer(status: status, code: code), "POST", Routes.commits, times: .max)
      var waiting: Int?
      do { waiting = try await a.sync().pushed.waiting } catch is ServerError {}
      #expect(a.network.count("POST", Routes.commits) <= 8, "\(a.network.counts())")
      #expect(Self.bytesSent(a) < 1_000_000, "\(a.network.counts())")
      #expect(try await a.queueCount() == queued)
      if let waiting { #expect(waiting == queued) }
      a.network.restoreNetwork()
      try await a.sync()
      #expect(try await a.queueCount() == 0)
    }
  }

  @Test("F2: a sync that sends nothing and leaves a queue reports that")
  func anUnsentPush_isNeverComplete() async throws {
    try await TestWorld.run { world in
      let a = try await Self.device(world)
      a.network.fail(.answer(status: 410, code: "blobGone"), "POST", Routes.commits, times: .max)
      let summary = try await a.sync()
      #expect(summary.pushed.operations == 0)
      #expect(summary.pushed.waiting == (try await a.queueCount()))
      #expect(try await a.queueCount() > 0)
      a.network.restoreNetwork()
      try await a.sync()
    }
  }

  @Test("M6: a node whose content cannot be read counts as waiting, also after everything else went out")
  func unreadableContent_countsAsWaiting() async throws {
    struct NoSource: Error {}
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.create("/bad", "1")
      a.recorder.on(.data, "/bad") { _, _ in throw NoSource() }
      let summary = try await a.sync()
      #expect(summary.pushed.waiting == (try await a.queueCount()))
      #expect(summary.pushed.waiting > 0)
      #expect(try await a.sync().pushed.waiting > 0)
      try await a.edit("/bad", "1")
      try await a.relaunch()
      try await a.sync()
    }
  }

  @Test(
    "hostile small: after a lying refusal an explicit sync tries now",
    arguments: [(422, "refused"), (507, "quotaExceeded")])
  func explicitSync_triesNow(status: Int, code: String) async throws {
    try await TestWorld.run { world in
      let a = try await Self.device(world)
      a.network.fail(.answer(status: status, code: code), "POST", Routes.commits, times: 30)
      _ = try await a.sync()
      a.network.restoreNetwork()
      for _ in 0..<3 { _ = try await a.sync() }
      #expect(try await a.queueCount() == 0)
    }
  }

  @Test("C8: a failed push while the clock is a year ahead does not hold the queue after the clock is set back")
  func clockSetBack_doesNotHoldTheQueue() async throws {
    try await TestWorld.run { world in
      let clock = ManualClock(startingAt: world.clock.now.addingTimeInterval(365 * 86_400))
      let a = try await TestDevice("early", server: world.server, clock: clock)
      try await a.createAccount()
      try await a.sync()
      try await a.create("/f", "1")
      a.network.fail(.answer(status: 507, code: "quotaExceeded"), "POST", Routes.commits, times: 5)
      _ = try await a.push()
      _ = try await a.push()
      #expect(try await a.queueCount() > 0)
      a.network.restoreNetwork()
      clock.setBack(by: .seconds(365 * 86_400))
      while try await a.push().commits > 0 {}
      #expect(try await a.queueCount() == 0)
      try await a.close()
    }
  }

  /// Returns a device that reaches its server through a proxy, which passes commits of up to `limit` bytes.
  private static func device(
    _ world: TestWorld, behindProxyWith limit: Int
  ) async throws -> (TestDevice, HostileServer) {
    try await world.device("A").sync()
    let hostile = HostileServer(world.server)
    let b = try await TestDevice("B", server: world.server, clock: world.clock, through: hostile)
    try await b.login(words: world.words() ?? [])
    try await b.sync()
    hostile.tell(
      .fabricate("POST", Routes.commits) { route, request in
        guard request.count > limit else { return nil }
        return ServedAnswer(
          to: route, request: request, status: 413, headers: ["content-type": "text/html"],
          body: Array("<html>413</html>".utf8))
      })
    b.network.resetCounts()
    return (b, hostile)
  }

  @Test("M17: commits that a proxy finds too large are split until they pass")
  func commitsTooLargeForAProxy_areSplit() async throws {
    try await TestWorld.run { world in
      let (b, _) = try await Self.device(world, behindProxyWith: 20_000)
      for number in 1...40 { try await b.create("/\(number)", String(repeating: "x", count: 1_000)) }
      try await b.sync()
      #expect(try await b.queueCount() == 0)
      #expect(b.network.count("POST", Routes.commits) <= 12, "\(b.network.counts())")
      try await b.close()
    }
  }

  @Test("M17: a node that no proxy lets through waits, with the reason, and the others go out")
  func nodeTooLargeForAProxy_waitsAlone() async throws {
    try await TestWorld.run { world in
      let (b, hostile) = try await Self.device(world, behindProxyWith: 20_000)
      for number in 1...5 { try await b.create("/\(number)", "x") }
      try await b.create("/large", String(repeating: "x", count: 50_000))
      for number in 6...9 { try await b.create("/\(number)", "x") }
      let summary = try await b.sync()
      let left = try await b.queueCount()
      #expect(summary.stillQueued == [.serverSaid: left])
      #expect(left > 0 && left <= 2)
      #expect(b.network.count("POST", Routes.commits) <= 16, "\(b.network.counts())")
      hostile.stopTampering()
      try await b.sync()
      #expect(try await b.queueCount() == 0)
      try await b.close()
    }
  }

  @Test("F3: after eight refused nodes in a row the rest of the queue waits")
  func eightRefusedNodes_endTheRound() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.sync()
      for number in 1...30 { try await a.create("/\(number)") }
      let queued = try await a.queueCount()
      a.network.resetCounts()
      a.network.fail(.answer(status: 422, code: "refused"), "POST", Routes.commits, times: .max)
      let summary = try await a.sync()
      // Thirty nodes, fifteen, seven and three; then one at a time.
      #expect(a.network.count("POST", Routes.commits) == 4 + 8)
      // Each node has its creation and its content in the queue.
      #expect(summary.stillQueued == [.serverSaid: 16, .ready: queued - 16])
      a.network.restoreNetwork()
      try await a.sync()
      #expect(try await a.queueCount() == 0)
    }
  }

  @Test("F5: a part that the server takes too slowly is sent again after a pause")
  func partTakenTooSlowly_isSentAgain() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.sync()
      a.network.fail(.before { throw TransportError(.tooSlow) }, "PUT", Routes.blobPart, times: 2)
      try await a.create("/large", TestContent(data: EndToEndTests.bytes(200_000, seed: 1)))
      try await a.whileRunning { await a.recorder.wait(for: "pushed /large") }
      #expect(a.network.hasStruck)
      #expect(try await a.queueCount() == 0)
    }
  }

  @Test("F3: of several blobs that a commit names, the one that the server has lost is sent again")
  func oneLostBlob_isSentAgainAlone() async throws {
    try await TestWorld.run { world in
      let (b, hostile) = try await Self.device(world, behindProxyWith: .max)
      let lost = Mutex<BlobID?>(nil)
      hostile.tell(
        .fabricate("POST", Routes.commits) { route, request in
          let blobs = ServedItem.items(of: request).compactMap { $0.record?.fields.content?.blobID }
          let gone = lost.withLock { lost in
            if blobs.count > 1, lost == nil { lost = blobs[0] }
            return lost
          }
          guard let gone, blobs.contains(gone) else { return nil }
          let json = #"{"code":"blobGone","message":"m","retryable":false}"#
          return ServedAnswer(
            to: route, request: request, status: 410, headers: ["content-type": "application/json"],
            body: Array(json.utf8))
        })
      for number in 1...4 {
        try await b.create("/\(number)", TestContent(data: EndToEndTests.bytes(100_000, seed: UInt8(number))))
      }
      try await b.sync()
      #expect(lost.withLock { $0 } != nil)
      #expect(try await b.queueCount() == 0)
      #expect(b.network.count("PUT", Routes.blobPart) == 4 + 1, "\(b.network.counts())")
      try await b.close()
    }
  }
}
