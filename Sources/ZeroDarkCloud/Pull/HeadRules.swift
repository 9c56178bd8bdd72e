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

  /// What a log means that ends before the pin.
  ///
  /// - Parameters:
  ///   - known: the verified commit at the server's seq; nil if it is not known any more.
  ///   - isMissingOwn: whether this device made every commit behind it.
  static func shorter(known: CommitHash?, server: CommitHash, isMissingOwn: Bool) -> ZDCSecurityError.Code {
    guard let known else { return .zoneRollback }
    guard known == server else { return .zoneForkDetected }
    return isMissingOwn ? .ownCommitMissing : .zoneRollback
  }

  /// Whether an error is decidable from public bytes (class 1): then the server should have refused, and the zone is
  /// frozen.
  static func freezes(_ code: ZDCSecurityError.Code) -> Bool {
    switch code {
    case .recordAuthFailed, .nameTagMismatch, .duplicateName, .keyCommitmentMismatch, .contentHeaderInvalid,
      .objectMissing, .grantMissing, .grantHashMismatch, .contentHashMismatch, .chunkAuthFailed, .commitmentMismatch,
      .contentTruncated,
      .contentTrailingData, .identityChangedNeedsAcceptance:
      false
    default: true
    }
  }
}
