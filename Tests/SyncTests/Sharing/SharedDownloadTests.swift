import Foundation
import Testing
import ZDCProtocol
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Downloads of data that another user wrote: of a node inside a graft, and of a received message.
struct SharedDownloadTests {
  enum Place: CaseIterable { case graft, inbox }

  /// Bob's device, and a film that Alice has sent to the server. The device has not pulled it.
  private struct Job {
    let (alice, bob): (TestDevice, TestDevice)
    let place: Place
    let data = Data(String(repeating: "a film ", count: 300_000).utf8)

    init(_ world: TestWorld, _ place: Place) async throws {
      self.place = place
      switch place {
      case .graft:
        let invited = try await GraftTests.Invited(world)
        (alice, bob) = (invited.alice, invited.bob)
        try await bob.graft("/Groceries", invited.invite, from: alice)
        try await world.settle(bob, alice)
        try await alice.create("/Groceries/film", content("old"))
      case .inbox:
        let pair = try await MessageTests.Pair(world)
        (alice, bob) = (pair.alice, pair.bob)
        try await alice.send(String(decoding: data, as: UTF8.self), to: bob)
      }
      try await alice.sync()
      _ = bob.recorder.take()
    }

    func content(_ thumbnail: String) -> TestContent {
      TestContent(data: data, metadata: Data("meta".utf8), thumbnail: Data(thumbnail.utf8))
    }

    func pull() async throws -> ZDCNode {
      try await bob.pull()
      guard place == .inbox else { return try await bob.existing("/Groceries/film") }
      let messages = try await bob.write { _, cloud in
        try cloud.trunkNode(.inbox).map { try cloud.children(ofNodeID: $0.uuid) } ?? []
      }
      return try #require(messages.first)
    }

    /// Deletes the film, which the owner of a branch does, and the recipient of a message.
    func delete(_ node: ZDCNode) async throws {
      if place == .graft { try await alice.delete("/Groceries/film") }
      try await bob.write { [place] _, cloud in
        guard place == .inbox, let node = cloud.node(id: node.uuid) else { return }
        try cloud.delete(node)
      }
      try await alice.sync()
      try await bob.sync()
    }
  }

  private static func opened(_ file: ZDCCryptoFile?) throws -> Data? {
    try file.map { try ZDCFileConversion.decryptCryptoFile(intoMemory: $0) }
  }

  /// - The callback that announces the node marks it and downloads it
  /// => the download has the announced content, and the mark goes with its eTag
  @Test(arguments: Place.allCases) func aCallbackMarksAndDownloadsANodeOfAnotherUser(place: Place) async throws {
    try await TestWorld.run { world in
      let job = try await Job(world, place)
      let bob = job.bob
      let (stream, answers) = AsyncStream<(eTag: String?, file: ZDCCryptoFile?)>.makeStream()
      bob.recorder.on(.new) { node, transaction in
        let transaction = try #require(transaction as? ZDCReadWriteTransaction)
        try bob.zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID)?
          .markNodeAsNeedsDownload(node.uuid, components: .all)
        try bob.downloads().downloadNodeData(node, completionQueue: .global()) { info, file, _ in
          answers.yield((info?.eTag, file))
        }
      }
      let node = try await job.pull()
      var iterator = stream.makeAsyncIterator()
      let answer = try #require(await iterator.next())
      #expect(try Self.opened(answer.file) == job.data)
      if let file = answer.file { try bob.disk().deleteFileIfUnmanaged(file.fileURL) }
      let marked = try await bob.write { _, cloud in
        let before = Set(cloud.nodeIDsMarkedAsNeedsDownload(components: .all))
        cloud.unmarkNodeAsNeedsDownload(node.uuid, components: .all, ifETagMatches: answer.eTag ?? "")
        return (before: before, after: cloud.nodeIDsMarkedAsNeedsDownload(components: .all))
      }
      #expect(marked.before == [node.uuid] && marked.after.isEmpty)
    }
  }

  /// - The download of a node is kept persistently, and the device relaunches; then the node is deleted
  /// => the disk manager has the file after the relaunch, and not after the node is gone
  @Test(arguments: Place.allCases) func aFileOfAnotherUsersNode_isKeptUntilTheNodeGoes(place: Place) async throws {
    try await TestWorld.run { world in
      let job = try await Job(world, place)
      let bob = job.bob
      let node = try await job.pull()
      let options = ZDCDownloadOptions()
      options.savePersistentlyToDiskManager = true
      _ = try await bob.downloads().downloadNodeData(node, options: options)
      try await bob.relaunch()
      let export = try #require(try bob.disk().nodeData(node))
      #expect(export.isStoredPersistently && export.eTag == node.eTag_data)
      #expect(try Self.opened(export.cryptoFile) == job.data)
      try await job.delete(node)
      let disk = try bob.disk()
      disk.finishPending()
      #expect(disk.nodeData(node) == nil)
    }
  }

  @Test func thumbnailsInsideAGraft_areThoseThatTheCallbackAnnounces() async throws {
    try await TestWorld.run { world in
      let job = try await Job(world, .graft)
      let bob = job.bob
      let loader = try #require(
        try bob.zdc.imageLoader(cost: { $0.count }, decode: { String(decoding: $0, as: UTF8.self) }))
      let (stream, answers) = AsyncStream<String?>.makeStream()
      for callback in [RecordingDelegate.Callback.new, .modified] {
        bob.recorder.on(callback, "/Groceries/film") { node, _ in
          loader.fetchNodeThumbnail(node, completionQueue: .global(), preFetch: { _, _ in }) { image, _ in
            answers.yield(image)
          }
        }
      }
      var iterator = stream.makeAsyncIterator()
      _ = try await job.pull()
      #expect(await iterator.next() == .some("old"))
      try await job.alice.edit("/Groceries/film", to: job.content("new"))
      try await job.alice.sync()
      let node = try await job.pull()
      #expect(await iterator.next() == .some("new"))
      let parts = try await bob.downloads().downloadNodeMeta(node, components: .all)
      #expect(parts.metadata == Data("meta".utf8) && parts.thumbnail == Data("new".utf8))
      #expect(try Self.opened(bob.disk().nodeThumbnail(node)?.cryptoFile) == Data("new".utf8))
    }
  }

  /// - The app starts a download that continues in the background, after the pull or in the callback that announces the
  ///   node; the process ends during it
  /// => the next launch delivers the data to the delegate, once
  @Test(arguments: Place.allCases, [false, true])
  func aBackgroundDownloadFromAnotherUser_continuesInTheNextLaunch(place: Place, isInCallback: Bool) async throws {
    try await TestWorld.run { world in
      let job = try await Job(world, place)
      let bob = job.bob
      Self.cutContent(bob)
      if isInCallback { bob.recorder.on(.new) { node, _ in try Self.downloadInBackground(node, bob) } }
      let node = try await job.pull()
      if !isInCallback { try Self.downloadInBackground(node, bob) }
      try await Self.dieWhileDownloading(bob)
      let line = try await bob.write { _, cloud in "background data \(cloud.path(for: node)?.relativePath() ?? "")" }
      for _ in 0..<2 { try await bob.downloads().resumeDownloads() }
      try await bob.relaunch()
      try await bob.downloads().resumeDownloads()
      #expect(bob.recorder.lines.filter { $0.hasPrefix("background") } == [line])
      let files = bob.recorder.takeBackgroundFiles()
      #expect(try files.map { try Self.opened($0) } == [job.data])
      for file in files { try FileManager.default.removeItem(at: file.fileURL) }
    }
  }

  /// Makes the network deliver a part of the content and then nothing.
  private static func cutContent(_ device: TestDevice) {
    device.pauses.hold()
    device.network.fail(.cutResponse(afterBytes: 300_000), "GET", Routes.content)
    device.network.fail(.loseRequest, "GET", Routes.content, occurrence: 2, times: 1_000)
  }

  private static func downloadInBackground(_ node: ZDCNode, _ device: TestDevice) throws {
    let options = ZDCDownloadOptions()
    options.canDownloadWhileInBackground = true
    try device.downloads().downloadNodeData(node, options: options, completionQueue: .global()) { _, file, _ in
      #expect(file == nil)
    }
  }

  /// The process ends while the download waits.
  private static func dieWhileDownloading(_ device: TestDevice) async throws {
    await device.pauses.waitForPause()
    try await device.relaunch()
    device.network.restoreNetwork()
    device.pauses.release()
  }
}
