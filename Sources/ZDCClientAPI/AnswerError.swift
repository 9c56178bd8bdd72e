internal import Foundation
internal import ZDCProtocol
internal import ZDCSupport

/// Converts unsuccessful HTTP answers to errors. No other code does.
package enum AnswerError {
  /// Returns the error that the answer describes: a `ZDCServerError`, or a ``ZDCTransportError`` if the answer is not from a
  /// ZeroDark server.
  ///
  /// - Parameter sentBytes: The size of the request's body.
  package static func make(
    status: Int, headers: [String: String], body: [UInt8], origin: String?, sentBytes: UInt64 = 0
  ) -> any Error {
    guard headers["content-type"]?.hasPrefix(TransportRequest.jsonType) == true, JSONForm.isAcceptable(body),
      let stated = try? JSONDecoder().decode(StatedError.self, from: Data(body))
    else {
      let code: TransportError.Code = code(status: status) == nil ? .badAnswer : .proxyAnswered
      return TransportError(code, origin: origin, status: status, sentBytes: sentBytes)
    }
    var error = ServerError(
      ServerError.Code(rawValue: stated.code) ?? code(status: status) ?? .internalError,
      String(stated.message.prefix(500)), retryable: stated.retryable ?? false,
      retryAfterMs: stated.retryAfterMs.map { min($0, Backoff.longestAskedMs) },
      security: stated.security.flatMap(ZDCSecurityError.Code.init),
      quota: stated.quota)
    error.user = stated.user.flatMap { UserID(text: $0) }
    if error.retryAfterMs == nil, let seconds = headers["retry-after"].flatMap(UInt64.init) {
      error.retryAfterMs = min(seconds, Backoff.longestAskedMs / 1_000) * 1_000
    }
    return error
  }

  /// The body of an error answer. Codes are text, because a newer server may send one that this version does not know.
  private struct StatedError: Decodable {
    var code: String
    var message: String
    var retryable: Bool?
    var retryAfterMs: UInt64?
    var security: String?
    var quota: ServerError.Quota?
    var user: String?
  }

  private static func code(status: Int) -> ServerError.Code? {
    switch status {
    // The same request would fail again.
    case 400, 415, 422: .invalidRequest
    // The session has ended; open another one.
    case 401: .unauthorized
    case 403: .forbidden
    // A proxy sends these if a request is too large or too frequent.
    case 413: .limitExceeded
    case 429: .tooManyRequests
    case 416: .rangeNotSatisfiable
    // This client is too old or too new for the server.
    case 426: .unsupportedProtocol
    case 410: .gone
    case 507: .storageFull
    // A gateway failed or the server is shutting down. Retry later.
    case 502, 503, 504: .shuttingDown
    case 500..<600: .internalError
    // Without our error body, 404, 405 and redirects come from a web server that is not ours.
    default: nil
    }
  }
}
