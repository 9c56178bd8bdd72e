import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// In which order a fresh device is told of what is there.
struct PullOrderTests {
  /// - /old and /old/deep are there first, /new last
  /// => parents before children, shallow before deep, recent before old
  @Test func parentBeforeChild_shallowBeforeDeep_recentFirst() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      for path in ["/old", "/old/deep", "/old/deep/deeper", "/new", "/new/deep"] {
        try await a.create(path)
        try await a.sync()
      }
      let b = try await world.device("B")
      try await b.pull()
      #expect(
        b.recorder.take() == ["new /new", "new /old", "new /new/deep", "new /old/deep", "new /old/deep/deeper"])
    }
  }

  @Test func preferredBranch_overtakesShallowerNodes() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/deep")
      try await a.create("/deep/screen")
      try await world.settle(a, b)
      _ = b.recorder.take()
      try await a.create("/deep/screen/row")
      try await a.create("/deep/beside")
      try await a.sync()
      b.recorder.preferredNodeIDs = [try await b.node("/deep/screen").uuid]
      try await b.pull()
      #expect(b.recorder.take() == ["new /deep/screen/row", "new /deep/beside"])
    }
  }
}
