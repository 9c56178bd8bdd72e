import Foundation
import Synchronization
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Uploads of several parts that are interrupted, continued, and abandoned. A part is about 8 MiB.
struct LargeContentTests {
  private static let part = ("PUT", "/v1/blobs/{blobID}/parts/{index}")

  /// A device with a file of four parts that waits for its upload.
  private struct Job {
    let device: TestDevice
    let node: String
    let url: URL
    let folder: TemporaryFolder

    init(_ device: TestDevice, size: Int = 26_000_000) async throws {
      self.device = device
      folder = try TemporaryFolder()
      url = folder.url.appendingPathComponent("film")
      try Self.bytes(size).write(to: url)
      node = try await device.create("/film").uuid
      serve()
    }

    /// Returns data in which every leaf is different, made quickly.
    static func bytes(_ count: Int) -> Data {
      let block = EndToEndTests.bytes(50_000, seed: 1)
      var data = Data(capacity: count + block.count)
      while data.count < count {
        data.append(block)
        withUnsafeBytes(of: data.count) { data.append(contentsOf: $0) }
      }
      return data.prefix(count)
    }

    /// Serves the file. The framework does not store the app's answer, and asks again after a relaunch.
    func serve() { device.recorder.serve(ZDCData(cleartextFileURL: url), forNodeID: node) }

    func relaunch() async throws {
      try await device.relaunch()
      device.network.restoreNetwork()
      device.clock.advance(by: .seconds(600))
      device.network.resetCounts()
    }

    /// The blob IDs under which parts were sent, in order of their first part.
    var blobs: [String] {
      device.network.requests.filter { $0.route.pattern == part.1 }.map { String($0.path.split(separator: "/")[2]) }
        .reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
    }

    var parts: Int { device.network.count(part.0, part.1) }

    /// Checks that another device receives what the file now holds.
    func arrives(on other: TestDevice) async throws {
      #expect(try await device.queueCount() == 0)
      try await other.sync()
      let target = folder.url.appendingPathComponent("copy")
      let manager = try #require(try other.zdc.downloadManager)
      _ = try await manager.downloadNodeData(try await other.node("/film"), toFile: target)
      #expect(try Data(contentsOf: target) == Data(contentsOf: url))
      try FileManager.default.removeItem(at: target)
    }

    /// Changes bytes in place, and keeps the file's size and number; its time too, if wanted.
    func overwrite(at offset: UInt64, keepingTime: Bool) throws {
      let time = try FileManager.default.attributesOfItem(atPath: url.path)[.modificationDate]
      let handle = try FileHandle(forUpdating: url)
      try handle.seek(toOffset: offset)
      try handle.write(contentsOf: Data(repeating: 0xAB, count: 1_000))
      try handle.close()
      // Otherwise the change might fall into the same tick of the file system's clock.
      let shown = keepingTime ? time : (time as? Date)?.addingTimeInterval(10)
      if let shown { try FileManager.default.setAttributes([.modificationDate: shown], ofItemAtPath: url.path) }
    }
  }

  /// Returns whether the server comes to this number of blob files. It removes the file of an abandoned upload when the
  /// last request for one of its parts has ended.
  private static func blobFiles(_ world: TestWorld, become expected: Int) async throws -> Bool {
    for _ in 0..<1_200 {
      let files = try FileManager.default.subpathsOfDirectory(atPath: world.server.folder.path)
      if files.count(where: { $0.hasSuffix(".content") }) == expected { return true }
      try await Task.sleep(for: .milliseconds(50))
    }
    return false
  }

  // MARK: Resuming

  @Test func uninterruptedUpload_sendsEachPartOnce() async throws {
    try await TestWorld.run { world in
      world.skipsComparison()
      let job = try await Job(try await world.device("A"))
      try await job.device.sync()
      #expect(job.parts == 4)
      #expect(job.blobs.count == 1)
      try await job.arrives(on: try await world.device("B"))
    }
  }

  /// The answer to the first part waits until the second part is on its way.
  @Test func aPartIsSent_whileTheServerStoresTheOneBefore() async throws {
    try await TestWorld.run { world in
      world.skipsComparison()
      let job = try await Job(try await world.device("A"))
      let network = job.device.network
      let sentMeanwhile = Mutex(0)
      let fault = Fault.after {
        for _ in 0..<12_000 where network.count(Self.part.0, Self.part.1) < 2 {
          try await Task.sleep(for: .milliseconds(5))
        }
        sentMeanwhile.withLock { $0 = network.count(Self.part.0, Self.part.1) - 1 }
      }
      network.fail(fault, Self.part.0, Self.part.1)
      try await job.device.sync()
      #expect(sentMeanwhile.withLock { $0 } > 0)
      #expect(job.parts == 4)
      try await job.arrives(on: try await world.device("B"))
    }
  }

  /// While the connection takes nothing of the first part, no other part is sent beside it.
  @Test func aPartIsSent_onlyOnceTheOneBeforeIsOnItsWay() async throws {
    try await TestWorld.run { world in
      world.skipsComparison()
      let job = try await Job(try await world.device("A"))
      let network = job.device.network
      let besideTheFirst = Mutex(0)
      let fault = Fault.before {
        try await Task.sleep(for: .milliseconds(500))
        besideTheFirst.withLock { $0 = network.count(Self.part.0, Self.part.1) - 1 }
      }
      network.fail(fault, Self.part.0, Self.part.1)
      try await job.device.sync()
      #expect(besideTheFirst.withLock { $0 } == 0)
      #expect(job.parts == 4)
      try await job.arrives(on: try await world.device("B"))
    }
  }

  /// While the server answers no part, five films wait for upload, and then a photo. Two films are sent, and the photo.
  @Test func fewLargeUploadsRunAtATime_andSmallOnesDoNotWaitForThem() async throws {
    try await TestWorld.run { world in
      world.skipsComparison()
      let a = try await world.device("A")
      let sizes = ["/film 1", "/film 2", "/film 3", "/film 4", "/film 5", "/photo"].map {
        ($0, $0 == "/photo" ? 300_000 : 9_000_000)
      }
      for (path, size) in sizes {
        a.recorder.serve(ZDCData(data: Job.bytes(size)), forNodeID: try await a.create(path).uuid)
      }
      let network = a.network
      @Sendable func sent() -> [Int] {
        network.requests.filter { $0.route.pattern == Self.part.1 }.map(\.bytesSent).sorted()
      }
      let held = Mutex<[Int]>([])
      let fault = Fault.before {
        for _ in 0..<12_000 where sent().count < 3 { try await Task.sleep(for: .milliseconds(5)) }
        try await Task.sleep(for: .milliseconds(500))
        held.withLock { if $0.isEmpty { $0 = sent() } }
      }
      network.fail(fault, Self.part.0, Self.part.1, times: 3)
      try await a.sync()
      #expect(held.withLock { $0 }.map { $0 / 1_000_000 } == [0, 8, 8])
      #expect(sent().count == 11)
      let b = try await world.device("B")
      try await b.sync()
      let manager = try #require(b.zdc.downloadManager)
      let folder = try TemporaryFolder()
      for (path, size) in sizes {
        let target = folder.url.appendingPathComponent(String(path.dropFirst()))
        _ = try await manager.downloadNodeData(try await b.node(path), toFile: target)
        #expect(try Data(contentsOf: target) == Job.bytes(size))
      }
    }
  }

  /// Two parts arrive, then the network fails, then the process ends.
  @Test func relaunchedDevice_sendsOnlyWhatTheServerDoesNotHave() async throws {
    try await TestWorld.run { world in
      world.skipsComparison()
      let job = try await Job(try await world.device("A"))
      job.device.network.fail(.loseRequest, Self.part.0, Self.part.1, occurrence: 3, times: 1_000)
      try await job.device.sync()
      let blob = job.blobs
      try await job.relaunch()
      try await job.device.sync()
      #expect(job.parts == 2)
      #expect(job.blobs == blob)
      #expect(try await Self.blobFiles(world, become: 1))
      try await job.arrives(on: try await world.device("B"))
    }
  }

  @Test("Q7: the app is asked for a large content once before the relaunch and once after it")
  func uploadThatResumes_asksTheAppOncePerLaunch() async throws {
    try await TestWorld.run { world in
      world.skipsComparison()
      let job = try await Job(try await world.device("A"))
      job.device.network.fail(.loseRequest, Self.part.0, Self.part.1, occurrence: 3, times: 1_000)
      try await job.device.sync()
      #expect(job.device.recorder.take().filter { $0 == "data /film" } == ["data /film"])
      try await job.relaunch()
      try await job.device.sync()
      #expect(job.device.recorder.take().filter { $0 == "data /film" } == ["data /film"])
      try await job.arrives(on: try await world.device("B"))
    }
  }

  /// Every part arrives, but each answer to the completion is lost: nothing is left to send.
  @Test func lostAnswers_costNothingTwice() async throws {
    try await TestWorld.run { world in
      world.skipsComparison()
      let job = try await Job(try await world.device("A"))
      job.device.network.fail(.loseResponse, "POST", "/v1/blobs/{blobID}/complete", times: 1_000)
      try await job.device.sync()
      #expect(job.parts == 4)
      try await job.relaunch()
      try await job.device.sync()
      #expect(job.parts == 0)
      try await job.arrives(on: try await world.device("B"))
    }
  }

  /// The device dies after each commit of its database. Requests in flight are lost or still reach the server.
  @Test(arguments: [TestDevice.Network.dead, .alive])
  func device_diesAnywhere_losesNothing_andRepeatsAtMostWhatWasUnderWay(network: TestDevice.Network) async throws {
    try await TestWorld.run { world in
      world.skipsComparison()
      let a = try await world.device("A")
      let b = try await world.device("B")
      var steps = 1
      while true {
        let job = try await Job(a, size: 9_000_000)
        a.network.resetCounts()
        a.die(afterCommits: steps, network: network)
        _ = try? await a.sync()
        let hasDied = a.isDead
        let before = job.parts
        try await job.relaunch()
        try await a.sync()
        // A dead device makes three attempts in vain, and each is counted.
        #expect(before + job.parts <= (network == .alive ? 3 : 5), "died after \(steps) commits")
        try await job.arrives(on: b)
        try await a.delete("/film")
        try await a.sync()
        if !hasDied { break }
        steps += 1
      }
      #expect(steps > 5)
    }
  }

  /// Content in memory is recognised by its hash.
  @Test func contentInMemory_isContinuedIfItIsEqual() async throws {
    try await TestWorld.run { world in
      world.skipsComparison()
      let job = try await Job(try await world.device("A"), size: 18_000_000)
      job.device.recorder.serve(ZDCData(data: try Data(contentsOf: job.url)), forNodeID: job.node)
      job.device.network.fail(.loseRequest, Self.part.0, Self.part.1, occurrence: 3, times: 1_000)
      try await job.device.sync()
      let blob = job.blobs
      try await job.relaunch()
      try await job.device.sync()
      #expect(job.parts == 1)
      #expect(job.blobs == blob)
      try await job.arrives(on: try await world.device("B"))
    }
  }

  // MARK: A fresh key for changed content

  @Test func changedFile_isUploadedUnderAFreshKey_andTheOldAttemptIsGone() async throws {
    try await TestWorld.run { world in
      world.skipsComparison()
      let job = try await Job(try await world.device("A"))
      job.device.network.fail(.loseRequest, Self.part.0, Self.part.1, occurrence: 3, times: 1_000)
      try await job.device.sync()
      let old = job.blobs
      try job.overwrite(at: 20_000_000, keepingTime: false)
      try await job.relaunch()
      try await job.device.sync()
      #expect(job.parts == 4)
      #expect(job.blobs.count == 1)
      #expect(job.blobs != old)
      #expect(job.device.network.count("DELETE", "/v1/blobs/{blobID}") == 1)
      #expect(try await Self.blobFiles(world, become: 1))
      try await job.arrives(on: try await world.device("B"))
    }
  }

  /// Size, time and number of the file are unchanged, but its bytes are not.
  @Test(arguments: [0, 9_000_000] as [UInt64])
  func secretlyChangedFile_isFoundOutBySealingAgain(offset: UInt64) async throws {
    try await TestWorld.run { world in
      world.skipsComparison()
      let job = try await Job(try await world.device("A"))
      job.device.network.fail(.loseResponse, Self.part.0, Self.part.1, occurrence: 2, times: 1_000)
      try await job.device.sync()
      let old = job.blobs
      try job.overwrite(at: offset, keepingTime: true)
      try await job.relaunch()
      try await job.device.sync()
      // Not one more byte of the old blob is sent.
      #expect(job.blobs.count == 1)
      #expect(job.blobs != old)
      #expect(job.parts == 4)
      #expect(try await Self.blobFiles(world, become: 1))
      try await job.arrives(on: try await world.device("B"))
    }
  }

  @Test func fileThatChangesWhileItIsRead_isReadAgain_underAFreshKey() async throws {
    try await TestWorld.run { world in
      world.skipsComparison()
      let job = try await Job(try await world.device("A"))
      job.device.network.fail(.before { try job.overwrite(at: 100, keepingTime: false) }, Self.part.0, Self.part.1)
      try await job.device.sync()
      #expect(try await job.device.queueCount() > 0)
      job.device.clock.advance(by: .seconds(600))
      try await job.device.sync()
      #expect(job.blobs.count == 2)
      #expect(try await Self.blobFiles(world, become: 1))
      try await job.arrives(on: try await world.device("B"))
    }
  }

  /// The server has forgotten the parts: equal bytes may be sent again under the same key.
  @Test func serverThatLostTheUpload_getsItAgain() async throws {
    try await TestWorld.run { world in
      world.skipsComparison()
      let job = try await Job(try await world.device("A"), size: 18_000_000)
      job.device.network.fail(.loseRequest, Self.part.0, Self.part.1, occurrence: 3, times: 1_000)
      try await job.device.sync()
      world.clock.advance(by: .seconds(9 * 24 * 3_600))
      try await world.server.collect()
      #expect(try await Self.blobFiles(world, become: 0))
      try await job.relaunch()
      try await job.device.sync()
      #expect(job.parts == 3)
      try await job.arrives(on: try await world.device("B"))
    }
  }

  // MARK: Parts of content

  @Test func thumbnailOfALargeContent_costsThreeRequestsAtMost() async throws {
    try await TestWorld.run { world in
      world.skipsComparison()
      let a = try await world.device("A")
      let b = try await world.device("B")
      let (metadata, thumbnail) = (EndToEndTests.bytes(200_000, seed: 2), EndToEndTests.bytes(64 << 10, seed: 3))
      let node = try await a.create("/film", TestContent(data: Data(), metadata: metadata, thumbnail: thumbnail))
      a.recorder.serve(ZDCData(data: Job.bytes(12_000_000)), forNodeID: node.uuid)
      try await a.sync()
      try await b.sync()
      let manager = try #require(try b.zdc.downloadManager)
      b.network.resetCounts()
      let answer = try await manager.downloadNodeMeta(try await b.node("/film"), components: [.thumbnail])
      #expect(answer.thumbnail == thumbnail)
      #expect(answer.metadata == nil)
      #expect(b.network.requests.count <= 3)
      #expect(b.network.requests.reduce(0) { $0 + $1.bytesReceived } <= 200 << 10)
      let both = try await manager.downloadNodeMeta(try await b.node("/film"), components: .all)
      #expect(both.thumbnail == thumbnail)
      #expect(both.metadata == metadata)
    }
  }
}
