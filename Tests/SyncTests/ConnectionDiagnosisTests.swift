import Testing
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZeroDarkCloud

@Suite("M16, M17: the diagnosis finds obstacles between a device and its server")
struct ConnectionDiagnosisTests {
  private typealias Step = ZDCConnectionCheck.Step

  /// The latency is left out: on a busy machine it is a warning. `DiagnosisRules` has its own test.
  private func problems(_ checks: [ZDCConnectionCheck]) -> [Step] {
    checks.filter { $0.verdict != .passed && $0.step != .latency }.map(\.step)
  }

  private func verdicts(_ checks: [ZDCConnectionCheck]) -> [ZDCConnectionCheck.Verdict] { checks.map(\.verdict) }

  @Test func anHonestServer_passesEachCheck_andNothingChanges() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.create("/f", "1")
      try await a.sync()
      let before = try await a.tree()
      let checks = try await a.syncManager.checkConnection(localUserID: try a.localUserID)
      #expect(checks.map(\.step) == Step.allCases)
      #expect(problems(checks) == [], "\(checks)")
      #expect(try await a.tree() == before)
    }
  }

  @Test func aServerThatIsAway_isOneFailure_andTheRestIsSkipped() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      a.network.isOffline = true
      let checks = try await a.syncManager.checkConnection(localUserID: try a.localUserID)
      #expect(verdicts(checks) == [.failed, .passed] + [ZDCConnectionCheck.Verdict](repeating: .skipped, count: 5))
      a.network.isOffline = false
    }
  }

  @Test("M17: a proxy's own 413 answer is distinguished from the server's") func proxyRefusesBodies() async throws {
    try await withHostile { hostile, a in
      hostile.tell(.fabricate("PUT", Routes.blobPart, status: 413, json: "<html>Request Entity Too Large</html>"))
      let checks = try await a.syncManager.checkConnection(localUserID: try a.localUserID)
      #expect(problems(checks) == [.bodySize])
    }
  }

  @Test("M16: events that something holds back are found") func proxyBuffersEvents() async throws {
    try await withHostile { hostile, a in
      hostile.tell(.events { _ in [] })
      let diagnosis = ConnectionDiagnosis(api: try await a.api, now: { 0 }, eventTimeout: .zero)
      let checks = try await diagnosis.run()
      #expect(checks.last?.verdict == .failed)
      #expect(checks.last?.advice?.contains("proxy_buffering") == true)
    }
  }

  private func withHostile(_ body: @escaping @Sendable (HostileServer, TestDevice) async throws -> Void) async throws {
    try await TestWorld.run { world in
      let hostile = HostileServer(world.server)
      let a = try await TestDevice("A", server: world.server, clock: world.clock, through: hostile)
      _ = try await a.createAccount()
      try await body(hostile, a)
      hostile.stopTampering()
      try await a.close()
    }
  }
}
