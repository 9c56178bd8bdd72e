/// No usable answer came. Says where it failed and what to do, never a path, a token or content.
///
/// The request may have reached the server; every request of the protocol may be repeated.
public struct TransportError: Error, Hashable, Sendable {
  public enum Code: String, Sendable, CaseIterable {
    /// The configured address is not one of a server.
    case invalidAddress
    /// Plain http to another machine would show tokens to everybody in between.
    case insecureAddress
    /// There is no way to the network.
    case offline
    /// The host's name has no address.
    case unknownHost
    /// The host is there and nothing listens.
    case refused
    /// The certificate was not accepted, or the two sides could not agree on encryption.
    case tls
    case timeout
    /// The connection ended in the middle.
    case cut
    /// Something answered that is not a ZeroDark server, or not one of this protocol.
    case badAnswer
  }

  public let code: Code
  /// `scheme://host:port`, if known.
  public let origin: String?

  public init(_ code: Code, origin: String? = nil) {
    self.code = code
    self.origin = origin
  }

  /// Whether the same request may succeed later without anybody changing the configuration.
  public var isTemporary: Bool {
    switch code {
    case .offline, .unknownHost, .refused, .timeout, .cut: true
    case .invalidAddress, .insecureAddress, .tls, .badAnswer: false
    }
  }
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
    case .cut: "the connection to \(place) ended early"
    case .badAnswer: "the answer of \(place) is not that of a ZeroDark server"
    }
  }
}
