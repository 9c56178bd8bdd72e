import Testing
import ZDCProtocol

@testable import ZeroDarkCloud

@Suite("M16, M17: verdicts about a connection")
struct DiagnosisRulesTests {
  @Test(
    "clocks are compared with the interval between question and answer",
    arguments: [
      (1_000_000, 1_000_000, 1_000_400, ZDCConnectionCheck.Verdict.passed),
      (1_000_200, 1_000_000, 1_000_400, .passed),
      (940_001, 1_000_000, 1_000_400, .passed),
      (940_000, 1_000_000, 1_000_400, .warning),
      (1_060_399, 1_000_000, 1_000_400, .passed),
      (1_060_400, 1_000_000, 1_000_400, .warning),
      (.max, 0, 0, .warning), (0, .max, .max, .warning),
    ] as [(UInt64, UInt64, UInt64, ZDCConnectionCheck.Verdict)])
  func clock(server: UInt64, before: UInt64, after: UInt64, verdict: ZDCConnectionCheck.Verdict) {
    #expect(DiagnosisRules.clock(server: server, before: before, after: after).verdict == verdict)
  }

  @Test("an encrypted connection that was not made has no verdict")
  func encryption() {
    #expect(DiagnosisRules.encryption(origin: "https://a", isConnected: true)?.verdict == .passed)
    #expect(DiagnosisRules.encryption(origin: "https://a", isConnected: false) == nil)
    #expect(DiagnosisRules.encryption(origin: "http://127.0.0.1", isConnected: false)?.verdict == .passed)
  }

  @Test func latencyAboveASecond_isAWarning() {
    #expect(DiagnosisRules.latency(.milliseconds(999)).verdict == .passed)
    #expect(DiagnosisRules.latency(.milliseconds(1_000)).verdict == .warning)
  }

  @Test("M17: only an answer of the server itself shows that the body arrived")
  func bodySize() {
    #expect(DiagnosisRules.bodySize(8, status: 404, isFromServer: true).verdict == .passed)
    let refused = DiagnosisRules.bodySize(8, status: 413, isFromServer: false)
    #expect(refused.verdict == .failed)
    #expect(refused.finding.contains("413"))
    #expect(refused.advice?.contains("client_max_body_size") == true)
  }
}
