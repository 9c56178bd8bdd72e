import Foundation
import Testing
import ZDCProtocol
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Content that is marked as needed is downloaded; downloads resume automatically when the network returns.
@Suite(.timeLimit(.minutes(20))) struct MarkedDownloadTests {
  /// Stores each content blob that arrives and removes its mark. Adds its text to `seen`.
  private static func read(_ device: TestDevice, into seen: Seen) throws -> Task<Void, any Error> {
    let manager = try #require(try device.zdc.downloadManager)
    let downloads = manager.downloadMarkedContents(forLocalUserID: try device.localUserID)
    return Task {
      for try await download in downloads {
        guard case .memory(let data, _, _) = try download.content.get() else { continue }
        try await device.write { transaction, cloud in
          let content = TestContent(data: data, eTag: download.node.eTag_data)
          transaction.setObject(content, forKey: download.node.uuid, inCollection: TestContent.collection)
          cloud.unmarkNodeAsNeedsDownload(
            download.node.uuid, components: .all, ifETagMatches: download.node.eTag_data)
        }
        seen.add(String(decoding: data, as: UTF8.self))
      }
    }
  }

  private static func mark(_ device: TestDevice, _ paths: String...) async throws {
    for path in paths {
      let node = try await device.node(path)
      try await device.write { _, cloud in cloud.markNodeAsNeedsDownload(node.uuid, components: .all) }
    }
  }

  /// Waits until the stream yields this value.
  private static func wait(for value: Bool, _ changes: AsyncStream<Bool>) async {
    for await change in changes where change == value { return }
  }

  private static func waitUntilNothingIsMarked(_ device: TestDevice) async throws {
    let (zdc, user) = (try device.zdc, try device.localUserID)
    let marks = try device.database.observe { transaction in
      zdc.cloudTransaction(transaction, forLocalUserID: user)?.nodeIDsMarkedAsNeedsDownload() ?? []
    }
    for try await nodes in marks where nodes.isEmpty { return }
  }

  /// - some nodes are marked before the app reads, one afterwards
  @Test func markedNodes_areDownloaded_alsoThoseMarkedLater() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      for number in 1...3 { try await a.create("/\(number)", "\(number)") }
      try await a.sync()
      try await b.pull()
      try await Self.mark(b, "/1", "/2")
      let seen = Seen()
      let reading = try Self.read(b, into: seen)
      try await Self.waitUntilNothingIsMarked(b)
      try await Self.mark(b, "/3")
      try await Self.waitUntilNothingIsMarked(b)
      reading.cancel()
      _ = await reading.result
      #expect(try await b.tree() == "/1  v1  \"1\"\n/2  v1  \"2\"\n/3  v1  \"3\"")
      #expect(b.network.count("POST", "/v1/trees/{treeID}/zones/{zoneRoot}/contents") == 2)
    }
  }

  /// - the app stores a node, removes its mark, and marks the same version again before it reads on
  /// => it is delivered again; a node whose mark stays is not
  @Test func aNodeThatIsMarkedAgain_isDeliveredAgain() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      for name in ["again", "later", "stays"] { try await a.create("/\(name)", name) }
      try await a.sync()
      try await b.pull()
      try await Self.mark(b, "/again", "/stays")
      let manager = try #require(try b.zdc.downloadManager)
      var downloads = manager.downloadMarkedContents(forLocalUserID: try b.localUserID).makeAsyncIterator()
      var names = [
        try #require(try await downloads.next()?.node.name), try #require(try await downloads.next()?.node.name),
      ]
      #expect(names.sorted() == ["again", "stays"])
      let again = try await b.node("/again").uuid
      try await b.write { _, cloud in cloud.unmarkNodeAsNeedsDownload(again, components: .data) }
      try await Self.mark(b, "/again", "/stays", "/later")
      names = [
        try #require(try await downloads.next()?.node.name), try #require(try await downloads.next()?.node.name),
      ]
      #expect(names.sorted() == ["again", "later"])
    }
  }

  /// - the server is unreachable when the app wants the content
  /// => the app can see that; when the server is back, the app is notified, and the download is made without another
  /// call
  @Test func aDownloadThatFailed_isMadeAgain_whenTheNetworkReturns() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/f", "1")
      try await a.sync()
      try await b.pull()
      #expect(try b.zdc.reachability.isReachable == nil)
      try await b.whileRunning {
        let reachability = try b.zdc.reachability
        await Self.wait(for: true, reachability.changes)
        b.network.isOffline = true
        try await world.server.restart()
        await Self.wait(for: false, reachability.changes)
        #expect(reachability.isReachable == false)
        try await Self.mark(b, "/f")
        let seen = Seen()
        let reading = try Self.read(b, into: seen)
        b.network.isOffline = false
        await b.recorder.wait(for: "reconnected")
        await Self.wait(for: true, reachability.changes)
        try await Self.waitUntilNothingIsMarked(b)
        reading.cancel()
        _ = await reading.result
      }
      #expect(try await b.tree() == "/f  v1  \"1\"")
    }
  }

  /// - the server refuses large content once
  /// => the app gets the error, and gets the content after the next pull, in the same launch
  @Test func aFailedDownload_isRetriedAfterAPull() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      let large = EndToEndTests.bytes(200_000, seed: 1)
      try await a.create("/large", TestContent(data: large))
      try await a.create("/small", "1")
      try await a.sync()
      try await b.pull()
      try await Self.mark(b, "/large", "/small")
      b.network.fail(
        .before { throw ServerError(.forbidden, "by script") }, "GET",
        "/v1/trees/{treeID}/nodes/{nodeID}/blobs/{blobID}")
      let manager = try #require(try b.zdc.downloadManager)
      var downloads = manager.downloadMarkedContents(forLocalUserID: try b.localUserID).makeAsyncIterator()
      let names = [try await b.node("/large").uuid: "large", try await b.node("/small").uuid: "small"]
      var results: [String: [Bool]] = [:]
      for _ in 0..<3 {
        if results.count == 2 { try await b.pull() }
        let download = try #require(try await downloads.next())
        let isThere = if case .success = download.content { true } else { false }
        results[try #require(names[download.node.uuid]), default: []].append(isThere)
        if case .success(.file(let file)) = download.content {
          #expect(try ZDCFileConversion.decryptCryptoFile(intoMemory: file) == large)
          try FileManager.default.removeItem(at: file.fileURL)
        }
      }
      #expect(results == ["small": [true], "large": [false, true]])
    }
  }

  /// - each connection breaks that fetches more than two nodes at a time
  /// => they are fetched in smaller requests
  @Test func nodesThatBreakTheConnectionTogether_areDownloadedInSmallerRequests() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      for number in 1...5 { try await a.create("/\(number)", "\(number)") }
      try await a.sync()
      try await b.pull()
      let contents = "/v1/trees/{treeID}/zones/{zoneRoot}/contents"
      let manager = try #require(try b.zdc.downloadManager)
      for try await _ in manager.downloadContents(of: [try await b.node("/1"), try await b.node("/2")]) {}
      let most = try #require(b.network.requests.last { $0.route.description == "POST \(contents)" }).bytesSent
      let network = b.network
      network.fail(
        .before { if (network.requests.last?.bytesSent ?? 0) > most { throw TransportError(.cut) } }, "POST", contents,
        times: 1_000)
      try await Self.mark(b, "/1", "/2", "/3", "/4", "/5")
      let seen = Seen()
      let reading = try Self.read(b, into: seen)
      try await Self.waitUntilNothingIsMarked(b)
      reading.cancel()
      _ = await reading.result
      #expect(seen.lines.sorted() == ["1", "2", "3", "4", "5"])
    }
  }

  /// - the server breaks the connection whenever the large content of one node is fetched, or does not get to its end
  /// => the other content arrives, and the app learns of the failure once
  @Test(arguments: [TransportError.Code.cut, .timeout, .tooSlow])
  func contentThatBreaksEachConnection_fails_andTheRestArrives(_ code: TransportError.Code) async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/large", TestContent(data: EndToEndTests.bytes(200_000, seed: 1)))
      try await a.create("/small", "1")
      try await a.sync()
      try await b.pull()
      try await Self.mark(b, "/large", "/small")
      b.network.fail(
        code == .cut ? .cutResponse(afterBytes: 0) : .before { throw TransportError(code) }, "GET",
        "/v1/trees/{treeID}/nodes/{nodeID}/blobs/{blobID}", times: 1_000)
      let manager = try #require(try b.zdc.downloadManager)
      var downloads = manager.downloadMarkedContents(forLocalUserID: try b.localUserID).makeAsyncIterator()
      let names = [try await b.node("/large").uuid: "large", try await b.node("/small").uuid: "small"]
      var results: [String] = []
      for _ in 0..<3 {
        let download = try #require(try await downloads.next())
        let name = try #require(names[download.node.uuid])
        switch download.content {
        case .success(let content):
          results.append(name)
          if case .file(let file) = content { try FileManager.default.removeItem(at: file.fileURL) }
        case .failure(let error):
          results.append("\(name) failed")
          #expect((error as? TransportError)?.code == code)
          b.network.restoreNetwork()
        }
      }
      #expect(results == ["small", "large failed", "large"])
    }
  }

  /// - the process ends while a node is marked
  /// => the next process downloads it
  @Test func remainingMarks_areDownloadedAtTheNextLaunch() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/f", "1")
      try await a.sync()
      try await b.pull()
      try await Self.mark(b, "/f")
      b.network.fail(.loseRequest, "POST", "/v1/trees/{treeID}/zones/{zoneRoot}/contents")
      let manager = try #require(try b.zdc.downloadManager)
      await #expect(throws: TransportError.self) {
        for try await _ in manager.downloadContents(of: [try await b.node("/f")]) {}
      }
      try await b.relaunch()
      let seen = Seen()
      let reading = try Self.read(b, into: seen)
      try await Self.waitUntilNothingIsMarked(b)
      reading.cancel()
      _ = await reading.result
      #expect(seen.lines == ["1"])
    }
  }

  /// - the small content of some nodes is marked, and large content
  /// => the small content is one batch, which the app can store in one transaction
  @Test func smallContentThatArrivesTogether_isOneBatch() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/large", TestContent(data: EndToEndTests.bytes(200_000, seed: 1)))
      for number in 1...3 { try await a.create("/\(number)", "\(number)") }
      try await a.sync()
      try await b.pull()
      try await Self.mark(b, "/large", "/1", "/2", "/3")
      let manager = try #require(try b.zdc.downloadManager)
      var batches = manager.downloadMarkedBatches(forLocalUserID: try b.localUserID).makeAsyncIterator()
      var names: [[String]] = []
      for _ in 0..<2 {
        let batch = try #require(try await batches.next())
        names.append(batch.compactMap(\.node.name).sorted())
        for case .success(.file(let file)) in batch.map(\.content) {
          try FileManager.default.removeItem(at: file.fileURL)
        }
      }
      #expect(names == [["1", "2", "3"], ["large"]])
    }
  }

  @Test func anAccountThatIsNotHere_endsTheStream() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let manager = try #require(try a.zdc.downloadManager)
      await #expect(throws: ZDCError.self) {
        for try await _ in manager.downloadMarkedContents(forLocalUserID: "nobody") {}
      }
    }
  }
}
