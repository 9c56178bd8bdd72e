internal import Hummingbird
internal import ZDCProtocol

/// Challenge, login, sessions and devices (PROTOCOL 3.4).
enum SessionRoutes {
  /// Issues a challenge. It does not depend on the requested account, so it does not reveal whether the account exists.
  static func challenge(_ call: Call) async throws -> Response {
    let request = try await call.json(ChallengeRequest.self)
    guard (request.lookupID == nil) != (request.userID == nil) else {
      throw ServerError(.invalidRequest, "give either lookupID or userID")
    }
    return try .json(
      call.core.challenges.make(now: call.now, lifetimeMs: call.core.configuration.bounds.challengeMs))
  }

  static func login(_ call: Call) async throws -> Response {
    let request = try await call.json(LoginRequest.self)
    let nonce = try nonce(request.nonce.bytes, request.expiresMs, origin: request.origin, call)
    let user = try await call.read { try $0.user(lookup: request.lookupID) }
    return try await open(call, nonce, try Sessions.verify(request, by: user))
  }

  static func deviceLogin(_ call: Call) async throws -> Response {
    let request = try await call.json(DeviceLoginRequest.self)
    let nonce = try nonce(request.nonce.bytes, request.expiresMs, origin: request.origin, call)
    let device = try await call.read { try $0.device(request.deviceID, of: request.userID) }
    return try await open(call, nonce, try Sessions.verify(request, by: device))
  }

  private struct Nonce {
    var bytes: [UInt8]
    var expiresMs: UInt64
  }

  /// Checks that a challenge is from this server, for this origin, and has not expired.
  private static func nonce(_ bytes: [UInt8], _ expiresMs: UInt64, origin: String, _ call: Call) throws -> Nonce {
    guard call.core.isOwnOrigin(origin), call.core.challenges.isValid(nonce: bytes, expiresMs: expiresMs, now: call.now)
    else { throw Sessions.refusal }
    return Nonce(bytes: bytes, expiresMs: expiresMs)
  }

  private static func open(_ call: Call, _ nonce: Nonce, _ login: Sessions.VerifiedLogin) async throws -> Response {
    let core = call.core
    let now = call.now
    // Only a valid login uses up its challenge, so that strangers cannot fill the list of used ones.
    guard try await core.coordination.use(nonce: nonce.bytes, expiresMs: nonce.expiresMs, now: now) else {
      throw Sessions.refusal
    }
    let token = Bytes32<LookupRole>.random().bytes
    let (lifetime, devices) = (core.configuration.bounds.sessionMs, core.configuration.bounds.devicesPerUser)
    let response = try await call.write([.account(login.user)]) { tx in
      let opened = try Sessions.open(
        login, token: token, now: now, lifetimeMs: lifetime, devices: devices, in: tx)
      for device in opened.removed { try core.coordination.announce(.deviceRemoved(device, of: login.user), in: tx) }
      if !opened.ended.isEmpty { try core.coordination.announce(.sessionsEnded(opened.ended), in: tx) }
      return opened.response
    }
    return try .json(response)
  }

  static func end(_ call: Call) async throws -> Response {
    let session = try call.authenticated
    let core = call.core
    try await call.write([.account(session.user)]) { tx in
      try tx.removeSession(tokenHash: session.tokenHash)
      try core.coordination.announce(.sessionsEnded([session.tokenHash]), in: tx)
    }
    return .noContent
  }

  static func list(_ call: Call) async throws -> Response {
    let session = try call.authenticated
    let now = call.now
    return try .json(try await call.read { try Sessions.list(of: session, now: now, in: $0) })
  }

  /// Removes the device's key and ends its sessions and streams.
  static func removeDevice(_ call: Call) async throws -> Response {
    let user = try call.user
    let (core, now, device): (ServerCore, UInt64, DeviceID) = (call.core, call.now, try call.id("deviceID"))
    try await call.write([.account(user)]) { tx in
      guard try tx.device(device, of: user) != nil else { throw ServerError(.notFound, "no such device") }
      try tx.removeDevice(device, of: user)
      try core.coordination.announce(.deviceRemoved(device, of: user), in: tx)
      try core.deletions?.note([.device(device, of: user, ms: now)])
    }
    return .noContent
  }
}
