import Foundation
import HTTPTypes
import Hummingbird

/// Lets only the browser of this user in.
///
/// Every other program and every web page on this machine can connect to a port of the loopback interface. Therefore:
/// the first request has a random token, which only the terminal has shown, and gets a cookie in exchange; the `Host`
/// must be ours, so that no foreign name can be pointed at this address (DNS rebinding); requests that change something
/// must come from our own pages.
struct Guard: RouterMiddleware {
  let port: Int
  let token = Guard.secret()
  private let cookie = Guard.secret()

  private var origins: [String] { ["http://127.0.0.1:\(port)", "http://localhost:\(port)"] }
  // Cookies do not distinguish ports, and there may be a page on another one.
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
    guard let host = request.head.authority, origins.contains("http://\(host)") else {
      throw HTTPError(.misdirectedRequest, message: "This address belongs to no page here.")
    }
    if let site = request.headers[.secFetchSite], site != "same-origin", site != "none", !isEntrance(request) {
      throw HTTPError(.forbidden, message: "Another site sent this request.")
    }
    if request.method != .get {
      guard let origin = request.headers[.origin], origins.contains(origin) else {
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
    let message = (error as? HTTPError)?.body ?? Failure(error).message
    return Page.response(Page.document(title: "Not possible", body: Page.problem(message)), status: status)
  }

  private static func status(of failure: Failure) -> HTTPResponse.Status {
    switch failure.status {
    case .usage, .data: .unprocessableContent
    case .noInput: .notFound
    case .unavailable, .tryAgain: .serviceUnavailable
    default: .internalServerError
    }
  }

  /// Scripts, styles and pictures come from this server only, and no other page may show this one.
  private static let headers: HTTPFields = [
    .contentSecurityPolicy: """
    default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; \
    base-uri 'none'; frame-ancestors 'none'
    """,
    .xContentTypeOptions: "nosniff", .referrerPolicy: "same-origin", .crossOriginOpenerPolicy: "same-origin",
    .crossOriginResourcePolicy: "same-origin",
  ]

  static func secret() -> String { (0..<32).map { _ in String(format: "%02x", UInt8.random(in: 0...255)) }.joined() }

  /// Takes as long wherever the two differ.
  private func equal(_ a: String, _ b: String) -> Bool {
    a.utf8.count == b.utf8.count && zip(a.utf8, b.utf8).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
  }
}

extension HTTPField.Name {
  fileprivate static let secFetchSite = HTTPField.Name("Sec-Fetch-Site") ?? .userAgent
  fileprivate static let referrerPolicy = HTTPField.Name("Referrer-Policy") ?? .userAgent
  fileprivate static let crossOriginOpenerPolicy = HTTPField.Name("Cross-Origin-Opener-Policy") ?? .userAgent
}
