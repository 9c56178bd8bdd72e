import Foundation
import Testing
import ZDCProtocol

@testable import ZeroDarkCloud

@Suite struct AnswerErrorTests {
  private func make(_ status: Int, _ body: String, headers: [String: String] = [:]) -> any Error {
    AnswerError.make(status: status, headers: headers, body: Array(body.utf8), origin: "https://a.b")
  }

  @Test(arguments: ServerError.Code.allCases)
  func everyErrorOfTheServerArrivesAsItWasSent(code: ServerError.Code) throws {
    let sent = ServerError(code, "why", retryable: true, retryAfterMs: 1_500, security: .treeCycle)
    let body = [UInt8](try JSONEncoder().encode(sent))
    let found = AnswerError.make(status: sent.status, headers: [:], body: body, origin: nil)
    #expect(found as? ServerError == sent)
  }

  @Test func aCodeOfANewerServer_isReadByItsStatus() {
    let error = make(422, #"{"code":"somethingNew","message":"m","retryable":true,"more":[1]}"#) as? ServerError
    #expect(error?.code == .invalidRequest)
    #expect(error?.retryable == true)
    let server = make(599, #"{"code":"somethingNew","message":"m","retryable":false}"#) as? ServerError
    #expect(server?.code == .internalError)
  }

  @Test(arguments: [
    (400, ServerError.Code.invalidRequest, false), (401, .unauthorized, false), (403, .forbidden, false),
    (410, .gone, false), (413, .limitExceeded, false), (416, .rangeNotSatisfiable, false),
    (426, .unsupportedProtocol, false), (429, .tooManyRequests, true), (500, .internalError, true),
    (502, .shuttingDown, true), (503, .shuttingDown, true), (504, .shuttingDown, true), (507, .storageFull, true),
  ])
  func withoutOurBody_theStatusCounts(status: Int, code: ServerError.Code, retryable: Bool) {
    let error = make(status, "<html>") as? ServerError
    #expect(error?.code == code)
    #expect(error?.retryable == retryable)
  }

  @Test(arguments: [301, 302, 307, 404, 405, 418])
  func whatOnlyAnotherServerAnswers_isNoServerOfOurs(status: Int) {
    #expect(
      make(status, "<html>not here</html>") as? TransportError == TransportError(.badAnswer, origin: "https://a.b"))
  }

  @Test func theHeaderSaysWhenToComeBack_ifTheBodyDoesNot() {
    let error = make(503, "", headers: ["retry-after": "7"]) as? ServerError
    #expect(error?.retryAfterMs == 7_000)
    let stated = make(
      429, #"{"code":"zoneBusy","message":"m","retryable":true,"retryAfterMs":250}"#, headers: ["retry-after": "1"])
    #expect((stated as? ServerError)?.retryAfterMs == 250)
    let absurd = make(503, "", headers: ["retry-after": "18446744073709551615"]) as? ServerError
    #expect(absurd?.retryAfterMs == 86_400_000)
    let absurdlyStated = make(
      429, #"{"code":"zoneBusy","message":"m","retryable":true,"retryAfterMs":9000000000000000000}"#)
    #expect((absurdlyStated as? ServerError)?.retryAfterMs == 86_400_000)
  }
}

@Suite struct ServerAddressTests {
  @Test(arguments: [
    ("https://Sync.Example.COM", "https://sync.example.com"), ("https://a.b:443/", "https://a.b"),
    ("https://a.b:8443", "https://a.b:8443"), ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
    ("HTTP://localhost:80", "http://localhost"), ("http://[::1]:7000", "http://[::1]:7000"),
  ])
  func anAddressHasOneOrigin(text: String, origin: String) throws {
    #expect(try ServerAddress(text).origin == origin)
  }

  @Test(arguments: [
    "", "example.com", "ftp://a.b", "https://", "https://user@a.b", "https://u:p@a.b", "https://a.b/path",
    "https://a.b?x=1", "https://a.b#x", "https://a.b:0", "https://a.b:70000",
  ])
  func whatIsNoAddressIsRefused(text: String) {
    #expect(throws: TransportError(.invalidAddress)) { try ServerAddress(text) }
  }

  @Test(arguments: ["http://a.b", "http://10.0.0.1", "http://127.0.0.1.evil.org", "http://127.a.b.c", "http://[::2]"])
  func plainHTTPLeavesThisMachineNever(text: String) {
    let error = #expect(throws: TransportError.self) { try ServerAddress(text) }
    #expect(error?.code == .insecureAddress)
  }
}

@Suite struct TransportBodyTests {
  @Test func aBodyAboveItsLimitIsRefused() async throws {
    let parts = [[UInt8]](repeating: [1, 2, 3], count: 4)
    #expect(try await body(parts).collect(upTo: 12) == parts.flatMap(\.self))
    await #expect(throws: ZDCSecurityError(.limitExceeded)) { try await body(parts).collect(upTo: 11) }
  }

  @Test func aBodyInMemoryIsReadOnce() async throws {
    let body = TransportBody(bytes: [1, 2])
    #expect(try await body.next() == [1, 2])
    #expect(try await body.next() == nil)
    #expect(try await TransportBody(bytes: []).next() == nil)
  }

  @Test func descriptionsNameTheServerAndNothingElse() {
    for code in TransportError.Code.allCases {
      let text = TransportError(code, origin: "https://a.b").description
      #expect(!text.contains("/v1/") && text.first?.isLowercase == true)
    }
  }

  private func body(_ parts: [[UInt8]]) -> TransportBody {
    let source = Parts(parts)
    return TransportBody { await source.next() }
  }

  private actor Parts {
    var rest: ArraySlice<[UInt8]>
    init(_ parts: [[UInt8]]) { rest = parts[...] }
    func next() -> [UInt8]? { rest.popFirst() }
  }
}
