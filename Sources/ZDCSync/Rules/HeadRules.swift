package import ZDCClientStore
package import ZDCProtocol

/// What the server's head means to somebody who pinned another (PROTOCOL 3.7, "Pins"). Pure.
package enum HeadRules {
  package enum Verdict: Equatable {
    case upToDate
    /// There are commits behind the pin.
    case behind
    /// The server's log is shorter than what this device verified, or another log.
    case broken(ZDCSecurityError.Code)
  }

  package static func compare(pin: (seq: UInt64, hash: CommitHash)?, server: (seq: UInt64, hash: CommitHash)) -> Verdict
  {
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
  package static func shorter(known: CommitHash?, server: CommitHash, isMissingOwn: Bool) -> ZDCSecurityError.Code {
    guard let known else { return .zoneRollback }
    guard known == server else { return .zoneForkDetected }
    return isMissingOwn ? .ownCommitMissing : .zoneRollback
  }

  /// Lost commits that this device sends again without asking the user: the last moments before a server's crash. More
  /// or older ones, changes of rights or keys, and a second loss are for the user to decide.
  package static func isSentAgainUnasked(_ lost: OwnCommits, hasRestored: Bool, nowMs: UInt64) -> Bool {
    let ageMs = nowMs > lost.oldestMs ? nowMs - lost.oldestMs : 0
    return !hasRestored && !lost.isBinding && lost.count <= lostCommits && ageMs <= lostAgeMs
  }

  /// What the user has to be told who accepts a log that lacks verified commits, unless the zone is frozen for that.
  package static func rollback(missing: UInt64, frozen: ZDCSecurityError.Code?) -> ZDCSecurityError.Code? {
    switch frozen {
    case .zoneRollback, .zoneForkDetected, .ownCommitMissing: nil
    default: missing > 0 ? .zoneRollback : nil
    }
  }

  static let lostCommits = 16
  static let lostAgeMs: UInt64 = 600_000

  /// Whether a server that does not know a zone denies this account what it was born with. Somebody else's zone may
  /// have been taken away from it.
  package static func isAccountMissing(owner: UserID?, user: UserID) -> Bool { owner == nil || owner == user }

  /// What an answer proves that cannot be followed.
  package enum Evidence: Equatable {
    /// Nothing: it may come from something in between, from another request, or from a later version.
    case none
    /// The server says what cannot be, and no member has signed it.
    case suspicion
    /// A member's signature is on what cannot be.
    case proof
  }

  /// - Parameter isSigned: members have signed what the answer consists of.
  package static func evidence(of code: ZDCSecurityError.Code, isSigned: Bool) -> Evidence {
    switch code {
    case .nonCanonicalEncoding, .unsupportedVersion, .commitChainBroken: .none
    // An answer that is too long proves nothing; a signed commit above a limit is one that an honest server refuses.
    case .limitExceeded: isSigned ? .proof : .none
    default: isSigned ? .proof : .suspicion
    }
  }

  /// Whether an error concerns a zone's log as a whole (class 1): the server is asked again, and then the zone may be
  /// frozen. What needs keys concerns one node or a grant.
  package static func isAboutLog(_ code: ZDCSecurityError.Code) -> Bool {
    switch code {
    case .recordAuthFailed, .nameTagMismatch, .duplicateName, .keyCommitmentMismatch, .contentHeaderInvalid,
      .objectMissing, .grantMissing, .grantHashMismatch, .contentHashMismatch, .chunkAuthFailed, .commitmentMismatch,
      .contentTruncated,
      .contentTrailingData, .identityChangedNeedsAcceptance:
      false
    default: true
    }
  }

  /// Whether the engine pulls a zone again, after a pause, whose pull ended with this error.
  package static func isTriedAgain(after error: any Error) -> Bool {
    guard let error = error as? ZDCSecurityError else { return true }
    return error.code == .recordBindingMismatch || evidence(of: error.code, isSigned: false) == .none
  }
}
