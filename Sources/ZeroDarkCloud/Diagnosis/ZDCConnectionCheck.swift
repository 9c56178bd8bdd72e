public import ZDCSync

/// One finding about the connection between this device and its server.
///
/// See ``ZDCSyncManager/checkConnection(localUserID:)``.
///
/// ```swift
/// for check in try await session.syncManager.checkConnection(localUserID: user.uuid) where check.verdict != .passed {
///   show([check.finding, check.advice ?? ""])
/// }
/// ```
public struct ZDCConnectionCheck: Sendable, Hashable {
  /// The parts of the connection that are checked, in this order.
  public enum Step: String, Sendable, CaseIterable {
    /// A ZeroDark server answers at the configured address and speaks this version's protocol.
    case server
    /// The connection is encrypted, or does not leave this machine.
    case encryption
    /// The clocks of this device and of the server agree.
    case clock
    /// The latency of a small request.
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
    /// Syncing works, but something is unusual.
    case warning
    /// Syncing does not work, or does not work properly.
    case failed
    /// An earlier failure makes this check meaningless.
    case skipped
  }

  /// The part of the connection that was checked.
  public let step: Step
  /// The outcome.
  public let verdict: Verdict
  /// The measured result, as a human-readable sentence. Contains no name, key or content.
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
  /// Checks the connection between this device and its server: proxies that refuse large bodies or buffer events,
  /// clocks that differ, certificates.
  ///
  /// Sends about ten requests, one of them with a body of 8 MiB that the server discards. Changes nothing, locally or
  /// in the cloud. Call it when a user asks why nothing syncs:
  ///
  /// ```swift
  /// for check in try await syncManager.checkConnection(localUserID: user.uuid) where check.verdict != .passed {
  ///   print(check.step.rawValue, check.finding, check.advice ?? "")
  /// }
  /// ```
  ///
  /// - Returns: One finding for each ``ZDCConnectionCheck/Step``, in order.
  /// - Throws: `ZDCError` if there is no such local user, or `CancellationError`. An unreachable server is a finding,
  ///   not an error.
  public func checkConnection(localUserID: String) async throws -> [ZDCConnectionCheck] {
    let session = try await engine(for: localUserID).session
    let diagnosis = ConnectionDiagnosis(api: session.api, now: session.now)
    return try await diagnosis.run()
  }
}
