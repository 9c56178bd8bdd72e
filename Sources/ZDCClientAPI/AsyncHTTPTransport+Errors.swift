internal import AsyncHTTPClient
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import NIOSSL

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

extension TransportError {
  /// Translates an error of the HTTP client. Any unexpected error counts as a cut connection, which may be retried.
  static func translate(_ error: any Error, origin: String) -> any Error {
    switch error {
    case is CancellationError, is TransportError: error
    case let error as HTTPClientError: translate(error, origin: origin)
    case let error as NIOConnectionError: TransportError(code(of: error), origin: origin)
    case let error as IOError: TransportError(code(ofConnected: error), origin: origin)
    case is NIOSSLError, is BoringSSLError, is NIOSSLExtraError: TransportError(.tls, origin: origin)
    case ChannelError.connectTimeout: TransportError(.timeout, origin: origin)
    case HTTPParserError.invalidEOFState: TransportError(.cut, origin: origin)
    case is SendingGuard.TooSlow: TransportError(.tooSlow, origin: origin)
    case is AnswerGuard.MalformedAnswer, is HTTPParserError: TransportError(.badAnswer, origin: origin)
    default: TransportError(.cut, origin: origin)
    }
  }

  private static func translate(_ error: HTTPClientError, origin: String) -> any Error {
    switch error {
    case .cancelled: CancellationError()
    case .connectTimeout, .readTimeout, .writeTimeout, .deadlineExceeded, .getConnectionFromPoolTimeout:
      TransportError(.timeout, origin: origin)
    case .tlsHandshakeTimeout: TransportError(.tls, origin: origin)
    case .invalidURL, .emptyHost, .emptyScheme: TransportError(.invalidAddress, origin: origin)
    default: TransportError(.cut, origin: origin)
    }
  }

  /// Returns the code of the most informative failure. A host may have several addresses.
  private static func code(of error: NIOConnectionError) -> Code {
    guard !error.connectionErrors.isEmpty else { return .unknownHost }
    let codes = error.connectionErrors.map { failure -> Code in
      switch failure.error {
      case let error as IOError: code(errno: error.errnoCode)
      case ChannelError.connectTimeout: .timeout
      default: .refused
      }
    }
    return [Code.refused, .timeout, .offline].first(where: codes.contains) ?? codes[0]
  }

  /// Returns the code for an established connection. It may have carried the request, so it is never `offline`.
  private static func code(ofConnected error: IOError) -> Code {
    let code = code(errno: error.errnoCode)
    return code == .offline ? .cut : code
  }

  private static func code(errno: CInt) -> Code {
    switch errno {
    case ECONNREFUSED: .refused
    case ENETDOWN, ENETUNREACH, EHOSTDOWN, EHOSTUNREACH, EADDRNOTAVAIL: .offline
    case ETIMEDOUT: .timeout
    default: .cut
    }
  }
}
