import NIOCore
import NIOHTTP1
import Synchronization
import Testing

@testable import ZDCServerS3

/// Retries, deadlines and failures of requests, against a store that follows a script.
@Suite struct S3ClientTests {
  private static func client(_ store: ScriptedStore, silence: Duration = .seconds(30)) throws -> S3Client {
    var bounds = S3Client.Bounds()
    bounds.silence = silence
    return S3Client(
      address: try S3Address("s3+http://blobs@127.0.0.1:\(store.port)/p"),
      credentials: S3Credentials(keyID: "id", secret: "secret"), region: "r", bounds: bounds)
  }

  private static let get = S3Request(operation: "get", method: .GET, key: "p/c/x")
  private static let slowDown = "<Error><Code>SlowDown</Code></Error>"

  @Test func aBusyStoreIsAskedAgain() async throws {
    try await ScriptedStore.with([
      .answer(503, Self.slowDown), .cut, .answer(500, ""), .cutBody, .answer(200, "bytes"),
    ]) { store in
      let bytes = try await Self.client(store).collect(Self.get, upTo: 100)
      #expect(String(decoding: bytes, as: UTF8.self) == "bytes")
      #expect(store.requests.count == 5)
    }
  }

  @Test func aStoreThatStaysBusyIsLeftAlone() async throws {
    try await ScriptedStore.with(Array(repeating: .answer(503, Self.slowDown), count: 9)) { store in
      let failure = await #expect(throws: S3Failure.self) { try await Self.client(store).send(Self.get) }
      #expect((failure?.status, failure?.code) == (503, "SlowDown"))
      #expect(store.requests.count == RetryPolicy.attempts)
    }
  }

  @Test(arguments: [(403, "InvalidAccessKeyId"), (404, "NoSuchKey"), (400, "InvalidPart")])
  func aRefusalIsFinal(status: Int, code: String) async throws {
    try await ScriptedStore.with([.answer(status, "<Error><Code>\(code)</Code></Error>")]) { store in
      let failure = await #expect(throws: S3Failure.self) { try await Self.client(store).send(Self.get) }
      #expect((failure?.status, failure?.code) == (status, code))
      #expect(store.requests.count == 1)
    }
  }

  @Test func aSilentStoreIsNotWaitedFor() async throws {
    // On a busy machine, an answer may also be too late.
    let answers = Array(repeating: ScriptedStore.Step.answer(200, "bytes"), count: 9)
    try await ScriptedStore.with([.silence] + answers) { store in
      let bytes = try await Self.client(store, silence: .seconds(2)).collect(Self.get, upTo: 100)
      #expect(bytes.count == 5)
      #expect(store.requests.count > 1)
    }
  }

  @Test func anAnswerThatIsTooLongIsNotRead() async throws {
    try await ScriptedStore.with(Array(repeating: .answer(200, "bytes"), count: 9)) { store in
      let failure = await #expect(throws: S3Failure.self) {
        try await Self.client(store).collect(Self.get, upTo: 4)
      }
      #expect(failure?.code == "the answer is too long")
      #expect(store.requests.count == 1)
    }
  }

  /// A repeated request has the same body, and its signature covers all that was sent.
  @Test func everyAttemptIsSigned() async throws {
    try await ScriptedStore.with([.answer(503, ""), .answer(200, "")]) { store in
      var put = S3Request(operation: "put", method: .PUT, key: "p/c/x", query: [("partNumber", "1")])
      put.body = ByteBuffer(string: "12345")
      _ = try await Self.client(store).send(put)
      for request in store.requests {
        #expect(request.hasPrefix("PUT /blobs/p/c/x?partNumber=1 HTTP/1.1\r\n"))
        #expect(request.contains("SignedHeaders=host;x-amz-content-sha256;x-amz-date,Signature="))
        #expect(request.contains("x-amz-content-sha256: \(SignatureV4.hash(of: put.body))\r\n"))
        #expect(request.lowercased().contains("content-length: 5\r\n"))
        #expect(request.hasSuffix("\r\n\r\n12345"))
        #expect(!request.contains("secret"))
      }
      #expect(store.requests.count == 2)
    }
  }

  // MARK: the decision

  private static let busy = S3Failure(status: 503, code: "SlowDown", operation: "get")

  @Test func pausesGrow_andAreSpread() {
    let policy = RetryPolicy()
    let longest = (1...4).map { policy.pause(after: Self.busy, attempt: $0, remainingMs: 60_000, random: 0.9999) }
    #expect(longest == [199, 799, 3_199, 4_999])
    #expect(policy.pause(after: Self.busy, attempt: 4, remainingMs: 60_000, random: 0) == 0)
    #expect(policy.pause(after: Self.busy, attempt: 5, remainingMs: 60_000, random: 0) == nil)
    #expect(policy.pause(after: Self.busy, attempt: 4, remainingMs: 1_000, random: 0.9999) == nil)
  }

  @Test func theBudgetIsShared_andFillsWithSuccess() {
    let policy = RetryPolicy()
    let pause = { policy.pause(after: Self.busy, attempt: 1, remainingMs: 60_000, random: 0) }
    for _ in 0..<100 { #expect(pause() == 0) }
    #expect(pause() == nil)
    for _ in 0..<5 { policy.succeeded() }
    #expect(pause() == 0)
    #expect(pause() == nil)
  }
}

/// Streams and pieces, without a store.
@Suite struct S3ReadingTests {
  private static func reader(_ store: ScriptedStore, _ range: Range<UInt64>) async throws -> S3BlobReader {
    let client = S3Client(
      address: try S3Address("s3+http://blobs@127.0.0.1:\(store.port)"),
      credentials: S3Credentials(keyID: "id", secret: "secret"), region: "r")
    return try await S3BlobReader(client, key: "c/x", range: range)
  }

  private static func all(_ reader: S3BlobReader) async throws -> [UInt8] {
    var bytes: [UInt8] = []
    while let slice = try await reader.next() { bytes += slice }
    return bytes
  }

  /// `cutBody` sends one of 100 bytes.
  @Test func aStreamThatBreaksContinues() async throws {
    try await ScriptedStore.with([.cutBody, .answer(503, ""), .answer(206, String(repeating: "1", count: 99))]) {
      store in
      let bytes = try await Self.all(Self.reader(store, 7..<107))
      #expect(bytes == Array(repeating: UInt8(ascii: "1"), count: 100))
      #expect(store.requests.map { $0.lowercased().contains("range: bytes=7-106") } == [true, false, false])
      #expect(store.requests.last?.lowercased().contains("range: bytes=8-106") == true)
    }
  }

  @Test func anObjectThatBecameShorterEndsTheStream() async throws {
    try await ScriptedStore.with([.cutBody, .answer(206, "11")]) { store in
      let reader = try await Self.reader(store, 0..<100)
      await #expect(throws: (any Error).self) { try await Self.all(reader) }
    }
  }

  @Test func aShorterObjectIsLost() async throws {
    try await ScriptedStore.with([.answer(206, "12345")]) { store in
      let failure = await #expect(throws: S3Failure.self) { try await Self.reader(store, 0..<6) }
      #expect(failure?.isMissing == true)
    }
  }

  @Test func rangesAreJoined_andFoundAgain() throws {
    let runs = ByteRuns(joining: [90..<100, 0..<10, 10..<12, 15..<20, 5..<8, 50..<50], gap: 3)
    #expect(runs.ranges == [0..<20, 90..<100])
    let pieces = runs.ranges.map { range in range.map { UInt8($0) } }
    #expect(try runs.bytes(at: 15, count: 5, in: pieces) == [15, 16, 17, 18, 19])
    #expect(try runs.bytes(at: 90, count: 10, in: pieces) == Array(90..<100))
    #expect(try runs.bytes(at: 300, count: 0, in: pieces) == [])
    for (offset, count) in [(19, 2), (50, 1), (95, 6)] as [(UInt64, Int)] {
      #expect(throws: ByteRuns.NotThere.self) { try runs.bytes(at: offset, count: count, in: pieces) }
    }
  }

  @Test func resultsKeepTheOrderOfTheirItems_andFewRunAtOnce() async throws {
    let running = Mutex((now: 0, most: 0))
    let results = try await concurrently(Array(0..<100), limit: 5) { item in
      running.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
      await Task.yield()
      running.withLock { $0.now -= 1 }
      return item * 2
    }
    #expect(results == (0..<100).map { $0 * 2 })
    #expect(running.withLock { $0.most } <= 5)
  }

  @Test func anErrorAmongMany_isThatOfAll() async {
    struct Odd: Error {}
    await #expect(throws: Odd.self) {
      try await concurrently(Array(0..<40), limit: 4) { if $0 == 30 { throw Odd() } }
    }
  }
}

/// The object with the hashes of content, against a store that follows a script.
@Suite struct S3HashWriterTests {
  private static func writer(_ store: ScriptedStore) throws -> S3HashWriter {
    let client = S3Client(
      address: try S3Address("s3+http://blobs@127.0.0.1:\(store.port)"),
      credentials: S3Credentials(keyID: "id", secret: "secret"), region: "r")
    return S3HashWriter(client, key: "l/x", partBytes: 100)
  }

  private static func lines(_ store: ScriptedStore) -> [String] {
    store.requests.map { $0.split(separator: "\r\n").first.map(String.init) ?? "" }
  }

  @Test func fewHashesAreOneRequest() async throws {
    try await ScriptedStore.with([.answer(200, "")]) { store in
      var writer = try Self.writer(store)
      try await writer.append([UInt8](repeating: UInt8(ascii: "a"), count: 60))
      try await writer.append([UInt8](repeating: UInt8(ascii: "b"), count: 40))
      try await writer.finish()
      #expect(store.requests.count == 1)
      #expect(
        store.requests.first?.hasSuffix(String(repeating: "a", count: 60) + String(repeating: "b", count: 40)) == true)
    }
  }

  /// - An earlier process has left an upload
  /// => it is ended; the hashes go out in parts while more arrive, and are joined
  @Test func manyHashesAreSentInParts() async throws {
    let old = "<List><Upload><Key>l/x</Key><UploadId>old</UploadId></Upload></List>"
    let parts = (1...3).map { "<Part><PartNumber>\($0)</PartNumber><Size>100</Size><ETag>t\($0)</ETag></Part>" }
    try await ScriptedStore.with([
      .answer(200, old), .answer(204, ""), .answer(200, "<Start><UploadId>new</UploadId></Start>"), .answer(200, ""),
      .answer(200, ""), .answer(200, ""), .answer(200, "<List>\(parts.joined())</List>"), .answer(200, "<Done/>"),
    ]) { store in
      var writer = try Self.writer(store)
      try await writer.append([UInt8](repeating: UInt8(ascii: "a"), count: 150))
      #expect(store.requests.count == 4)
      try await writer.append([UInt8](repeating: UInt8(ascii: "b"), count: 130))
      try await writer.finish()
      let bodies = store.requests.filter { $0.hasPrefix("PUT") }.map { $0.suffix(100) }
      #expect(bodies.prefix(2).map { $0.filter { $0 == "a" }.count } == [100, 50])
      #expect(store.requests[5].filter { $0 == "b" }.count >= 80)
      #expect(Self.lines(store)[1].contains("uploadId=old"))
      #expect(Self.lines(store)[7].contains("uploadId=new"))
      #expect(store.requests[7].contains("t3"))
    }
  }
}
