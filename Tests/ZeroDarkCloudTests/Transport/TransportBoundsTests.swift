import Testing
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCClientAPI
@testable import ZeroDarkCloud

/// Connections that transfer nothing, or too little, with bounds that are short enough for a test.
@Suite(.timeLimit(.minutes(20))) struct TransportBoundsTests {
  private static let fine = Array("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nab".utf8)

  private static func transport(
    _ url: String, _ change: (inout AsyncHTTPTransport.Bounds) -> Void
  ) throws -> AsyncHTTPTransport {
    var bounds = AsyncHTTPTransport.Bounds()
    change(&bounds)
    return try AsyncHTTPTransport(address: ServerAddress(url), caCertificates: nil, bounds: bounds)
  }

  /// Returns the error code of a request. Cancels a request that takes much longer than its bound, and throws then.
  private static func code(
    _ body: @escaping @Sendable () async throws -> Void
  ) async throws -> TransportError.Code? {
    let request = Task { try await body() }
    let guardian = Task {
      try await Task.sleep(for: .seconds(15))
      request.cancel()
    }
    defer { guardian.cancel() }
    do {
      try await request.value
      return nil
    } catch let error as TransportError { return error.code }
  }

  private static func upload(_ bytes: Int, by transport: AsyncHTTPTransport) async throws {
    var request = TransportRequest.bytes(.put, "/v1/x", [UInt8](repeating: 7, count: bytes))
    request.timeout = .seconds(30)
    _ = try await transport.send(request).body.collect(upTo: 10)
  }

  @Test("F5: a server that stops reading ends an upload, whatever the deadline of its answer")
  func serverThatStopsReading_endsTheUpload() async throws {
    let raw = try RawServer(reading: .never) { _ in Self.fine }
    defer { raw.end() }
    let transport = try Self.transport(raw.url) { $0.sendingWindow = .milliseconds(300) }
    let code = try await Self.code { try await Self.upload(32 << 20, by: transport) }
    #expect(code == .tooSlow)
    #expect(TransportError(.tooSlow).isTemporary)
  }

  @Test("F5: an upload of which the client holds everything, to its end, is too slow as well")
  func serverThatStopsReading_withNothingLeftToHandOver() async throws {
    let raw = try RawServer(reading: .never) { _ in Self.fine }
    defer { raw.end() }
    let transport = try Self.transport(raw.url) { $0.sendingWindow = .milliseconds(300) }
    var request = TransportRequest(.put, "/v1/x")
    let bytes = [UInt8](repeating: 7, count: 32 << 20)
    request.body = .stream(length: UInt64(bytes.count), TransportBody(bytes: bytes))
    let sent = request
    let code = try await Self.code { _ = try await transport.send(sent).body.collect(upTo: 10) }
    #expect(code == .tooSlow)
  }

  @Test("F5: an upload that moves slowly lasts for many windows and arrives")
  func slowUpload_arrives() async throws {
    let raw = try RawServer(reading: .slices(of: 64 << 10, every: .milliseconds(20))) { _ in Self.fine }
    defer { raw.end() }
    // Long enough for a reader that is delayed on a busy machine.
    let transport = try Self.transport(raw.url) { $0.sendingWindow = .milliseconds(1_500) }
    try await Self.upload(24 << 20, by: transport)
  }

  @Test("F5: two KiB a second are enough, a byte a second is not, and nothing to send is no fault")
  func paceOfSending() {
    var pace = SendingPace()
    let start = pace.endWindow(written: 1 << 20, waiting: 1 << 20)
    #expect(start == .moving)
    for window in 1...6 {
      let verdict = pace.endWindow(written: 1 << 20, waiting: (1 << 20) - window * (120 << 10))
      #expect(verdict == .moving)
    }
    var silent = pace
    let afterOneByte = silent.endWindow(written: 1 << 20, waiting: (1 << 20) - 6 * (120 << 10) - 60)
    #expect(afterOneByte == .tooSlow)
    let end = pace.endWindow(written: 1 << 20, waiting: 0)
    #expect(end == .idle)
    // The next request on the same connection, of which less than a window's bytes are waiting.
    let next = [
      pace.endWindow(written: (1 << 20) + 500, waiting: 300), pace.endWindow(written: (1 << 20) + 500, waiting: 1),
    ]
    #expect(next == [.moving, .tooSlow])
  }

  @Test("F5: a server that does not answer the handshake, or sends no byte of its answer any more, is given up")
  func silence_ends() async throws {
    let silent = try RawServer(reading: .never) { _ in [] }
    let stuck = try RawServer(closes: false) { _ in Array("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc".utf8) }
    let mute = try RawServer(closes: false) { _ in [] }
    defer { for server in [silent, stuck, mute] { server.end() } }
    let secure = silent.url.replacing("http:", with: "https:")
    let handshake = try Self.transport(secure) { $0.connect = .milliseconds(300) }
    let codes = [
      try await Self.code { _ = try await handshake.send(.get(Routes.info)) },
      try await Self.code { try await Self.read(stuck) }, try await Self.code { try await Self.read(mute) },
    ]
    #expect(codes == [.timeout, .timeout, .timeout])
  }

  private static func read(_ server: RawServer) async throws {
    let transport = try transport(server.url) { $0.silence = .milliseconds(300) }
    _ = try await transport.send(.get(Routes.info)).body.collect(upTo: 100)
  }
}
