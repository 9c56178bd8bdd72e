import Foundation
import Synchronization
import Testing
import ZDCProtocol
import ZeroDarkCloud
import ZeroDarkCloudTesting

@testable import ZDCSync

/// The state that the sync manager reports, and the commands that it accepts.
struct SyncManagerTests {
  /// The notifications of one device, as text.
  private final class Posted: @unchecked Sendable {
    private let lines = Mutex<[String]>([])
    /// Set once, before the object is shared.
    private var observer: (any NSObjectProtocol)?

    init(_ manager: ZDCSyncManager) {
      observer = NotificationCenter.default.addObserver(
        forName: .ZDCSyncStatusChangedNotification, object: manager, queue: nil
      ) { [weak self] notification in
        guard let info = notification.userInfo?[kZDCSyncStatusNotificationInfo] as? ZDCSyncStatusNotificationInfo else {
          return
        }
        let result = info.pullResult.map { " \($0)" } ?? ""
        self?.lines.withLock { $0.append("\(info.type)\(result)") }
      }
    }

    func end() {
      if let observer { NotificationCenter.default.removeObserver(observer) }
    }

    func take() -> [String] {
      lines.withLock { lines in
        defer { lines = [] }
        return lines
      }
    }
  }

  @Test func pullsAreReportedIfTheyFindChanges_andPushesIfTheySendChanges() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      let posted = Posted(try b.syncManager)
      defer { posted.end() }
      try await b.sync()
      _ = posted.take()
      try await b.sync()
      #expect(posted.take() == [])
      try await a.create("/f", "1")
      try await a.sync()
      try await b.pull()
      #expect(posted.take() == ["pullStarted", "pullStopped success"])
      try await b.edit("/f", "2")
      try await b.sync()
      #expect(posted.take() == ["pushStarted", "syncingNodeIDsChanged", "pushStopped"])
    }
  }

  @Test func aPullThatFailsHalfway_saysHow() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/f", "1")
      try await a.sync()
      let posted = Posted(try b.syncManager)
      defer { posted.end() }
      b.recorder.on(.new, "/f") { _, _ in throw TestFailure("not now") }
      await #expect(throws: (any Error).self) { try await b.pull() }
      #expect(posted.take().suffix(1) == ["pullStopped failOther"])
      #expect(try !b.syncManager.isPullingChanges(forLocalUserID: b.localUserID))
      try await b.pull()
    }
  }

  // MARK: State during a sync

  @Test func runningWork_isReported() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let (manager, user) = (try a.syncManager, try a.localUserID)
      try await a.create("/f", "1")
      let seen = Mutex<[[Bool]]>([])
      @Sendable func look() {
        seen.withLock {
          $0.append([
            manager.isPullingChanges(forLocalUserID: user), manager.isPushingChanges(forLocalUserID: user),
            manager.isPullingOrPushingChangesForAnyLocalUser(),
          ])
        }
      }
      a.network.fail(.before { look() }, "GET", "/v1/zones")
      try await a.pull()
      a.network.fail(.before { look() }, "POST", "/v1/commits")
      try await a.push()
      look()
      #expect(seen.withLock { $0 } == [[true, false, true], [false, true, true], [false, false, false]])
    }
  }

  @Test func anAbortedPull_isGoneOnWithAtTheNext() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/f", "1")
      try await a.sync()
      let (manager, user) = (try b.syncManager, try b.localUserID)
      b.network.fail(
        .before { await manager.abortPull(forLocalUserID: user) }, "GET", "/v1/trees/{treeID}/zones/{zoneRoot}/commits")
      await #expect(throws: (any Error).self) { try await b.pull() }
      try await b.pull()
      #expect(b.recorder.lines == ["new /f"])
    }
  }

  /// The second pull is ignored while the first is running.
  @Test func aPullThatIsAskedForTwice_happensOnce() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let (manager, user) = (try a.syncManager, try a.localUserID)
      try await a.sync()
      let updates = manager.statusUpdates
      a.network.fail(
        .before {
          manager.pullChanges(forLocalUserID: user)
          manager.pullChangesForAllLocalUsers()
        }, "GET", "/v1/zones")
      try await a.pull()
      try await a.pull()
      #expect(a.network.hasStruck)
      var starts = 0
      var finishes = 0
      for await update in updates {
        if case .pullStarted = update { starts += 1 }
        if case .pullFinished = update { finishes += 1 }
        if finishes == 2 { break }
      }
      #expect(starts == 2)
    }
  }

  // MARK: Pausing

  @Test func pausesAreNested() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let (manager, user) = (try a.syncManager, try a.localUserID)
      let posted = Posted(manager)
      defer { posted.end() }
      try await a.pull()
      _ = posted.take()
      try await a.create("/f", "1")
      try await manager.pausePush(forLocalUserID: user)
      try await manager.pausePushForAllLocalUsers()
      #expect(try await manager.isPushingPaused(forLocalUserID: user))
      #expect(try await manager.isPushingPausedForAllUsers())
      try await a.push()
      try await manager.resumePush(forLocalUserID: user)
      #expect(try await manager.isPushingPausedForAnyUser())
      try await a.push()
      #expect(try await a.queueCount() == 2)
      try await manager.resumePushForAllLocalUsers()
      try await manager.resumePush(forLocalUserID: user)
      #expect(try await !manager.isPushingPausedForAnyUser())
      #expect(posted.take() == ["pushPaused", "pushResumed"])
      try await a.push()
      #expect(try await a.queueCount() == 0)
    }
  }

  /// - pushes are paused while an upload runs, and the upload ends
  /// => the app sees the push end with it
  @Test(.timeLimit(.minutes(10))) func uploadThatEndsInAPause_endsThePush() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let (manager, user) = (try a.syncManager, try a.localUserID)
      let (arrived, arrive) = AsyncStream.makeStream(of: Void.self)
      let (released, release) = AsyncStream.makeStream(of: Void.self)
      let (stopped, stop) = AsyncStream.makeStream(of: Void.self)
      let hold: @Sendable () async -> Void = {
        arrive.yield()
        for await _ in released { return }
      }
      a.network.fail(.before(hold), "PUT", Routes.blobPart)
      try await a.whileRunning {
        try await a.create("/big", String(repeating: "x", count: 100_000))
        for await _ in arrived { break }
        for try await state in manager.syncStates(forLocalUserID: user) where !state.isPushing { break }
        #expect(manager.isPushingChanges(forLocalUserID: user))
        let observer = NotificationCenter.default.addObserver(
          forName: .ZDCSyncStatusChangedNotification, object: manager, queue: nil
        ) { notification in
          let info = notification.userInfo?[kZDCSyncStatusNotificationInfo] as? ZDCSyncStatusNotificationInfo
          if info?.type == .pushStopped { stop.yield() }
        }
        defer { NotificationCenter.default.removeObserver(observer) }
        try await manager.pausePush(forLocalUserID: user)
        release.yield()
        for await _ in stopped { break }
        #expect(!manager.isPushingChanges(forLocalUserID: user))
        try await manager.resumePush(forLocalUserID: user)
        await a.recorder.wait(for: "pushed /big")
      }
    }
  }

  /// - two zones upload at the same time, and the upload of one fails
  /// => the app sees the push end with the upload of the other one, not before
  @Test(.timeLimit(.minutes(10))) func anUploadThatFails_doesNotEndThePushOfAnotherZone() async throws {
    try await TestWorld.run { world in
      let people = try await ListChangeTests.People(world)
      let (a, manager) = (people.alice, try people.alice.syncManager)
      try await a.create("/list")
      try await a.sync()
      try await a.share("/list", with: people.bob)
      try await a.sync()
      let (arrived, arrive) = AsyncStream.makeStream(of: Void.self)
      let (released, release) = AsyncStream.makeStream(of: Void.self)
      let hold: @Sendable () async -> Void = {
        arrive.yield()
        for await _ in released { return }
      }
      a.network.fail(.before(hold), "PUT", Routes.blobPart)
      let posted = Posted(manager)
      defer { posted.end() }
      try await a.create("/large", String(repeating: "x", count: 100_000))
      try await a.push()
      for await _ in arrived { break }
      let engine = try await manager.engine(for: a.localUserID)
      let held = try #require(await Self.uploadingPools(of: engine).first)
      a.network.fail(.answer(status: 507, code: "quotaExceeded"), "PUT", Routes.blobPart)
      try await a.create("/list/large", String(repeating: "x", count: 100_000))
      try await a.push()
      // The list may have had no worker, and so no pool, before this push.
      for pool in await Self.uploadingPools(of: engine) where pool !== held { _ = await pool.waitForUpload(since: 0) }
      #expect(a.network.hasStruck, "\(a.network.counts())")
      #expect(posted.take().contains("pushStopped") == false)
      #expect(try manager.isPushingChanges(forLocalUserID: a.localUserID))
      release.yield()
      try await a.sync()
      #expect(posted.take().last == "pushStopped")
    }
  }

  private static func uploadingPools(of engine: SyncScheduler) async -> [ContentPool] {
    var uploading: [ContentPool] = []
    for pool in await engine.knownWorkers.map(\.contents) where await pool.isUploading { uploading.append(pool) }
    return uploading
  }

  // MARK: Waiting nodes

  @Test func syncingNodes_areThoseWithOperations_andTheWayToThem() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let user = try a.localUserID
      try await a.create("/d")
      try await a.create("/d/e")
      try await a.create("/d/e/f", "1")
      try await a.create("/g")
      try await a.sync()
      let manager = try a.syncManager
      #expect(try await manager.syncingNodeIDs(forLocalUserID: user) == [])
      let nodes = [try await a.node("/d"), try await a.node("/d/e"), try await a.node("/d/e/f")]
      let home = try #require(nodes[0].parentID)
      try await a.edit("/d/e/f", "2")
      #expect(try await manager.syncingNodeIDs(forLocalUserID: user) == Set(nodes.map(\.uuid) + [home]))
      try await a.sync()
      try await a.delete("/d/e")
      #expect(try await manager.syncingNodeIDs(forLocalUserID: user) == [nodes[0].uuid, home])
      try await a.sync()
      #expect(try await manager.syncingNodeIDs(forLocalUserID: user) == [])
      #expect(try await manager.syncingNodeIDs(forLocalUserID: "nobody") == [])
    }
  }
}
