import Foundation
import GRDB
import Observation
import Testing
import ZDCProtocol
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// The state of a sync, as a value that can be followed, and as an observable object.
@Suite(.timeLimit(.minutes(20))) struct SyncStateTests {
  private struct AppError: Error {}

  private func state(_ device: TestDevice) async throws -> ZDCSyncState {
    try await device.syncManager.syncState(forLocalUserID: try device.localUserID)
  }

  @Test func stateFollowsTheStory() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      #expect(try await state(a) == ZDCSyncState())
      try await a.create("/f", "1")
      #expect(try await state(a).pending.total == 2)

      a.network.isOffline = true
      await #expect(throws: TransportError.self) { try await a.sync() }
      var now = try await state(a)
      #expect(now.isOffline && now.lastError?.code == "offline" && now.lastSynced == nil && !now.isSyncing)

      a.network.isOffline = false
      a.recorder.on(.data) { _, _ in throw AppError() }
      try await a.sync()
      now = try await state(a)
      #expect(now.connection == .online && now.lastError?.code == "AppError" && now.pending.waitingForApp == 1)
      #expect(now.lastSynced == world.clock.now)

      try await a.edit("/f", "2")
      try await a.sync()
      now = try await state(a)
      #expect(now.pending.total == 0 && now.lastError == nil)

      try await a.syncManager.pausePush(forLocalUserID: try a.localUserID)
      #expect(try await state(a).isPaused)
      try await a.syncManager.resumePush(forLocalUserID: try a.localUserID)
      #expect(try await state(a).isPaused == false)
    }
  }

  @Test("online comes when the first pull has ended, so that an app can write into its tree")
  func online_comesAfterTheFirstPull() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      for number in 0..<20 { try await a.create("/\(number)", "1") }
      try await a.sync()
      let b = try await world.device("B")
      let updates = try b.syncManager.statusUpdates
      let engines = try b.runInBackground()
      for await update in updates {
        if case .online = update { break }
      }
      #expect(b.recorder.lines.count { $0.hasPrefix("new ") } == 20)
      engines.cancel()
      await engines.value
    }
  }

  @Test func lostAnswer_isInFlight_andOneWithoutRoomIsFailing() async throws {
    try await TestWorld.run(quotaBytes: 6_000) { world in
      let a = try await world.device("A")
      a.network.fail(.loseResponse, "POST", "/v1/commits")
      try await a.create("/f", "1")
      await #expect(throws: TransportError.self) { try await a.sync() }
      #expect(try await state(a).pending.inFlight == 2)
      try await a.sync()
      for number in 1...8 { try await a.create("/n\(number)", String(repeating: "x", count: 1_000)) }
      try await a.sync()
      let now = try await state(a)
      #expect(now.pending.failing > 0 && now.pending.failing == now.pending.total)
      world.mayWait(a)
    }
  }

  @Test func streamOfStates_beginsWithNow_showsWorkAndItsEnd_andEndsWithTheFramework() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let states = try a.syncManager.syncStates(forLocalUserID: try a.localUserID)
      var following = states.makeAsyncIterator()
      #expect(try await following.next() == ZDCSyncState())
      try await a.create("/f", "1")
      #expect(try await following.next()?.pending.total == 2)
      try await a.sync()
      while let state = try await following.next(), state.pending.total > 0 || state.isSyncing {}
      try await a.syncManager.pausePush(forLocalUserID: try a.localUserID)
      while let state = try await following.next(), !state.isPaused {}
      try await a.relaunch()
      while try await following.next() != nil {}
      var expected = ZDCSyncState()
      expected.isPaused = true
      expected.lastSynced = world.clock.now
      #expect(try await state(a) == expected, "these two outlive their process, the rest does not")
    }
  }

  /// - the server does not return a record that its log names
  /// => that round does not count as a sync, neither in this launch nor in the next one
  @Test func aRoundWithoutARecord_hasNotSynced() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      // One error for each tree.
      world.expectsSecurityErrors(Array(repeating: "objectMissing", count: 4), on: b)
      try await a.create("/f", "1")
      try await a.sync()
      b.network.fail(.answer(status: 410, code: "gone"), "POST", Routes.records, times: 100)
      try await b.pull()
      #expect(try await state(b).lastSynced == nil)
      try await b.relaunch()
      #expect(try await state(b).lastSynced == nil)
      b.network.restoreNetwork()
      try await b.pull()
      #expect(try await state(b).lastSynced == world.clock.now)
      try await b.relaunch()
      #expect(try await state(b).lastSynced == world.clock.now)
    }
  }

  @Test func frozenTree_isInTheState() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.create("/f", "1")
      try await a.sync()
      var states = try a.syncManager.syncStates(forLocalUserID: try a.localUserID).makeAsyncIterator()
      _ = try await states.next()
      try await Self.mark(a, "frozen = 'zoneForkDetected'")
      while let state = try await states.next(), state.frozenZones.isEmpty {}
      #expect(try await state(a).frozenZones.map(\.error) == [.zoneForkDetected])
      try await Self.mark(a, "frozen = NULL")
    }
  }

  /// - a tree is stalled or frozen, and nothing is queued
  /// => neither a sync nor an explanation reports that all is well
  @Test func stalledAndFrozenTrees_areInTheSummary_andInExplanations() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.create("/f", "1")
      #expect(try await a.sync().isComplete)
      #expect(try await a.explain("/f")?.isInSync == true)
      try await Self.mark(a, "doubt = 'commitChainBroken'")
      let stalled = try #require(try await a.explain("/f"))
      #expect(stalled.zoneStalled == "commitChainBroken" && !stalled.isInSync)
      try await Self.mark(a, "doubt = NULL, frozen = 'zoneForkDetected', isProven = 1")
      let summary = try await a.sync()
      #expect(summary.frozenZones.map(\.error) == [.zoneForkDetected] && !summary.isComplete)
      #expect(try await a.explain("/f")?.isInSync == false)
      try await Self.mark(a, "frozen = NULL")
    }
  }

  private static func mark(_ device: TestDevice, _ columns: String) async throws {
    try await device.write { transaction, _ in
      try transaction.database.execute(sql: "UPDATE zdc_zone SET \(columns) WHERE trunk = 1")
    }
  }

  @Test func unknownUser_hasNoState() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      var states = try a.syncManager.syncStates(forLocalUserID: "nobody").makeAsyncIterator()
      await #expect(throws: ZDCError.self) { _ = try await states.next() }
    }
  }

  // MARK: The observable object

  /// Returns once `condition` holds. Checks again whenever something that it read changes.
  @MainActor private func until(_ condition: @escaping @MainActor () -> Bool) async {
    while true {
      let (changes, change) = AsyncStream.makeStream(of: Void.self)
      if withObservationTracking(condition, onChange: { change.yield() }) { return }
      for await _ in changes { break }
    }
  }

  @MainActor @Test func observableObject_followsTheState() async throws {
    try await TestWorld.run { world in try await self.observe(try await world.device("A")) }
  }

  @MainActor private func observe(_ a: TestDevice) async throws {
    let model = ZDCSyncStatusModel(try a.syncManager, localUserID: try a.localUserID)
    try await a.create("/f", "1")
    await until { model.pending.total == 2 }
    #expect(model.lastSynced == nil && model.connection == .unknown)
    a.network.isOffline = true
    await #expect(throws: TransportError.self) { try await a.sync() }
    await until { model.isOffline && model.lastError?.code == "offline" && !model.isSyncing }
    a.network.isOffline = false
    try await a.sync()
    await until { !model.isOffline && model.pending.total == 0 && model.lastError == nil && !model.isSyncing }
    #expect(model.lastSynced == a.clock.now && model.frozenZones.isEmpty)
    try await a.syncManager.pausePush(forLocalUserID: try a.localUserID)
    await until { model.isPaused }
    try await a.relaunch()
    await until { !model.isFollowing }
  }

  @MainActor @Test func releasedObject_leavesNoObservation() async throws {
    try await TestWorld.run { world in try await self.release(try await world.device("A")) }
  }

  @MainActor private func release(_ a: TestDevice) async throws {
    let manager = try #require(try a.zdc.databaseManager)
    weak var released: ZDCSyncStatusModel?
    do {
      let model = ZDCSyncStatusModel(try a.syncManager, localUserID: try a.localUserID)
      try await a.create("/f", "1")
      await until { model.pending.total == 2 }
      #expect(manager.observations.count == 1)
      released = model
    }
    #expect(released == nil)
    while manager.observations.count > 0 { await Task.yield() }
    try await a.sync()
  }
}
