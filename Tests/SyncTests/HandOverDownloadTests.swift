import Foundation
import Synchronization
import Testing
import ZDCProtocol
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Downloads that the system continues while the app is suspended or has ended. A service with its own queue and its own
/// connections to the server acts as the phone's.
struct HandOverDownloadTests {
  private static let content = ("GET", "/v1/trees/{treeID}/nodes/{nodeID}/blobs/{blobID}")

  /// A device that requests a film which another device created, without a network.
  private struct Job {
    let world: TestWorld
    let device: TestDevice
    let service: TransferService
    let node: ZDCNode
    let data: Data

    init(_ world: TestWorld, size: Int, metadata: Int = 700, thumbnail: Int = 5_000) async throws {
      self.world = world
      world.skipsComparison()
      data = EndToEndTests.bytes(size, seed: 1)
      let author = try await world.device("A")
      let content = TestContent(
        data: data, metadata: EndToEndTests.bytes(metadata, seed: 2), thumbnail: EndToEndTests.bytes(thumbnail, seed: 3)
      )
      try await author.create("/film", content)
      try await author.sync()
      device = try await world.device("B")
      service = try TransferService()
      device.transferService = service
      try await device.relaunch()
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

    /// Requests the data. No request of this process gets through.
    func requestData() async throws -> Task<ZDCCryptoFile, any Error> {
      try await requestsFail()
      let (manager, node, options) = (try manager, node, background)
      let task = Task { try await manager.downloadNodeData(node, options: options).cryptoFile }
      await device.pauses.waitForPause()
      return task
    }

    func requestMeta(_ components: ZDCNodeMetaComponents) async throws {
      try await requestsFail()
      try manager.downloadNodeMeta(node, components: components, options: background, completionQueue: .global()) {
        _, _, _, _ in
      }
      await device.pauses.waitForPause()
    }

    private func requestsFail() async throws {
      device.pauses.hold()
      device.network.fail(.loseRequest, times: 1_000)
    }

    /// Ends the process without its taking anything back, and starts the next one.
    func relaunch() async throws {
      try await device.relaunch()
      device.network.restoreNetwork()
      device.network.resetCounts()
      device.pauses.release()
    }

    var told: [String] { device.recorder.lines.filter { $0.hasPrefix("background") } }

    func received() throws -> [Data] {
      try device.recorder.takeBackgroundFiles().map { file in
        defer { try? FileManager.default.removeItem(at: file.fileURL) }
        return try ZDCFileConversion.decryptCryptoFile(intoMemory: file)
      }
    }

    /// The number of requests of this process for content, since the last launch.
    var contentRequests: Int {
      device.network.requests.count { request in
        let pattern = request.route.pattern
        return pattern.hasSuffix("{blobID}") || pattern.hasSuffix("/contents") || pattern.hasSuffix("/proof")
      }
    }
  }

  // MARK: Every size and section

  @Test(arguments: [10, 300_000, 10_000_000])
  func dataThatTheSystemFetched_isDelivered_withoutARequestForContent(size: Int) async throws {
    try await TestWorld.run { world in
      let job = try await Job(world, size: size)
      let requested = try await job.requestData()
      try await job.device.zdc.handOverTransfers()
      #expect(job.service.waiting.count == 1)
      try await job.device.close()
      _ = await requested.result
      try await job.service.run()
      #expect(job.service.answers == ["content 200"])
      try await job.relaunch()
      try await job.manager.deliverResumed()
      #expect(job.told == ["background data /film"])
      #expect(try job.received() == [job.data])
      #expect(job.contentRequests == 0)
      #expect(try await BackgroundDownloadTests.savedRows(job.device) == 0)
      try await job.relaunch()
      try await job.manager.deliverResumed()
      #expect(job.told.count == 1)
    }
  }

  @Test(
    arguments: [10, 2_000_000], [[.thumbnail], [.metadata], .all] as [ZDCNodeMetaComponents])
  func sectionsThatTheSystemFetched_areDelivered_withoutARequest(
    size: Int, components: ZDCNodeMetaComponents
  ) async throws {
    try await TestWorld.run { world in
      let job = try await Job(world, size: size, thumbnail: size == 10 ? 5_000 : 300_000)
      try await job.requestMeta(components)
      try await job.device.zdc.handOverTransfers()
      try await job.device.close()
      try await job.service.run()
      #expect(job.service.answers.allSatisfy { $0.hasSuffix(" 200") || $0.hasSuffix(" 206") })
      try await job.relaunch()
      try await job.manager.deliverResumed()
      let parts =
        (components.contains(.metadata) ? ["metadata 700"] : [])
        + (components.contains(.thumbnail) ? ["thumbnail \(size == 10 ? 5_000 : 300_000)"] : [])
      #expect(job.told == ["background meta /film \(parts.joined(separator: ", "))"])
      #expect(job.contentRequests == 0)
      // Nothing is left behind.
      #expect(try Self.files(job.device, "downloads") == [])
    }
  }

  @Test func downloadsWithoutTheOption_areNotHandedOver() async throws {
    try await TestWorld.run { world in
      let job = try await Job(world, size: 300_000)
      job.device.pauses.hold()
      job.device.network.fail(.loseRequest, times: 1_000)
      let (manager, node) = (try job.manager, job.node)
      let task = Task { try await manager.downloadNodeData(node).cryptoFile }
      await job.device.pauses.waitForPause()
      try await job.device.zdc.handOverTransfers()
      #expect(job.service.waiting == [])
      task.cancel()
      _ = await task.result
    }
  }

  // MARK: Back in the same process

  /// The system is done when the app returns: the waiting caller gets the file.
  @Test(arguments: [300_000, 10_000_000]) func aSuspendedProcess_continuesWithWhatTheSystemFetched(
    size: Int
  ) async throws {
    try await TestWorld.run { world in
      let job = try await Job(world, size: size)
      let requested = try await job.requestData()
      try await job.device.zdc.handOverTransfers()
      try await job.service.run()
      job.device.network.restoreNetwork()
      job.device.network.resetCounts()
      try job.device.zdc.takeBackTransfers()
      job.device.pauses.release()
      let file = try await requested.value
      #expect(try ZDCFileConversion.decryptCryptoFile(intoMemory: file) == job.data)
      // Small content was already being requested, and is verified whichever way it comes.
      #expect(size == 300_000 || job.contentRequests == 0)
      #expect(job.told == [])
      #expect(try await BackgroundDownloadTests.savedRows(job.device) == 0)
    }
  }

  /// The app returns before the system has begun: the system is stopped, and the process continues.
  @Test func takingBack_stopsTheSystem_andContinuesHere() async throws {
    try await TestWorld.run { world in
      let job = try await Job(world, size: 10_000_000)
      let requested = try await job.requestData()
      try await job.device.zdc.handOverTransfers()
      job.device.network.restoreNetwork()
      try job.device.zdc.takeBackTransfers()
      job.device.pauses.release()
      let file = try await requested.value
      #expect(try ZDCFileConversion.decryptCryptoFile(intoMemory: file) == job.data)
      #expect(job.service.waiting == [])
      try await job.service.run()
      #expect(job.service.answers == [])
    }
  }

  /// While the app is away, this process waits for the system instead of fetching the same bytes.
  @Test func whileAway_theProcessWaitsForTheSystem() async throws {
    try await TestWorld.run { world in
      let job = try await Job(world, size: 10_000_000)
      let requested = try await job.requestData()
      try await job.device.zdc.handOverTransfers()
      job.device.network.restoreNetwork()
      job.device.network.resetCounts()
      job.device.pauses.release()
      // The retry of this process meets the system's transfer, which ends only now.
      try await job.service.run()
      let file = try await requested.value
      #expect(try ZDCFileConversion.decryptCryptoFile(intoMemory: file) == job.data)
      #expect(job.contentRequests == 0)
      #expect(job.service.answers == ["content 200"])
    }
  }

  // MARK: Failures

  /// The next launch comes before the system has begun.
  @Test func aLaunchThatComesFirst_withdrawsTheTransfer_andDeliversOnce() async throws {
    try await TestWorld.run { world in
      let job = try await Job(world, size: 10_000_000)
      let requested = try await job.requestData()
      try await job.device.zdc.handOverTransfers()
      try await job.relaunch()
      _ = await requested.result
      try await job.manager.deliverResumed()
      #expect(job.told == ["background data /film"])
      #expect(try job.received() == [job.data])
      #expect(job.service.waiting == [])
      try await job.service.run()
      #expect(job.service.answers == [])
    }
  }

  @Test func anExpiredToken_costsOnlyTheSystemsAttempt() async throws {
    try await TestWorld.run { world in
      let job = try await Job(world, size: 300_000)
      let requested = try await job.requestData()
      try await job.device.zdc.handOverTransfers()
      try await job.device.close()
      _ = await requested.result
      job.service.token = String(repeating: "y", count: 52)
      try await job.service.run()
      #expect(job.service.answers == ["content 401"])
      try await job.relaunch()
      try await job.manager.deliverResumed()
      #expect(job.told == ["background data /film"])
      #expect(try job.received() == [job.data])
    }
  }

  /// The file is damaged on the device, before the app opens it: it is fetched again, and the server is not accused.
  @Test(arguments: [300_000, 10_000_000]) func damagedBytes_areFetchedAgain(size: Int) async throws {
    try await TestWorld.run { world in
      let job = try await Job(world, size: size)
      let requested = try await job.requestData()
      try await job.device.zdc.handOverTransfers()
      try await job.device.close()
      _ = await requested.result
      try await job.service.run()
      for file in job.service.answerFiles { try Self.damage(file) }
      try await job.relaunch()
      try await job.manager.deliverResumed()
      #expect(job.told == ["background data /film"])
      #expect(try job.received() == [job.data])
      #expect(try await job.device.securityErrors() == [])
    }
  }

  /// The content is replaced while the system waits, and the server has removed the old version.
  @Test func contentThatWasReplaced_arrivesInItsNewestVersion() async throws {
    try await TestWorld.run { world in
      let job = try await Job(world, size: 300_000)
      let requested = try await job.requestData()
      try await job.device.zdc.handOverTransfers()
      try await job.device.close()
      _ = await requested.result
      let other = try await world.device("C")
      try await other.sync()
      try await other.edit("/film", "short")
      try await other.sync()
      try await job.service.run()
      try await job.relaunch()
      try await job.device.sync()
      try await job.manager.deliverResumed()
      #expect(job.told == ["background data /film"])
      #expect(try job.received() == [Data("short".utf8)])
    }
  }

  /// The user ends the app, and the system forgets everything.
  @Test func transfersThatTheSystemForgot_areMadeHere() async throws {
    try await TestWorld.run { world in
      let job = try await Job(world, size: 300_000)
      let requested = try await job.requestData()
      try await job.device.zdc.handOverTransfers()
      job.service.forgetAll()
      try await job.relaunch()
      _ = await requested.result
      try await job.manager.deliverResumed()
      #expect(try job.received() == [job.data])
      // Later launches need not ask the system.
      #expect(!FileManager.default.fileExists(atPath: Self.uploads(job.device).path))
    }
  }

  // MARK: A launch by the system

  /// The completion handler is called once, after the app has received what has arrived.
  @Test func eventsOfTheSession_areHandledAfterDelivery() async throws {
    try await TestWorld.run { world in
      let job = try await Job(world, size: 300_000)
      let requested = try await job.requestData()
      try await job.device.zdc.handOverTransfers()
      try await job.device.close()
      _ = await requested.result
      try await job.service.run()
      try await job.relaunch()
      #expect(try !job.device.zdc.handleEventsForBackgroundURLSession("another.session") {})
      let recorder = job.device.recorder
      let atHandler = await withCheckedContinuation { continuation in
        do {
          let isOurs = try job.device.zdc.handleEventsForBackgroundURLSession(job.service.identifier) {
            continuation.resume(returning: recorder.lines)
          }
          #expect(isOurs)
        } catch {
          Issue.record(error)
          continuation.resume(returning: [])
        }
      }
      #expect(atHandler.contains("background data /film"))
      #expect(try job.received() == [job.data])
    }
  }

  // MARK: Help

  static func files(_ device: TestDevice, _ kind: String) throws -> [String] {
    let folder = device.folder.appendingPathComponent("zdcDatabase.sqlite.\(kind)")
    return try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0 != "owners" }
  }

  static func uploads(_ device: TestDevice) -> URL {
    device.folder.appendingPathComponent("zdcDatabase.sqlite.uploads")
  }

  private static func damage(_ file: URL) throws {
    let handle = try FileHandle(forUpdating: file)
    try handle.seek(toOffset: 100_000)
    try handle.write(contentsOf: Data([0x55, 0xAA, 0x55]))
    try handle.close()
  }
}
