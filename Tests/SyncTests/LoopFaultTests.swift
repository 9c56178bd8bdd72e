import Foundation
import Synchronization
import Testing
import ZDCProtocol
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Engines that run while one thing fails: a tree, the app, or a pull that is cut off. The event stream stays open, and
/// the skipped changes follow.
@Suite(.timeLimit(.minutes(20))) struct LoopFaultTests {
  private struct AppError: Error {}

  /// An app that throws until the test makes it give in.
  private final class Stubborn: Sendable {
    private let isWilling = Mutex(false)

    func giveIn() { isWilling.withLock { $0 = true } }

    func answer() throws {
      if !isWilling.withLock({ $0 }) { throw AppError() }
    }
  }

  /// Aborts the pull that announces a node: the transaction of a cancelled task is not committed.
  private static func abortsPull(_ device: TestDevice) throws -> RecordingDelegate.Action {
    let user = try device.localUserID
    return { _, _ in
      let isDone = DispatchSemaphore(value: 0)
      Task {
        try await device.syncManager.abortPull(forLocalUserID: user)
        isDone.signal()
      }
      isDone.wait()
    }
  }

  /// - the app throws for one node, when the stream is opened and at each event
  /// => the other nodes arrive over the same stream
  @Test func anErrorOfTheApps_leavesTheStreamOpen() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/bad")
      try await a.sync()
      let app = Stubborn()
      b.recorder.on(.new, "/bad", times: 50) { _, _ in try app.answer() }
      try await b.whileRunning {
        await b.recorder.wait(for: "new /bad")
        for path in ["/1", "/2"] {
          try await a.create(path)
          try await a.sync()
          await b.recorder.wait(for: "new \(path)")
        }
        try await b.create("/mine", "b")
        await b.recorder.wait(for: "pushed /mine")
      }
      #expect(b.network.count("GET", Routes.events) == 1)
      #expect(try await b.tree(versions: false) == "/1  ?\n/2  ?\n/mine  \"b\"")
      app.giveIn()
    }
  }

  /// - the network is lost while the engine runs, and the app edits twice
  /// => the app is asked once before the engine notices, and again when the server answers: one version is sent
  @Test(
    "Q10, Q10b: an edit that was sealed offline and edited again is sent once, in its newest form",
    arguments: [false, true])
  func editsWhileTheNetworkIsLost(isStreamCut: Bool) async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.create("/f", "0")
      try await a.sync()
      _ = a.recorder.take()
      try await a.whileRunning {
        var failures = try a.syncManager.statusUpdates.makeAsyncIterator()
        a.network.isOffline = true
        try await a.edit("/f", "1")
        while let update = await failures.next() { if case .error = update { break } }
        if isStreamCut { try await world.server.restart() }
        try await a.edit("/f", "2")
        a.network.isOffline = false
        await a.recorder.wait(for: "pushed /f")
      }
      try await a.sync()
      // A slow device may notice the lost network before its app edits again, and then reports the reconnection.
      #expect(a.recorder.take().filter { $0 != "reconnected" } == ["data /f", "data /f", "pushed /f"])
    }
  }

  /// - the same, and the event stream ends as well
  @Test("Q10b: the same with the event stream cut")
  func editsWhileTheServerIsGone() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.create("/f", "0")
      try await a.sync()
      _ = a.recorder.take()
      try await a.whileRunning {
        let updates = try a.syncManager.statusUpdates
        try await world.server.stop()
        for await update in updates { if case .offline = update { break } }
        let failures = try a.syncManager.statusUpdates
        try await a.edit("/f", "1")
        for await update in failures { if case .error = update { break } }
        try await a.edit("/f", "2")
        try await world.server.restart()
        await a.recorder.wait(for: "pushed /f")
        try await a.waitUntilQueueIsEmpty()
      }
      #expect(a.recorder.take().filter { $0 == "pushed /f" }.count == 1)
      #expect(try await a.tree(versions: false) == "/f  \"2\"")
    }
  }

  /// - the server refuses to return some of the logs when the stream is opened
  /// => the device requests them again, while the same stream stays open
  @Test func aTreeThatIsRefused_isPulledAgain_whileTheStreamIsOpen() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/f")
      try await a.sync()
      b.network.fail(.answer(status: 400, code: "invalidRequest"), "GET", Routes.zoneCommits, times: 3)
      try await b.whileRunning { await b.recorder.wait(for: "new /f") }
      #expect(b.network.count("GET", Routes.events) == 1)
      #expect(b.network.hasStruck)
    }
  }

  /// - a pull is cut off after the log was pinned, before its records arrive
  /// => the stream's first event names the pinned head, and the pull continues all the same
  @Test func anInterruptedPull_resumesAtTheReconnect() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.sync()
      try await b.sync()
      try await a.create("/f")
      try await a.sync()
      b.recorder.on(.new, "/f", try Self.abortsPull(b))
      await #expect(throws: CancellationError.self) { try await b.pull() }
      #expect(try await b.tree() == "")
      _ = b.recorder.take()
      try await b.whileRunning { await b.recorder.wait(for: "new /f") }
    }
  }

  /// - the app aborts the pull of an event
  /// => the stream stays open, and the next event delivers both
  @Test func anAbortedEvent_leavesTheStreamOpen() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.sync()
      try await b.sync()
      b.recorder.on(.new, "/1", try Self.abortsPull(b))
      try await b.whileRunning {
        try await a.create("/1")
        try await a.sync()
        await b.recorder.wait(for: "new /1")
        try await a.create("/2")
        try await a.sync()
        await b.recorder.wait(for: "new /2")
      }
      #expect(b.network.count("GET", Routes.events) == 1)
      #expect(b.recorder.lines.filter { $0 == "new /1" }.count == 2)
    }
  }
}
