internal import HTTPTypes
internal import Hummingbird

/// A route: its authentication, the limit of its body, and its handler.
struct Route: Sendable {
  enum Auth: Sendable {
    case open
    /// Open, but rate-limited per client address.
    case limited
    case session
  }

  typealias Handler = @Sendable (Call) async throws -> Response

  let method: HTTPRequest.Method
  let path: String
  let auth: Auth
  let bodyLimit: Int
  let handler: Handler

  init(
    _ method: HTTPRequest.Method, _ path: String, _ auth: Auth, body bodyLimit: Int = 0, _ handler: @escaping Handler
  ) {
    self.method = method
    self.path = path
    self.auth = auth
    self.bodyLimit = bodyLimit
    self.handler = handler
  }
}
