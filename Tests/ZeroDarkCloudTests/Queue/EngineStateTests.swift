import Foundation
import Testing

@testable import ZDCSync
@testable import ZeroDarkCloud

@Suite struct EngineStateTests {
  private let user = "user"
  private let now = Date(ms: 1_000)

  /// => a round that leaves out a tree counts as online, but not as synced
  @Test func aRoundThatLeavesATreeOut_hasNotSynced() {
    var state = EngineState()
    state.take(.pullStarted(localUserID: user), now: now)
    state.leaveOut()
    state.take(.pullFinished(localUserID: user, commits: 1, announced: 1), now: now)
    #expect(state.shown.lastSynced == nil && state.shown.connection == .online && !state.shown.isPulling)
    state.take(.pullStarted(localUserID: user), now: now)
    state.take(.pullFinished(localUserID: user, commits: 0, announced: 0), now: now)
    #expect(state.shown.lastSynced == now)
  }

  @Test("concurrent pulls count as one, which lasts until the last has ended")
  func overlappingRounds() {
    var state = EngineState()
    for _ in 0..<2 {
      state.beginRound(.pull)
      state.take(.pullStarted(localUserID: user), now: now)
    }
    state.take(.pullFinished(localUserID: user, commits: 1, announced: 1), now: now)
    state.endRound(.pull)
    #expect(state.shown.isPulling && state.shown.lastSynced == nil)
    state.take(.pullFinished(localUserID: user, commits: 1, announced: 1), now: now)
    state.endRound(.pull)
    #expect(!state.shown.isPulling && state.shown.lastSynced == now)
  }

  @Test("a round that throws ends what it began")
  func thrownRound() {
    var state = EngineState()
    state.beginRound(.push)
    state.take(.pushStarted(localUserID: user), now: now)
    #expect(state.shown.isPushing)
    state.endRound(.push)
    #expect(!state.shown.isPushing)
  }
}
