import Foundation
import GRDB
import Synchronization
import Testing
import ZDCProtocol
import ZDCSync
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Event streams that cost more than they deliver, under a clock that the test steps.
@Suite(.timeLimit(.minutes(20))) struct EventStreamBoundsTests {
  /// A, and B, which reaches the server through a lying proxy and whose engines run on a stepped clock.
  private struct Setting {
    let hostile: HostileServer
    let time = SteppedTime()
    let a: TestDevice
    let b: TestDevice

    init(_ world: TestWorld) async throws {
      hostile = HostileServer(world.server)
      a = try await world.device("A")
      try await a.sync()
      b = try await TestDevice("B", server: world.server, clock: world.clock, through: hostile)
      try await b.login(words: world.words() ?? [])
      try await b.sync()
      b.engineClock = time.clock
      try await b.relaunch()
      b.network.resetCounts()
    }

    /// Runs B's engines while `body` runs.
    func run(_ body: () async throws -> Void) async throws {
      let engines = try b.runInBackground()
      do { try await body() } catch {
        engines.cancel()
        await engines.value
        throw error
      }
      engines.cancel()
      await engines.value
      try await b.close()
    }

    /// Makes each stream deliver these events and end.
    func tellStream(_ events: String) {
      hostile.tell(
        .fabricate("GET", Routes.events) { route, request in
          ServedAnswer(
            to: route, request: request, status: 200, headers: ["content-type": "text/event-stream"],
            body: Array(events.utf8))
        })
    }
  }

  private static func event(_ name: String, _ value: some Encodable) throws -> String {
    "event: \(name)\ndata: \(String(decoding: try JSONEncoder().encode(value), as: UTF8.self))\n\n"
  }

  private static func offline(_ updates: AsyncStream<ZDCSyncStatus>) async {
    for await update in updates { if case .offline = update { return } }
  }

  @Test("F9: a stream that ends after a valid first event is opened again after pauses that grow")
  func streamThatEnds_isOpenedAgainAfterGrowingPauses() async throws {
    try await TestWorld.run { world in
      let setting = try await Setting(world)
      setting.tellStream(try Self.event("zones", try await setting.b.api.zones(since: nil)))
      try await setting.run {
        for count in 1...9 {
          await setting.time.waitForPauses(count, besides: .seconds(20))
          await setting.time.step()
        }
        await setting.time.waitForPauses(10, besides: .seconds(20))
        #expect(setting.b.network.count("GET", Routes.events) == 10)
      }
      let pauses = setting.time.pauses.filter { $0 != .seconds(20) }
      #expect(zip(pauses, pauses.dropFirst()).allSatisfy { $0 <= $1 }, "\(pauses)")
      #expect(pauses.last.map { $0 > .seconds(50) && $0 <= .seconds(60) } == true, "\(pauses)")
    }
  }

  @Test("F9: thousands of events with heads and pages that are not there cost a bounded number of requests")
  func eventsWithoutCommits_costBoundedRequests() async throws {
    try await TestWorld.run { world in
      let setting = try await Setting(world)
      let list = try await setting.b.api.zones(since: nil)
      var events = try Self.event("zones", list)
      for number in 1...1_000 {
        for zone in list.zones {
          var status = zone
          status.seq += UInt64(1 + number % 7)
          status.head = .zero
          let page = number % 2 == 0 ? nil : WireBytes([UInt8](repeating: 1, count: 7))
          events += try Self.event("head", HeadEvent(status: status, page: page))
        }
      }
      setting.tellStream(events + (try Self.event("zones", list)))
      let updates = try setting.b.syncManager.statusUpdates
      try await setting.run { await Self.offline(updates) }
      #expect(setting.b.network.count("GET", Routes.events) == 1)
      #expect(setting.b.network.requests.count < 40, "\(setting.b.network.counts())")
    }
  }

  /// Returns a lie that alters the text of each event of a kind.
  private static func events(_ name: String, _ change: @escaping @Sendable (String) -> String) -> Lie {
    .events { $0.map { $0.contains("event: \(name)\n") ? change($0) : $0 } }
  }

  /// Returns the event without the page that would spare the pull.
  private static func withoutPage(_ text: String) throws -> String {
    let data = text.split(separator: "\n").first { $0.hasPrefix("data: ") }?.dropFirst("data: ".count) ?? ""
    var head = try JSONDecoder().decode(HeadEvent.self, from: Data(data.utf8))
    head.page = nil
    return try event("head", head)
  }

  /// Makes A create three nodes, and waits until B has received the events.
  private static func threeEvents(_ setting: Setting) async throws {
    let (a, b) = (setting.a, setting.b)
    for number in 1...3 {
      try await a.create("/\(number)")
      try await a.sync()
    }
    // Events are handled in order: once this one is, so are those before it.
    try await a.write { _, cloud in
      _ = try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["last"], trunk: .prefs))
    }
    try await a.sync()
    await b.recorder.wait(for: "new /last")
  }

  /// Adds an event without new commits after the first event, and removes the pages from the zone's events.
  ///
  /// - Returns: A predicate for requests of the zone's log.
  private static func disturbEvents(_ setting: Setting) async throws -> @Sendable (RecordedRequest) -> Bool {
    var home = try #require(try await setting.b.api.zones(since: nil).zones.first)
    let root = home.zone.root.text
    (home.seq, home.head) = (home.seq + 7, .zero)
    let nothing = try event("head", HeadEvent(status: home, page: nil))
    setting.hostile.tell(events("zones") { $0 + nothing })
    setting.hostile.tell(events("head") { $0.contains(root) ? (try? withoutPage($0)) ?? $0 : $0 })
    return { $0.route.pattern == Routes.zoneCommits && $0.path.contains(root) }
  }

  @Test("F9: events that arrive in a zone's pause are one pull at its end")
  func eventsInAPause_areOnePull() async throws {
    try await TestWorld.run { world in
      let setting = try await Setting(world)
      let (b, time) = (setting.b, setting.time)
      let isOfHome = try await Self.disturbEvents(setting)
      try await setting.run {
        await time.waitForPauses(1, besides: .seconds(20))
        b.network.resetCounts()
        try await Self.threeEvents(setting)
        #expect(!b.network.requests.contains(where: isOfHome))
        await time.step()
        for number in 1...3 { await b.recorder.wait(for: "new /\(number)") }
        #expect(b.network.requests.count(where: isOfHome) == 1)
      }
      try await world.settle(setting.a)
    }
  }

  @Test("F9: the pull at the end of a pause is tried again if the network is away for a moment")
  func pullAfterAPause_isTriedAgain() async throws {
    try await TestWorld.run { world in
      let setting = try await Setting(world)
      let (b, time) = (setting.b, setting.time)
      _ = try await Self.disturbEvents(setting)
      try await setting.run {
        await time.waitForPauses(1, besides: .seconds(20))
        try await Self.threeEvents(setting)
        b.network.fail(.before { throw TransportError(.offline) }, "GET", Routes.zoneCommits)
        await time.step()
        await time.waitForPauses(2, besides: .seconds(20))
        await time.step(sleepers: 2)
        await b.recorder.wait(for: "new /3")
      }
      #expect(b.network.hasStruck)
      try await world.settle(setting.a)
    }
  }

  @Test("M16: without a first event the engine asks at intervals, and says why")
  func withoutEvents_theEngineAsks() async throws {
    try await TestWorld.run { world in
      let setting = try await Setting(world)
      let (a, b, time) = (setting.a, setting.b, setting.time)
      setting.hostile.tell(.events { _ in [] })
      let updates = try b.syncManager.statusUpdates
      try await setting.run {
        try await a.create("/1")
        try await a.sync()
        await time.step()
        await b.recorder.wait(for: "new /1")
        for await update in updates { if case .eventsMissing = update { break } }
        let state = try await b.syncManager.syncState(forLocalUserID: b.localUserID)
        #expect(state.isPolling && state.connection == .online)
        // Changes that are queued here are pushed as well.
        try await b.create("/mine", "b")
        await b.recorder.wait(for: "pushed /mine")
        try await a.create("/2")
        try await a.sync()
        await time.step()
        await b.recorder.wait(for: "new /2")
        #expect(time.now == .seconds(50))
      }
      try await world.settle(a)
    }
  }

  @Test(
    "while the stream is refused, and other requests are answered, the engine asks at intervals, and says why",
    arguments: [
      (429, #"{"code":"tooManyRequests","message":"m","retryable":true}"#), (502, "<html>Bad Gateway</html>"),
    ])
  func refusedStream_theEngineAsks(status: Int, body: String) async throws {
    try await TestWorld.run { world in
      let setting = try await Setting(world)
      let (a, b, time) = (setting.a, setting.b, setting.time)
      setting.hostile.tell(.fabricate("GET", Routes.events, status: status, json: body))
      let updates = try b.syncManager.statusUpdates
      try await setting.run {
        for await update in updates { if case .eventsMissing = update { break } }
        try await b.create("/mine", "b")
        await b.recorder.wait(for: "pushed /mine")
        try await a.create("/1")
        try await a.sync()
        for count in 1...8 {
          await time.waitForPauses(count, besides: .seconds(20))
          await time.step()
        }
        await time.waitForPauses(9, besides: .seconds(20))
        await b.recorder.wait(for: "new /1")
        #expect(time.now > .seconds(60) && time.now < .seconds(65))
        #expect(b.network.count("GET", Routes.zones) == 3)
        let state = try await b.syncManager.syncState(forLocalUserID: b.localUserID)
        #expect(state.isPolling && state.connection == .online)
      }
      try await world.settle(a)
    }
  }

  /// Waits until the device is online and its pulls have ended.
  private static func waitForPulls(of device: TestDevice, _ updates: AsyncStream<ZDCSyncStatus>) async throws {
    for await update in updates { if case .online = update { break } }
    while try device.syncManager.isPullingChanges(forLocalUserID: device.localUserID) { await Task.yield() }
  }

  /// Returns whether a zone waits for a pull.
  private static func needsPull(_ device: TestDevice) async throws -> Bool {
    let engine = try await device.syncManager.engine(for: device.localUserID)
    for worker in await engine.knownWorkers where await worker.state.needsPull { return true }
    return false
  }

  /// - B's push is on its way, and the app aborts B's pulls while the event of A's change waits for the push
  /// => a minute later, the change is pulled
  @Test func abortedEventThatWaitsForAPush_isPulledLater() async throws {
    try await TestWorld.run { world in
      let setting = try await Setting(world)
      let (a, b, time) = (setting.a, setting.b, setting.time)
      let (manager, user) = (try b.syncManager, try b.localUserID)
      setting.hostile.tell(Self.events("head") { (try? Self.withoutPage($0)) ?? $0 })
      let (arrived, arrive) = AsyncStream.makeStream(of: Void.self)
      let (released, release) = AsyncStream.makeStream(of: Void.self)
      let hold: @Sendable () async -> Void = {
        arrive.yield()
        for await _ in released { return }
      }
      let updates = manager.statusUpdates
      try await setting.run {
        try await Self.waitForPulls(of: b, updates)
        b.network.fail(.before(hold), "POST", Routes.commits)
        b.network.fail(.answer(status: 503, code: "shuttingDown"), "POST", Routes.commits)
        try await b.create("/mine", "b")
        for await _ in arrived { break }
        try await manager.pausePush(forLocalUserID: user)
        try await a.create("/x")
        try await a.sync()
        while !manager.isPullingChanges(forLocalUserID: user) { await Task.yield() }
        // The round is registered in the same job of the engine's executor that shows it.
        _ = try await manager.engine(for: user).knownWorkers
        await manager.abortPull(forLocalUserID: user)
        release.yield()
        while manager.isPullingChanges(forLocalUserID: user) { await Task.yield() }
        try #require(try await Self.needsPull(b))
        while time.now < .seconds(60) { await time.step() }
        await b.recorder.wait(for: "new /x")
        try await manager.resumePush(forLocalUserID: user)
        await b.recorder.wait(for: "pushed /mine")
      }
      try await world.settle(a)
    }
  }

  /// - the database refuses the transaction of an event
  /// => the change is pulled after a pause
  @Test func eventThatTheDatabaseRefuses_isPulledLater() async throws {
    try await TestWorld.run { world in
      let setting = try await Setting(world)
      let (a, b, time) = (setting.a, setting.b, setting.time)
      let updates = try b.syncManager.statusUpdates
      try await setting.run {
        try await Self.waitForPulls(of: b, updates)
        let next = try b.syncManager.statusUpdates
        try await Self.execute(
          "CREATE TRIGGER full BEFORE INSERT ON zdc_log BEGIN SELECT RAISE(ABORT, 'by test'); END", b)
        try await a.create("/x")
        try await a.sync()
        for await update in next { if case .pullFinished = update { break } }
        try await Self.execute("DROP TRIGGER full", b)
        try #require(try await Self.needsPull(b))
        await time.step(sleepers: 2)
        await b.recorder.wait(for: "new /x")
      }
      try await world.settle(a)
    }
  }

  @Test("F4: answers that ask for a pause of 2^62 ms hold the stream and the queue for five minutes at most")
  func pauses_haveACap() async throws {
    try await TestWorld.run { world in
      let setting = try await Setting(world)
      let (b, time) = (setting.b, setting.time)
      let json = #"{"code":"shuttingDown","message":"m","retryable":true,"retryAfterMs":4611686018427387904}"#
      setting.hostile.tell(.fabricate("GET", Routes.events, status: 503, json: json), times: 1)
      setting.hostile.tell(.fabricate("POST", Routes.commits, status: 503, json: json), times: 1)
      try await b.create("/f", "1")
      try await setting.run {
        // A poll takes the place of the stream, so the zone's push and its pause begin at the same time as the stream's
        // pause. The two end first, and the watch of the next stream for its first event later.
        await time.waitForPauses(2, besides: .seconds(20))
        await time.step(sleepers: 2)
        await time.step()
        await b.recorder.wait(for: "pushed /f")
      }
      #expect(time.pauses.max() == .seconds(300), "\(time.pauses)")
    }
  }

  @Test("C10: an engine that fails at launch is started again")
  func engineThatFailsAtLaunch_isStartedAgain() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.sync()
      let failures = Mutex(0)
      var clock = EngineClock()
      clock.sleep = { duration in
        let isFirst = failures.withLock { count in
          count += 1
          return count == 1
        }
        guard isFirst else { return try await Task.sleep(for: duration) }
        try await Self.rename("hidden", to: "zdc_local_user", a)
      }
      a.engineClock = clock
      try await a.relaunch()
      try await a.create("/f", "1")
      try await Self.rename("zdc_local_user", to: "hidden", a)
      try await a.whileRunning { await a.recorder.wait(for: "pushed /f") }
      #expect(failures.withLock { $0 } >= 1)
    }
  }

  private static func rename(_ table: String, to name: String, _ device: TestDevice) async throws {
    try await execute("ALTER TABLE \(table) RENAME TO \(name)", device)
  }

  private static func execute(_ sql: String, _ device: TestDevice) async throws {
    try await device.database.write { transaction in try transaction.database.execute(sql: sql) }
  }
}
