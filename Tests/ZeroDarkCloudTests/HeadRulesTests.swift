import Testing
import ZDCProtocol

@testable import ZeroDarkCloud

/// What another head than the pinned one means, and which errors stop a tree (PROTOCOL 3.7, "Pins").
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

  @Test func whatNeedsKeysStopsANode_whatEverybodySeesStopsTheTree() {
    let ofNodes: [ZDCSecurityError.Code] = [
      .recordAuthFailed, .nameTagMismatch, .duplicateName, .keyCommitmentMismatch, .grantMissing, .grantHashMismatch,
      .objectMissing, .contentHashMismatch,
    ]
    #expect(ofNodes.allSatisfy { !HeadRules.freezes($0) })
    let ofTrees: [ZDCSecurityError.Code] = [
      .zoneRollback, .zoneForkDetected, .commitChainBroken, .signatureInvalid, .writerUnknown, .recordRollback,
      .recordHashMismatch, .recordBindingMismatch, .nonCanonicalEncoding, .limitExceeded, .treeCycle,
    ]
    #expect(ofTrees.allSatisfy { HeadRules.freezes($0) })
  }

  @Test func aSyncGoesOnWhileSomethingHappens_andNotForEver() {
    var rule = QuietRule(queued: 0)
    var told = PushSummary()
    told.calledApp = true
    let goesOn = [
      rule.goesOn(after: PushSummary(), uploadsSettled: 0), rule.goesOn(after: PushSummary(), uploadsSettled: 1),
      rule.goesOn(after: told, uploadsSettled: 0),
    ]
    #expect(goesOn == [false, true, true])
    var rounds = 0
    while rule.goesOn(after: PushSummary(commits: 1), uploadsSettled: 0) { rounds += 1 }
    #expect(rounds < 200)
    #expect(rule.isExhausted)
  }
}
