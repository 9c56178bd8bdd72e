internal import ZeroDarkCloud

/// `zdc doctor`.
package enum DoctorCommand {
  /// One finding per line: `{"advice"?,"check","finding","verdict"}`.
  package struct Report: Encodable, Sendable {
    var check: String
    var verdict: String
    var finding: String
    var advice: String?

    init(_ check: ZDCConnectionCheck) {
      (self.check, verdict, finding, advice) = (
        check.step.rawValue, check.verdict.rawValue, check.finding, check.advice
      )
    }
  }

  package static func run(_ options: ProfileOptions) async throws {
    let opened = try OpenProfile.open(options)
    let checks = try await opened.sync.checkConnection(localUserID: try await opened.localUserID())
    for check in checks {
      try options.output.object(Report(check))
      for line in lines(check) { options.output.line(line) }
    }
    try await opened.close()
    if let status = status(checks) { throw SilentExit(status) }
  }

  static func lines(_ check: ZDCConnectionCheck) -> [String] {
    let finding = ShownName.text(check.finding)
    let line = "\(padded(title(check.step), 14))\(padded(word(check.verdict), 9))\(finding)"
    return [line] + (check.advice.map { [String(repeating: " ", count: 23) + $0] } ?? [])
  }

  /// Returns nil if everything works; warnings do not count as failures.
  static func status(_ checks: [ZDCConnectionCheck]) -> ExitStatus? {
    guard let failure = checks.first(where: { $0.verdict == .failed }) else { return nil }
    return failure.step == .server ? .unavailable : .failure
  }

  private static func title(_ step: ZDCConnectionCheck.Step) -> String {
    switch step {
    case .server: "server"
    case .encryption: "encryption"
    case .clock: "clock"
    case .latency: "latency"
    case .session: "session"
    case .bodySize: "body size"
    case .eventStream: "event stream"
    }
  }

  private static func word(_ verdict: ZDCConnectionCheck.Verdict) -> String {
    switch verdict {
    case .passed: "ok"
    case .warning: "warning"
    case .failed: "FAILED"
    case .skipped: "skipped"
    }
  }

  private static func padded(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(1, width - text.count))
  }
}
