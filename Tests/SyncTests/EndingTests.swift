import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// State that ends when the framework closes, and state that is restored after it.
@Suite(.timeLimit(.minutes(20))) struct EndingTests {
  @Test func reachabilityEnds_whenTheFrameworkIsClosed() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let reachability = try a.zdc.reachability
      let seen = Task { await reachability.changes.reduce(into: [Bool]()) { $0.append($1) } }
      try await a.whileRunning {}
      try await a.close()
      #expect(await seen.value.first ?? true)
      #expect(reachability.isReachable == nil)
      try await a.relaunch()
    }
  }

  @Test func lastSynced_isKnownAfterARelaunch() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let user = try a.localUserID
      try await a.pull()
      let then = try #require(try await a.syncManager.syncState(forLocalUserID: user).lastSynced)
      world.clock.advance(by: .seconds(3_600))
      try await a.relaunch()
      let stored = try #require(try await a.syncManager.syncState(forLocalUserID: user).lastSynced)
      #expect(abs(stored.timeIntervalSince(then)) < 60)
      try await a.pull()
      #expect(try await a.syncManager.syncState(forLocalUserID: user).lastSynced == world.clock.now)
    }
  }

  /// => cancelling a task leaves no error in the log or in the reports
  @Test func aCancellation_isNoError() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let reports = try a.syncManager.statusUpdates
      for _ in 0..<5 {
        let task = Task { try await a.pull() }
        task.cancel()
        _ = await task.result
      }
      try await a.whileRunning { try await a.create("/f", "1") }
      try await a.close()
      for await report in reports {
        if case .error(_, let error) = report { #expect(!(error is CancellationError)) }
      }
      try await a.relaunch()
      try await a.sync()
      #expect(!a.log.text.contains("CancellationError") && !a.log.text.contains("database access failed"))
    }
  }
}
