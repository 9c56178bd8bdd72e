package import ZDCClientStore
package import ZDCProtocol

/// The meaning of the server's head for a device that has pinned a different one (PROTOCOL 3.7, "Pins"). Pure.
package enum HeadRules {
  package enum Verdict: Equatable {
    case upToDate
    /// There are commits after the pin.
    case behind
    /// The server's log is shorter than the one that this device verified, or is a different log.
    case broken(ZDCSecurityError.Code)
  }

  package static func compare(pin: (seq: UInt64, hash: CommitHash)?, server: (seq: UInt64, hash: CommitHash)) -> Verdict
  {
    guard let pin else { return .behind }
    if server.seq < pin.seq { return .broken(.zoneRollback) }
    if server.seq > pin.seq { return .behind }
    return server.hash == pin.hash ? .upToDate : .broken(.zoneForkDetected)
  }

  /// Returns the meaning of a log that ends before the pin.
  ///
  /// - Parameters:
  ///   - known: The verified commit at the server's sequence number, or nil if it is no longer known.
  ///   - isMissingOwn: Whether this device made every commit after it.
  package static func shorter(known: CommitHash?, server: CommitHash, isMissingOwn: Bool) -> ZDCSecurityError.Code {
    guard let known else { return .zoneRollback }
    guard known == server else { return .zoneForkDetected }
    return isMissingOwn ? .ownCommitMissing : .zoneRollback
  }

  /// Returns whether this device sends lost commits again without asking the user, which covers the last moments before
  /// a server crash. More or older commits, changes of rights or keys, and a second loss are for the user to decide.
  package static func isSentAgainUnasked(_ lost: OwnCommits, hasRestored: Bool, nowMs: UInt64) -> Bool {
    let ageMs = nowMs > lost.oldestMs ? nowMs - lost.oldestMs : 0
    return !hasRestored && !lost.isBinding && lost.count <= lostCommits && ageMs <= lostAgeMs
  }

  /// Returns the event to report when the user accepts a log that lacks verified commits, unless the zone is already
  /// frozen for that.
  package static func rollback(missing: UInt64, frozen: ZDCSecurityError.Code?) -> ZDCSecurityError.Code? {
    switch frozen {
    case .zoneRollback, .zoneForkDetected, .ownCommitMissing: nil
    default: missing > 0 ? .zoneRollback : nil
    }
  }

  static let lostCommits = 16
  static let lostAgeMs: UInt64 = 600_000

  /// Returns whether a server that does not know a zone has lost part of this account. For another user's zone, the
  /// account may have lost access instead.
  package static func isAccountMissing(owner: UserID?, user: UserID) -> Bool { owner == nil || owner == user }

  /// The evidence provided by an answer that cannot be followed.
  package enum Evidence: Equatable {
    /// None: an intermediary, another request or a later version may explain the answer.
    case none
    /// The server's claim is impossible, but no member has signed it.
    case suspicion
    /// A member has signed an impossible claim.
    case proof
  }

  /// - Parameter isSigned: Whether members have signed the objects in the answer.
  package static func evidence(of code: ZDCSecurityError.Code, isSigned: Bool) -> Evidence {
    switch code.name {
    case .nonCanonicalEncoding, .unsupportedVersion, .commitChainBroken, .inviteHeadMismatch: .none
    // An overlong answer proves nothing. However, an honest server refuses a signed commit that exceeds a limit.
    case .limitExceeded: isSigned ? .proof : .none
    default: isSigned ? .proof : .suspicion
    }
  }

  /// Returns whether an error affects a zone's log as a whole (class 1). The server is then asked again, and the zone
  /// may be frozen. Errors that depend on keys affect one node or one grant.
  package static func isAboutLog(_ code: ZDCSecurityError.Code) -> Bool {
    switch code.name {
    case .recordAuthFailed, .nameTagMismatch, .duplicateName, .keyCommitmentMismatch, .contentHeaderInvalid,
      .objectMissing, .grantMissing, .grantHashMismatch, .contentHashMismatch, .chunkAuthFailed, .commitmentMismatch,
      .contentTruncated,
      .contentTrailingData, .identityChangedNeedsAcceptance:
      false
    default: true
    }
  }

  /// Returns whether the engine pulls a zone again, after a pause, if the pull ended with this error.
  package static func isTriedAgain(after error: any Error) -> Bool {
    guard let error = error as? ZDCSecurityError else { return true }
    // An exchanged page or state list is not signed, and freezes nothing.
    return [.recordBindingMismatch, .splitMismatch].contains(error.code)
      || evidence(of: error.code, isSigned: false) == .none
  }
}
