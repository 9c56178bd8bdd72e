import Foundation
import Synchronization
import Testing
import ZDCTreesystem

@testable import ZDCTransfers
@testable import ZeroDarkCloud

@Suite struct SteadyProgressTests {
  @Test func workThatSucceedsAtTheFirstAttempt_isCountedInBytes() {
    var progress = SteadyProgress()
    #expect(progress.total == -1)
    progress.report(0, of: 1_000)
    progress.report(250, of: 1_000)
    #expect((progress.completed, progress.total) == (250, 1_000))
    progress.report(1_000, of: 1_000)
    #expect((progress.completed, progress.total) == (1_000, 1_000))
  }

  @Test func aRestartedAttempt_showsTheOldProgressUntilItExceedsIt() {
    var progress = SteadyProgress()
    progress.report(600, of: 1_000)
    progress.report(0, of: 1_000)
    progress.report(500, of: 1_000)
    #expect(progress.completed == 600)
    progress.report(700, of: 1_000)
    #expect(progress.completed == 700)
  }

  @Test func aTryOfAnotherSize_coversWhatIsLeft() {
    var progress = SteadyProgress()
    progress.report(600, of: 1_000)
    progress.report(0, of: 50)
    progress.report(25, of: 50)
    #expect((progress.completed, progress.total) == (800, 1_000))
    progress.report(50, of: 50)
    #expect(progress.completed == 1_000)
  }

  /// Attempts resume, restart or change their size, in any order.
  @Test(arguments: 0..<200 as Range<UInt64>) func progressNeverRunsBackwards_andReachesItsTotal(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var progress = SteadyProgress()
    var last = 0.0
    for _ in 0..<Int.random(in: 1...8, using: &random) {
      let size = Self.size(&random)
      var done = Bool.random(using: &random) ? 0 : UInt64.random(in: 0...size, using: &random)
      for _ in 0..<Int.random(in: 1...20, using: &random) {
        progress.report(done, of: size)
        #expect(progress.fraction >= last)
        #expect(progress.completed <= progress.total)
        last = progress.fraction
        done += min(size - done, UInt64.random(in: 0...size / 4 + 1, using: &random))
      }
    }
    let size = Self.size(&random)
    progress.report(size, of: size)
    #expect(progress.completed == progress.total)
    progress.finish()
    #expect(progress.fraction == 1)
  }

  private static func size(_ random: inout SeededGenerator) -> UInt64 {
    switch Int.random(in: 0..<4, using: &random) {
    case 0: UInt64.random(in: 0...3, using: &random)
    case 1: UInt64.random(in: 0...10_000, using: &random)
    case 2: UInt64.random(in: 0...10_000_000_000, using: &random)
    default: UInt64.random(in: 0...UInt64.max, using: &random)
    }
  }
}

@Suite struct AggregateProgressTests {
  /// Work is added, continued, retried, abandoned and finished, in any order.
  @Test(arguments: 0..<200 as Range<UInt64>) func listedProgressNeverRunsBackwards_andEndsWithTheLast(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var aggregate = AggregateProgress<Int>()
    var (last, next): (Int64, Int) = (0, 0)
    var fractions: [Int: (fraction: Double, size: UInt64)] = [:]
    func check() {
      #expect(aggregate.completed >= last)
      last = aggregate.completed
      #expect(fractions.isEmpty || last < AggregateProgress<Int>.units)
    }
    for _ in 0..<100 {
      let known = fractions.keys.sorted().randomElement(using: &random)
      switch (Int.random(in: 0..<10, using: &random), known) {
      case (0..<2, _), (_, nil):
        fractions[next] = (0, UInt64.random(in: 0...1_000_000, using: &random))
        next += 1
      case (2, let id?):
        fractions[id] = nil
        if fractions.isEmpty { last = 0 }
        aggregate.end(id, hasSucceeded: Bool.random(using: &random))
        if fractions.isEmpty { aggregate = AggregateProgress() }
      case (3, let id?):
        // The work turns out to be larger or smaller.
        fractions[id]?.size = UInt64.random(in: 0...1_000_000, using: &random)
      case (_, let id?):
        let before = fractions[id]?.fraction ?? 0
        fractions[id]?.fraction = before + (1 - before) * Double.random(in: 0...1, using: &random)
      }
      for (id, item) in fractions { aggregate.report(id, fraction: item.fraction, size: item.size) }
      check()
    }
    for id in fractions.keys.sorted() {
      fractions[id] = nil
      aggregate.end(id, hasSucceeded: true)
      check()
    }
    #expect(aggregate.completed == AggregateProgress<Int>.units || next == 0 || last == 0)
  }

  @Test func largeWorkCountsMore() {
    var aggregate = AggregateProgress<Int>()
    aggregate.report(1, fraction: 0, size: 900)
    aggregate.report(2, fraction: 0, size: 100)
    aggregate.report(1, fraction: 0.5, size: 900)
    #expect(aggregate.completed == 450_000)
    aggregate.report(2, fraction: 1, size: 100)
    #expect(aggregate.completed == 550_000)
    // Added work takes its share of the remaining progress: the remaining 450 units become 900.
    aggregate.report(3, fraction: 0, size: 450)
    #expect(aggregate.completed == 550_000)
    aggregate.report(3, fraction: 1, size: 450)
    #expect(aggregate.completed == 775_000)
    aggregate.end(1, hasSucceeded: false)
    aggregate.end(2, hasSucceeded: true)
    aggregate.end(3, hasSucceeded: true)
    #expect(aggregate.completed == 1_000_000)
  }
}

@Suite struct ProgressManagerTests {
  private static func change(_ node: String, operation: String) -> ZDCProgressManagerChanges {
    ZDCProgressManagerChanges(
      progressType: .upload, localUserID: "u", nodeID: node, metaComponents: [], operationUUID: operation,
      isDataUpload: true)
  }

  /// One thread reports while others read.
  @Test func progressIsReadWhileItIsSet_andNeverRunsBackwards() async {
    let manager = ZDCProgressManager()
    manager.begin(.upload("o"), Self.change("n", operation: "o"))
    let progress = manager.uploadProgress(forOperationUUID: "o")
    let total = manager.uploadProgress(forLocalUserID: "u")
    await withTaskGroup(of: Void.self) { group in
      group.addTask {
        for done in 0...20_000 as ClosedRange<UInt64> { manager.report(.upload("o"), done, of: 20_000) }
        manager.end(.upload("o"), .done)
      }
      for _ in 0..<3 {
        group.addTask {
          var last: (Int64, Int64) = (0, 0)
          while last.0 < 20_000 {
            let now = (progress?.completedUnitCount ?? 20_000, total?.completedUnitCount ?? 0)
            #expect(now.0 >= last.0)
            #expect(now.1 >= last.1)
            last = now
            await Task.yield()
          }
        }
      }
    }
    #expect(progress?.isFinished == true)
    #expect(total?.isFinished == true)
    #expect(progress?.completedUnitCount == 20_000)
    #expect(manager.uploadProgress(forOperationUUID: "o") == nil)
    #expect(manager.uploadProgress(forLocalUserID: "u") == nil)
  }

  /// Observers keep observing the same object.
  @Test func anUploadThatIsTriedAgain_hasTheSameProgress() {
    let manager = ZDCProgressManager()
    manager.begin(.upload("o"), Self.change("n", operation: "o"))
    let progress = manager.dataUploadProgress(forNodeID: "n")
    manager.report(.upload("o"), 60, of: 100)
    manager.end(.upload("o"), .waits)
    #expect(manager.allUploadingNodeIDs() == [])
    #expect(manager.dataUploadProgress(forNodeID: "n") == nil)
    manager.begin(.upload("o"), Self.change("n", operation: "o"))
    #expect(manager.dataUploadProgress(forNodeID: "n") === progress)
    #expect(manager.allUploadingOperationUUIDs("u") == ["o"])
    manager.report(.upload("o"), 10, of: 100)
    #expect(progress?.completedUnitCount == 60)
    manager.end(.upload("o"), .done)
    #expect(progress?.completedUnitCount == 100)
    #expect(manager.state.withLock { $0.entries.isEmpty && $0.uploads.isEmpty })
  }

  @Test func withoutObservers_nothingIsKept() {
    let manager = ZDCProgressManager()
    manager.begin(.upload("o"), Self.change("n", operation: "o"))
    manager.end(.upload("o"), .waits)
    #expect(manager.state.withLock { $0.entries.isEmpty && $0.uploads.isEmpty })
  }

  /// The upload is removed from the queue between two attempts, and never starts again.
  @Test func anUploadThatIsGivenUpBetweenTwoTries_isForgotten() {
    let manager = ZDCProgressManager()
    let uploads = UploadProgress(localUserID: "u", manager: manager)
    let operations = ["a", "b", "c"].map { UploadProgress.Operation(uuid: $0, nodeUUID: "n", isData: true) }
    uploads.begin(operations)
    let watched = manager.uploadProgress(forOperationUUID: "a")
    let done = manager.uploadProgress(forOperationUUID: "c")
    uploads.end(operations, .waits)
    #expect(watched?.isFinished == false)
    // The second operation has no observer.
    #expect(uploads.waitingOperations == ["a", "c"])
    uploads.end([operations[2]], .done)
    #expect(done?.isFinished == true)
    #expect(uploads.waitingOperations == ["a"])
    uploads.forget(["a"])
    #expect(manager.state.withLock { $0.entries.isEmpty && $0.uploads.isEmpty })
    #expect(uploads.waitingOperations == [])
    #expect(watched?.isFinished == false)
  }

  /// Threads begin and end the same work concurrently: whichever is last, the total returns to zero.
  @Test func workThatEndsWhileItBegins_leavesNothingInTheTotal() async {
    let manager = ZDCProgressManager()
    await withTaskGroup(of: Void.self) { group in
      for thread in 0..<8 {
        group.addTask {
          for round in 0..<3_000 {
            let key = ZDCProgressManager.Key.upload("\(round % 3)")
            let entry = manager.begin(key, Self.change("n", operation: "\(round % 3)"))
            manager.report(key, UInt64(round), of: 3_000)
            manager.end(key, (thread + round) % 3 == 0 ? .done : .waits, id: entry.id)
          }
        }
      }
    }
    #expect(manager.state.withLock { $0.entries.isEmpty && $0.uploads.isEmpty })
    #expect(manager.uploadProgress(forLocalUserID: "u") == nil)
  }

  /// The framework's `Progress` as a child of the app's own.
  @Test func anAppAddsItToItsOwn() {
    let manager = ZDCProgressManager()
    manager.begin(.upload("o"), Self.change("n", operation: "o"))
    manager.report(.upload("o"), 0, of: 100)
    let parent = Progress(totalUnitCount: 10)
    if let child = manager.uploadProgress(forOperationUUID: "o") { parent.addChild(child, withPendingUnitCount: 10) }
    manager.report(.upload("o"), 50, of: 100)
    #expect(parent.fractionCompleted == 0.5)
    manager.end(.upload("o"), .done)
    #expect(parent.isFinished)
  }

  @Test func theListsChanges_comeAsASequenceAndAsNotifications() async {
    let manager = ZDCProgressManager()
    let posted = Mutex<[ZDCProgressManagerChanges]>([])
    let observer = NotificationCenter.default.addObserver(
      forName: .ZDCProgressListChangedNotification, object: manager, queue: nil
    ) { notification in
      guard let change = notification.userInfo?[kZDCProgressManagerChanges] as? ZDCProgressManagerChanges else {
        return
      }
      posted.withLock { $0.append(change) }
    }
    defer { NotificationCenter.default.removeObserver(observer) }
    var changes = manager.changes.makeAsyncIterator()
    manager.begin(.upload("o"), Self.change("n", operation: "o"))
    manager.report(.upload("o"), 1, of: 2)
    manager.end(.upload("o"), .done)
    let expected = Self.change("n", operation: "o")
    #expect(await changes.next() == expected)
    #expect(await changes.next() == expected)
    #expect(posted.withLock { $0 } == [expected, expected])
  }

  /// Completions are added to downloads that are already running.
  @Test func listenersJoinTheDownload() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let item = Publisher.Item(data: pattern(300_000), thumbnail: pattern(900))
      let node = try await Publisher(device).publish([item])[0]
      let gate = Gate()
      device.transport.set(
        .init(before: { request in
          if request.path.contains("/blobs/") { try await gate.wait() }
        }))
      #expect(!device.progress.addDataDownloadListener(forNodeID: node.uuid) { _, _, _ in })
      let data = Task { try await device.downloads.downloadNodeData(node) }
      let meta = Task { try await device.downloads.downloadNodeMeta(node, components: .all) }
      while device.progress.allDataDownloadingNodeIDs().isEmpty || device.progress.allMetaDownloadingNodeIDs().isEmpty {
        await Task.yield()
      }
      #expect(device.progress.allDownloadingNodeIDs(node.localUserID) == [node.uuid])
      #expect(device.progress.downloadProgress(forNodeID: node.uuid) != nil)
      let heard = Mutex(0)
      let file: ZDCCryptoFile? = await withCheckedContinuation { continuation in
        let progress = device.progress.metaDownloadProgress(
          forNodeID: node.uuid, components: [.thumbnail], completionQueue: .global()
        ) { _, _, thumbnail, _ in
          heard.withLock { $0 = thumbnail?.count ?? 0 }
        }
        #expect(progress != nil)
        #expect(
          device.progress.addDataDownloadListener(forNodeID: node.uuid, completionQueue: .global()) { _, file, _ in
            continuation.resume(returning: file)
          })
        Task { await gate.open() }
      }
      let first = try await data.value.cryptoFile
      _ = try await meta.value
      #expect(file?.fileURL != first.fileURL)
      while heard.withLock({ $0 }) == 0 { await Task.yield() }
      #expect(heard.withLock { $0 } == 900)
      #expect(device.progress.allDownloadingNodeIDs() == [])
      #expect(device.transport.requests.count { $0.hasPrefix("GET /v1/trees/") } == 3)
    }
  }
}
