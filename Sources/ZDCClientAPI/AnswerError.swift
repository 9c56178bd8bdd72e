internal import Foundation
internal import ZDCProtocol
internal import ZDCSupport

/// The one place where a status that is no success becomes an error.
package enum AnswerError {
  /// What the answer says went wrong: a `ServerError`, or a ``TransportError`` if it is not from a ZeroDark server.
  ///
  /// - Parameter sentBytes: size of the request's body.
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
    if error.retryAfterMs == nil, let seconds = headers["retry-after"].flatMap(UInt64.init) {
      error.retryAfterMs = min(seconds, Backoff.longestAskedMs / 1_000) * 1_000
    }
    return error
  }

  /// Codes as text: a newer server may say one that this version does not know.
  private struct StatedError: Decodable {
    var code: String
    var message: String
    var retryable: Bool?
    var retryAfterMs: UInt64?
    var security: String?
    var quota: ServerError.Quota?
  }

  private static func code(status: Int) -> ServerError.Code? {
    switch status {
    // A request that will fail again as it is.
    case 400, 415, 422: .invalidRequest
    // The session has ended: open another one.
    case 401: .unauthorized
    case 403: .forbidden
    // A proxy's words for "smaller" and "slower".
    case 413: .limitExceeded
    case 429: .tooManyRequests
    case 416: .rangeNotSatisfiable
    // This client is too old or too new for the server.
    case 426: .unsupportedProtocol
    case 410: .gone
    case 507: .storageFull
    // Somebody in between, or the server on its way down: later.
    case 502, 503, 504: .shuttingDown
    case 500..<600: .internalError
    // 404, 405 and redirects without our body come from a web server that is not ours.
    default: nil
    }
  }
}
