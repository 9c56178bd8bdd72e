import Foundation
import Synchronization
import Testing
import ZDCProtocol
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Downloads and uploads that are in progress when the process ends. => The next launch delivers them to the right
/// callback, once.
struct BackgroundDownloadTests {
  private static let content = ("GET", "/v1/trees/{treeID}/nodes/{nodeID}/blobs/{blobID}")

  /// A device that has pulled a film which another device created.
  private struct Job {
    let device: TestDevice
    let node: ZDCNode
    let data: Data
    let metadata = EndToEndTests.bytes(700, seed: 2)
    let thumbnail = EndToEndTests.bytes(5_000, seed: 3)

    init(_ world: TestWorld, size: Int = 10_000_000) async throws {
      world.skipsComparison()
      data = EndToEndTests.bytes(size, seed: 1)
      let author = try await world.device("A")
      try await author.create("/film", TestContent(data: data, metadata: metadata, thumbnail: thumbnail))
      try await author.sync()
      device = try await world.device("B")
      try await device.sync()
      node = try await device.node("/film")
    }

    var manager: ZDCDownloadManager {
      get throws { try #require(try device.zdc.downloadManager) }
    }

    var background: ZDCDownloadOptions {
      let options = ZDCDownloadOptions()
      options.canDownloadWhileInBackground = true
      return options
    }

    var calls: [String] { device.recorder.lines.filter { $0.hasPrefix("background") } }

    /// Returns the decrypted files that the app was given.
    func received() throws -> [Data] {
      try device.recorder.takeBackgroundFiles().map { file in
        defer { try? FileManager.default.removeItem(at: file.fileURL) }
        return try ZDCFileConversion.decryptCryptoFile(intoMemory: file)
      }
    }

    /// Dies during a download. The network delivers `limit` bytes and then nothing; the process ends while the download
    /// waits for its next attempt.
    func dieDownloading(afterBytes limit: Int, _ options: ZDCDownloadOptions) async throws {
      device.pauses.hold()
      let (method, path) = BackgroundDownloadTests.content
      device.network.fail(.cutResponse(afterBytes: limit), method, path)
      device.network.fail(.loseRequest, method, path, occurrence: 2, times: 1_000)
      let results = Results()
      try manager.downloadNodeData(node, options: options, completionQueue: .global()) { _, file, _ in
        results.note(file != nil)
      }
      await device.pauses.waitForPause()
      try await relaunch()
      #expect(!results.hasSucceeded)
    }

    func relaunch() async throws {
      try await device.relaunch()
      device.network.restoreNetwork()
      device.network.resetCounts()
      device.pauses.release()
    }
  }

  /// The outcomes that completion blocks reported.
  private final class Results: Sendable {
    private let state = Mutex<[Bool]>([])
    func note(_ isSuccess: Bool) { state.withLock { $0.append(isSuccess) } }
    var hasSucceeded: Bool { state.withLock { $0.contains(true) } }
    var count: Int { state.withLock { $0.count } }
  }

  // MARK: Data

  /// Killed at the start, early, in the middle, and shortly before the end.
  @Test(arguments: [0, 300_000, 5_000_000, 9_990_000])
  func dataThatWasUnderWay_comesThroughTheDelegate_once(bytes: Int) async throws {
    try await TestWorld.run { world in
      let job = try await Job(world)
      try await job.dieDownloading(afterBytes: bytes, job.background)
      try await job.manager.resumeDownloads()
      #expect(job.calls == ["background data /film"])
      #expect(try job.received() == [job.data])
      // Bytes that had arrived before are not fetched again, except for one leaf.
      let fetched = job.device.network.requests.filter { $0.route.pattern == Self.content.1 }.map(\.bytesReceived)
      #expect(fetched.reduce(0, +) <= 10_400_000 - bytes + (64 << 10))
      try await job.manager.resumeDownloads()
      try await job.relaunch()
      try await job.manager.resumeDownloads()
      #expect(job.calls == ["background data /film"])
    }
  }

  /// Content that one request fetches, alone or together with others. None of it is kept, and it arrives all the same.
  @Test(arguments: [10, 300_000]) func smallDataThatWasUnderWay_comesThroughTheDelegate_once(size: Int) async throws {
    try await TestWorld.run { world in
      let job = try await Job(world, size: size)
      job.device.pauses.hold()
      job.device.network.fail(.loseResponse, times: 1_000)
      let results = Results()
      try job.manager.downloadNodeData(job.node, options: job.background, completionQueue: .global()) { _, file, _ in
        results.note(file != nil)
      }
      await job.device.pauses.waitForPause()
      try await job.relaunch()
      try await job.manager.resumeDownloads()
      try await job.manager.resumeDownloads()
      #expect(!results.hasSucceeded)
      #expect(job.calls == ["background data /film"])
      #expect(try job.received() == [job.data])
      try await job.relaunch()
      try await job.manager.resumeDownloads()
      #expect(job.calls == ["background data /film"])
      #expect(try await Self.savedRows(job.device) == 0)
    }
  }

  @Test func withoutTheOption_nothingIsKept() async throws {
    try await TestWorld.run { world in
      let job = try await Job(world)
      try await job.dieDownloading(afterBytes: 300_000, ZDCDownloadOptions())
      try await job.manager.resumeDownloads()
      #expect(job.calls == [])
      #expect(job.device.network.requests == [])
    }
  }

  /// The download ends while its completion block exists: the delegate is not called, now or later.
  @Test func aDownloadThatEndsInItsOwnProcess_isNotReportedTwice() async throws {
    try await TestWorld.run { world in
      let job = try await Job(world, size: 100_000)
      let results = Results()
      await withCheckedContinuation { continuation in
        do {
          try job.manager.downloadNodeData(job.node, options: job.background, completionQueue: .global()) {
            _, file, _ in
            results.note(file != nil)
            continuation.resume()
          }
        } catch {
          Issue.record(error)
          continuation.resume()
        }
      }
      _ = try await job.manager.downloadNodeData(job.node, options: job.background)
      #expect(results.hasSucceeded)
      while try await Self.savedRows(job.device) > 0 { await Task.yield() }
      try await job.relaunch()
      try await job.manager.resumeDownloads()
      #expect(job.calls == [])
    }
  }

  @Test(arguments: [true, false])
  func aDownloadThatWasWithdrawn_isForgotten(isIgnored: Bool) async throws {
    try await TestWorld.run { world in
      let job = try await Job(world)
      job.device.pauses.hold()
      job.device.network.fail(.loseRequest, Self.content.0, Self.content.1, times: 1_000)
      let ticket = try job.manager.downloadNodeData(job.node, options: job.background, completionQueue: .global()) {
        _, _, _ in
      }
      await job.device.pauses.waitForPause()
      #expect(try await Self.savedRows(job.device) == 1)
      if isIgnored { ticket.ignore() } else { ticket.cancel() }
      while try await Self.savedRows(job.device) > 0 { await Task.yield() }
      try await job.relaunch()
      try await job.manager.resumeDownloads()
      #expect(job.calls == [])
    }
  }

  /// The app asks again after the relaunch: its completion receives the content, and the delegate does not.
  @Test func aRepeatedRequest_replacesTheDelegateCall() async throws {
    try await TestWorld.run { world in
      let job = try await Job(world)
      try await job.dieDownloading(afterBytes: 300_000, job.background)
      job.device.pauses.hold()
      job.device.network.fail(.loseRequest, Self.content.0, Self.content.1)
      let manager = try job.manager
      let resuming = Task { await manager.resumeDownloads() }
      await job.device.pauses.waitForPause()
      let asked = Task { try await manager.downloadNodeData(job.node, options: job.background) }
      while try await manager.waiterCount(job.node) < 2 { await Task.yield() }
      job.device.pauses.release()
      let file = try await asked.value.cryptoFile
      #expect(try ZDCFileConversion.decryptCryptoFile(intoMemory: file) == job.data)
      await resuming.value
      #expect(job.calls == [])
      #expect(try await Self.savedRows(job.device) == 0)
    }
  }

  /// The network is down at the launch, and in the launch after that.
  @Test func aFailureIsNotAnnounced_andIsRetriedLater() async throws {
    try await TestWorld.run { world in
      let job = try await Job(world)
      try await job.dieDownloading(afterBytes: 300_000, job.background)
      job.device.network.isOffline = true
      try await job.manager.resumeDownloads()
      try await job.relaunch()
      job.device.network.isOffline = true
      try await job.manager.resumeDownloads()
      #expect(job.calls == [])
      job.device.network.isOffline = false
      try await job.manager.resumeDownloads()
      #expect(job.calls == ["background data /film"])
      #expect(try job.received() == [job.data])
    }
  }

  @Test(.timeLimit(.minutes(20))) func aDownloadIsAbandonedAfterAWeek() async throws {
    try await TestWorld.run { world in
      let job = try await Job(world)
      try await job.dieDownloading(afterBytes: 300_000, job.background)
      world.clock.advance(by: .seconds(8 * 24 * 3_600))
      var updates = try job.device.syncManager.statusUpdates.makeAsyncIterator()
      try await job.manager.resumeDownloads()
      #expect(job.calls == [])
      guard case .error(_, let error) = await updates.next() else { return #expect(Bool(false), "no error") }
      #expect((error as? ZDCError)?.code == .downloadFailed)
      #expect(try await Self.savedRows(job.device) == 0)
    }
  }

  /// The content is replaced, or the node deleted, before the app is launched again.
  @Test(arguments: [true, false])
  func aNodeThatChanged_arrivesInItsNewestVersion(isDeleted: Bool) async throws {
    try await TestWorld.run { world in
      let job = try await Job(world)
      try await job.dieDownloading(afterBytes: 300_000, job.background)
      let other = try await world.device("C")
      try await other.sync()
      if isDeleted { try await other.delete("/film") } else { try await other.edit("/film", "short") }
      try await other.sync()
      job.device.network.fail(.before { throw ServerError(.blobGone, "by script") }, Self.content.0, Self.content.1)
      try await job.manager.resumeDownloads()
      #expect(job.calls == [])
      #expect(try await Self.savedRows(job.device) == 1)
      try await job.device.sync()
      try await job.manager.resumeDownloads()
      #expect(job.calls == (isDeleted ? [] : ["background data /film"]))
      #expect(try job.received() == (isDeleted ? [] : [Data("short".utf8)]))
      #expect(try await Self.savedRows(job.device) == 0)
    }
  }

  /// The engines run, and the test resumes nothing explicitly.
  @Test func aDownloadResumesAutomaticallyAtLaunch() async throws {
    try await TestWorld.run { world in
      let job = try await Job(world)
      try await job.dieDownloading(afterBytes: 300_000, job.background)
      try await job.device.close()
      job.device.syncsAutomatically = true
      try await job.device.relaunch()
      await job.device.recorder.wait(for: "background data /film")
      #expect(try job.received() == [job.data])
      job.device.syncsAutomatically = false
      try await job.device.relaunch()
    }
  }

  // MARK: Metadata and thumbnail

  @Test(arguments: [[.thumbnail], [.metadata], .all] as [ZDCNodeMetaComponents])
  func metaThatWasUnderWay_comesThroughTheDelegate_once(components: ZDCNodeMetaComponents) async throws {
    try await TestWorld.run { world in
      let job = try await Job(world)
      job.device.pauses.hold()
      job.device.network.fail(.cutResponse(afterBytes: 1_000), Self.content.0, Self.content.1)
      job.device.network.fail(.loseRequest, Self.content.0, Self.content.1, occurrence: 2)
      let results = Results()
      try job.manager.downloadNodeMeta(
        job.node, components: components, options: job.background, completionQueue: .global()
      ) { _, metadata, thumbnail, _ in
        results.note(metadata != nil || thumbnail != nil)
      }
      await job.device.pauses.waitForPause()
      try await job.relaunch()
      try await job.manager.resumeDownloads()
      #expect(!results.hasSucceeded)
      let parts =
        (components.contains(.metadata) ? ["metadata 700"] : [])
        + (components.contains(.thumbnail) ? ["thumbnail 5000"] : [])
      #expect(job.calls == ["background meta /film \(parts.joined(separator: ", "))"])
      try await job.manager.resumeDownloads()
      try await job.relaunch()
      try await job.manager.resumeDownloads()
      #expect(job.calls.count == 1)
    }
  }

  // MARK: Crashes after each commit

  /// The device dies after each commit of its database, until the download completes.
  @Test func deviceThatDiesAnywhere_isNotifiedOnce() async throws {
    try await TestWorld.run { world in
      let job = try await Job(world, size: 9_000_000)
      var steps = 0
      while true {
        job.device.die(afterCommits: steps)
        let results = Results()
        let download = Task { [job] in
          _ = try await job.manager.downloadNodeData(job.node, options: job.background)
          results.note(true)
        }
        _ = await download.result
        let hasDied = job.device.isDead
        try await job.relaunch()
        try await job.manager.resumeDownloads()
        let told = job.device.recorder.take().filter { $0.hasPrefix("background") }.count
        // After the first commit the download is saved. An app that already had the file was not called again, unless
        // the device died before that was recorded.
        #expect(told + results.count >= (steps == 0 ? 0 : 1), "died after \(steps) commits")
        #expect(told <= 1)
        #expect(try await Self.savedRows(job.device) == 0)
        _ = try job.received()
        if !hasDied { break }
        steps += 1
      }
      #expect(steps > 1)
    }
  }

  static func savedRows(_ device: TestDevice) async throws -> Int {
    try await device.database.asyncRead { try $0.savedDownloadCount() }
  }
}

// MARK: - Uploads

/// An upload continues in the next process without asking the app again, and the app is notified once.
struct BackgroundUploadTests {
  private static let part = ("PUT", "/v1/blobs/{blobID}/parts/{index}")

  enum Kind: CaseIterable { case small, large }

  /// The process ends after each commit of its database: between asking the app, the parts, the commit and its answer.
  @Test(arguments: Kind.allCases)
  func uploadThatWasRunning_isReportedOnce(kind: Kind) async throws {
    try await TestWorld.run { world in
      world.skipsComparison()
      let a = try await world.device("A")
      let b = try await world.device("B")
      let data = EndToEndTests.bytes(kind == .small ? 300 : 9_000_000, seed: 1)
      var steps = 0
      while true {
        let path = "/film\(steps)"
        try await a.create(path, TestContent(data: data))
        a.die(afterCommits: steps)
        _ = try? await a.sync()
        let hasDied = a.isDead
        try await a.relaunch()
        a.network.restoreNetwork()
        a.clock.advance(by: .seconds(600))
        try await a.sync()
        let pushed = a.recorder.take().filter { $0 == "pushed \(path)" }.count
        // A call whose transaction was never committed is made again, because it never happened.
        #expect((1...2).contains(pushed), "died after \(steps) commits")
        #expect(try await a.queueCount() == 0)
        if !hasDied {
          #expect(pushed == 1)
          break
        }
        steps += 1
      }
      #expect(steps > 2)
      try await world.settle(b)
      #expect(try await b.tree().split(separator: "\n").count == steps + 1)
    }
  }

  /// Content sealed into a request that may have been sent is sent again unchanged, without asking the app again.
  @Test func requestThatWasUnderWay_isSentAgainWithoutAQuestion() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.create("/note", "hello")
      a.network.fail(.loseResponse, "POST", "/v1/commits", times: 1_000)
      _ = try? await a.sync()
      #expect(a.recorder.take() == ["data /note"])
      try await a.relaunch()
      a.network.restoreNetwork()
      try await a.sync()
      #expect(a.recorder.take() == ["pushed /note"])
    }
  }
}
