import Foundation
import GRDB
import Synchronization
import Testing
import ZDCTreesystem
import ZeroDarkCloudTesting

@testable import ZDCClientStore
@testable import ZDCTransfers
@testable import ZeroDarkCloud

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The maximum size of files that this process writes.
private enum FileSize {
  static func limit(_ bytes: UInt64?) {
    signal(SIGXFSZ, SIG_IGN)
    var limit = rlimit()
    #if canImport(Glibc)
      let resource = __rlimit_resource_t(RLIMIT_FSIZE.rawValue)
    #else
      let resource = RLIMIT_FSIZE
    #endif
    #expect(getrlimit(resource, &limit) == 0)
    limit.rlim_cur = bytes.map { rlim_t($0) } ?? limit.rlim_max
    #expect(setrlimit(resource, &limit) == 0)
  }
}

@Suite struct DiskCrashTests {
  /// Copies a fixture's files after each step, once a test points it at the fixture.
  private final class Camera: Sendable {
    private struct State {
      var fixture: DiskFixture?
      var pictures: [(step: DiskStep, fixture: DiskFixture)] = []
    }
    private let state = Mutex(State())

    func point(at fixture: DiskFixture) { state.withLock { $0.fixture = fixture } }

    func step(_ step: DiskStep) throws {
      guard let fixture = state.withLock({ $0.fixture }) else { return }
      let picture = try fixture.asIfKilledNow()
      state.withLock { $0.pictures.append((step, picture)) }
    }

    func take() -> [(step: DiskStep, fixture: DiskFixture)] {
      state.withLock { state in
        defer { state = State() }
        return state.pictures
      }
    }
  }

  @Test(arguments: [false, true])
  func aKillAfterAnyStepOfAnImport_leavesTheOldOrTheNew_andNothingElse(fromAFile: Bool) async throws {
    let camera = Camera()
    try await DiskFixture.run(onStep: camera.step) { fixture in
      try fixture.put("old") { $0.eTag = "old" }
      fixture.disk.finishPending()
      let sealed = try #require(fixture.disk.nodeData(fixture.node)?.cryptoFile)
      let diskImport = fromAFile ? ZDCDiskImport(cryptoFile: sealed) : ZDCDiskImport(cleartextData: Data("new".utf8))
      diskImport.eTag = "new"
      camera.point(at: fixture)
      try fixture.disk.importNodeData(diskImport, for: fixture.node)
      withExtendedLifetime(sealed) {}
      fixture.disk.finishPending()
      let pictures = camera.take()
      let steps = Set(pictures.map(\.step))
      #expect(steps.isSuperset(of: [.fileWritten, .fileSynced, .rowWritten, .committed]))
      for (step, picture) in pictures {
        try picture.checkFiles()
        let export = try #require(picture.disk.nodeData(picture.node), "\(step)")
        let isNew = ![.fileBegun, .fileWritten, .fileSynced, .rowWritten].contains(step)
        #expect(export.eTag == (isNew ? "new" : "old"), "\(step)")
        #expect(try export.text() == (isNew && !fromAFile ? "new" : "old"), "\(step)")
        try picture.close()
      }
    }
  }

  @Test func aKillAfterAnyStepOfADelete_leavesAllOrNothing() async throws {
    let camera = Camera()
    try await DiskFixture.run(onStep: camera.step) { fixture in
      try fixture.put("old")
      fixture.disk.finishPending()
      camera.point(at: fixture)
      try fixture.disk.deleteNodeData(fixture.node.uuid)
      fixture.disk.finishPending()
      let pictures = camera.take()
      #expect(pictures.map(\.step) == [.fileDeleted, .garbageRemoved])
      for (_, picture) in pictures {
        try picture.checkFiles()
        #expect(picture.present() == [])
        try picture.close()
      }
    }
  }

  @Test func aKillBetweenCommitAndDeletion_theNextLaunchDeletes() async throws {
    try await DiskFixture.run { fixture in
      try fixture.put("old")
      let held = try #require(fixture.disk.nodeData(fixture.node)?.cryptoFile)
      try fixture.put("new")
      fixture.disk.finishPending()
      // This process holds the old file, so it still exists. The next process holds nothing.
      let next = try fixture.asIfKilledNow()
      try next.checkFiles()
      #expect(try next.text() == "new" && next.fileNames().count == 1)
      try next.close()
      withExtendedLifetime(held) {}
    }
  }

  @Test func theSweepTakesManyOrphans_andLeavesWhatAnotherProcessWrites() async throws {
    let (reached, goOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let isArmed = Mutex(false)
    try await DiskFixture.run(
      onStep: { step in
        guard step == .fileSynced, isArmed.withLock({ $0 }) else { return }
        reached.signal()
        goOn.wait()
      }
    ) { fixture in
      try fixture.put("kept")
      for _ in 0..<700 {
        try Data("orphan".utf8).write(to: fixture.disk.folder.url(DiskFolder.newName()))
      }
      let foreign = fixture.disk.folder.url.appendingPathComponent("not-ours.txt")
      try Data().write(to: foreign)
      isArmed.withLock { $0 = true }
      let writing = Thread {
        do { try fixture.put("written meanwhile") } catch { Issue.record(error) }
      }
      writing.start()
      await offThread { reached.wait() }
      let other = try fixture.otherProcess()
      other.disk.finishPending()
      #expect(try fixture.fileNames().count == 2)
      #expect(FileManager.default.fileExists(atPath: foreign.path))
      goOn.signal()
      while try fixture.text() != "written meanwhile" { await Task.yield() }
      try other.close()
    }
  }

  private func offThread(_ work: @escaping @Sendable () -> Void) async {
    await withCheckedContinuation { continuation in
      DispatchQueue.global().async {
        work()
        continuation.resume()
      }
    }
  }

  // MARK: Full disk

  @Test(arguments: [DiskStep.fileBegun, .fileWritten, .fileSynced, .rowWritten])
  func aFullDisk_isATypedError_andLeavesTheOldVersion(at full: DiskStep) async throws {
    let isFull = Mutex(false)
    try await DiskFixture.run(
      onStep: { step in
        if step == full, isFull.withLock({ $0 }) { throw ZDCError(.diskFull) }
      }
    ) { fixture in
      try fixture.put("old")
      isFull.withLock { $0 = true }
      #expect(errorCode { try fixture.put("new") } == .diskFull)
      #expect(try fixture.text() == "old" && fixture.fileNames().count == 1)
      isFull.withLock { $0 = false }
      try fixture.put("new")
      #expect(try fixture.text() == "new")
    }
  }

  /// A limit on file size, in a separate process, simulates a full disk.
  @Test func filesThatMayNotGrow_areATypedError_andLeaveTheOldVersion() async throws {
    await #expect(processExitsWith: .success) {
      try await DiskFixture.run { fixture in
        try fixture.put("old")
        let large = fixture.folder.url.appendingPathComponent("large")
        try Data(repeating: 7, count: 3 << 20).write(to: large)
        let diskImport = ZDCDiskImport(cleartextFileURL: large)
        FileSize.limit(2 << 20)
        #expect(errorCode { try fixture.disk.importNodeData(diskImport, for: fixture.node) } == .diskFull)
        #expect(try fixture.text() == "old" && fixture.fileNames().count == 1)
        FileSize.limit(nil)
        try fixture.disk.importNodeData(diskImport, for: fixture.node)
        #expect(fixture.disk.nodeData(fixture.node)?.cryptoFile?.cleartextFileSize == 3 << 20)
      }
    }
  }

  @Test func aFullDatabase_isATypedError_andLeavesTheOldVersion() async throws {
    try await DiskFixture.run { fixture in
      try fixture.put("old")
      try await fixture.connection.write { transaction in
        let pages = try Int.fetchOne(transaction.database, sql: "PRAGMA page_count") ?? 0
        _ = try Int.fetchOne(transaction.database, sql: "PRAGMA max_page_count = \(pages)")
      }
      // The leaf hashes of a file this large do not fit.
      let large = fixture.folder.url.appendingPathComponent("large")
      try Data().write(to: large)
      let file = try FileHandle(forWritingTo: large)
      try file.truncate(atOffset: 64 << 20)
      try file.close()
      let diskImport = ZDCDiskImport(cleartextFileURL: large)
      diskImport.storePersistently = true
      #expect(errorCode { try fixture.disk.importNodeData(diskImport, for: fixture.node) } == .diskFull)
      #expect(try fixture.text() == "old" && fixture.fileNames().count == 1)
    }
  }

  /// Nothing more can be stored. Operations that free room still work, and stored content can still be read.
  @Test func aFullDatabase_evictsMigratesAndExpires() async throws {
    try await DiskFixture.run(nodes: 8) { fixture in
      let disk = fixture.disk
      for node in fixture.nodes.prefix(6) { try fixture.put("cached", node) { $0.expiration = 60 } }
      let one = disk.storageSizeForCachedNodeData() / 6
      for node in fixture.nodes.suffix(2) {
        try fixture.put("stored", node) { diskImport in
          diskImport.storePersistently = true
          diskImport.migrateToCacheAfterUpload = true
        }
      }
      let reader = try #require(disk.nodeData(fixture.nodes[0])?.cryptoFile)
      try await fixture.connection.write { transaction in
        let pages = try Int.fetchOne(transaction.database, sql: "PRAGMA page_count") ?? 0
        _ = try Int.fetchOne(transaction.database, sql: "PRAGMA max_page_count = \(pages)")
      }
      disk.maxNodeDataCacheSize = 3 * one
      disk.finishPending()
      #expect(disk.storageSizeForCachedNodeData() == 3 * one)
      try await fixture.connection.write { transaction in
        for node in fixture.nodes.suffix(2) {
          let row = try #require(try transaction.nodes.node(uuid: node.uuid))
          try DiskWriter(transaction).uploadsFinished(node: row.id)
        }
      }
      // The two that entered the cache last, and the one of the others that was read.
      #expect(fixture.present() == [0, 6, 7])
      fixture.clock.advance(by: .seconds(60))
      try disk.removeExpired()
      #expect(fixture.present() == [6, 7])
      #expect(try ZDCFileConversion.decryptCryptoFile(intoMemory: reader) == Data("cached".utf8))
    }
  }

  @Test func aSourceThatCannotBeReadLeavesTheOldVersion() async throws {
    try await DiskFixture.run { fixture in
      try fixture.put("old")
      let gone = ZDCDiskImport(cleartextFileURL: fixture.folder.url.appendingPathComponent("gone"))
      #expect(errorCode { try fixture.disk.importNodeData(gone, for: fixture.node) } == .fileFailure)
      #expect(try fixture.text() == "old" && fixture.fileNames().count == 1)
    }
  }
}
