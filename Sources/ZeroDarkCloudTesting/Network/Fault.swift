/// A fault that can affect a request; see ``FaultyTransport``.
///
/// ```swift
/// a.network.fail(.before { try await b.push() }, "POST", "/v1/commits")  // another device comes first
/// a.network.fail(.delay(.seconds(30)), "GET", times: 3)
/// ```
public enum Fault: Sendable {
  /// The server never receives the request.
  case loseRequest
  /// The server executes the request, but the answer is lost.
  case loseResponse
  /// The connection breaks after this many bytes of the answer's body.
  case cutResponse(afterBytes: Int)
  /// The answer's body arrives in slices of this many bytes.
  case slowResponse(bytesAtOnce: Int)
  /// The request is sent once the ``ManualClock`` has advanced by this duration.
  case delay(Duration)
  /// The answer does not come from the server: a JSON error with this code, in the protocol's format.
  case answer(status: Int, code: String)
  /// The server receives the request twice, one after the other. The second answer counts.
  case duplicate
  /// One bit of the answer's body is flipped, in the byte at this offset, which counts from the end if it is negative.
  case corruptResponse(byteAt: Int)
  /// One bit of the request's body is flipped.
  case corruptRequest(byteAt: Int)
  /// The closure runs first, for example another device's push.
  case before(@Sendable () async throws -> Void)
  /// The closure runs after the server has answered, before the device receives the answer.
  case after(@Sendable () async throws -> Void)
}

/// A request that went through a ``FaultyTransport``.
public struct RecordedRequest: Sendable, Hashable, CustomStringConvertible {
  /// The position of the request among all requests of the device, in order.
  public let number: Int
  /// The method and the path's pattern.
  public let route: WireRoutes.Route
  /// The path with its parameters and query.
  public let path: String
  /// Bytes of the request's body that were sent.
  public internal(set) var bytesSent: Int
  /// Bytes of the answer's body that were read.
  public internal(set) var bytesReceived: Int
  /// The HTTP status; nil if no answer arrived.
  public internal(set) var status: Int?

  /// The request as one line of text.
  public var description: String {
    "\(route) \(bytesSent) -> \(status.map(String.init) ?? "none") \(bytesReceived)"
  }
}
