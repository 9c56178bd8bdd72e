import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Files that the disk manager keeps across uploads, downloads and relaunches.
struct DiskManagerTests {
  private func files(_ device: TestDevice) throws -> [String] {
    let folder = try device.zdc.databasePath.appendingPathExtension("files")
    return try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.count == 32 }
  }

  private func text(_ export: ZDCDiskExport?) throws -> String? {
    try export?.cryptoFile.map {
      String(decoding: try ZDCFileConversion.decryptCryptoFile(intoMemory: $0), as: UTF8.self)
    }
  }

  /// Creates a node and imports its file.
  private func createWithFile(
    _ device: TestDevice, _ path: String, _ text: String, _ configure: (ZDCDiskImport) -> Void
  ) async throws -> ZDCNode {
    let disk = try device.disk()
    let diskImport = ZDCDiskImport(cleartextData: Data(text.utf8))
    diskImport.storePersistently = true
    configure(diskImport)
    let node = try await device.create(path, text)
    try disk.importNodeData(diskImport, for: node)
    return node
  }

  // MARK: Uploads

  @Test func anUploadFromTheDiskManager_migratesToTheCacheWhenItIsDone() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      let text = String(repeating: "large content ", count: 20_000)
      let node = try await createWithFile(a, "/photo", text) { $0.migrateToCacheAfterUpload = true }
      let export = try #require(try a.disk().nodeData(node))
      #expect(export.isStoredPersistently)
      a.recorder.serve(export.cryptoFile.map { ZDCData(cryptoFile: $0) }, forNodeID: node.uuid)
      try await a.sync()
      #expect(try a.disk().nodeData(node)?.isStoredPersistently == false)
      #expect(try self.text(a.disk().nodeData(node)) == text)
      try await world.settle(a, b)
      let file = try await b.downloads().downloadNodeData(b.existing("/photo")).cryptoFile
      #expect(try ZDCFileConversion.decryptCryptoFile(intoMemory: file) == Data(text.utf8))
    }
  }

  @Test func itWaitsForAllQueuedUploads_andSurvivesARelaunchInBetween() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let node = try await createWithFile(a, "/photo", "one") { $0.deleteAfterUpload = true }
      a.recorder.on(.pushed, "/photo", times: 1) { node, transaction in
        // Queued in the same transaction that completes the first upload.
        guard let transaction = transaction as? ZDCReadWriteTransaction else { return }
        let cloud = try a.zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID)
        cloud?.queueDataUpload(forNodeID: node.uuid, withChangeset: nil)
      }
      try await a.push()
      #expect(try await a.queueCount() == 1)
      #expect(try text(a.disk().nodeData(node)) == "one")
      try await a.relaunch()
      #expect(try text(a.disk().nodeData(node)) == "one")
      try await a.sync()
      #expect(try a.disk().nodeData(node) == nil)
      try a.disk().finishPending()
      #expect(try files(a) == [])
    }
  }

  @Test func aDeviceThatDiesAnywhereInThePush_neitherLosesTheFileNorKeepsItTooLong() async throws {
    for commits in 0..<6 {
      try await TestWorld.run { world in
        let a = try await world.device("A")
        let node = try await createWithFile(a, "/photo", "one") { $0.deleteAfterUpload = true }
        a.die(afterCommits: commits)
        do { try await a.sync() } catch {}
        try await a.relaunch()
        if try await a.queueCount() > 0 { #expect(try text(a.disk().nodeData(node)) == "one", "\(commits)") }
        try await a.sync()
        #expect(try a.disk().nodeData(node) == nil, "\(commits)")
        try a.disk().finishPending()
        #expect(try files(a) == [], "\(commits)")
      }
    }
  }

  // MARK: Downloads

  @Test func aDownloadIsKeptAsTheOptionsSay() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      let content = TestContent(
        data: Data(String(repeating: "0123456789", count: 30_000).utf8), metadata: Data("meta".utf8),
        thumbnail: Data("thumb".utf8))
      try await a.create("/photo", content)
      try await a.sync()
      try await b.sync()
      let node = try await b.existing("/photo")
      let (disk, downloads) = (try b.disk(), try b.downloads())

      let unmanaged = try await downloads.downloadNodeData(node).cryptoFile
      #expect(disk.nodeData(node) == nil && unmanaged.retainToken == nil)
      disk.deleteFileIfUnmanaged(unmanaged.fileURL)
      #expect(!FileManager.default.fileExists(atPath: unmanaged.fileURL.path))

      let options = ZDCDownloadOptions()
      options.cacheToDiskManager = true
      let cached = try await downloads.downloadNodeData(node, options: options).cryptoFile
      disk.deleteFileIfUnmanaged(cached.fileURL)
      let export = try #require(disk.nodeData(node))
      #expect(export.eTag == node.eTag_data && !export.isStoredPersistently)
      #expect(export.cryptoFile?.fileFormat == .cloudFile && export.cryptoFile?.fileURL == cached.fileURL)
      #expect(try ZDCFileConversion.decryptCryptoFile(intoMemory: cached) == content.data)
      #expect(try ZDCFileConversion.decryptThumbnail(of: try #require(export.cryptoFile)) == content.thumbnail)

      options.savePersistentlyToDiskManager = true
      _ = try await downloads.downloadNodeData(node, options: options)
      #expect(disk.nodeData(node)?.isStoredPersistently == true)
      #expect(try files(b).count == 1)

      // Of metadata and thumbnail, only the thumbnail is cached, unless the options say otherwise.
      let none = ZDCDownloadOptions()
      _ = try await downloads.downloadNodeMeta(node, components: .all, options: none)
      #expect(disk.nodeThumbnail(node) == nil)
      _ = try await downloads.downloadNodeMeta(node, components: .all)
      #expect(try text(disk.nodeThumbnail(node)) == "thumb")
      try await b.relaunch()
      #expect(try text(b.disk().nodeThumbnail(node)) == "thumb")
    }
  }

  @Test func aDownloadDoesNotReplaceWhatIsOnItsWayUp() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.create("/note", "in the cloud")
      try await a.sync()
      let node = try await a.existing("/note")
      let disk = try a.disk()
      try await a.edit("/note", "newer")
      try disk.importNodeData(ZDCDiskImport(cleartextData: Data("newer".utf8)), for: node)
      let options = ZDCDownloadOptions()
      options.cacheToDiskManager = true
      let file = try await a.downloads().downloadNodeData(node, options: options).cryptoFile
      #expect(try ZDCFileConversion.decryptCryptoFile(intoMemory: file) == Data("in the cloud".utf8))
      #expect(try text(disk.nodeData(node)) == "newer")
      disk.deleteFileIfUnmanaged(file.fileURL)
      try await a.sync()
      disk.finishPending()
      #expect(try files(a).count == 1)
    }
  }

  @Test func aNodeThatIsDeletedElsewhereTakesItsFilesAlong_alsoTheUser() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/folder")
      try await a.create("/folder/note", "text")
      try await world.settle(a, b)
      let node = try await b.existing("/folder/note")
      try b.disk().importNodeData(ZDCDiskImport(cleartextData: Data("local".utf8)), for: node)
      try await a.delete("/folder")
      try await a.sync()
      try await b.sync()
      try b.disk().finishPending()
      #expect(try files(b) == [])
    }
  }

  // MARK: Confidentiality

  @Test func nothingThatWasDownloadedIsOnDiskInTheClear() async throws {
    let canaries = ["canary-in-the-content-61", "canary-in-a-thumbnail-62", "canary-in-metadata-63"]
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create(
        "/note",
        TestContent(
          data: Data(canaries[0].utf8), metadata: Data(canaries[2].utf8), thumbnail: Data(canaries[1].utf8)))
      try await a.sync()
      try await b.sync()
      let node = try await b.existing("/note")
      let downloads = try b.downloads()
      let options = ZDCDownloadOptions()
      options.savePersistentlyToDiskManager = true
      _ = try await downloads.downloadNodeData(node, options: options)
      _ = try await downloads.downloadNodeMeta(node, components: .all, options: options)
      #expect(try files(b).count == 2)
      #expect(try CanaryScanner(canaries).scan(folder: b.folder).isEmpty)
    }
  }
}

extension TestDevice {
  func disk() throws -> ZDCDiskManager {
    let disk = try zdc.diskManager
    return try #require(disk)
  }

  func downloads() throws -> ZDCDownloadManager {
    let downloads = try zdc.downloadManager
    return try #require(downloads)
  }

  /// Returns the node at a path like `/a/b`.
  func existing(_ text: String) async throws -> ZDCNode {
    let path = try #require(ZDCTreesystemPath(text))
    let node = try await write { _, cloud in cloud.node(path: path) }
    return try #require(node)
  }
}
