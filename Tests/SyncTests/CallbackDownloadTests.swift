import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Downloads and thumbnails that the app requests inside a delegate callback.
struct CallbackDownloadTests {
  private static let count = 50

  /// One answer of a completion block: the node's uuid, and the content or the error's code.
  private typealias Answers = AsyncStream<(uuid: String, text: String)>
  private typealias Request = @Sendable (TestDevice, ZDCNode, Answers.Continuation) throws -> Void

  private static func content(_ text: String) -> TestContent {
    TestContent(
      data: Data("data \(text)".utf8), metadata: Data("meta \(text)".utf8), thumbnail: Data("tiny \(text)".utf8))
  }

  private static func shown(_ bytes: Data?, _ error: (any Error)?) -> String {
    if let bytes { return String(decoding: bytes, as: UTF8.self) }
    if let error = error as? ZDCError { return "error \(error.code.rawValue)" }
    return error.map { "error \($0)" } ?? "nothing"
  }

  private static func opened(_ file: ZDCCryptoFile?) -> Data? {
    file.flatMap { file in
      defer { try? FileManager.default.removeItem(at: file.fileURL) }
      return try? ZDCFileConversion.decryptCryptoFile(intoMemory: file)
    }
  }

  // MARK: Requests

  private static let data: Request = { device, node, answers in
    try device.downloads().downloadNodeData(node, completionQueue: .global()) { _, file, error in
      answers.yield((node.uuid, shown(opened(file), error)))
    }
  }

  private static let meta: Request = { device, node, answers in
    try device.downloads().downloadNodeMeta(node, components: .metadata, completionQueue: .global()) {
      _, metadata, _, error in answers.yield((node.uuid, shown(metadata, error)))
    }
  }

  private static let asynchronous: Request = { device, node, answers in
    let downloads = try device.downloads()
    Task {
      do {
        let file = try await downloads.downloadNodeData(node).cryptoFile
        answers.yield((node.uuid, shown(opened(file), nil)))
      } catch { answers.yield((node.uuid, shown(nil, error))) }
    }
  }

  private static let bulk: Request = { device, node, answers in
    let downloads = try device.downloads()
    Task {
      do {
        for try await download in downloads.downloadContents(of: [node]) {
          switch download.content {
          case .success(.memory(let data, _, _)): answers.yield((node.uuid, shown(data, nil)))
          case .success(.file(let file)): answers.yield((node.uuid, shown(opened(file), nil)))
          case .failure(let error): answers.yield((node.uuid, shown(nil, error)))
          }
        }
      } catch { answers.yield((node.uuid, shown(nil, error))) }
    }
  }

  /// Returns the answers to a request that is made in the callback of each node.
  private func answers(
    _ device: TestDevice, _ callback: RecordingDelegate.Callback, _ request: @escaping Request
  ) async throws -> Set<String> {
    let (stream, continuation) = Answers.makeStream()
    device.recorder.on(callback, times: Self.count) { node, _ in try request(device, node, continuation) }
    try await device.pull()
    var answers: Set<String> = []
    var iterator = stream.makeAsyncIterator()
    for _ in 0..<Self.count {
      guard let answer = await iterator.next() else { break }
      answers.insert(answer.text)
    }
    return answers
  }

  private func expected(_ prefix: String, _ version: String) -> Set<String> {
    Set((0..<Self.count).map { "\(prefix) \(version) \($0)" })
  }

  /// Makes A create 50 nodes and edit them once B has pulled. B sends the request in both callbacks.
  private func run(_ prefix: String, _ request: @escaping Request) async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      for number in 0..<Self.count { try await a.create("/\(number)", Self.content("old \(number)")) }
      try await a.sync()
      #expect(try await answers(b, .new, request) == expected(prefix, "old"))
      for number in 0..<Self.count { try await a.edit("/\(number)", to: Self.content("new \(number)")) }
      try await a.sync()
      #expect(try await answers(b, .modified, request) == expected(prefix, "new"))
    }
  }

  // MARK: Downloads

  @Test("Q1, Q2: a download asked for inside a callback gets the content that the callback announces")
  func dataInsideACallback() async throws { try await run("data", Self.data) }

  @Test("Q14: the same for metadata")
  func metadataInsideACallback() async throws { try await run("meta", Self.meta) }

  @Test("Q1, Q2: the same for a task that the callback starts")
  func aTaskOfTheCallback() async throws { try await run("data", Self.asynchronous) }

  @Test("Q1, Q2: the same for downloads of many nodes")
  func manyNodesInsideACallback() async throws { try await run("data", Self.bulk) }

  @Test("Q3, Q14: the same for thumbnails, and the cached one is not kept")
  func thumbnailsInsideACallback() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      let loader = try #require(
        try b.zdc.imageLoader(cost: { $0.count }, decode: { String(decoding: $0, as: UTF8.self) }))
      let request: Request = { _, node, answers in
        loader.fetchNodeThumbnail(node, completionQueue: .global(), preFetch: { _, _ in }) { image, error in
          answers.yield((node.uuid, Self.shown(image.map { Data($0.utf8) }, error)))
        }
      }
      for number in 0..<Self.count { try await a.create("/\(number)", Self.content("old \(number)")) }
      try await a.sync()
      #expect(try await answers(b, .new, request) == expected("tiny", "old"))
      for number in 0..<Self.count { try await a.edit("/\(number)", to: Self.content("new \(number)")) }
      try await a.sync()
      #expect(try await answers(b, .modified, request) == expected("tiny", "new"))
    }
  }

  // MARK: Download marks

  @Test("Q15: marked and downloaded in the callback, the mark goes with the content that came")
  func markedInTheCallback() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      for number in 0..<Self.count { try await a.create("/\(number)", Self.content("old \(number)")) }
      try await world.settle(a, b)
      for number in 0..<Self.count { try await a.edit("/\(number)", to: Self.content("new \(number)")) }
      try await a.sync()
      let eTags = AsyncStream.makeStream(of: (String, String).self)
      b.recorder.on(.modified, times: Self.count) { node, transaction in
        guard let transaction = transaction as? ZDCReadWriteTransaction else { return }
        let cloud = try b.zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID)
        cloud?.markNodeAsNeedsDownload(node.uuid, components: .all)
        try b.downloads().downloadNodeData(node, completionQueue: .global()) { info, file, _ in
          _ = Self.opened(file)
          eTags.continuation.yield((node.uuid, info?.eTag ?? ""))
        }
      }
      try await b.pull()
      var iterator = eTags.stream.makeAsyncIterator()
      for _ in 0..<Self.count {
        guard let (uuid, eTag) = await iterator.next() else { break }
        try await b.write { _, cloud in
          cloud.unmarkNodeAsNeedsDownload(uuid, components: .all, ifETagMatches: eTag)
        }
      }
      let marked = try await b.write { _, cloud in cloud.nodeIDsMarkedAsNeedsDownload(components: .all) }
      #expect(marked.isEmpty)
    }
  }

  // MARK: Failing

  @Test("Q1: a request fails if the callback's transaction is rolled back")
  func rolledBack() async throws {
    struct Refusal: Error {}
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.create("/note", Self.content("old"))
      try await a.sync()
      let node = try await a.existing("/note")
      let (stream, continuation) = Answers.makeStream()
      await #expect(throws: Refusal.self) {
        try await a.database.write { _ in
          try Self.data(a, node, continuation)
          throw Refusal()
        }
      }
      var iterator = stream.makeAsyncIterator()
      #expect(await iterator.next()?.text == "error transactionRolledBack")
      // Outside a transaction the same request succeeds.
      try Self.data(a, node, continuation)
      #expect(await iterator.next()?.text == "data old")
    }
  }
}
