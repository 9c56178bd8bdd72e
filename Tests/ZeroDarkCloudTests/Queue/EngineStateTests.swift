import Foundation
import Testing

@testable import ZeroDarkCloud

@Suite struct EngineStateTests {
  private let user = "user"
  private let now = Date(ms: 1_000)

  /// => a round that leaves a tree out has reached the server, and has not brought all
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
}
