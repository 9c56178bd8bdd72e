import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Seed 002: memory, disk, network, and when each of them reaches the caller.
struct ThumbnailTests {
  /// An image type of the app: text.
  struct Picture: Sendable, Equatable {
    var text: String
  }

  private struct Told: Sendable, Equatable {
    var pre: Picture?
    var willFetch = false
    var hasTicket = false
    /// Contains nil where there is no thumbnail any more.
    var post: [Picture?] = []
    var errors = 0
  }

  // Small thumbnails travel in batches.
  private static let content = "/v1/trees/{treeID}/zones/{zoneRoot}/contents"

  private func loader(_ device: TestDevice, limit: Int = 1 << 20) throws -> ZDCImageLoader<Picture> {
    let loader = try device.zdc.imageLoader(cacheCostLimit: limit, cost: { $0.text.utf8.count }) { data in
      let text = String(decoding: data, as: UTF8.self)
      return text.hasPrefix("broken") ? nil : Picture(text: text)
    }
    return try #require(loader)
  }

  private func node(_ device: TestDevice, _ path: String) async throws -> ZDCNode {
    try await device.existing(path)
  }

  /// Fetches, and waits for the expected number of results.
  private func fetch(
    _ loader: ZDCImageLoader<Picture>, _ node: ZDCNode, _ options: ZDCFetchOptions? = nil, variant: String? = nil,
    results: Int = 1
  ) async -> Told {
    let (stream, continuation) = AsyncStream.makeStream(of: Result<Picture?, any Error>.self)
    var told = Told()
    let pre = { (image: Picture?, willFetch: Bool) in (told.pre, told.willFetch) = (image, willFetch) }
    let post = { (image: Picture?, error: (any Error)?) in
      continuation.yield(error.map { .failure($0) } ?? .success(image))
      return ()
    }
    let queue = DispatchQueue.global()
    if let variant {
      told.hasTicket =
        loader.fetchNodeThumbnail(
          node, with: options, processingID: variant, processingBlock: { Picture(text: variant + $0.text) },
          completionQueue: queue, preFetch: pre, postFetch: post) != nil
    } else {
      told.hasTicket =
        loader.fetchNodeThumbnail(node, with: options, completionQueue: queue, preFetch: pre, postFetch: post) != nil
    }
    guard told.willFetch else { return told }
    var iterator = stream.makeAsyncIterator()
    for _ in 0..<results {
      switch await iterator.next() {
      case .success(let image): told.post.append(image)
      case .failure, nil: told.errors += 1
      }
    }
    return told
  }

  /// Runs `body` with two devices, of which B has pulled A's node.
  private func world(
    thumbnail: String?, _ body: @Sendable (TestWorld, TestDevice, TestDevice, ZDCNode) async throws -> Void
  ) async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create(
        "/photo", TestContent(data: Data("photo".utf8), thumbnail: thumbnail.map { Data($0.utf8) }))
      try await a.sync()
      try await b.sync()
      b.network.resetCounts()
      try await body(world, a, b, try await node(b, "/photo"))
    }
  }

  private func setThumbnail(_ text: String?, _ device: TestDevice) async throws {
    try await device.edit(
      "/photo", to: TestContent(data: Data("photo".utf8), thumbnail: text.map { Data($0.utf8) }))
    try await device.sync()
  }

  private func mark(_ node: ZDCNode, _ device: TestDevice) async throws {
    try await device.write { _, cloud in cloud.markNodeAsNeedsDownload(node.uuid, components: .all) }
  }

  private func marks(_ node: ZDCNode, _ device: TestDevice) async throws -> [Bool] {
    try await device.write { _, cloud in
      [.thumbnail, .data].map { (component: ZDCNodeComponents) in
        cloud.nodeIsMarkedAsNeedsDownload(node.uuid, components: component)
      }
    }
  }

  // MARK: The chain

  @Test func firstFromTheServer_thenFromMemory_afterARelaunchFromDisk() async throws {
    try await world(thumbnail: "small") { _, _, b, node in
      let picture = Picture(text: "small")
      let images = try loader(b)
      #expect(await fetch(images, node) == Told(willFetch: true, hasTicket: true, post: [picture]))
      #expect(b.network.count("POST", Self.content) == 1)
      #expect(await fetch(images, node) == Told(pre: picture))
      images.flushNodeThumbnailCache(node.uuid)
      #expect(await fetch(images, node) == Told(willFetch: true, post: [picture]))
      try await b.relaunch()
      b.network.isOffline = true
      let relaunched = try loader(b)
      #expect(await fetch(relaunched, node) == Told(willFetch: true, post: [picture]))
      b.network.isOffline = false
      #expect(b.network.count("POST", Self.content) == 1)
    }
  }

  @Test func withoutAThumbnailNothingIsAsked_andAbsenceIsKnown() async throws {
    try await world(thumbnail: nil) { _, a, b, node in
      let images = try loader(b)
      #expect(await fetch(images, node) == Told())
      // The app itself imports the absence, of a node that is not uploaded yet.
      try await b.create("/new", "x")
      let new = try await self.node(b, "/new")
      try b.disk().importNodeThumbnail(ZDCDiskImport(), for: new)
      #expect(await fetch(images, new) == Told())
      #expect(await fetch(images, new) == Told())
      #expect(b.network.count("POST", Self.content) == 0)
      try await b.sync()
    }
  }

  @Test func absenceIsForgottenWithTheVersionThatItWasTrueOf() async throws {
    try await world(thumbnail: nil) { world, a, b, node in
      let images = try loader(b)
      let absent = ZDCDiskImport()
      absent.eTag = node.eTag_data
      try b.disk().importNodeThumbnail(absent, for: node)
      #expect(await fetch(images, node) == Told())
      try await setThumbnail("now there is one", a)
      try await b.sync()
      #expect(await fetch(images, node).post == [Picture(text: "now there is one")])
    }
  }

  @Test func offlineItSaysSo_andTheNextTimeItIsAskedAgain() async throws {
    try await world(thumbnail: "small") { _, _, b, node in
      let images = try loader(b)
      b.network.isOffline = true
      #expect(await fetch(images, node) == Told(willFetch: true, hasTicket: true, errors: 1))
      b.network.isOffline = false
      #expect(await fetch(images, node).post == [Picture(text: "small")])
    }
  }

  @Test func bytesThatAreNoImageAreAnError() async throws {
    try await world(thumbnail: "broken") { _, _, b, node in
      let images = try loader(b)
      #expect(await fetch(images, node).errors == 1)
    }
  }

  @Test func aFileThatWasSpoiledOnDiskIsDownloadedAgain() async throws {
    try await world(thumbnail: "small") { _, _, b, node in
      let images = try loader(b)
      _ = await fetch(images, node)
      let url = try #require(b.disk().nodeThumbnail(node)?.cryptoFile?.fileURL)
      var bytes = try Data(contentsOf: url)
      bytes[0] ^= 1
      try bytes.write(to: url)
      images.flushNodeThumbnailCache(node.uuid)
      #expect(await fetch(images, node).post == [Picture(text: "small")])
      #expect(b.network.count("POST", Self.content) == 2)
    }
  }

  // MARK: Stale, then fresh

  @Test func markedAsNeedingADownload_theOldComesFirst_thenTheNew_andTheMarkGoes() async throws {
    try await world(thumbnail: "old") { _, a, b, node in
      let (old, new) = (Picture(text: "old"), Picture(text: "new"))
      let images = try loader(b)
      _ = await fetch(images, node)
      try await setThumbnail("new", a)
      try await b.sync()
      try await mark(node, b)
      let lazy = ZDCFetchOptions()
      lazy.downloadIfMarkedAsNeedsDownload = false
      #expect(await fetch(images, node, lazy) == Told(pre: old))
      images.flushNodeThumbnailCache(node.uuid)
      #expect(await fetch(images, node, results: 2) == Told(willFetch: true, hasTicket: true, post: [old, new]))
      #expect(try await marks(node, b) == [false, true])
      #expect(await fetch(images, node) == Told(pre: new))
      // The old one is in memory, and therefore immediately available.
      try await setThumbnail("newest", a)
      try await b.sync()
      try await mark(node, b)
      #expect(
        await fetch(images, node) == Told(pre: new, willFetch: true, hasTicket: true, post: [Picture(text: "newest")]))
      // A version without a thumbnail.
      try await setThumbnail(nil, a)
      try await b.sync()
      try await mark(node, b)
      let gone = await fetch(images, node)
      #expect(gone == Told(pre: Picture(text: "newest"), willFetch: true, post: [nil]))
      #expect(await fetch(images, node) == Told())
    }
  }

  @Test("Q16: an outdated thumbnail in memory is shown first, then replaced by the new one")
  func outdatedInMemory() async throws {
    try await world(thumbnail: "old") { _, a, b, node in
      let images = try loader(b)
      _ = await fetch(images, node)
      _ = await fetch(images, node, variant: "round ")
      try await setThumbnail("new", a)
      try await b.sync()
      let (old, new) = (Picture(text: "old"), Picture(text: "new"))
      #expect(await fetch(images, node) == Told(pre: old, willFetch: true, hasTicket: true, post: [new]))
      #expect(await fetch(images, node) == Told(pre: new))
      #expect(await fetch(images, node, variant: "round ").post == [Picture(text: "round new")])
      // A version without a thumbnail.
      try await setThumbnail(nil, a)
      try await b.sync()
      #expect(await fetch(images, node) == Told(pre: new, willFetch: true, post: [nil]))
      #expect(await fetch(images, node) == Told())
    }
  }

  @Test("Q16: an outdated thumbnail on disk is shown first, then replaced by the new one")
  func outdatedOnDisk() async throws {
    try await world(thumbnail: "old") { _, a, b, node in
      _ = await fetch(try loader(b), node)
      try await setThumbnail("new", a)
      try await b.sync()
      try await b.relaunch()
      let (old, new) = (Picture(text: "old"), Picture(text: "new"))
      let images = try loader(b)
      #expect(await fetch(images, node, results: 2) == Told(willFetch: true, hasTicket: true, post: [old, new]))
      #expect(await fetch(images, node) == Told(pre: new))
      try await b.relaunch()
      #expect(await fetch(try loader(b), node).post == [new])
    }
  }

  @Test("Q16: an edit of the data alone downloads no thumbnail again")
  func unchangedThumbnail() async throws {
    try await world(thumbnail: "same") { _, a, b, node in
      let images = try loader(b)
      _ = await fetch(images, node)
      try await a.edit("/photo", to: TestContent(data: Data("other".utf8), thumbnail: Data("same".utf8)))
      try await a.sync()
      try await b.sync()
      b.network.resetCounts()
      #expect(await fetch(images, node) == Told(pre: Picture(text: "same")))
      images.flushNodeThumbnailCache(node.uuid)
      #expect(await fetch(images, node).post == [Picture(text: "same")])
      #expect(b.network.count("POST", Self.content) == 0)
    }
  }

  @Test("Q16: the app's own thumbnail of an edit that is queued is not outdated")
  func ownQueuedThumbnail() async throws {
    try await world(thumbnail: "old") { _, _, b, node in
      let images = try loader(b)
      _ = await fetch(images, node)
      try await b.edit("/photo", to: TestContent(data: Data("mine".utf8), thumbnail: Data("mine".utf8)))
      try b.disk().importNodeThumbnail(ZDCDiskImport(cleartextData: Data("mine".utf8)), for: node)
      #expect(await fetch(images, node).post == [Picture(text: "mine")])
      #expect(await fetch(images, node) == Told(pre: Picture(text: "mine")))
      try await b.sync()
      #expect(await fetch(images, node) == Told(pre: Picture(text: "mine")))
    }
  }

  @Test func aVersionThatArrivesDuringTheDownloadKeepsTheMark() async throws {
    try await world(thumbnail: "old") { _, a, b, node in
      let images = try loader(b)
      try await mark(node, b)
      b.network.fail(
        .after {
          try await self.setThumbnail("new", a)
          try await b.pull()
        }, "POST", Self.content)
      _ = await fetch(images, node)
      #expect(try await marks(node, b) == [true, true])
      #expect(await fetch(images, node).post.last == Picture(text: "new"))
      #expect(try await marks(node, b) == [false, true])
    }
  }

  // MARK: Many at once

  @Test func aThousandRequestsMakeOneDownload() async throws {
    try await world(thumbnail: "small") { _, _, b, node in
      let images = try loader(b)
      let shown = await withTaskGroup(of: Picture?.self) { group in
        for _ in 0..<1_000 {
          group.addTask {
            let told = await self.fetch(images, node)
            return told.errors == 0 ? told.post.first ?? told.pre : nil
          }
        }
        return await group.reduce(into: [Picture?]()) { $0.append($1) }
      }
      #expect(shown == [Picture?](repeating: Picture(text: "small"), count: 1_000))
      #expect(b.network.count("POST", Self.content) == 1)
    }
  }

  @Test func oneCancels_theOthersAreServed_allCancel_andItIsFetchedAgain() async throws {
    try await world(thumbnail: "small") { _, _, b, node in
      let images = try loader(b)
      let (asked, goOn) = (AsyncStream.makeStream(of: Void.self), AsyncStream.makeStream(of: Void.self))
      b.network.fail(
        .before {
          asked.continuation.yield()
          for await _ in goOn.stream { break }
        }, "POST", Self.content)
      let results = AsyncStream.makeStream(of: String.self)
      let tickets = ["first", "second", "ignored"].map { name in
        images.fetchNodeThumbnail(node, completionQueue: .global(), preFetch: { _, _ in }) { image, error in
          results.continuation.yield("\(name) \(image?.text ?? (error is CancellationError ? "cancelled" : "nothing"))")
        }
      }
      for await _ in asked.stream { break }
      tickets[0]?.cancel()
      tickets[2]?.ignore()
      var iterator = results.stream.makeAsyncIterator()
      #expect(await iterator.next() == "first cancelled")
      goOn.continuation.yield()
      #expect(await iterator.next() == "second small")
    }
  }

  // MARK: Variants and memory

  @Test func variantsAreMadeOnceAndKeptUnderTheirNames() async throws {
    try await world(thumbnail: "small") { _, _, b, node in
      let images = try loader(b)
      #expect(await fetch(images, node, variant: "round ").post == [Picture(text: "round small")])
      #expect(await fetch(images, node, variant: "round ") == Told(pre: Picture(text: "round small")))
      // Made from the image in memory.
      #expect(await fetch(images, node, variant: "grey ") == Told(willFetch: true, post: [Picture(text: "grey small")]))
      images.flushNodeThumbnailCache(withProcessingID: "grey ")
      #expect(await fetch(images, node, variant: "grey ").willFetch)
      #expect(await fetch(images, node, variant: "round ").willFetch == false)
      #expect(b.network.count("POST", Self.content) == 1)
      // A variant without a name is made each time.
      let anonymous = AsyncStream.makeStream(of: Picture?.self)
      images.fetchNodeThumbnail(
        node, processingID: nil, processingBlock: { Picture(text: "once " + $0.text) }, completionQueue: .global(),
        preFetch: { image, willFetch in #expect(image == nil && willFetch) },
        postFetch: { image, _ in anonymous.continuation.yield(image) })
      var iterator = anonymous.stream.makeAsyncIterator()
      #expect(await iterator.next() == .some(Picture(text: "once small")))
      // A new thumbnail discards the variants of the old one.
      try b.disk()
        .importNodeThumbnail(ZDCDiskImport(cleartextData: Data("edited".utf8)), for: node)
      #expect(await fetch(images, node, variant: "round ").post == [Picture(text: "round edited")])
    }
  }

  @Test func memoryHoldsWhatItsLimitAllows_theLeastRecentlyUsedGoes() async throws {
    try await TestWorld.run { world in
      let b = try await world.device("B")
      let images = try loader(b, limit: 300)
      var nodes: [ZDCNode] = []
      for index in 0..<4 {
        try await b.create("/\(index)", "x")
        nodes.append(try await node(b, "/\(index)"))
        try b.disk().importNodeThumbnail(
          ZDCDiskImport(cleartextData: Data(String(repeating: "\(index)", count: 100).utf8)), for: nodes[index])
      }
      for index in 0..<3 { #expect(await fetch(images, nodes[index]).willFetch) }
      #expect(await fetch(images, nodes[0]).willFetch == false)
      #expect(await fetch(images, nodes[3]).willFetch)
      #expect(await fetch(images, nodes[0]).willFetch == false)
      #expect(await fetch(images, nodes[1]).willFetch)
      try await b.sync()
    }
  }

  @Test func avatarsComeFromMemoryAndDisk() async throws {
    try await TestWorld.run { world in
      let b = try await world.device("B")
      let images = try loader(b)
      let user = ZDCUser(uuid: try b.localUserID, isLocal: true)
      func told(_ identity: String?) async -> [String] {
        let options = ZDCFetchOptions()
        options.identityID = identity
        let results = AsyncStream.makeStream(of: String.self)
        var told: [String] = []
        var isOver = true
        images.fetchUserAvatar(
          user, with: options, completionQueue: .global(),
          preFetch: { image, willFetch in
            told.append(image?.text ?? "none")
            isOver = !willFetch
          }, postFetch: { image, _ in results.continuation.yield(image?.text ?? "none") })
        var iterator = results.stream.makeAsyncIterator()
        if !isOver, let next = await iterator.next() { told.append(next) }
        return told
      }
      #expect(await told(nil) == ["none"])
      let disk = try b.disk()
      try disk.importUserAvatar(ZDCDiskImport(cleartextData: Data("face".utf8)), for: user)
      try disk.importUserAvatar(ZDCDiskImport(cleartextData: Data("mask".utf8)), for: user, identityID: "work")
      #expect(await told(nil) == ["none", "face"])
      #expect(await told("work") == ["none", "mask"])
      #expect(await told(nil) == ["face"])
      #expect(await told("work") == ["mask"])
      try disk.deleteUserAvatar(user.uuid, forIdentityID: "work")
      #expect(await told("work") == ["none"])
    }
  }

  /// Checks where the blocks run: preFetch in the call, postFetch on the main thread by default.
  @Test @MainActor func postFetchComesOnTheMainThread() async throws {
    try await world(thumbnail: "small") { _, _, b, node in
      let images = try self.loader(b)
      await Self.fetchOnMain(images, node)
    }
  }

  @MainActor private static func fetchOnMain(_ images: ZDCImageLoader<Picture>, _ node: ZDCNode) async {
    var shown: Picture?
    await withCheckedContinuation { continuation in
      images.fetchNodeThumbnail(node) { image, _ in
        shown = image
      } postFetch: { image, _ in
        MainActor.assertIsolated()
        shown = image
        continuation.resume()
      }
    }
    #expect(shown == Picture(text: "small"))
  }
}
