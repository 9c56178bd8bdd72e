internal import ZDCProtocol

/// What the server's head means to somebody who pinned another (PROTOCOL 3.7, "Pins"). Pure.
enum HeadRules {
  enum Verdict: Equatable {
    case upToDate
    /// There are commits behind the pin.
    case behind
    /// The server's log is shorter than what this device verified, or another log.
    case broken(ZDCSecurityError.Code)
  }

  static func compare(pin: (seq: UInt64, hash: CommitHash)?, server: (seq: UInt64, hash: CommitHash)) -> Verdict {
    guard let pin else { return .behind }
    if server.seq < pin.seq { return .broken(.zoneRollback) }
    if server.seq > pin.seq { return .behind }
    return server.hash == pin.hash ? .upToDate : .broken(.zoneForkDetected)
  }

  /// Whether an error is decidable from public bytes (class 1): then the server should have refused, and the zone is
  /// frozen.
  static func freezes(_ code: ZDCSecurityError.Code) -> Bool {
    switch code {
    case .recordAuthFailed, .nameTagMismatch, .duplicateName, .keyCommitmentMismatch, .contentHeaderInvalid,
      .objectMissing, .grantMissing, .grantHashMismatch, .contentHashMismatch, .chunkAuthFailed, .commitmentMismatch, .contentTruncated,
      .contentTrailingData, .identityChangedNeedsAcceptance:
      false
    default: true
    }
  }
}
