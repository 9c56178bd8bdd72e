import Foundation
import Testing
import ZDCProtocol
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// A server that refuses every push, counted: requests, bytes, and what the result says.
@Suite(.timeLimit(.minutes(5))) struct PushBudgetTests {
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
    "F2, F3: a server that says for ever that a content is gone gets it twice, and the result says what is queued",
    arguments: [(410, "blobGone"), (409, "blobIncomplete"), (507, "quotaExceeded"), (507, "storageFull")])
  func refusalForEver_isBounded_andTold(status: Int, code: String) async throws {
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
      a.network.heal()
      try await a.sync()
      #expect(try await a.queueCount() == 0)
    }
  }

  @Test("F2: a sync that sends nothing and leaves a queue says so")
  func nothingSent_isNeverDone() async throws {
    try await TestWorld.run { world in
      let a = try await Self.device(world)
      a.network.fail(.answer(status: 410, code: "blobGone"), "POST", Routes.commits, times: .max)
      let summary = try await a.sync()
      #expect(summary.pushed.operations == 0)
      #expect(summary.pushed.waiting == (try await a.queueCount()))
      #expect(try await a.queueCount() > 0)
      a.network.heal()
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
      a.network.heal()
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
      a.network.heal()
      clock.setBack(by: .seconds(365 * 86_400))
      while try await a.push().commits > 0 {}
      #expect(try await a.queueCount() == 0)
      try await a.close()
    }
  }
}
