internal import Hummingbird
internal import ZDCProtocol

/// Registration, and what an account holds besides its trees.
enum AccountRoutes {
  static func register(_ call: Call) async throws -> Response {
    let registration = try Accounts.Registration(try await call.json(RegisterRequest.self))
    let configuration = call.core.configuration
    let now = call.now
    let isNew = try await call.write { tx in
      try Accounts.register(
        registration, mode: configuration.effectiveRegistration, invites: configuration.invites, now: now, in: tx)
    }
    return try .json(RegisterResponse(userID: registration.identity.userID), status: isNew ? .created : .ok)
  }

  static func keyring(_ call: Call) async throws -> Response {
    let user = try call.user
    guard let bytes = try await call.read({ try $0.keyring(of: user) }) else {
      throw ServerError(.notFound, "no keyring")
    }
    return .octets(bytes)
  }

  static func appendLink(_ call: Call) async throws -> Response {
    let user = try call.user
    let request = try await call.json(AppendLinkRequest.self)
    let isNew = try await call.write { tx in try Accounts.append(request, user: user, in: tx) }
    return Response(status: isNew ? .created : .ok)
  }

  static func chain(_ call: Call) async throws -> Response {
    let user: UserID = try call.id("userID")
    return .bundle(try await call.read { try Accounts.chain(of: user, in: $0) })
  }

  static func audit(_ call: Call) async throws -> Response {
    let user = try call.user
    let now = call.now
    let quota = call.core.quotas.limit
    return try .json(try await call.read { try Audit.report(for: user, quota: quota, now: now, in: $0) })
  }
}
