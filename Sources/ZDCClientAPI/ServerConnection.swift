internal import Foundation
internal import ZDCProtocol
package import ZDCSupport

/// Sends requests without a session. Takes JSON and octets, and returns values or throws typed errors.
package struct ServerConnection: Sendable {
  package let transport: any Transport
  package let origin: String
  /// Sends a value when an answer begins to arrive, whatever it is.
  package let answers = Broadcast<Void>(limit: 1)
  private let now: @Sendable () -> ContinuousClock.Instant

  package init(
    transport: any Transport, address: ServerAddress,
    now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
  ) {
    self.transport = transport
    self.now = now
    origin = address.origin
  }

  /// A successful answer, or one with a status that the caller accepts.
  package struct Answer {
    package var status: Int
    package var headers: [String: String]
    package var body: [UInt8]
  }

  /// Sends a request and reads the whole answer.
  ///
  /// - Parameters:
  ///   - accepting: A status other than 2xx that is also an answer to this request.
  ///   - begun: Called when the answer begins to arrive.
  /// - Throws: `ZDCServerError`, ``ZDCTransportError``, `CancellationError`.
  package func answer(
    to request: TransportRequest, limit: Int, accepting: Int? = nil, begun: @Sendable () async -> Void = {}
  ) async throws -> Answer {
    let response = try await open(request, accepting: accepting)
    await begun()
    let expected = response.headers["content-length"].flatMap(Int.init) ?? 0
    let body = try await response.body.collect(upTo: limit, expected: max(0, expected))
    return Answer(status: response.status, headers: response.headers, body: body)
  }

  /// Sends a request and returns once the answer's head has arrived. The body is that of a success, or a bundle.
  package func open(_ request: TransportRequest, accepting: Int? = nil) async throws -> TransportResponse {
    var request = request
    request.timeout = TransferPace.headDeadline(sending: request.body.byteCount)
    var response = try await transport.send(request)
    answers.send(())
    // An event stream has no expected end. Its reader monitors it.
    if request.headers["accept"] != TransportRequest.eventsType {
      let expected = response.headers["content-length"].flatMap(UInt64.init) ?? UInt64(ServerAPI.bundleBytes)
      response.body = response.body.paced(expected: expected, origin: origin, now: now)
    }
    // No encoding was requested, so a compressed answer is not from a ZeroDark server.
    guard response.headers["content-encoding"].map({ $0.lowercased() == "identity" }) ?? true else {
      throw TransportError(.badAnswer, origin: origin)
    }
    if 200..<300 ~= response.status { return response }
    let isBundle = response.headers["content-type"]?.hasPrefix(Bundle.mediaType) == true
    if response.status == accepting, isBundle { return response }
    let body = try await response.body.collect(upTo: Limits.jsonBytes)
    throw AnswerError.make(
      status: response.status, headers: response.headers, body: body, origin: origin,
      sentBytes: request.body.byteCount)
  }

  package func json<Value: Decodable>(
    _ request: TransportRequest, as type: Value.Type = Value.self
  ) async throws -> Value {
    try decode(try await answer(to: request, limit: Limits.jsonBytes).body)
  }

  package func decode<Value: Decodable>(_ bytes: [UInt8], as type: Value.Type = Value.self) throws -> Value {
    guard JSONForm.isAcceptable(bytes) else { throw TransportError(.badAnswer, origin: origin) }
    do {
      return try JSONDecoder().decode(type, from: Data(bytes))
    } catch { throw TransportError(.badAnswer, origin: origin) }
  }
}

extension TransportRequest {
  static let jsonType = "application/json"
  static let eventsType = "text/event-stream"
  static let octetType = "application/octet-stream"

  package static func get(_ path: String, query: [(String, String?)] = []) -> TransportRequest {
    let items = query.compactMap { name, value in value.map { "\(name)=\($0)" } }
    return TransportRequest(.get, items.isEmpty ? path : path + "?" + items.joined(separator: "&"))
  }

  package static func json(_ method: Method, _ path: String, _ value: some Encodable) throws -> TransportRequest {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return .bytes(method, path, [UInt8](try encoder.encode(value)), type: jsonType)
  }

  package static func bytes(
    _ method: Method, _ path: String, _ bytes: [UInt8], type: String = octetType
  ) -> TransportRequest {
    TransportRequest(method, path, headers: ["content-type": type], body: .bytes(bytes))
  }
}
