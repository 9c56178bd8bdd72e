import Testing
import ZDCProtocol
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// The order in which a fresh device announces existing nodes.
struct PullOrderTests {
  /// - /old and /old/deep are created first, /new last
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

  /// - 1,200 nodes, and below the newest of them one more, which comes last because it is deeper
  /// => the app prefers that branch when it sees it, and the rest of the same pull obeys
  @Test func preferenceSetDuringAPull_changesItsOrder() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.write { _, cloud in
        for number in 0..<1_200 { try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["\(number)"])) }
      }
      try await a.sync()
      try await a.create("/screen")
      try await a.create("/screen/row")
      try await a.sync()
      let b = try await world.device("B")
      b.recorder.on(.new, "/screen") { node, _ in b.recorder.preferredNodeIDs = [node.uuid] }
      try await b.pull()
      let lines = b.recorder.take()
      #expect(lines.count == 1_202)
      #expect(try #require(lines.firstIndex(of: "new /screen/row")) < 1_201)
    }
  }

  /// Reduces the log to pages of two commits each.
  private static let smallPages = Lie { answer in
    guard answer.route.pattern == Routes.zoneCommits, answer.isBundle else { return false }
    var seen = 0
    let kept = answer.items.filter { item in
      if item.kind == .commit { seen += 1 }
      return seen < 3 && item.kind != .record
    }
    guard seen > 2 else { return false }
    answer.items = kept
    answer.headers[WireHeaders.more] = "1"
    return true
  }

  private static let history = [
    "mk /old", "mk /old/deep", "mv /old /older", "mk /new", "mv /older/deep /new/deep", "mv /new /newest",
  ]

  private static func write(_ a: TestDevice) async throws {
    for step in history.map({ $0.split(separator: " ").map(String.init) }) {
      if step[0] == "mk" { try await a.create(step[1]) } else { try await a.move(step[1], to: step[2]) }
      try await a.sync()
    }
  }

  @Test(
    "Q17: a first pull of many pages shows nodes as they are now, shallow and recent first", arguments: [false, true])
  func firstPullIsInOrder_howeverManyPagesItHas(isCutOff: Bool) async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await Self.write(a)
      let hostile = HostileServer(world.server)
      hostile.tell(Self.smallPages)
      let b = try await TestDevice("B", server: world.server, clock: world.clock, through: hostile)
      try await b.login(words: try #require(world.words()))
      if isCutOff {
        // The second page. Only one of the user's zones has one.
        b.network.fail(.loseRequest, "GET", Routes.zoneCommits, query: "after=")
        await #expect(throws: TransportError.self) { try await b.pull() }
        #expect(b.recorder.take() == [])
        try await b.relaunch()
      }
      try await b.pull()
      #expect(hostile.liesTold > 2)
      #expect(b.recorder.take() == ["new /newest", "new /older", "new /newest/deep"])
      try await b.close()
    }
  }
}
