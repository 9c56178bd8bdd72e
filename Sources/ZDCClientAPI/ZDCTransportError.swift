public import ZDCProtocol

/// An error that means no usable answer arrived. Its description says where it failed and what to do, and never holds a
/// path, a token or content.
///
/// The request may have reached the server. Every request of the protocol may be repeated.
///
/// ```swift
/// do { try await zdc.syncManager?.syncUntilIdle(localUserID: user.uuid) }
/// catch let error as ZDCTransportError where error.isTemporary { syncLater() }
/// ```
public struct ZDCTransportError: Error, Hashable, Sendable {
  /// Why there is no usable answer.
  public let code: Code
  /// `scheme://host:port`, if known.
  public let origin: String?
  /// The HTTP status of an answer that is not from a ZeroDark server.
  public let status: Int?
  /// The size of the refused request's body, in bytes.
  package let sentBytes: UInt64?

  /// Creates an error, for previews and tests.
  ///
  /// ```swift
  /// let error = ZDCTransportError(.offline)  // for a preview
  /// report(error)
  /// ```
  public init(_ code: Code, origin: String? = nil, status: Int? = nil) {
    self.init(code, origin: origin, status: status, sentBytes: nil)
  }

  package init(_ code: Code, origin: String?, status: Int?, sentBytes: UInt64?) {
    self.code = code
    self.origin = origin
    self.status = status
    self.sentBytes = sentBytes
  }

  /// Whether no connection was established, so the server cannot have received the request.
  package var isUnsent: Bool {
    switch code.name {
    case .offline, .unknownHost, .refused: true
    default: false
    }
  }

  /// Whether the same request may succeed later without a change to the configuration.
  ///
  /// ```swift
  /// do {
  ///   try await session.syncManager.syncUntilIdle(localUserID: user.uuid)
  /// } catch let error as ZDCTransportError {
  ///   if error.isTemporary { syncLater() } else { report(error) }
  /// }
  /// ```
  public var isTemporary: Bool {
    switch code.name {
    case .offline, .unknownHost, .refused, .timeout, .tooSlow, .cut: true
    case .invalidAddress, .insecureAddress, .tls, .badAnswer: false
    case .proxyAnswered: status.map { $0 >= 500 || $0 == 408 || $0 == 429 } ?? false
    }
  }

  /// Whether requests of other zones would fail in the same way, because the server cannot be reached at all.
  package var isOfConnection: Bool {
    switch code.name {
    case .offline, .unknownHost, .refused, .tls, .invalidAddress, .insecureAddress: true
    case .timeout, .tooSlow, .cut, .badAnswer, .proxyAnswered: false
    }
  }

  /// The code, and the status of an answer that is not from a ZeroDark server.
  package var detail: String { status.map { "\(code) \($0)" } ?? "\(code)" }

  /// Whether a proxy refused a request because of its size. Its operator has to allow bodies of 8 MiB, the size of an
  /// upload part; ``ZDCSyncManager/checkConnection(localUserID:)`` finds this out.
  package var isBodyRefused: Bool { code == .proxyAnswered && status == 413 }
}

/// The name inside the package.
package typealias TransportError = ZDCTransportError

extension ZDCTransportError {
  /// The kind of error. Later versions may add codes, so a `switch` needs a `default`.
  ///
  /// ```swift
  /// do {
  ///   try await session.syncManager.syncUntilIdle(localUserID: user.uuid)
  /// } catch let error as ZDCTransportError where error.code == .tls {
  ///   show([error.description])  // says what to do; contains no path, token or content
  /// }
  /// ```
  public struct Code: ErrorCode, Hashable, Sendable, CustomStringConvertible {
    package enum Name: String, CaseIterable, Sendable {
      case invalidAddress, insecureAddress, offline, unknownHost, refused, tls, timeout, tooSlow, cut
      case badAnswer, proxyAnswered
    }

    package let name: Name

    package init(_ name: Name) { self.name = name }

    /// The code's name, which is stable.
    public var description: String { name.rawValue }

    /// The configured address is not a server address. Use `https://host` or `https://host:port`.
    public static let invalidAddress = Self(.invalidAddress)
    /// Plain http to another machine would expose tokens to the network. Use https.
    public static let insecureAddress = Self(.insecureAddress)
    /// There is no network connection. Queued changes are sent when there is one.
    public static let offline = Self(.offline)
    /// The host's name has no address. Check the server's name.
    public static let unknownHost = Self(.unknownHost)
    /// The host is reachable, but nothing listens on the port. Check the port, and whether the server is running.
    public static let refused = Self(.refused)
    /// The certificate was not accepted, or the two sides could not agree on encryption. Check the certificate, or name
    /// its authority in `ZDCConfig/caCertificates`.
    public static let tls = Self(.tls)
    /// No answer arrived in time. Try again.
    public static let timeout = Self(.timeout)
    /// The bytes of the answer arrive too slowly, or the server accepts those of the request too slowly. Try again over
    /// a better connection.
    public static let tooSlow = Self(.tooSlow)
    /// The connection was closed in the middle of a transfer. Try again.
    public static let cut = Self(.cut)
    /// The answer is not from a ZeroDark server, or not from one with this protocol. Check the address.
    public static let badAnswer = Self(.badAnswer)
    /// Something in front of the server answered, such as a reverse proxy: the error has no body of PROTOCOL 4.6. Look
    /// into its log; `status` is the HTTP status.
    public static let proxyAnswered = Self(.proxyAnswered)
  }
}

extension ZDCTransportError: CustomStringConvertible {
  /// The reason and what to do, as one sentence. Contains the server's address, and no path, name or token.
  public var description: String {
    let place = origin ?? "the server"
    return switch code.name {
    case .invalidAddress: "not a server address; expected https://host or https://host:port"
    case .insecureAddress: "plain http is only allowed to this machine; use https for \(place)"
    case .offline: "no network; check the connection to \(place)"
    case .unknownHost: "unknown host in \(place); check the server's name"
    case .refused: "connection refused by \(place); is the server running?"
    case .tls: "no trusted encrypted connection to \(place); check its certificate or name its authority"
    case .timeout: "no answer in time from \(place); try again"
    case .tooSlow: "the transfer with \(place) was too slow and was given up; try again over a better connection"
    case .cut: "the connection to \(place) ended early; try again"
    case .badAnswer: "the answer of \(place) is not that of a ZeroDark server; check the address"
    case .proxyAnswered: proxyDescription(place)
    }
  }

  private func proxyDescription(_ place: String) -> String {
    let what = "something in front of the server at \(place) answered with status \(status ?? 0)"
    guard isBodyRefused else { return what + "; look into its log" }
    return what + ": it refused a request of \(sentBytes ?? 0) bytes; raise its limit to 16 MiB"
      + " (nginx: client_max_body_size 16m)"
  }
}
