/// Carries requests to a server and answers back: the only thing between the framework and the network.
///
/// The framework uses ``AsyncHTTPTransport``. Tests put another one in between, which loses, cuts or alters what
/// passes.
/// Calls come from many tasks at once.
public protocol ZDCTransport: Sendable {
  /// Sends a request and returns when the answer's status and headers are there; its body follows as a stream.
  ///
  /// Any status is an answer. A cancelled task gives up the request and the connection it runs on.
  ///
  /// - Throws: ``TransportError`` if there is no answer, or `CancellationError`. The server may have acted on the
  ///   request
  ///   all the same.
  func send(_ request: TransportRequest) async throws -> TransportResponse

  /// Sends the requests that follow over new connections. Those under way keep theirs.
  func renewConnections() async
}

extension ZDCTransport {
  /// Does nothing, for transports that keep no connections.
  public func renewConnections() async {}
}

/// A request, independent of the client that sends it.
public struct TransportRequest: Sendable {
  public enum Method: String, Sendable {
    case get = "GET"
    case post = "POST"
    case put = "PUT"
    case delete = "DELETE"
  }

  public enum Body: Sendable {
    case none
    case bytes([UInt8])
    /// Exactly `length` bytes, sent as they are produced. Can be sent once only.
    case stream(length: UInt64, TransportBody)
  }

  public var method: Method
  /// Path and query, beginning with a slash.
  public var path: String
  /// By lower-case name.
  public var headers: [String: String]
  public var body: Body
  /// How long the answer's head may take, counted from the start.
  public var timeout: Duration

  public init(
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

/// An answer whose body is still on its way.
public struct TransportResponse: Sendable {
  public var status: Int
  /// By lower-case name; of a repeated field the last value.
  public var headers: [String: String]
  public var body: TransportBody

  public init(status: Int, headers: [String: String], body: TransportBody) {
    self.status = status
    self.headers = headers
    self.body = body
  }
}
