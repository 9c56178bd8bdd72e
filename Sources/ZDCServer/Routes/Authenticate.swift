internal import HTTPTypes
internal import Hummingbird
internal import ZDCProtocol

/// Finds the session of a request, or counts a call that needs none.
enum Authenticate {
  static func check(
    _ auth: Route.Auth, _ request: Request, _ context: ServerContext, _ core: ServerCore
  ) async throws -> SessionRow? {
    switch auth {
    case .open: return nil
    case .limited:
      try LimitRate.check(request, context, core)
      return nil
    case .session:
      let party = BodyBudget.Party.stranger(context.party(of: request, trusting: core.configuration.trustedProxies))
      guard let session = try await core.session(token: try token(request), from: party) else {
        throw ServerError(.unauthorized, "no such session: log in")
      }
      return session
    }
  }

  private static func token(_ request: Request) throws -> [UInt8] {
    let header = request.headers[.authorization] ?? ""
    let scheme = "Bearer "
    guard header.hasPrefix(scheme), let token = ZBase32.decode(header.dropFirst(scheme.count), byteCount: 32) else {
      throw ServerError(.unauthorized, "no session: log in")
    }
    return token
  }
}

/// Limits the rate of registration and login attempts. Off unless configured.
enum LimitRate {
  static func check(_ request: Request, _ context: ServerContext, _ core: ServerCore) throws {
    let party = context.party(of: request, trusting: core.configuration.trustedProxies)
    guard let wait = core.limiter?.take(party, now: core.elapsed) else { return }
    throw ServerError(.tooManyRequests, "too many requests", retryable: true, retryAfterMs: wait)
  }
}
