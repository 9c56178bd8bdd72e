import Foundation
import HTTPTypes
import Hummingbird

/// Admits only the browser of this user.
///
/// Every program and every web page on this machine can connect to a port of the loopback interface. Therefore:
///
/// - The first request has the random token of the printed link, and gets a cookie in exchange.
/// - The `Host` must be this server's address, so that no other name can point to it (DNS rebinding).
/// - Requests that change something must come from this server's pages.
struct Guard: RouterMiddleware {
  let port: Int
  let token = Guard.secret()
  private let cookie = Guard.secret()

  private var origin: String { "http://127.0.0.1:\(port)" }
  // Cookies do not distinguish ports, and another instance may use another port.
  private var cookieName: String { "zdc-todo-\(port)" }

  func handle(
    _ request: Request, context: BasicRequestContext,
    next: (Request, BasicRequestContext) async throws -> Response
  ) async throws -> Response {
    var response: Response
    do {
      try admit(request)
      response = isEntrance(request) ? entrance() : try await next(request, context)
    } catch {
      response = refusal(error)
    }
    for field in Self.headers { response.headers[field.name] = field.value }
    return response
  }

  private func admit(_ request: Request) throws {
    guard let host = request.head.authority, "http://\(host)" == origin else {
      throw HTTPError(.misdirectedRequest, message: "Open the link that zdc-todo serve has printed.")
    }
    if let site = request.headers[.secFetchSite], site != "same-origin", site != "none", !isEntrance(request) {
      throw HTTPError(.forbidden, message: "Another site sent this request.")
    }
    if request.method != .get {
      guard request.headers[.origin] == origin else {
        throw HTTPError(.forbidden, message: "Another site sent this request.")
      }
    }
    guard isEntrance(request) || equal(request.cookies[cookieName]?.value ?? "", cookie) else {
      throw HTTPError(.unauthorized, message: "Open the link that zdc-todo serve has printed.")
    }
  }

  private func isEntrance(_ request: Request) -> Bool {
    guard request.method == .get, request.uri.path == "/" else { return false }
    return request.uri.queryParameters["token"].map { equal(String($0), token) } ?? false
  }

  private func entrance() -> Response {
    var response = Response.redirect(to: "/", type: .normal)
    response.setCookie(
      Cookie(name: cookieName, value: cookie, path: "/", secure: false, httpOnly: true, sameSite: .strict))
    return response
  }

  private func refusal(_ error: any Error) -> Response {
    let status = (error as? any HTTPResponseError)?.status ?? Self.status(of: Failure(error))
    let message = (error as? HTTPError)?.body ?? (error as? Failure)?.message ?? Self.message(status, error)
    return Document.response(Document.html(title: "Not possible", body: Document.problem(message)), status: status)
  }

  private static func message(_ status: HTTPResponse.Status, _ error: any Error) -> String {
    switch status {
    case .notFound: "This page, account, list or task does not exist."
    case .contentTooLarge: "This is too large."
    case .badRequest,
      .unprocessableContent where error is any HTTPResponseError:
      "This request is not valid."
    default: error is any HTTPResponseError ? "That was not possible." : Failure(error).message
    }
  }

  private static func status(of failure: Failure) -> HTTPResponse.Status {
    switch failure.status {
    case .usage, .data: .unprocessableContent
    case .noInput: .notFound
    case .noPermission, .security: .forbidden
    case .unavailable, .tryAgain: .serviceUnavailable
    default: .internalServerError
    }
  }

  /// Scripts, styles and pictures come only from this server, and no other page may embed this one.
  private static let headers: HTTPFields = [
    .contentSecurityPolicy: """
    default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; \
    base-uri 'none'; frame-ancestors 'none'
    """,
    .xContentTypeOptions: "nosniff", .referrerPolicy: "same-origin", .crossOriginOpenerPolicy: "same-origin",
    .crossOriginResourcePolicy: "same-origin",
  ]

  static func secret() -> String { (0..<32).map { _ in String(format: "%02x", UInt8.random(in: 0...255)) }.joined() }

  /// Compares in constant time.
  private func equal(_ a: String, _ b: String) -> Bool {
    a.utf8.count == b.utf8.count && zip(a.utf8, b.utf8).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
  }
}

extension HTTPField.Name {
  fileprivate static let secFetchSite = HTTPField.Name("Sec-Fetch-Site") ?? .userAgent
  fileprivate static let referrerPolicy = HTTPField.Name("Referrer-Policy") ?? .userAgent
  fileprivate static let crossOriginOpenerPolicy = HTTPField.Name("Cross-Origin-Opener-Policy") ?? .userAgent
}
