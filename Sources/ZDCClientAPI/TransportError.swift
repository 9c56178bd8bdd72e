/// An error that means no usable answer arrived. Its description says where it failed and what to do, and never holds a
/// path, a token or content.
///
/// The request may have reached the server. Every request of the protocol may be repeated.
public struct TransportError: Error, Hashable, Sendable {
  public enum Code: String, Sendable, CaseIterable {
    /// The configured address is not a server address.
    case invalidAddress
    /// Plain http to another machine would expose tokens to the network.
    case insecureAddress
    /// There is no network connection.
    case offline
    /// The host's name has no address.
    case unknownHost
    /// The host is reachable, but nothing listens on the port.
    case refused
    /// The certificate was not accepted, or the two sides could not agree on encryption.
    case tls
    case timeout
    /// The bytes of the answer arrive too slowly, or the server accepts those of the request too slowly.
    case tooSlow
    /// The connection was closed in the middle of a transfer.
    case cut
    /// The answer is not from a ZeroDark server, or not from one with this protocol.
    case badAnswer
    /// An error without the body of PROTOCOL 4.6: something in front of the server answered, such as a reverse proxy.
    case proxyAnswered
  }

  public let code: Code
  /// `scheme://host:port`, if known.
  public let origin: String?
  /// The HTTP status of an answer that is not from a ZeroDark server.
  public let status: Int?
  /// The size of the refused request's body, in bytes.
  public let sentBytes: UInt64?

  public init(_ code: Code, origin: String? = nil, status: Int? = nil, sentBytes: UInt64? = nil) {
    self.code = code
    self.origin = origin
    self.status = status
    self.sentBytes = sentBytes
  }

  /// Whether no connection was established, so the server cannot have received the request.
  package var isUnsent: Bool {
    switch code {
    case .offline, .unknownHost, .refused: true
    default: false
    }
  }

  /// Whether the same request may succeed later without a change to the configuration.
  public var isTemporary: Bool {
    switch code {
    case .offline, .unknownHost, .refused, .timeout, .tooSlow, .cut: true
    case .invalidAddress, .insecureAddress, .tls, .badAnswer: false
    case .proxyAnswered: status.map { $0 >= 500 || $0 == 408 || $0 == 429 } ?? false
    }
  }

  /// Whether requests of other zones would fail in the same way, because the server cannot be reached at all.
  package var isOfConnection: Bool {
    switch code {
    case .offline, .unknownHost, .refused, .tls, .invalidAddress, .insecureAddress: true
    case .timeout, .tooSlow, .cut, .badAnswer, .proxyAnswered: false
    }
  }

  /// The code, and the status of an answer that is not from a ZeroDark server.
  package var detail: String { status.map { "\(code.rawValue) \($0)" } ?? code.rawValue }

  /// Whether a proxy refused a request because of its size.
  public var isBodyRefused: Bool { code == .proxyAnswered && status == 413 }
}

extension TransportError: CustomStringConvertible {
  public var description: String {
    let place = origin ?? "the server"
    return switch code {
    case .invalidAddress: "not a server address; expected https://host or https://host:port"
    case .insecureAddress: "plain http is only allowed to this machine; use https for \(place)"
    case .offline: "no network; check the connection to \(place)"
    case .unknownHost: "unknown host in \(place); check the server's name"
    case .refused: "connection refused by \(place); is the server running?"
    case .tls: "no trusted encrypted connection to \(place); check its certificate or name its authority"
    case .timeout: "no answer in time from \(place)"
    case .tooSlow: "the transfer with \(place) was too slow and was given up; try again over a better connection"
    case .cut: "the connection to \(place) ended early"
    case .badAnswer: "the answer of \(place) is not that of a ZeroDark server"
    case .proxyAnswered: proxyDescription(place)
    }
  }

  private func proxyDescription(_ place: String) -> String {
    let what = "something in front of the server at \(place) answered with status \(status ?? 0)"
    guard isBodyRefused else { return what }
    return what + ": it refused a request of \(sentBytes ?? 0) bytes; raise its limit to 16 MiB"
      + " (nginx: client_max_body_size 16m)"
  }
}
