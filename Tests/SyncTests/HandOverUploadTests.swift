import Foundation
import Synchronization
import Testing
import ZDCProtocol
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Uploads that the system continues while the app is suspended or has ended. A service with its own queue and its own
/// connections to the server acts as the phone's.
struct HandOverUploadTests {
  private static let part = ("PUT", "/v1/blobs/{blobID}/parts/{index}")
  private static let commits = ("POST", "/v1/commits")

  /// A device with a file that it uploads.
  private struct Job {
    let device: TestDevice
    let service: TransferService
    let node: String
    let url: URL
    let folder: TemporaryFolder

    init(_ world: TestWorld, size: Int) async throws {
      device = try await world.device("A")
      service = try TransferService()
      device.transferService = service
      try await device.relaunch()
      try await device.sync()
      folder = try TemporaryFolder()
      url = folder.url.appendingPathComponent("film")
      try Self.bytes(size).write(to: url)
      node = try await device.create("/film").uuid
      device.recorder.serve(ZDCData(cleartextFileURL: url), forNodeID: node)
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

    /// Starts to sync, and returns once this process hangs in the given request for a part. It does not get through.
    func syncUntilPart(_ number: Int) async throws -> Task<Void, Never> {
      let (reached, signal) = AsyncStream<Void>.makeStream()
      device.network.fail(
        .before {
          signal.yield()
          try await Task.sleep(for: .seconds(3_600))
        }, part.0, part.1, occurrence: number, times: 1_000)
      let device = device
      let task = Task { do { try await device.sync() } catch {} }
      for await _ in reached { break }
      try await recordIsSent()
      return task
    }

    /// Waits until the node's record is in the cloud. Otherwise its commit would be handed over with the parts.
    private func recordIsSent() async throws {
      for _ in 0..<400 where try await device.queue().contains("create") {
        try await Task.sleep(for: .milliseconds(25))
      }
    }

    func relaunch() async throws {
      try await device.relaunch()
      device.network.restoreNetwork()
      device.clock.advance(by: .seconds(600))
      device.network.resetCounts()
    }

    var parts: Int { device.network.count(part.0, part.1) }

    func arrives(on other: TestDevice) async throws {
      #expect(try await device.queueCount() == 0)
      try await other.sync()
      let target = folder.url.appendingPathComponent("copy")
      let manager = try #require(try other.zdc.downloadManager)
      _ = try await manager.downloadNodeData(try await other.node("/film"), toFile: target)
      #expect(try Data(contentsOf: target) == Data(contentsOf: url))
      try FileManager.default.removeItem(at: target)
    }

    /// The files that wait to be sent.
    var staged: [String] {
      do { return try HandOverDownloadTests.files(device, "uploads").sorted() } catch { return [] }
    }

    var kinds: [String] { service.waiting.map { String($0.prefix { $0 != "-" }) } }
  }

  // MARK: Parts

  /// One of four parts has arrived. The system sends the others after the process has ended; the next launch sends none.
  @Test func partsThatTheSystemSent_areNotSentAgain() async throws {
    try await TestWorld.run { world in
      world.skipsComparison()
      let job = try await Job(world, size: 26_000_000)
      let syncing = try await job.syncUntilPart(2)
      try await job.device.zdc.handOverTransfers()
      #expect(job.kinds == ["part", "part", "part"])
      #expect(job.staged.count == 3)
      try await job.device.close()
      await syncing.value
      try await job.service.run()
      #expect(job.service.answers == ["part 204", "part 204", "part 204"])
      try await job.relaunch()
      try await job.device.sync()
      #expect(job.parts == 0)
      #expect(job.staged == [])
      try await job.arrives(on: try await world.device("B"))
    }
  }

  /// The files hold what the server receives: no cleartext, and nothing else.
  @Test func stagedFiles_areCiphertext_ofTheirParts() async throws {
    try await TestWorld.run { world in
      world.skipsComparison()
      let job = try await Job(world, size: 9_000_000)
      let syncing = try await job.syncUntilPart(1)
      try await job.device.zdc.handOverTransfers()
      let clear = try Data(contentsOf: job.url)
      #expect(job.service.files.count == 2)
      for file in job.service.files {
        let bytes = try Data(contentsOf: file)
        #expect(bytes.range(of: clear[1_000..<1_032]) == nil)
        #expect(bytes.count <= 56 + 128 * 65_600)
      }
      try await job.device.close()
      await syncing.value
      try await job.relaunch()
      try await job.device.sync()
      try await job.arrives(on: try await world.device("B"))
    }
  }

  /// Content of one part is recorded when it is handed over, so that the next launch seals the same bytes.
  @Test func contentOfOnePart_isNotSentAgain() async throws {
    try await TestWorld.run { world in
      world.skipsComparison()
      let job = try await Job(world, size: 300_000)
      let syncing = try await job.syncUntilPart(1)
      try await job.device.zdc.handOverTransfers()
      try await job.device.close()
      await syncing.value
      try await job.service.run()
      #expect(job.service.answers == ["part 204"])
      try await job.relaunch()
      try await job.device.sync()
      #expect(job.parts == 0)
      try await job.arrives(on: try await world.device("B"))
    }
  }

  /// The process is only suspended, and is resumed by the system: it completes the upload without the app's return.
  @Test func aSuspendedProcess_completesWhatTheSystemSent() async throws {
    try await TestWorld.run { world in
      world.skipsComparison()
      let job = try await Job(world, size: 18_000_000)
      let syncing = try await job.syncUntilPart(1)
      try await job.device.zdc.handOverTransfers()
      job.device.network.restoreNetwork()
      job.device.network.resetCounts()
      try await job.service.run()
      await syncing.value
      #expect(job.parts == 0)
      try await job.arrives(on: try await world.device("B"))
    }
  }

  @Test func takingBack_stopsTheSystem_andContinuesHere() async throws {
    try await TestWorld.run { world in
      world.skipsComparison()
      let job = try await Job(world, size: 18_000_000)
      let syncing = try await job.syncUntilPart(1)
      try await job.device.zdc.handOverTransfers()
      try await job.service.run(1)
      job.device.network.restoreNetwork()
      job.device.network.resetCounts()
      try job.device.zdc.takeBackTransfers()
      await syncing.value
      #expect(job.parts == 2)
      #expect(job.service.waiting == [])
      #expect(job.staged == [])
      try await job.arrives(on: try await world.device("B"))
    }
  }

  @Test func anExpiredToken_costsOnlyTheSystemsAttempt() async throws {
    try await TestWorld.run { world in
      world.skipsComparison()
      let job = try await Job(world, size: 9_000_000)
      let syncing = try await job.syncUntilPart(1)
      try await job.device.zdc.handOverTransfers()
      try await job.device.close()
      await syncing.value
      job.service.token = String(repeating: "y", count: 52)
      try await job.service.run()
      #expect(job.service.answers == ["part 401", "part 401"])
      try await job.relaunch()
      try await job.device.sync()
      #expect(job.parts == 2)
      try await job.arrives(on: try await world.device("B"))
    }
  }

  /// The system refuses everything while the process still runs: no loop of files, and the upload continues on return.
  @Test func aSystemThatCannotSend_isAskedOncePerAbsence() async throws {
    try await TestWorld.run { world in
      world.skipsComparison()
      let job = try await Job(world, size: 9_000_000)
      let syncing = try await job.syncUntilPart(1)
      job.service.token = String(repeating: "y", count: 52)
      try await job.device.zdc.handOverTransfers()
      job.device.network.restoreNetwork()
      try await job.service.run()
      // Hands over again only if something had arrived.
      try await job.device.zdc.handOverTransfers()
      #expect(job.service.answers == ["part 401", "part 401"])
      try job.device.zdc.takeBackTransfers()
      await syncing.value
      try await job.arrives(on: try await world.device("B"))
    }
  }

  /// The source changes after parts are handed over: none of its bytes is sealed under the old key.
  @Test func aSourceThatChanged_isUploadedUnderAFreshKey() async throws {
    try await TestWorld.run { world in
      world.skipsComparison()
      let job = try await Job(world, size: 9_000_000)
      let syncing = try await job.syncUntilPart(1)
      try await job.device.zdc.handOverTransfers()
      let blob = try #require(job.service.waiting.first?.split(separator: "-")[1])
      try await job.device.close()
      await syncing.value
      try await job.service.run(1)
      try Job.bytes(9_100_000).write(to: job.url)
      try await job.relaunch()
      job.device.recorder.serve(ZDCData(cleartextFileURL: job.url), forNodeID: job.node)
      try await job.device.sync()
      // The transfers of the old attempt are withdrawn before it is given up.
      #expect(job.service.waiting == [])
      #expect(job.service.answers.count == 1)
      let used = Set(job.device.network.requests.filter { $0.route.pattern == Self.part.1 }.map(\.path))
      #expect(!used.isEmpty && used.allSatisfy { !$0.contains(blob) })
      try await job.arrives(on: try await world.device("B"))
    }
  }

  // MARK: Killed between the steps

  /// The process dies after each commit of its database, before, while and after parts are handed over, and the system
  /// sends all, one or none of them.
  @Test(arguments: [0, 1, 100]) func aProcessThatDiesAnywhere_losesNothing(sent: Int) async throws {
    try await TestWorld.run { world in
      world.skipsComparison()
      let b = try await world.device("B")
      let job = try await Job(world, size: 9_000_000)
      var steps = 0
      while true {
        let syncing = try await job.syncUntilPart(1)
        job.device.die(afterCommits: steps)
        do { try await job.device.zdc.handOverTransfers() } catch {}
        let hasDied = job.device.isDead
        try await job.device.close()
        await syncing.value
        try await job.service.run(sent)
        try await job.relaunch()
        try await job.device.sync()
        #expect(job.parts <= 2, "died after \(steps) commits")
        #expect(job.service.waiting == [])
        #expect(job.staged == [])
        try await job.arrives(on: b)
        guard hasDied else { break }
        steps += 1
        try Job.bytes(9_000_000 + steps).write(to: job.url)
        try await job.device.edit("/film", "")
      }
      #expect(steps > 0)
    }
  }

  /// The process dies after a file is written and before the system has it.
  @Test func filesThatTheSystemDoesNotKnow_areRemovedAtLaunch() async throws {
    try await TestWorld.run { world in
      world.skipsComparison()
      let job = try await Job(world, size: 9_000_000)
      let syncing = try await job.syncUntilPart(1)
      try await job.device.zdc.handOverTransfers()
      #expect(job.staged.count == 2)
      try await job.device.close()
      await syncing.value
      job.service.forgetAll()
      try await job.relaunch()
      try await job.device.sync()
      #expect(job.staged == [])
      #expect(!FileManager.default.fileExists(atPath: HandOverDownloadTests.uploads(job.device).path))
      #expect(job.parts == 2)
      try await job.arrives(on: try await world.device("B"))
    }
  }

  @Test func aSystemThatTakesNothing_isReported_andLeavesNoFile() async throws {
    try await TestWorld.run { world in
      world.skipsComparison()
      let job = try await Job(world, size: 9_000_000)
      let syncing = try await job.syncUntilPart(1)
      job.service.isRefusing = true
      do { try await job.device.zdc.handOverTransfers() } catch {}
      #expect(job.staged == [])
      try await job.device.close()
      await syncing.value
      try await job.relaunch()
      try await job.device.sync()
      try await job.arrives(on: try await world.device("B"))
    }
  }

  // MARK: The request in flight

  /// A device with a note whose commit request gets no answer.
  private static func deviceWithRequestInFlight(
    _ world: TestWorld
  ) async throws -> (device: TestDevice, service: TransferService) {
    let device = try await world.device("A")
    let service = try TransferService()
    device.transferService = service
    try await device.relaunch()
    try await device.sync()
    try await device.create("/note", "hello")
    device.network.fail(.loseRequest, commits.0, commits.1, times: 1_000)
    do { try await device.sync() } catch {}
    #expect(device.recorder.take() == ["data /note"])
    return (device, service)
  }

  @Test func aCommitThatTheSystemSent_isFoundByTheNextLaunch() async throws {
    try await TestWorld.run { world in
      let (device, service) = try await Self.deviceWithRequestInFlight(world)
      try await device.zdc.handOverTransfers()
      try await device.close()
      try await service.run()
      #expect(service.answers == ["commit 200"])
      let b = try await world.device("B")
      try await b.sync()
      _ = try await b.node("/note")
      try await device.relaunch()
      device.network.restoreNetwork()
      try await device.sync()
      // The app is not asked again, and is notified once.
      #expect(device.recorder.take() == ["pushed /note"])
      try await world.settle(device, b)
    }
  }

  /// Another device's commit comes first. The system's copy is refused, and the next launch makes another one.
  @Test func aServerThatHasChanged_refusesTheSystemsCopy_andNothingIsLost() async throws {
    try await TestWorld.run { world in
      let (device, service) = try await Self.deviceWithRequestInFlight(world)
      try await device.zdc.handOverTransfers()
      try await device.close()
      let b = try await world.device("B")
      try await b.sync()
      try await b.create("/other", "first")
      try await b.sync()
      try await service.run()
      #expect(service.answers == ["commit 409"])
      try await device.relaunch()
      device.network.restoreNetwork()
      try await device.sync()
      try await world.settle(device, b)
      #expect(try await device.tree(versions: false) == b.tree(versions: false))
      _ = try await b.node("/note")
      _ = try await device.node("/other")
    }
  }

  /// The server refuses the request here, and the system still has a copy that the server may accept later: the copy is
  /// withdrawn, and only the answer after that counts.
  @Test(arguments: [0, 1]) func aRefusalHere_isNotFinal_whileTheSystemHasACopy(sent: Int) async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let service = try TransferService()
      a.transferService = service
      try await a.relaunch()
      try await a.sync()
      try await a.create("/note", "hello")
      a.network.fail(
        .before {
          try await a.zdc.handOverTransfers()
          try await service.run(sent)
        }, Self.commits.0, Self.commits.1)
      a.network.fail(.answer(status: 422, code: "refused"), Self.commits.0, Self.commits.1)
      try await a.sync()
      #expect(a.recorder.take() == ["data /note", "pushed /note"])
      #expect(service.waiting == [])
      #expect(service.answers.count == sent)
      #expect(a.network.count(Self.commits.0, Self.commits.1) == 2)
      try await world.settle(a, try await world.device("B"))
    }
  }

  /// A request that never left this device is dropped, unless the system has it by then.
  @Test func aRequestThatWasHandedOver_countsAsSent() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let service = try TransferService()
      a.transferService = service
      try await a.relaunch()
      try await a.sync()
      try await a.create("/note", "hello")
      a.network.fail(
        .before {
          try await a.zdc.handOverTransfers()
          throw TransportError(.offline)
        }, Self.commits.0, Self.commits.1)
      do { try await a.sync() } catch {}
      #expect(service.waiting.count == 1)
      try await a.edit("/note", "newer")
      try await a.close()
      try await service.run()
      #expect(service.answers == ["commit 200"])
      try await a.relaunch()
      a.clock.advance(by: .seconds(600))
      try await a.sync()
      let b = try await world.device("B")
      try await world.settle(a, b)
      #expect(try await b.content(of: "/note")?.data == Data("newer".utf8))
      #expect(try await a.securityErrors() == [])
    }
  }
}

/// The rules of the hand-over itself.
struct TransferHandOverTests {
  private let folder: TemporaryFolder
  private let service: TransferService
  private let handOver: TransferHandOver

  init() throws {
    folder = try TemporaryFolder()
    service = try TransferService()
    handOver = TransferHandOver(
      system: service, partials: PartialFolder(url: folder.url.appendingPathComponent("downloads")),
      folder: folder.url.appendingPathComponent("uploads"), stagedBytes: 1_000)
  }

  private func upload(_ id: SystemTransferID, _ count: Int) async throws -> Bool {
    try await handOver.upload(id, [UInt8](repeating: 1, count: count)) { file in
      SystemTransfer(id: id, origin: "http://127.0.0.1:1", request: TransportRequest(.put, "/"), file: file)
    }
  }

  private var staged: [String] {
    get throws {
      try FileManager.default.contentsOfDirectory(atPath: folder.url.appendingPathComponent("uploads").path).sorted()
    }
  }

  @Test func files_areBoundedTogether() async throws {
    let blob = BlobID.random()
    #expect(try await handOver.begin(.everything))
    #expect(try await upload(.part(blob, 0), 600))
    #expect(try await !upload(.part(blob, 1), 401))
    #expect(try await upload(.part(blob, 1), 400))
    // Requests that the system already has are not handed over twice.
    #expect(try await upload(.part(blob, 0), 600))
    #expect(service.waiting == [SystemTransferID.part(blob, 0).text, SystemTransferID.part(blob, 1).text])
    await handOver.withdraw(.blob(blob))
    #expect(try staged == [])
    #expect(try await upload(.part(blob, 0), 1_000))
  }

  @Test func transfers_areBoundedInNumber() async throws {
    #expect(try await handOver.begin(.downloads))
    for number in 0..<TransferHandOver.mostTransfers {
      let transfer = SystemTransfer(
        id: .content(.random(), 0..<10), origin: "http://127.0.0.1:1", request: .get("/\(number)"), file: nil)
      #expect(try await handOver.download(transfer))
    }
    let transfer = SystemTransfer(
      id: .content(.random(), 0..<10), origin: "http://127.0.0.1:1", request: .get("/"), file: nil)
    #expect(try await !handOver.download(transfer))
  }

  @Test func nothingIsHandedOver_whileTheAppIsInUse() async throws {
    #expect(try await !upload(.part(.random(), 0), 10))
    #expect(try await handOver.begin(.everything))
    handOver.end()
    #expect(try await !upload(.part(.random(), 0), 10))
    #expect(service.waiting == [])
  }

  @Test func withdrawing_affectsOneSubject() async throws {
    let (first, second) = (BlobID.random(), BlobID.random())
    #expect(try await handOver.begin(.everything))
    #expect(try await upload(.part(first, 0), 10))
    #expect(try await upload(.part(second, 0), 10))
    await handOver.withdraw(.blob(first))
    #expect(service.waiting == [SystemTransferID.part(second, 0).text])
    #expect(try staged == [SystemTransferID.part(second, 0).text])
  }

  @Test(arguments: ["", "part", "part-x-1", "content-a", "commit-", "other"])
  func textOfAnotherForm_isNoID(text: String) {
    #expect(SystemTransferID(text: text) == nil)
  }

  @Test func ids_areReadBack() throws {
    let commit = try #require(CommitHash(text: String(repeating: "y", count: 52)))
    let ids: [SystemTransferID] = [
      .content(.random(), 5..<900), .proof(.random(), 0..<1), .part(.random(), 7), .commit(commit),
    ]
    for id in ids { #expect(SystemTransferID(text: id.text) == id) }
  }
}
