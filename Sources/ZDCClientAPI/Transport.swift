/// Sends requests to a server and returns its answers. It is the only interface between the framework and the network.
///
/// The framework uses ``AsyncHTTPTransport``. Tests wrap it in a transport that loses, cuts or alters traffic. Many
/// tasks may call it concurrently.
package protocol Transport: Sendable {
  /// Sends a request and returns once the answer's status and headers have arrived. The body follows as a stream.
  ///
  /// Any status is an answer. A cancelled task aborts the request and the connection it runs on.
  ///
  /// - Throws: ``ZDCTransportError`` if there is no answer, or `CancellationError`. The server may still have acted on the
  ///   request.
  func send(_ request: TransportRequest) async throws -> TransportResponse

  /// Uses new connections for later requests. Requests in progress keep theirs.
  func renewConnections() async
}

extension Transport {
  /// Does nothing, for transports that keep no connections.
  package func renewConnections() async {}
}

/// A request, independent of the client that sends it.
package struct TransportRequest: Sendable {
  /// An HTTP method of the wire API.
  package enum Method: String, Sendable {
    case get = "GET"
    case post = "POST"
    case put = "PUT"
    case delete = "DELETE"
  }

  /// The body of a request.
  package enum Body: Sendable {
    /// No body.
    case none
    /// Bytes in memory.
    case bytes([UInt8])
    /// Exactly `length` bytes, sent as they are produced. Can be sent only once.
    case stream(length: UInt64, TransportBody)
  }

  /// The HTTP method.
  package var method: Method
  /// Path and query, beginning with a slash.
  package var path: String
  /// Header values by lower-case name.
  package var headers: [String: String]
  /// The body; ``Body/none`` by default.
  package var body: Body
  /// How long the answer's head may take, from the start of the request.
  package var timeout: Duration
  /// Called when the connection has taken the last byte of a large body in memory, long before the answer. A transport
  /// that does not know when that is does not call it.
  package var bodyTaken: @Sendable () -> Void = {}

  /// Creates a request.
  ///
  /// - Parameters:
  ///   - method: The HTTP method.
  ///   - path: Path and query, beginning with a slash and already percent-encoded.
  ///   - headers: Header values by lower-case name.
  ///   - body: The bytes to send.
  ///   - timeout: How long the answer's head may take, from the start of the request. The body has no limit of its own.
  package init(
    _ method: Method, _ path: String, headers: [String: String] = [:], body: Body = .none,
    timeout: Duration = .seconds(120)
  ) {
    self.method = method
    self.path = path
    self.headers = headers
    self.body = body
    self.timeout = timeout
  }
}

/// An answer whose body is still arriving.
package struct TransportResponse: Sendable {
  /// The HTTP status.
  package var status: Int
  /// Header values by lower-case name. Of a repeated field, the last value.
  package var headers: [String: String]
  /// The body, which arrives as it is read. Releasing it unread cancels the request.
  package var body: TransportBody

  /// Creates an answer, for a transport of your own.
  ///
  /// - Parameters:
  ///   - status: The HTTP status.
  ///   - headers: Header values by lower-case name.
  ///   - body: The body, which may still be arriving.
  package init(status: Int, headers: [String: String], body: TransportBody) {
    self.status = status
    self.headers = headers
    self.body = body
  }
}
