import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Many devices that write to one zone concurrently.
@Suite(.timeLimit(.minutes(20))) struct ContentionTests {
  private static let nodes = 12

  /// - Ten devices run their engines; each creates its next node when its last one is on the server
  /// => no device stalls while the others progress, and every device receives all nodes
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

  /// - Returns: The number of nodes that the slowest device had pushed when the fastest finished.
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
