import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Many devices that write into one zone at once.
@Suite(.timeLimit(.minutes(20))) struct ContentionTests {
  private static let nodes = 12

  /// - Ten devices whose engines run, each makes its next node when its last one is on the server
  /// => none stands still while the others go on; everything of everybody is everywhere
  @Test func tenDevices_allProgress() async throws {
    try await TestWorld.run { world in
      var devices: [TestDevice] = []
      for number in 0..<10 { devices.append(try await world.device("D\(number)")) }
      let all = devices
      try await Self.whileRunning(all[...]) {
        let slowest = try await Self.contend(all)
        #expect(slowest > 0)
      }
      for device in all { #expect(Self.pushed(device) == Self.nodes) }
    }
  }

  private static func whileRunning(
    _ devices: ArraySlice<TestDevice>, _ body: @escaping @Sendable () async throws -> Void
  ) async throws {
    guard let first = devices.first else { return try await body() }
    try await first.whileRunning { try await whileRunning(devices.dropFirst(), body) }
  }

  /// - Returns: what the slowest had done when the fastest was through.
  private static func contend(_ devices: [TestDevice]) async throws -> Int {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for device in devices {
        group.addTask {
          for index in 0..<nodes {
            try await device.create("/\(device.name) \(index)", "x")
            await device.recorder.wait(for: "pushed /\(device.name) \(index)")
          }
        }
      }
      try await group.next()
      let slowest = devices.map(pushed).min() ?? 0
      try await group.waitForAll()
      return slowest
    }
  }

  private static func pushed(_ device: TestDevice) -> Int {
    device.recorder.lines.count { $0.hasPrefix("pushed ") }
  }
}
