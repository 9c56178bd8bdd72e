import Testing
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// The engine's event stream after the server could not be reached for a long time.
@Suite(.timeLimit(.minutes(5))) struct ReconnectionTests {
  /// The pauses before the next attempts are as long as they get.
  private static func run(
    _ device: TestDevice, _ clock: ManualClock, _ body: () async throws -> Void
  ) async throws {
    device.engineClock = clock.engineClock
    device.engineClock.random = { 0.99 }
    try await device.relaunch()
    let run = try device.runInBackground()
    defer { run.cancel() }
    try await body()
    run.cancel()
    await run.value
  }

  private static func wait(until isTrue: () async throws -> Bool) async throws {
    while try await !isTrue() { try await Task.sleep(for: .milliseconds(20)) }
  }

  /// Ends pauses until the next one is longer than half a minute.
  private static func waitForLongPauses(_ device: TestDevice, _ clock: ManualClock) async throws {
    let attempts = device.network.count("GET", "/v1/events")
    try await wait {
      if device.network.count("GET", "/v1/events") >= attempts + 9 { return true }
      clock.advance(by: .seconds(1))
      return false
    }
  }

  /// - the server was unreachable for minutes, and is there again
  /// - the app makes a request
  /// => the engine listens again a second later, and does not wait for the end of its pause, which is half a minute or more
  @Test func anAnswerToAnotherRequest_endsThePause() async throws {
    try await TestWorld.run { world in
      let device = try await world.device("A")
      try await Self.run(device, world.clock) {
        let reachability = try device.zdc.reachability
        try await Self.wait { reachability.isReachable == true }
        device.network.isOffline = true
        try await world.server.restart()
        try await Self.wait { reachability.isReachable == false }
        try await Self.waitForLongPauses(device, world.clock)
        device.network.isOffline = false
        let attempts = device.network.count("GET", "/v1/events")
        // The listener may not have begun its pause, but less time passes here than it lasts.
        for _ in 0..<20 where reachability.isReachable == false {
          try await device.pull()
          world.clock.advance(by: .seconds(1))
          try await Task.sleep(for: .milliseconds(50))
        }
        try await Self.wait { reachability.isReachable == true }
        #expect(device.network.count("GET", "/v1/events") == attempts + 1)
      }
    }
  }
}
