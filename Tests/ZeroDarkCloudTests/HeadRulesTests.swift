import Testing
import ZDCProtocol

@testable import ZDCClientStore
@testable import ZDCSync
@testable import ZeroDarkCloud

/// The meaning of a head other than the pinned one, and the errors that stop a tree (PROTOCOL 3.7, "Pins").
@Suite struct HeadRulesTests {
  private let pinned = CommitHash(1, 1, 1, 1)
  private let other = CommitHash(2, 2, 2, 2)

  @Test func aHeadIsComparedWithThePin() {
    #expect(HeadRules.compare(pin: nil, server: (0, other)) == .behind)
    #expect(HeadRules.compare(pin: (5, pinned), server: (5, pinned)) == .upToDate)
    #expect(HeadRules.compare(pin: (5, pinned), server: (6, other)) == .behind)
    #expect(HeadRules.compare(pin: (5, pinned), server: (5, other)) == .broken(.zoneForkDetected))
    #expect(HeadRules.compare(pin: (5, pinned), server: (4, other)) == .broken(.zoneRollback))
  }

  @Test func aShorterLogIsHarmlessOnlyIfItIsOursAndLacksOwnCommits() {
    #expect(HeadRules.shorter(known: pinned, server: pinned, isMissingOwn: true) == .ownCommitMissing)
    #expect(HeadRules.shorter(known: pinned, server: pinned, isMissingOwn: false) == .zoneRollback)
    #expect(HeadRules.shorter(known: pinned, server: other, isMissingOwn: true) == .zoneForkDetected)
    #expect(HeadRules.shorter(known: nil, server: other, isMissingOwn: true) == .zoneRollback)
  }

  @Test func errorsThatNeedKeysStopANode_errorsThatEachMemberSeesStopTheTree() {
    let ofNodes: [ZDCSecurityError.Code] = [
      .recordAuthFailed, .nameTagMismatch, .duplicateName, .keyCommitmentMismatch, .grantMissing, .grantHashMismatch,
      .objectMissing, .contentHashMismatch,
    ]
    #expect(ofNodes.allSatisfy { !HeadRules.isAboutLog($0) })
    let ofTrees: [ZDCSecurityError.Code] = [
      .zoneRollback, .zoneForkDetected, .commitChainBroken, .signatureInvalid, .writerUnknown, .recordRollback,
      .recordHashMismatch, .recordBindingMismatch, .nonCanonicalEncoding, .limitExceeded, .treeCycle,
    ]
    #expect(ofTrees.allSatisfy { HeadRules.isAboutLog($0) })
  }

  @Test("C2: answers that anything in between may have made prove nothing, only signatures do")
  func onlySignaturesProve() {
    let unusable: [ZDCSecurityError.Code] = [
      .nonCanonicalEncoding, .unsupportedVersion, .commitChainBroken,
    ]
    for code in unusable {
      #expect(HeadRules.evidence(of: code, isSigned: true) == .none)
      #expect(HeadRules.isTriedAgain(after: ZDCSecurityError(code)))
    }
    // An answer that is too long proves nothing; a signed commit above a limit does.
    #expect(HeadRules.evidence(of: .limitExceeded, isSigned: false) == .none)
    #expect(HeadRules.evidence(of: .limitExceeded, isSigned: true) == .proof)
    for code in [ZDCSecurityError.Code.treeCycle, .writerUnknown, .zoneForkDetected, .signatureInvalid] {
      #expect(HeadRules.evidence(of: code, isSigned: true) == .proof)
      #expect(HeadRules.evidence(of: code, isSigned: false) == .suspicion)
      #expect(!HeadRules.isTriedAgain(after: ZDCSecurityError(code)))
    }
    for code in [ZDCSecurityError.Code.recordBindingMismatch, .splitMismatch] {
      #expect(HeadRules.isTriedAgain(after: ZDCSecurityError(code)))
    }
    #expect(HeadRules.isTriedAgain(after: ServerError(.notFound, "")))
  }

  @Test("C4: a few recent commits are sent again unasked, once, and none that change rights or keys")
  func lostCommitsAreSentAgainUnasked_onlyIfFewRecentAndHarmless() {
    let now: UInt64 = 10_000_000
    func isUnasked(_ lost: OwnCommits, hasRestored: Bool = false) -> Bool {
      HeadRules.isSentAgainUnasked(lost, hasRestored: hasRestored, nowMs: now)
    }
    let harmless = OwnCommits(count: 16, oldestMs: now - 600_000, isBinding: false)
    #expect(isUnasked(harmless))
    #expect(!isUnasked(harmless, hasRestored: true))
    #expect(!isUnasked(OwnCommits(count: 17, oldestMs: now, isBinding: false)))
    #expect(!isUnasked(OwnCommits(count: 1, oldestMs: now - 600_001, isBinding: false)))
    #expect(!isUnasked(OwnCommits(count: 1, oldestMs: now, isBinding: true)))
    // The clock was set back.
    #expect(isUnasked(OwnCommits(count: 1, oldestMs: now + 5, isBinding: false)))
  }

  @Test("P8: another user's zone that the server does not know is no lost account")
  func missingZone_isALostAccountOnlyIfItIsOnesOwn() {
    let (mine, other) = (UserID(1, 1, 1, 1), UserID(2, 2, 2, 2))
    #expect(HeadRules.isAccountMissing(owner: nil, user: mine))
    #expect(HeadRules.isAccountMissing(owner: mine, user: mine))
    #expect(!HeadRules.isAccountMissing(owner: other, user: mine))
  }

  @Test("F6: an accepted log that lacks verified commits is a rollback")
  func acceptedLoss_isNamed_unlessTheUserKnows() {
    #expect(HeadRules.rollback(missing: 3, frozen: .signatureInvalid) == .zoneRollback)
    #expect(HeadRules.rollback(missing: 0, frozen: .signatureInvalid) == nil)
    for code in [ZDCSecurityError.Code.zoneRollback, .zoneForkDetected, .ownCommitMissing] {
      #expect(HeadRules.rollback(missing: 3, frozen: code) == nil)
    }
  }

  @Test func aSyncContinuesWhileThereIsWork_andNotForever() {
    var rule = IdleDetector(queued: 0)
    var told = ZDCPushSummary()
    told.calledApp = true
    let goesOn = [
      rule.shouldContinue(after: ZDCPushSummary(), uploadsSettled: 0),
      rule.shouldContinue(after: ZDCPushSummary(), uploadsSettled: 1),
      rule.shouldContinue(after: told, uploadsSettled: 0),
    ]
    #expect(goesOn == [false, true, true])
    var rounds = 0
    while rule.shouldContinue(after: ZDCPushSummary(commits: 1), uploadsSettled: 0) { rounds += 1 }
    #expect(rounds < 200)
    #expect(rule.isExhausted)
  }
}
