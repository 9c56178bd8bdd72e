public import ZDCSync

/// One finding about the way between this device and its server.
///
/// See ``ZDCSyncManager/checkConnection(localUserID:)``.
public struct ZDCConnectionCheck: Sendable, Hashable {
  /// The parts of the connection that are checked, in this order.
  public enum Step: String, Sendable, CaseIterable {
    /// A ZeroDark server answers at the configured address, and speaks this version's protocol.
    case server
    /// The connection is encrypted, or does not leave this machine.
    case encryption
    /// The clocks of this device and of the server agree.
    case clock
    /// How long a small request takes.
    case latency
    /// The server accepts this device's session.
    case session
    /// A request body as large as an upload part reaches the server.
    case bodySize
    /// Events arrive when the server sends them.
    case eventStream
  }

  /// The outcome of a check.
  public enum Verdict: String, Sendable {
    /// Nothing is wrong.
    case passed
    /// Syncing works, and something is unusual.
    case warning
    /// Syncing does not work, or not as it should.
    case failed
    /// An earlier failure makes the check meaningless.
    case skipped
  }

  /// The part of the connection that was checked.
  public let step: Step
  /// The outcome.
  public let verdict: Verdict
  /// The measured result, as a sentence for people. Holds no name, key or content.
  public let finding: String
  /// The remedy, if there is one.
  public let advice: String?

  init(_ step: Step, _ verdict: Verdict, _ finding: String, advice: String? = nil) {
    self.step = step
    self.verdict = verdict
    self.finding = finding
    self.advice = advice
  }
}

extension ZDCSyncManager {
  /// Checks what stands between this device and its server: proxies that refuse large bodies or buffer events, clocks
  /// that differ, certificates.
  ///
  /// Sends about ten requests, one of them with a body of 8 MiB that the server discards. Nothing is changed, locally or
  /// in the cloud. An app calls it when its user asks why nothing syncs:
  ///
  /// ```swift
  /// for check in try await syncManager.checkConnection(localUserID: user.uuid) where check.verdict != .passed {
  ///   print(check.step.rawValue, check.finding, check.advice ?? "")
  /// }
  /// ```
  ///
  /// - Returns: One finding for each ``ZDCConnectionCheck/Step``, in order.
  /// - Throws: `ZDCError` if there is no such local user, or `CancellationError`. A server that cannot be reached is a
  ///   finding and no error.
  public func checkConnection(localUserID: String) async throws -> [ZDCConnectionCheck] {
    let session = try await engine(for: localUserID).session
    let diagnosis = ConnectionDiagnosis(api: session.api, now: session.now)
    return try await diagnosis.run()
  }
}
