internal import Hummingbird
internal import ZDCProtocol

/// The operator's routes. They are served on a Unix socket that only the server's user can open, and nowhere else.
enum AdminRoutes {
  static let all: [Route] = [
    Route(.get, AdminPaths.users, .open, users),
    Route(.get, AdminPaths.user, .open, user),
    Route(.put, AdminPaths.suspension, .open, suspend),
    Route(.delete, AdminPaths.suspension, .open, resume),
    Route(.put, AdminPaths.quota, .open, body: 1 << 10, setQuota),
    Route(.delete, AdminPaths.quota, .open, removeQuota),
    Route(.get, AdminPaths.sessions, .open, sessions),
    Route(.delete, AdminPaths.sessions, .open, endSessions),
    Route(.get, AdminPaths.invites, .open, invites),
  ]

  private static func users(_ call: Call) async throws -> Response {
    let after = try call.request.uri.queryParameters["after"].map { text in
      guard let id = UserID(text: String(text)) else { throw ServerError(.invalidRequest, "after is not a user id") }
      return id
    }
    let (quotas, now) = (call.core.quotas, call.now)
    return try .json(
      try await call.read { try Administration.users(after: after, quotas: quotas, now: now, in: $0) })
  }

  private static func user(_ call: Call) async throws -> Response {
    let (id, quotas, now): (UserID, Quotas, UInt64) = (try call.id("userID"), call.core.quotas, call.now)
    return try .json(try await call.read { try Administration.user(id, quotas: quotas, now: now, in: $0) })
  }

  private static func suspend(_ call: Call) async throws -> Response {
    let id: UserID = try call.id("userID")
    let (core, now) = (call.core, call.now)
    try await call.write([.account(id)]) { tx in
      let isNew = try Administration.suspend(id, now: now, in: tx)
      try core.coordination.announce(.allSessionsEnded(except: nil, of: id), in: tx)
      if isNew { try core.deletions?.note([.suspension(id, ms: now, isSuspended: true)]) }
    }
    return .noContent
  }

  private static func resume(_ call: Call) async throws -> Response {
    let id: UserID = try call.id("userID")
    let (core, now) = (call.core, call.now)
    try await call.write([.account(id)]) { tx in
      guard try Administration.resume(id, in: tx) else { return }
      try core.deletions?.note([.suspension(id, ms: now, isSuspended: false)])
    }
    return .noContent
  }

  private static func setQuota(_ call: Call) async throws -> Response {
    let bytes = try await call.json(AdminQuota.self).bytes
    guard bytes <= 1 << 60 else { throw ServerError(.invalidRequest, "a quota has at most 2^60 bytes") }
    return try await set(bytes, call)
  }

  private static func removeQuota(_ call: Call) async throws -> Response { try await set(nil, call) }

  private static func set(_ bytes: UInt64?, _ call: Call) async throws -> Response {
    let id: UserID = try call.id("userID")
    let quotas = call.core.quotas
    try await call.write([.account(id)]) { try Administration.setQuota(bytes, of: id, quotas: quotas, in: $0) }
    return .noContent
  }

  private static func sessions(_ call: Call) async throws -> Response {
    let id: UserID = try call.id("userID")
    let now = call.now
    return try .json(try await call.read { try Administration.sessions(of: id, now: now, in: $0) })
  }

  private static func endSessions(_ call: Call) async throws -> Response {
    let id: UserID = try call.id("userID")
    let core = call.core
    try await call.write([.account(id)]) { tx in
      try Administration.endSessions(of: id, in: tx)
      try core.coordination.announce(.allSessionsEnded(except: nil, of: id), in: tx)
    }
    return .noContent
  }

  private static func invites(_ call: Call) async throws -> Response {
    let codes = call.core.configuration.invites
    return try .json(try await call.read { try Administration.invites(codes, in: $0) })
  }
}

/// The paths of ``AdminRoutes``.
package enum AdminPaths {
  package static let users = "/admin/users"
  package static let user = "/admin/users/{userID}"
  package static let suspension = "/admin/users/{userID}/suspension"
  package static let quota = "/admin/users/{userID}/quota"
  package static let sessions = "/admin/users/{userID}/sessions"
  package static let invites = "/admin/invites"
}
