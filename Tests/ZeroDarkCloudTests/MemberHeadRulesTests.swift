import Testing
import ZDCProtocol

@testable import ZDCSync

/// The meaning of a head that a member names, and the choice of those that a message names (PROTOCOL 3.11, "Heads").
@Suite struct MemberHeadRulesTests {
  private let named = CommitHash(1, 1, 1, 1)
  private let other = CommitHash(2, 2, 2, 2)

  @Test func aHeadIsComparedWithTheLog() {
    func verdict(_ seq: UInt64, pinned: UInt64?, known: CommitHash?) -> MemberHeadRules.Verdict {
      MemberHeadRules.verdict(on: (seq, named), pinned: pinned, known: known)
    }
    #expect(verdict(0, pinned: nil, known: nil) == .ahead)
    #expect(verdict(6, pinned: 5, known: nil) == .ahead)
    #expect(verdict(.max, pinned: 5, known: nil) == .ahead)
    #expect(verdict(5, pinned: 5, known: named) == .consistent)
    #expect(verdict(3, pinned: 5, known: named) == .consistent)
    #expect(verdict(3, pinned: 5, known: other) == .fork)
    #expect(verdict(3, pinned: 5, known: nil) == .consistent)
  }

  @Test func aStrangerIsHeardOnlyAboutCommitsThatThisDeviceDoesNotHave() {
    for verdict in [MemberHeadRules.Verdict.consistent, .fork, .ahead] {
      #expect(MemberHeadRules.isHeard(isMember: true, wasMember: false, verdict))
      #expect(MemberHeadRules.isHeard(isMember: false, wasMember: true, verdict))
    }
    #expect(!MemberHeadRules.isHeard(isMember: false, wasMember: false, .fork))
    #expect(MemberHeadRules.isHeard(isMember: false, wasMember: false, .ahead))
  }

  /// - 40 zones change before each message
  /// => each message names 16, and three messages name all
  @Test func everyZoneIsNamedInTurn() {
    var lastNamed: [Int64: UInt64] = [:]
    for message in 1...3 as ClosedRange<UInt64> {
      let candidates = (1...40).map { MemberHeadRules.Candidate(zone: $0, lastNamed: lastNamed[$0]) }
      let chosen = MemberHeadRules.choose(candidates.reversed())
      #expect(chosen.count == Limits.messageHeads && Set(chosen.map(\.zone)).count == Limits.messageHeads)
      for zone in chosen.map(\.zone) { lastNamed[zone] = message }
    }
    #expect(lastNamed.count == 40)
    #expect(MemberHeadRules.choose([]) == [])
  }
}
