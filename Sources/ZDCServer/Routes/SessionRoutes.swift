internal import Hummingbird
internal import ZDCProtocol

/// Challenge, login, sessions and devices (PROTOCOL 3.4).
enum SessionRoutes {
  /// The answer does not depend on who is asked for, so it tells nothing about who is known.
  static func challenge(_ call: Call) async throws -> Response {
    let request = try await call.json(ChallengeRequest.self)
    guard (request.lookupID == nil) != (request.userID == nil) else {
      throw ServerError(.invalidRequest, "one of lookupID and userID")
    }
    return try .json(
      call.core.challenges.make(now: call.now, lifetimeMs: call.core.configuration.bounds.challengeMs))
  }

  static func login(_ call: Call) async throws -> Response {
    let request = try await call.json(LoginRequest.self)
    let nonce = Nonce(bytes: request.nonce.bytes, expiresMs: request.expiresMs, origin: request.origin)
    return try await open(call, nonce) { token, now, lifetime, tx in
      try Sessions.login(request, token: token, now: now, lifetimeMs: lifetime, in: tx)
    }
  }

  static func deviceLogin(_ call: Call) async throws -> Response {
    let request = try await call.json(DeviceLoginRequest.self)
    let nonce = Nonce(bytes: request.nonce.bytes, expiresMs: request.expiresMs, origin: request.origin)
    return try await open(call, nonce) { token, now, lifetime, tx in
      try Sessions.login(request, token: token, now: now, lifetimeMs: lifetime, in: tx)
    }
  }

  private struct Nonce {
    var bytes: [UInt8]
    var expiresMs: UInt64
    var origin: String
  }

  private static func open(
    _ call: Call, _ nonce: Nonce,
    _ login: @escaping @Sendable ([UInt8], UInt64, UInt64, any MetadataTransaction) throws -> Sessions.Opened
  ) async throws -> Response {
    let core = call.core
    let now = call.now
    let lifetime = core.configuration.bounds.sessionMs
    guard core.isOwnOrigin(nonce.origin),
      core.challenges.isValid(nonce: nonce.bytes, expiresMs: nonce.expiresMs, now: now)
    else { throw Sessions.refusal }
    let token = Bytes32<LookupRole>.random().bytes
    let opened = try await call.write { tx in
      let opened = try login(token, now, lifetime, tx)
      // Only a valid login uses its nonce up, so that nobody fills the list of used ones.
      guard core.challenges.use(nonce: nonce.bytes, expiresMs: nonce.expiresMs, now: now) else {
        throw Sessions.refusal
      }
      return opened
    }
    core.end(sessions: opened.ended)
    return try .json(opened.response)
  }

  static func end(_ call: Call) async throws -> Response {
    let session = try call.authenticated
    try await call.write { try $0.removeSession(tokenHash: session.tokenHash) }
    call.core.end(sessions: [session.tokenHash])
    return .noContent
  }

  static func list(_ call: Call) async throws -> Response {
    let session = try call.authenticated
    let now = call.now
    return try .json(try await call.read { try Sessions.list(of: session, now: now, in: $0) })
  }

  /// Takes the device's key away and ends its sessions and streams.
  static func removeDevice(_ call: Call) async throws -> Response {
    let user = try call.user
    let device: DeviceID = try call.id("deviceID")
    try await call.write { tx in
      guard try tx.device(device, of: user) != nil else { throw ServerError(.notFound, "no such device") }
      try tx.removeDevice(device, of: user)
    }
    call.core.end(of: user) { $0 == device }
    return .noContent
  }
}

extension Bytes32 {
  /// Thirty-two bytes from the system's random number generator.
  static func random() -> Self {
    var generator = SystemRandomNumberGenerator()
    return Self(generator.next(), generator.next(), generator.next(), generator.next())
  }
}
