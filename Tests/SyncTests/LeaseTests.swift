import Synchronization
import Testing
import ZDCSync
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Two instances of the framework on one database represent two processes: one syncs, the other queues and reads.
@Suite(.timeLimit(.minutes(20))) struct LeaseTests {
  /// Returns another process of the same device.
  private static func second(_ world: TestWorld, of device: TestDevice) async throws -> TestDevice {
    try await TestDevice(
      "second", reopening: device.folder, databaseKey: device.databaseKey, serverURL: world.server.url,
      clock: world.clock)
  }

  private static func online(_ updates: AsyncStream<ZDCSyncStatus>) async {
    for await update in updates {
      if case .online = update { return }
    }
  }

  private static func code(_ body: () async throws -> Void) async -> ZDCError.Code? {
    do { try await body() } catch { return (error as? ZDCError)?.code }
    return nil
  }

  @Test func changesQueuedByOneProcess_areSentByTheSyncingProcess() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await b.sync()
      let second = try await Self.second(world, of: a)
      try await a.whileRunning {
        try await second.create("/f", "1")
        await a.recorder.wait(for: "pushed /f")
        #expect(try second.syncManager.isSyncedElsewhere())
        #expect(await Self.code { try await second.sync() } == .syncedElsewhere)
        #expect(await Self.code { try await second.pull() } == .syncedElsewhere)
        #expect(await Self.code { try await second.push() } == .syncedElsewhere)
        try await a.waitUntilQueueIsEmpty()
      }
      #expect(second.network.requests == [])
      #expect(try !second.syncManager.isSyncedElsewhere())
      try await second.close()
      try await world.settle(b)
      #expect(try await b.tree() == "/f  v1  \"1\"")
    }
  }

  /// - both run; the one that syncs ends
  /// => the other takes over, with everything that was queued in the meantime
  @Test func theOtherProcess_takesOver() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await b.sync()
      let second = try await Self.second(world, of: a)
      let first = try a.syncManager.statusUpdates
      let next = try second.syncManager.statusUpdates
      let running = try a.runInBackground()
      await Self.online(first)
      let waiting = try second.runInBackground()
      try await second.create("/f", "1")
      await a.recorder.wait(for: "pushed /f")
      #expect(try second.syncManager.isSyncedElsewhere())
      running.cancel()
      await running.value
      await Self.online(next)
      try await b.create("/g", "2")
      try await b.sync()
      await second.recorder.wait(for: "new /g")
      try await second.create("/h", "3")
      await second.recorder.wait(for: "pushed /h")
      try await second.waitUntilQueueIsEmpty()
      waiting.cancel()
      await waiting.value
      try await second.close()
    }
  }

  /// - another process has synced in the meantime, and several callers come at the same time
  /// => each of them finds the engine as it is after its reset
  @Test func concurrentCallers_waitForTheReset() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let second = try await Self.second(world, of: a)
      try await a.sync()
      try await second.sync()
      let manager = try a.syncManager
      let engine = try await manager.engine(for: a.localUserID)
      #expect(await !engine.knownWorkers.isEmpty)
      try await withThrowingTaskGroup(of: Int?.self) { group in
        for _ in 0..<20 {
          group.addTask { try await manager.whileSyncing { await engine.knownWorkers.count } }
        }
        for try await workers in group { #expect(workers == 0) }
      }
      try await second.close()
    }
  }

  @Test("M9: a process does not wait for ever for the one that syncs, whose server is away")
  func waitingForTheOtherProcess_hasABound() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let second = try await Self.second(world, of: a)
      let passed = Mutex(Duration.zero)
      let start = ContinuousClock.now
      var clock = EngineClock()
      clock.now = { start.advanced(by: passed.withLock { $0 }) }
      clock.sleep = { pause in passed.withLock { $0 += pause } }
      second.engineClock = clock
      try await second.relaunch()
      try await a.whileRunning {
        a.network.isOffline = true
        try await second.create("/f", "1")
        let queued = HolderProgress(left: ["create ready"], failures: 0, isSending: false)
        #expect(try await !second.syncManager.syncOrWait(for: { queued }, { Issue.record("it has no lease") }))
        #expect(passed.withLock { $0 } < .seconds(16))
        let sending = HolderProgress(left: ["create inFlight"], failures: 0, isSending: true)
        #expect(try await !second.syncManager.syncOrWait(for: { sending }, { Issue.record("it has no lease") }))
        #expect(passed.withLock { $0 } < .seconds(137))
        // A failure of the process that syncs ends the wait sooner; progress does not.
        let steps = Mutex(0)
        #expect(
          try await !second.syncManager.syncOrWait(
            for: {
              let step = steps.withLock { steps in
                steps += 1
                return steps
              }
              return HolderProgress(left: ["\(step)"], failures: step < 1_000 ? 0 : 1, isSending: false)
            }, {}))
        #expect(steps.withLock { $0 } == 1_000)
        #expect(try await second.queueCount() > 0)
        a.network.isOffline = false
      }
      try await second.close()
      try await a.sync()
    }
  }

  /// The process that does not sync sees what the other one pulls.
  @Test func observationsOfTheOtherProcess_refresh() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await b.sync()
      let second = try await Self.second(world, of: a)
      try await a.whileRunning {
        let running = try second.runInBackground()
        let user = try second.localUserID
        let zdc = try second.zdc
        let names = try second.database.observe { transaction in
          let cloud = zdc.cloudTransaction(transaction, forLocalUserID: user)
          return cloud?.node(path: ZDCTreesystemPath(pathComponents: ["f"])) != nil
        }
        try await b.create("/f", "1")
        try await b.sync()
        for try await isThere in names where isThere { break }
        running.cancel()
        await running.value
      }
      try await second.close()
    }
  }

  /// - the process that does not sync pauses pushes, queues a change, and ends
  /// => the one that syncs sends nothing, also after a relaunch, until another process resumes pushes
  @Test func pauseOfOneProcess_holdsInAllOfThem_untilOneOfThemResumes() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await b.sync()
      let (second, user) = (try await Self.second(world, of: a), try a.localUserID)
      let updates = try a.syncManager.statusUpdates
      try await a.whileRunning {
        try await second.syncManager.pausePush(forLocalUserID: user)
        try await second.create("/f", "1")
        for await update in updates { if case .pushPaused = update { break } }
        // Changes from other devices still arrive.
        try await b.create("/g", "2")
        try await b.sync()
        await a.recorder.wait(for: "new /g")
      }
      let explained = try #require(try await a.explain("/f"))
      #expect(explained.operations.map(\.reason) == [.paused, .paused])
      try await second.close()
      try await a.relaunch()
      try await a.sync()
      #expect(try await a.queueCount() == 2)
      let third = try await Self.second(world, of: a)
      #expect(try await third.syncManager.isPushPaused(forLocalUserID: user))
      try await a.whileRunning {
        try await third.syncManager.resumePush(forLocalUserID: user)
        await a.recorder.wait(for: "pushed /f")
      }
      try await third.close()
      #expect(third.network.requests == [])
      try await world.settle(a, b)
    }
  }

  /// - two processes sync in turns, never at the same time
  /// => each drops what it had cached; nothing is lost or duplicated
  @Test func alternatingProcesses_loseAndDuplicateNothing() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await b.sync()
      let second = try await Self.second(world, of: a)
      for turn in 0..<3 {
        try await a.create("/a\(turn)", TestContent(data: EndToEndTests.bytes(70_000, seed: UInt8(turn))))
        // The upload is in progress when the other process continues.
        try await a.push()
        try await second.create("/s\(turn)", "1")
        try await second.sync()
        try await a.sync()
      }
      try await second.close()
      try await world.settle(a, b)
      #expect(try await b.tree(versions: false).split(separator: "\n").count == 6)
    }
  }
}
