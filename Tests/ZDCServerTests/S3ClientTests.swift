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
    try await ScriptedStore.with([.silence, .answer(200, "bytes")]) { store in
      let bytes = try await Self.client(store, silence: .milliseconds(200)).collect(Self.get, upTo: 100)
      #expect(bytes.count == 5)
    }
  }

  @Test func anAnswerThatIsTooLongIsNotRead() async throws {
    try await ScriptedStore.with(Array(repeating: .answer(200, "bytes"), count: 9)) { store in
      await #expect(throws: S3Failure.self) { try await Self.client(store).collect(Self.get, upTo: 4) }
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
