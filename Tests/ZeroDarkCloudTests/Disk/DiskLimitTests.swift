import Foundation
import Testing
import ZDCTreesystem
import ZeroDarkCloudTesting

@testable import ZDCAccounts
@testable import ZDCClientStore
@testable import ZDCTransfers
@testable import ZeroDarkCloud

@Suite struct DiskLimitTests {
  /// Returns the disk space that one node's test data takes.
  private func size(_ fixture: DiskFixture) throws -> UInt64 {
    try fixture.put("x")
    let size = fixture.disk.storageSizeForCachedNodeData()
    try fixture.disk.deleteNodeData(fixture.node.uuid)
    return size
  }

  @Test func theLeastRecentlyUsedGoes_andAPersistentOneStays() async throws {
    try await DiskFixture.run(nodes: 6) { fixture in
      fixture.disk.maxNodeDataCacheSize = try size(fixture) * 3
      fixture.disk.finishPending()
      try fixture.put("x", fixture.nodes[5]) { $0.storePersistently = true }
      for index in 0..<3 { try fixture.put("x", fixture.nodes[index]) }
      #expect(fixture.present() == [0, 1, 2, 5])
      // The clock does not advance, so only the order of use counts. Checking whether content exists is not a use.
      _ = fixture.disk.nodeData(fixture.nodes[0])
      _ = fixture.disk.hasNodeData(fixture.nodes[1].uuid)
      try fixture.put("x", fixture.nodes[3])
      #expect(fixture.present() == [0, 2, 3, 5])
      try fixture.put("x", fixture.nodes[4])
      #expect(fixture.present() == [0, 3, 4, 5])
      try fixture.checkFiles()
    }
  }

  @Test func usesAreKnownAfterARelaunch_thoughTheClockWasPutBack() async throws {
    try await DiskFixture.run(nodes: 4) { fixture in
      let size = try size(fixture)
      fixture.clock.advance(by: .seconds(1_000))
      for index in 0..<3 { try fixture.put("x", fixture.nodes[index]) }
      _ = fixture.disk.nodeData(fixture.nodes[0])
      fixture.disk.stop()
      let next = try fixture.otherProcess()
      next.disk.finishPending()
      next.disk.maxNodeDataCacheSize = size * 3
      try next.put("x", next.nodes[3])
      #expect(next.present() == [0, 2, 3])
      try next.checkFiles()
      try next.close()
    }
  }

  @Test func filesAboveTheLimitAreNotKept_butTheReturnedFileStaysForItsHolder() async throws {
    try await DiskFixture.run { fixture in
      fixture.disk.maxNodeDataCacheSize = 0
      var file: ZDCCryptoFile? = try fixture.disk.importNodeData(
        ZDCDiskImport(cleartextData: Data("x".utf8)), for: fixture.node)
      fixture.disk.finishPending()
      #expect(fixture.present() == [])
      #expect(
        try String(decoding: ZDCFileConversion.decryptCryptoFile(intoMemory: try #require(file)), as: UTF8.self) == "x")
      file = nil
      #expect(try fixture.fileNames() == [])
      try fixture.checkFiles()
      // Thumbnails have a separate limit, and persistent content has none.
      try fixture.put("x") { $0.storePersistently = true }
      try fixture.disk.importNodeThumbnail(ZDCDiskImport(cleartextData: Data("t".utf8)), for: fixture.node)
      #expect(fixture.present() == [0] && fixture.disk.hasNodeThumbnail(fixture.node.uuid))
      // From persistent storage into a cache without room.
      try fixture.disk.makeNodeDataPersistent(false, forNodeID: fixture.node.uuid)
      #expect(fixture.present() == [])
    }
  }

  @Test func theLimitHoldsUnderLoad_andWhenItIsLowered() async throws {
    try await DiskFixture.run(nodes: 60) { fixture in
      let (disk, nodes) = (fixture.disk, fixture.nodes)
      let limit = try size(fixture) * 10
      disk.maxNodeDataCacheSize = limit
      try await withThrowingTaskGroup(of: Void.self) { group in
        for round in 0..<4 {
          group.addTask {
            for index in nodes.indices {
              try disk.importNodeData(
                ZDCDiskImport(cleartextData: Data("x".utf8)), for: nodes[(index * 7 + round * 13) % nodes.count])
              #expect(disk.storageSizeForCachedNodeData() <= limit)
            }
          }
        }
        try await group.waitForAll()
      }
      #expect(disk.storageSizeForCachedNodeData() == limit)
      try fixture.checkFiles()
      #expect(try fixture.fileNames().count == 10)
      disk.maxNodeDataCacheSize = limit / 2
      disk.finishPending()
      #expect(disk.storageSizeForCachedNodeData() == limit / 2)
    }
  }

  /// The upload still has to read content that is deleted or moved to the cache after it.
  @Test func filesThatAwaitUpload_areRemovedNeitherByLimitNorByTime() async throws {
    try await DiskFixture.run(nodes: 6) { fixture in
      fixture.disk.maxNodeDataCacheSize = try size(fixture) * 2
      try fixture.put("x", fixture.nodes[0]) { diskImport in
        diskImport.deleteAfterUpload = true
        diskImport.expiration = 1
      }
      try fixture.put("x", fixture.nodes[1]) { diskImport in
        diskImport.storePersistently = true
        diskImport.migrateToCacheAfterUpload = true
        diskImport.expiration = 1
      }
      for index in 2..<6 { try fixture.put("x", fixture.nodes[index]) }
      fixture.clock.advance(by: .seconds(10))
      try fixture.disk.removeExpired()
      #expect(fixture.present() == [0, 1, 4, 5])
      try await fixture.connection.write { transaction in
        for node in fixture.nodes.prefix(2) {
          let row = try #require(try transaction.nodes.node(uuid: node.uuid))
          try DiskWriter(transaction).uploadsFinished(node: row.id)
        }
      }
      // One was deleted, and the other is the newest in the cache. The limit still holds.
      #expect(fixture.present() == [1, 5])
      #expect(fixture.disk.storageSizeForCachedNodeData() == fixture.disk.maxNodeDataCacheSize)
      fixture.clock.advance(by: .seconds(10))
      #expect(fixture.present() == [5])
      try fixture.checkFiles()
    }
  }

  /// Without an upload nothing would ever delete the content, so it is cached like everything else.
  @Test func filesWithoutAnUpload_areNotKeptForOne() async throws {
    try await DiskFixture.run { fixture in
      let node = fixture.node
      try await fixture.connection.write { transaction in
        let row = try #require(try transaction.nodes.node(uuid: node.uuid))
        for operation in try transaction.operations.operations(node: row.id) {
          try transaction.operations.delete(id: operation.id)
        }
      }
      try fixture.put("x") { $0.deleteAfterUpload = true }
      #expect(fixture.disk.nodeData(node)?.isStoredPersistently == false)
      let user = ZDCUser(uuid: "u", isLocal: false)
      let avatar = ZDCDiskImport(cleartextData: Data("x".utf8))
      avatar.deleteAfterUpload = true
      try fixture.disk.importUserAvatar(avatar, for: user)
      #expect(fixture.disk.storageSizeForPersistentUserAvatars() == 0)
      #expect(fixture.disk.storageSizeForCachedUserAvatars() > 0)
      // Unless the import asks for persistent storage.
      try fixture.put("x") { diskImport in
        diskImport.deleteAfterUpload = true
        diskImport.storePersistently = true
      }
      #expect(fixture.disk.nodeData(node)?.isStoredPersistently == true)
    }
  }

  /// Imports expire, uploads end, and evictions and readers run, all concurrently.
  @Test func migrationAndExpiryUnderLoad_keepTheLimit_andEveryReadersFile() async throws {
    try await DiskFixture.run(nodes: 12) { fixture in
      let (disk, nodes, clock) = (fixture.disk, fixture.nodes, fixture.clock)
      let limit = try size(fixture) * 4
      disk.maxNodeDataCacheSize = limit
      try await withThrowingTaskGroup(of: Void.self) { group in
        for writer in 0..<2 {
          group.addTask {
            for round in 0..<60 {
              let node = nodes[(round * 5 + writer * 7) % nodes.count]
              let diskImport = ZDCDiskImport(cleartextData: Data(node.uuid.utf8))
              diskImport.storePersistently = round % 2 == 0
              diskImport.migrateToCacheAfterUpload = round % 4 == 0
              diskImport.deleteAfterUpload = round % 4 == 2
              diskImport.expiration = round % 3 == 0 ? 5 : -1
              try disk.importNodeData(diskImport, for: node)
              clock.advance(by: .seconds(1))
              try await fixture.connection.write { transaction in
                let row = try #require(try transaction.nodes.node(uuid: node.uuid))
                try DiskWriter(transaction).uploadsFinished(node: row.id)
              }
              #expect(disk.storageSizeForCachedNodeData() <= limit)
            }
          }
        }
        for reader in 0..<2 {
          group.addTask {
            for round in 0..<300 {
              let node = nodes[(round + reader * 5) % nodes.count]
              guard let export = disk.nodeData(node) else { continue }
              let text = try export.text()
              #expect(text == node.uuid)
            }
          }
        }
        try await group.waitForAll()
      }
      clock.advance(by: .seconds(10))
      try disk.removeExpired()
      #expect(disk.storageSizeForPersistentNodeData() == 0)
      try fixture.checkFiles()
    }
  }

  @Test func sizesAreCountedByKindAndPlace() async throws {
    try await DiskFixture.run(nodes: 2) { fixture in
      let (disk, one) = (fixture.disk, try size(fixture))
      try fixture.put("x", fixture.nodes[0])
      try fixture.put("x", fixture.nodes[1]) { $0.storePersistently = true }
      try disk.importNodeThumbnail(ZDCDiskImport(cleartextData: Data("x".utf8)), for: fixture.nodes[0])
      try disk.importUserAvatar(ZDCDiskImport(cleartextData: Data("x".utf8)), for: ZDCUser(uuid: "u", isLocal: false))
      let sizes = [
        disk.storageSizeForAllNodeData(), disk.storageSizeForPersistentNodeData(), disk.storageSizeForCachedNodeData(),
        disk.storageSizeForAllNodeThumbnails(), disk.storageSizeForPersistentNodeThumbnails(),
        disk.storageSizeForCachedNodeThumbnails(), disk.storageSizeForAllUserAvatars(),
        disk.storageSizeForPersistentUserAvatars(), disk.storageSizeForCachedUserAvatars(),
      ]
      #expect(sizes == [2 * one, one, one, one, 0, one, one, 0, one])
      disk.finishPending()
      let files = try fixture.fileNames().map { try Data(contentsOf: disk.folder.url($0)).count }
      #expect(files.reduce(0, +) == Int(4 * one))
    }
  }

  // MARK: Expiry

  @Test func expiredFilesAreNotReturned_andTheNextImportRemovesThem() async throws {
    try await DiskFixture.run(nodes: 4) { fixture in
      fixture.disk.defaultNodeDataCacheExpiration = 100
      try fixture.put("default", fixture.nodes[0])
      try fixture.put("short", fixture.nodes[1]) { $0.expiration = 10 }
      try fixture.put("for ever", fixture.nodes[2]) { $0.expiration = -1 }
      try fixture.put("stored", fixture.nodes[3]) { $0.storePersistently = true }
      fixture.clock.advance(by: .seconds(9))
      #expect(fixture.present() == [0, 1, 2, 3])
      fixture.clock.advance(by: .seconds(1))
      #expect(fixture.present() == [0, 2, 3] && fixture.disk.nodeData(fixture.nodes[1]) == nil)
      #expect(try fixture.fileNames().count == 4)
      try fixture.put("default", fixture.nodes[0])
      fixture.disk.finishPending()
      #expect(try fixture.fileNames().count == 3)
      // The expiration counts from the time at which the content entered the cache.
      fixture.clock.advance(by: .seconds(99))
      #expect(fixture.present() == [0, 2, 3])
      fixture.clock.advance(by: .seconds(1))
      #expect(fixture.present() == [2, 3])
      try fixture.disk.makeNodeDataPersistent(false, forNodeID: fixture.nodes[3].uuid)
      fixture.clock.advance(by: .seconds(100))
      #expect(fixture.present() == [2])
      let next = try fixture.asIfKilledNow()
      next.disk.finishPending()
      #expect(try next.fileNames().count == 1)
      try next.close()
    }
  }

  // MARK: Readers

  @Test func aReaderNeverLosesItsFile_whateverBecomesOfTheRow() async throws {
    try await DiskFixture.run(nodes: 5) { fixture in
      let size = try size(fixture)
      for node in fixture.nodes { try fixture.put("x", node) { $0.expiration = 60 } }
      var held: [ZDCCryptoFile]? = try fixture.nodes.map { try #require(fixture.disk.nodeData($0)?.cryptoFile) }
      try fixture.disk.deleteNodeData(fixture.nodes[0].uuid)
      try fixture.put("y", fixture.nodes[1])
      fixture.disk.maxNodeDataCacheSize = size * 3
      fixture.disk.finishPending()
      fixture.clock.advance(by: .seconds(60))
      try fixture.disk.removeExpired()
      try await fixture.connection.write { transaction in
        let row = try #require(try transaction.nodes.node(uuid: fixture.nodes[4].uuid))
        try transaction.nodes.deleteSubtree(of: row.id)
      }
      fixture.disk.finishPending()
      #expect(fixture.present() == [1])
      for file in try #require(held) {
        #expect(try ZDCFileConversion.decryptCryptoFile(intoMemory: file) == Data("x".utf8))
      }
      #expect(try fixture.fileNames().count == 6)
      held = nil
      #expect(try fixture.fileNames().count == 1)
    }
  }

  @Test func aReaderInAnotherProcessIsWaitedFor() async throws {
    try await DiskFixture.run { fixture in
      try fixture.put("x")
      let other = try fixture.otherProcess()
      var file = try #require(other.disk.nodeData(fixture.node)?.cryptoFile) as ZDCCryptoFile?
      try fixture.disk.deleteNodeData(fixture.node.uuid)
      fixture.disk.finishPending()
      other.disk.finishPending()
      #expect(try ZDCFileConversion.decryptCryptoFile(intoMemory: try #require(file)) == Data("x".utf8))
      file = nil
      try fixture.disk.collectGarbage()
      #expect(try fixture.fileNames() == [])
      try other.close()
    }
  }

  @Test func concurrentReadersAndEviction_noReaderFindsAFileMissing() async throws {
    try await DiskFixture.run(nodes: 8) { fixture in
      let (disk, nodes) = (fixture.disk, fixture.nodes)
      disk.maxNodeDataCacheSize = try size(fixture) * 4
      let read = Locked(0)
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask {
          for round in 0..<150 {
            let node = nodes[round % nodes.count]
            try disk.importNodeData(ZDCDiskImport(cleartextData: Data(node.uuid.utf8)), for: node)
          }
        }
        for reader in 0..<3 {
          group.addTask {
            for round in 0..<300 {
              let node = nodes[(round * 3 + reader) % nodes.count]
              guard let file = disk.nodeData(node)?.cryptoFile else { continue }
              let data = try ZDCFileConversion.decryptCryptoFile(intoMemory: file)
              #expect(data == Data(node.uuid.utf8))
              read.withLock { $0 += 1 }
            }
          }
        }
        try await group.waitForAll()
      }
      #expect(read.withLock { $0 } > 0)
      #expect(disk.holds.held.isEmpty)
    }
  }

  // MARK: Changes

  @Test func changesAreReportedAfterTheCommit_severalAsOneToASlowReader() async throws {
    struct Stop: Error {}
    try await DiskFixture.run(nodes: 2) { fixture in
      var changes = fixture.disk.changes.makeAsyncIterator()
      try fixture.put("x", fixture.nodes[0])
      #expect(try #require(await changes.next()).changedNodeData == [fixture.nodes[0].uuid])
      await #expect(throws: Stop.self) {
        try await fixture.connection.write { _ in
          try fixture.put("y", fixture.nodes[1])
          throw Stop()
        }
      }
      try fixture.disk.importNodeThumbnail(ZDCDiskImport(), for: fixture.nodes[1])
      try fixture.disk.importUserAvatar(ZDCDiskImport(), for: ZDCUser(uuid: "u", isLocal: false))
      var seen = ZDCDiskManagerChanges()
      while seen.changedUsersIDs.isEmpty { seen.formUnion(try #require(await changes.next())) }
      #expect(seen.changedNodeData.isEmpty && seen.changedNodeIDs == [fixture.nodes[1].uuid])
      #expect(seen.changedUsersIDs == ["u"])
    }
  }

  /// The main queue is busy while a hundred transactions commit.
  @Test func aBusyMainQueue_getsOneNotificationForAll() async throws {
    try await DiskFixture.run(nodes: 50) { fixture in
      let posted = Locked<[ZDCDiskManagerChanges]>([])
      let observer = NotificationCenter.default.addObserver(
        forName: .ZDCDiskManagerChanged, object: fixture.disk, queue: nil
      ) { notification in
        guard let changes = notification.userInfo?[kZDCDiskManagerChanges] as? ZDCDiskManagerChanges else { return }
        posted.withLock { $0.append(changes) }
      }
      let goOn = DispatchSemaphore(value: 0)
      DispatchQueue.main.async { goOn.wait() }
      for node in fixture.nodes {
        try fixture.disk.importNodeThumbnail(ZDCDiskImport(), for: node)
        try fixture.put("x", node)
      }
      goOn.signal()
      let nodes = Set(fixture.nodes.map(\.uuid))
      await withCheckedContinuation { continuation in DispatchQueue.main.async { continuation.resume() } }
      NotificationCenter.default.removeObserver(observer)
      let told = posted.withLock { $0 }
      // One notification from before the queue was busy, and one for the rest.
      #expect((1...2).contains(told.count))
      #expect(told.reduce(into: Set<String>()) { $0.formUnion($1.changedNodeData) } == nodes)
      #expect(told.reduce(into: Set<String>()) { $0.formUnion($1.changedNodeThumbnails) } == nodes)
    }
  }

  @Test func changesAreANotificationToo() async throws {
    try await DiskFixture.run { fixture in
      let (notifications, continuation) = AsyncStream.makeStream(of: ZDCDiskManagerChanges?.self)
      let observer = NotificationCenter.default.addObserver(
        forName: .ZDCDiskManagerChanged, object: fixture.disk, queue: nil
      ) { continuation.yield($0.userInfo?[kZDCDiskManagerChanges] as? ZDCDiskManagerChanges) }
      try fixture.disk.importNodeThumbnail(ZDCDiskImport(), for: fixture.node)
      var iterator = notifications.makeAsyncIterator()
      #expect(await iterator.next()??.changedNodeThumbnails == [fixture.node.uuid])
      NotificationCenter.default.removeObserver(observer)
    }
  }
}
