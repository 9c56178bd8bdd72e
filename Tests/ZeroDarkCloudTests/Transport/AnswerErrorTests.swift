import Foundation
import Testing
import ZDCProtocol

@testable import ZDCClientAPI
@testable import ZeroDarkCloud

@Suite struct AnswerErrorTests {
  private static let json = ["content-type": "application/json"]

  private func make(_ status: Int, _ body: String, headers: [String: String] = [:]) -> any Error {
    let type = body.hasPrefix("{") ? ["content-type": "application/json"] : ["content-type": "text/html"]
    return AnswerError.make(
      status: status, headers: type.merging(headers) { $1 }, body: Array(body.utf8), origin: "https://a.b",
      sentBytes: 8_388_608)
  }

  @Test(arguments: ServerError.Code.allCases)
  func everyErrorOfTheServerArrivesAsItWasSent(code: ServerError.Code) throws {
    let sent = ServerError(code, "why", retryable: true, retryAfterMs: 1_500, security: .treeCycle)
    let body = [UInt8](try JSONEncoder().encode(sent))
    let found = AnswerError.make(status: sent.status, headers: Self.json, body: body, origin: nil)
    #expect(found as? ServerError == sent)
  }

  @Test func aCodeOfANewerServer_isReadByItsStatus() {
    let error = make(422, #"{"code":"somethingNew","message":"m","retryable":true,"more":[1]}"#) as? ServerError
    #expect(error?.code == .invalidRequest)
    #expect(error?.retryable == true)
    let server = make(599, #"{"code":"somethingNew","message":"m","retryable":false}"#) as? ServerError
    #expect(server?.code == .internalError)
  }

  @Test(
    "M17: an error without our body is that of something in front of the server",
    arguments: [
      (400, false), (401, false), (403, false), (410, false), (413, false), (416, false), (426, false), (429, true),
      (500, true), (502, true), (503, true), (504, true), (507, true),
    ])
  func withoutOurBody_aProxyAnswered(status: Int, isTemporary: Bool) throws {
    for body in ["<html>", "", #"{"error":"x"}"#] {
      let error = try #require(make(status, body) as? TransportError)
      #expect(error.code == .proxyAnswered)
      #expect(error.status == status)
      #expect(error.isTemporary == isTemporary)
      #expect(error.description.contains("\(status)"))
    }
  }

  @Test("M17: our body in another media type is not ours")
  func ourBodyInAnotherMediaType_isNotOurs() {
    let body = #"{"code":"quotaExceeded","message":"m","retryable":false}"#
    let error = make(507, body, headers: ["content-type": "text/html"])
    #expect((error as? TransportError)?.code == .proxyAnswered)
  }

  @Test("M17: a body that a proxy refuses is named with its size and the proxy's setting")
  func refusedBody_isNamed() throws {
    let error = try #require(make(413, "<html>413 Request Entity Too Large</html>") as? TransportError)
    #expect(error.isBodyRefused)
    #expect(error.description.contains("8388608 bytes"))
    #expect(error.description.contains("client_max_body_size"))
  }

  @Test(arguments: [301, 302, 307, 404, 405, 418])
  func foreignAnswers_areNotFromAZeroDarkServer(status: Int) throws {
    let error = try #require(make(status, "<html>not here</html>") as? TransportError)
    #expect(error.code == .badAnswer && error.status == status)
  }

  @Test("F4: a pause that a server asks for has a cap")
  func theHeaderSaysWhenToComeBack_ifTheBodyDoesNot() {
    let ours = #"{"code":"shuttingDown","message":"m","retryable":true}"#
    let error = make(503, ours, headers: ["retry-after": "7"]) as? ServerError
    #expect(error?.retryAfterMs == 7_000)
    let stated = make(
      429, #"{"code":"zoneBusy","message":"m","retryable":true,"retryAfterMs":250}"#, headers: ["retry-after": "1"])
    #expect((stated as? ServerError)?.retryAfterMs == 250)
    let absurd = make(503, ours, headers: ["retry-after": "18446744073709551615"]) as? ServerError
    #expect(absurd?.retryAfterMs == 300_000)
    let absurdlyStated = make(
      429, #"{"code":"zoneBusy","message":"m","retryable":true,"retryAfterMs":4611686018427387904}"#)
    #expect((absurdlyStated as? ServerError)?.retryAfterMs == 300_000)
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
  func invalidAddressesAreRefused(text: String) {
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
