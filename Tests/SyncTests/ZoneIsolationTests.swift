import Foundation
import Testing
import ZDCProtocol
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Bad answers of one zone, while the others are fine.
@Suite(.timeLimit(.minutes(20))) struct ZoneIsolationTests {
  enum Answer: String, Sendable, CaseIterable {
    case gone, json, empty, html, notFound

    private var parts: (status: Int, type: String?, body: String) {
      switch self {
      case .gone: (410, "application/json", #"{"code":"gone","message":"m","retryable":false}"#)
      case .json: (200, "application/json", "{}")
      case .empty: (204, nil, "")
      case .html: (200, "text/html", "<html>")
      case .notFound: (404, "application/json", #"{"code":"notFound","message":"m","retryable":false}"#)
      }
    }

    /// Returns a lie in place of each page of one zone's log.
    func lie(about zone: ZoneID) -> Lie {
      Lie { answer in
        guard answer.route.pattern == Routes.zoneCommits, answer.path.contains(zone.root.text) else {
          return false
        }
        let (status, type, body) = parts
        answer.status = status
        answer.headers = type.map { ["content-type": $0] } ?? [:]
        answer.body = Array(body.utf8)
        return true
      }
    }
  }

  private static func createInPrefs(_ device: TestDevice, _ name: String) async throws {
    try await device.write { _, cloud in
      _ = try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: [name], trunk: .prefs))
    }
  }

  /// Makes the server lie to B about home, after `prepare`, until `body` has run. Then B's home must become `tree`.
  private static func lying(
    _ answer: Answer, tree: String,
    after prepare: @escaping @Sendable (_ a: TestDevice, _ b: TestDevice) async throws -> Void,
    _ body: @escaping @Sendable (_ b: TestDevice) async throws -> Void
  ) async throws {
    try await TestWorld.run { world in
      let hostile = HostileServer(world.server)
      let a = try await world.device("A")
      let b = try await TestDevice("B", server: world.server, clock: world.clock, through: hostile)
      try await b.login(words: world.words() ?? [])
      try await b.sync()
      try await prepare(a, b)
      let home = try ZoneID(
        trunkOf: .derive(
          owner: #require(UserID(text: b.localUserID)), trunk: .home, appTreeID: TestDevice.treeID))
      hostile.tell(answer.lie(about: home))
      try await body(b)
      hostile.stopTampering()
      try await b.sync()
      #expect(try await b.tree(versions: false) == tree)
      try await b.close()
      try await world.settle(a)
    }
  }

  @Test("F7: home answers badly, prefs is pulled and pushed", arguments: Answer.allCases)
  func otherZones_arePulledAndPushed(_ answer: Answer) async throws {
    try await Self.lying(answer, tree: "/f  ?") { a, b in
      try await a.create("/f")
      try await Self.createInPrefs(a, "theirs")
      try await a.sync()
      try await Self.createInPrefs(b, "mine")
    } _: { b in
      await #expect(throws: (any Error).self) { try await b.sync() }
      let queued = try await b.queueCount()
      #expect(queued == 0)
      #expect(b.recorder.lines.contains { $0.hasPrefix("new") && $0.contains("theirs") }, "\(b.recorder.lines)")
    }
  }

  @Test("F7: the same while the engines run", arguments: Answer.allCases)
  func otherZones_arePushed_whileTheEnginesRun(_ answer: Answer) async throws {
    try await Self.lying(answer, tree: "/f  ?") { a, _ in
      // Home has changed, so that the first event makes the engine ask for it.
      try await a.create("/f")
      try await Self.createInPrefs(a, "theirs")
      try await a.sync()
    } _: { b in
      let engines = try b.runInBackground()
      try await Self.createInPrefs(b, "mine")
      try await b.waitUntilQueueIsEmpty()
      engines.cancel()
      await engines.value
    }
  }

  /// Gives home and prefs a change of each device. The first page that B requests does not arrive before the clock
  /// moves.
  private static func withSlowZone(
    inBackground: Bool, _ body: @escaping @Sendable (_ b: TestDevice) async throws -> Void
  ) async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await b.sync()
      try await a.create("/f")
      try await createInPrefs(a, "theirs")
      try await a.sync()
      try await b.create("/g")
      try await createInPrefs(b, "mine")
      try await b.relaunch()
      b.network.fail(.delay(.seconds(1)), "GET", Routes.zoneCommits)
      let syncing =
        try inBackground ? b.runInBackground() : Task { _ = await #expect(throws: Never.self) { try await b.sync() } }
      try await body(b)
      await world.clock.waitForSleepers()
      world.clock.advance(by: .seconds(1))
      for line in ["new /f", "new /theirs"] { await b.recorder.wait(for: line) }
      try await b.waitUntilQueueIsEmpty()
      if inBackground { syncing.cancel() }
      await syncing.value
    }
  }

  private static func newNodes(_ device: TestDevice) -> Int { device.recorder.lines.count { $0.hasPrefix("new ") } }

  @Test("a zone whose server does not answer delays no other while the engines run")
  func slowZone_delaysNoOther() async throws {
    try await Self.withSlowZone(inBackground: true) { b in
      let queued = try await b.queueCount()
      while Self.newNodes(b) == 0 { await Task.yield() }
      while try await b.queueCount() == queued { await Task.yield() }
      #expect(Self.newNodes(b) == 1)
    }
  }

  @Test("zones are pulled side by side when a sync is asked for")
  func slowZone_isPulledBesideTheOthers() async throws {
    try await Self.withSlowZone(inBackground: false) { b in
      while Self.newNodes(b) == 0 { await Task.yield() }
    }
  }
}
