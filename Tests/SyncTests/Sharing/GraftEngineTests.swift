import Testing
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Grafts on a device whose engine runs.
struct GraftEngineTests {
  /// Waits without advancing the engine's clock: none of its pauses ends.
  private func waits(until isTrue: () async throws -> Bool) async throws -> Bool {
    for _ in 0..<5_000 {
      if try await isTrue() { return true }
      try await Task.sleep(for: .milliseconds(20))
    }
    return false
  }

  @Test("a branch that the guest has left is grafted again, and read at once")
  func leftAndGraftedAgain() async throws {
    try await TestWorld.run { world in
      let invited = try await GraftTests.Invited(world)
      let (alice, bob) = (invited.alice, invited.bob)
      bob.engineClock = world.clock.engineClock
      try await bob.relaunch()
      let run = try bob.runInBackground()
      defer { run.cancel() }
      for round in 0..<3 {
        if round > 0 {
          try await alice.share("/Groceries", with: bob)
          try await alice.sync()
        }
        try await bob.graft("/Groceries", try await alice.invite("/Groceries"), from: alice)
        #expect(
          try await waits { try await bob.branch("/Groceries")?.contains("/D") ?? false }, "round \(round)")
        try await bob.delete("/Groceries")
        #expect(
          try await waits {
            try await alice.sync()
            return try await alice.members(bob, of: "/Groceries").isEmpty
          }, "round \(round)")
      }
      run.cancel()
      await run.value
    }
  }

  @Test("K-14: a graft that the server denies stops nothing, is listed, and is read once its owner gives access")
  func accessAfterTheInvitation() async throws {
    try await TestWorld.run { world in
      let invited = try await GraftTests.Invited(world)
      let (alice, carol) = (invited.alice, invited.people.carol)
      try await carol.graft("/list", invited.invite, from: alice)
      try await carol.create("/own", "1")
      let user = try carol.localUserID
      for _ in 0..<2 {
        world.clock.advance(by: .seconds(3_600))
        let summary = try await carol.sync()
        #expect(summary.unreadableNodes == 1 && !summary.isComplete)
        let state = try await carol.syncManager.syncState(forLocalUserID: user)
        #expect(state.unreadableNodes == 1 && state.lastError == nil && state.lastSynced == world.clock.now)
        let unread = try await carol.syncManager.unreadableNodes(localUserID: try carol.localUserID)
        #expect(unread.map(\.code) == [.inviteNotAuthorized])
        let graft = try await carol.node("/list").uuid
        #expect(unread.map(\.nodeID) == [graft])
        #expect(unread.map(\.cloudID) == [invited.invite.cloudID])
      }
      #expect(try await carol.queueCount() == 0)
      #expect(try await carol.syncManager.securityEvents(localUserID: user).isEmpty)

      carol.engineClock = world.clock.engineClock
      try await carol.relaunch()
      let run = try carol.runInBackground()
      defer { run.cancel() }
      try await alice.share("/Groceries", with: carol)
      try await alice.sync()
      #expect(
        try await waits {
          world.clock.advance(by: .seconds(1))
          return try await carol.branch("/list")?.contains("/D") ?? false
        })
      #expect(try await carol.syncManager.unreadableNodes(localUserID: user).isEmpty)
      run.cancel()
      await run.value
    }
  }
}
