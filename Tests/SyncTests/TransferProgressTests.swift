import Foundation
import Synchronization
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Progress under every possible failure: it never runs backwards, and it reaches its total.
struct TransferProgressTests {
  private static let part = ("PUT", "/v1/blobs/{blobID}/parts/{index}")

  /// The fractions that were seen, in order.
  private final class Seen: Sendable {
    private let state = Mutex<(fractions: [Double], objects: Set<ObjectIdentifier>)>(([], []))

    func look(_ progress: Progress?) {
      guard let progress, progress.totalUnitCount > 0 else { return }
      state.withLock { state in
        state.fractions.append(Double(progress.completedUnitCount) / Double(progress.totalUnitCount))
        state.objects.insert(ObjectIdentifier(progress))
      }
    }

    var fractions: [Double] { state.withLock { $0.fractions } }
    var neverRanBackwards: Bool { fractions == fractions.sorted() }
    var objects: Int { state.withLock { $0.objects.count } }
  }

  /// Parts are lost, the answer is lost, the source changes, another device commits first.
  @Test(arguments: 0..<6 as Range<UInt64>) func anUploadsProgress_survivesItsRetries(seed: UInt64) async throws {
    try await TestWorld.run { world in
      world.skipsComparison()
      var random = SeededNumbers(seed: seed)
      let a = try await world.device("A")
      let b = try await world.device("B")
      let folder = try TemporaryFolder()
      let url = folder.url.appendingPathComponent("film")
      try EndToEndTests.bytes(18_000_000, seed: 1).write(to: url)
      let node = try await a.create("/film").uuid
      a.recorder.serve(ZDCData(cleartextFileURL: url), forNodeID: node)
      try await b.pull()
      try await b.create("/other", "1")
      try await b.sync()
      let manager = try a.zdc.progressManager
      let (seen, users) = (Seen(), Seen())
      let user = try a.localUserID
      let kept = Mutex<[Progress]>([])
      @Sendable func look() {
        let progress = manager.dataUploadProgress(forNodeID: node)
        seen.look(progress)
        users.look(manager.uploadProgress(forLocalUserID: user))
        if let progress { kept.withLock { $0.append(progress) } }
      }
      a.network.fail(.before { look() }, times: 1_000)
      a.network.fail(.after { look() }, times: 1_000)
      for _ in 0..<3 {
        let faults: [Fault] = [.loseRequest, .loseResponse, .answer(status: 503, code: "shuttingDown")]
        a.network.fail(
          faults.randomElement(using: &random) ?? .loseRequest, Self.part.0, Self.part.1,
          occurrence: .random(in: 1...4, using: &random), times: .random(in: 1...4, using: &random))
      }
      if seed % 3 == 0 {
        a.network.fail(
          .before { try EndToEndTests.bytes(9_000_000, seed: 2).write(to: url) }, Self.part.0, Self.part.1,
          occurrence: 2)
      }
      a.network.fail(.loseResponse, "POST", "/v1/commits", occurrence: .random(in: 1...2, using: &random))
      var rounds = 0
      while try await a.queueCount() > 0, rounds < 30 {
        _ = try? await a.sync()
        look()
        a.clock.advance(by: .seconds(600))
        rounds += 1
      }
      #expect(try await a.queueCount() == 0)
      #expect(seen.neverRanBackwards, "\(seen.fractions)")
      #expect(seen.fractions.count > 4)
      // The same object throughout, and complete at the end.
      #expect(seen.objects == 1)
      let progress = try #require(kept.withLock { $0.last })
      #expect(progress.completedUnitCount == progress.totalUnitCount)
      #expect(manager.allUploadingNodeIDs() == [])
      #expect(manager.uploadProgress(forLocalUserID: user) == nil)
    }
  }

  /// The download is cut again and again: the progress of the ticket and of the manager continue.
  @Test(arguments: 0..<4 as Range<UInt64>) func aDownloadsProgress_survivesItsRetries(seed: UInt64) async throws {
    try await TestWorld.run { world in
      world.skipsComparison()
      var random = SeededNumbers(seed: seed)
      let a = try await world.device("A")
      let data = EndToEndTests.bytes(10_000_000, seed: 1)
      try await a.create("/film", TestContent(data: data))
      try await a.sync()
      let b = try await world.device("B")
      try await b.sync()
      let node = try await b.node("/film")
      let content = ("GET", "/v1/trees/{treeID}/nodes/{nodeID}/blobs/{blobID}")
      for occurrence in 1...4 {
        b.network.fail(
          Bool.random(using: &random)
            ? .cutResponse(afterBytes: .random(in: 0...4_000_000, using: &random)) : .loseRequest,
          content.0, content.1, occurrence: occurrence)
      }
      let (seen, managers) = (Seen(), Seen())
      let manager = try b.zdc.progressManager
      let ticket = Mutex<ZDCDownloadTicket?>(nil)
      b.network.fail(
        .before {
          seen.look(ticket.withLock { $0 }?.progress)
          managers.look(manager.downloadProgress(forNodeID: node.uuid))
        }, times: 1_000)
      let downloads = try #require(try b.zdc.downloadManager)
      let file: ZDCCryptoFile? = await withCheckedContinuation { continuation in
        let made = downloads.downloadNodeData(node, completionQueue: .global()) { _, file, _ in
          continuation.resume(returning: file)
        }
        ticket.withLock { $0 = made }
      }
      #expect(try ZDCFileConversion.decryptCryptoFile(intoMemory: try #require(file)) == data)
      #expect(seen.neverRanBackwards)
      #expect(managers.neverRanBackwards)
      #expect(managers.objects == 1)
      let progress = try #require(ticket.withLock { $0 }).progress
      #expect(progress.completedUnitCount == progress.totalUnitCount)
      #expect(manager.allDownloadingNodeIDs() == [])
    }
  }

  @Test func smallUploads_areListedWhileTheirRequestIsUnderWay() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      for number in 0..<20 { try await a.create("/f\(number)", "1") }
      let manager = try a.zdc.progressManager
      let listed = Mutex<[Int]>([])
      a.network.fail(
        .before {
          listed.withLock { $0 += [manager.allUploadingNodeIDs().count, manager.allUploadingOperationUUIDs().count] }
        },
        "POST", "/v1/commits")
      try await a.sync()
      #expect(listed.withLock { $0 } == [20, 40])
      #expect(manager.allUploadingNodeIDs() == [])
    }
  }
}
