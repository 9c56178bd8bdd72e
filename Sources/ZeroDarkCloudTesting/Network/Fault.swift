/// What may happen to a request; see ``FaultyTransport``.
public enum Fault: Sendable {
  /// The server never gets it.
  case loseRequest
  /// The server does what it asks, and the answer is lost.
  case loseResponse
  /// The connection breaks after so many bytes of the answer's body.
  case cutResponse(afterBytes: Int)
  /// The answer's body arrives in slices of so many bytes.
  case slowResponse(bytesAtOnce: Int)
  /// It is sent when the ``ManualClock`` has moved that far.
  case delay(Duration)
  /// Something answers in the server's place: a JSON error with this code, as the protocol has them.
  case answer(status: Int, code: String)
  /// The server gets it twice, one after the other; the second answer counts.
  case duplicate
  /// One bit of the answer's body is turned over: in the byte at this offset, counted from the end if it is negative.
  case corruptResponse(byteAt: Int)
  /// One bit of the request's body is turned over.
  case corruptRequest(byteAt: Int)
  /// Something else happens first, for example another device's push.
  case before(@Sendable () async throws -> Void)
  /// Something else happens when the server has answered, before the device sees it.
  case after(@Sendable () async throws -> Void)
}

/// A request that went through a ``FaultyTransport``.
public struct RecordedRequest: Sendable, Hashable, CustomStringConvertible {
  public let number: Int
  public let route: WireRoutes.Route
  public let path: String
  public internal(set) var bytesSent: Int
  /// Of the answer's body, as far as it was read.
  public internal(set) var bytesReceived: Int
  /// Nil if no answer came.
  public internal(set) var status: Int?

  public var description: String {
    "\(route) \(bytesSent) -> \(status.map(String.init) ?? "none") \(bytesReceived)"
  }
}
