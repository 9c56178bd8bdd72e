package import ZDCCrypto
package import ZDCProtocol

/// What a device proves itself with.
package struct SessionCredentials: Sendable {
  package var userID: UserID
  package var accessKey: AccessKey
  package var deviceID: DeviceID
  package var deviceKey: SigningKey

  package init(userID: UserID, accessKey: AccessKey, deviceID: DeviceID, deviceKey: SigningKey) {
    self.userID = userID
    self.accessKey = accessKey
    self.deviceID = deviceID
    self.deviceKey = deviceKey
  }
}

/// Where a session's token is kept between launches, and for other processes on the same database.
package protocol SessionStorage: Sendable {
  func load() async throws -> [UInt8]?
  func save(_ token: [UInt8]?) async throws
}

/// A user's session on a server: opened when first needed, opened again when the server forgot it (PROTOCOL 3.4).
///
/// However many requests find the session gone at once, it is opened once. The token is kept, so the next launch goes
/// on with it until the server refuses it; this device's clock has no say in that.
package actor Session {
  private let connection: ServerConnection
  private let credentials: SessionCredentials
  private let storage: (any SessionStorage)?
  private var token: String?
  private var opening: Task<String, any Error>?

  package init(
    connection: ServerConnection, credentials: SessionCredentials, storage: (any SessionStorage)? = nil
  ) {
    self.connection = connection
    self.credentials = credentials
    self.storage = storage
  }

  /// The bearer token, from a new session if there is none.
  package func currentToken() async throws -> String {
    if let token { return token }
    return try await obtain(not: nil)
  }

  /// A token other than the one that was refused.
  package func token(after refused: String) async throws -> String {
    if let token, token != refused { return token }
    token = nil
    return try await obtain(not: refused)
  }

  /// What is kept, unless it is what was refused; else a new session.
  private func obtain(not refused: String?) async throws -> String {
    if let opening { return try await opening.value }
    let task = Task { [connection, credentials, storage] in
      let kept = try await storage?.load().map(ZBase32.encode)
      if let kept, kept != refused { return kept }
      // A device that never had a session is not known to the server.
      let isKnown = kept != nil || refused != nil || storage == nil
      let opened = try await Self.open(connection, credentials, byDeviceFirst: isKnown)
      try await storage?.save(opened)
      return ZBase32.encode(opened)
    }
    opening = task
    defer { opening = nil }
    let opened = try await task.value
    token = opened
    return opened
  }

  /// By the device's key or by the access key, which makes the device's key known; if the server refuses the first one, by
  /// the other.
  private static func open(
    _ connection: ServerConnection, _ credentials: SessionCredentials, byDeviceFirst: Bool
  ) async throws -> [UInt8] {
    let response: SessionResponse
    do {
      response = try await Login.open(connection, credentials, byDevice: byDeviceFirst)
    } catch let error as ServerError where error.code == .unauthorized {
      response = try await Login.open(connection, credentials, byDevice: !byDeviceFirst)
    }
    guard response.userID == credentials.userID else {
      throw ZDCSecurityError(.userIDMismatch, user: credentials.userID)
    }
    return response.token.bytes
  }

  /// Takes over a session that a login has just opened.
  package func adopt(_ response: SessionResponse) {
    adopt(response.token.bytes)
  }

  package func adopt(_ token: [UInt8]) {
    self.token = ZBase32.encode(token)
  }

  /// Forgets the token; the next request opens another session.
  package func forget() async throws {
    token = nil
    try await storage?.save(nil)
  }
}

/// The two ways to answer a challenge (PROTOCOL 3.4).
package enum Login {
  package static let tokenBytes = 32
  /// A device signs no more of a server's choice than this.
  package static let nonceBytes = 32

  private static func challenge(
    _ connection: ServerConnection, _ request: ChallengeRequest
  ) async throws -> ChallengeResponse {
    let challenge = try await connection.challenge(request)
    guard challenge.nonce.bytes.count == nonceBytes else {
      throw TransportError(.badAnswer, origin: connection.origin)
    }
    return challenge
  }

  private static func checked(
    _ response: SessionResponse, _ connection: ServerConnection
  ) throws -> SessionResponse {
    guard response.token.bytes.count == tokenBytes else {
      throw TransportError(.badAnswer, origin: connection.origin)
    }
    return response
  }

  /// The account's login key vouches for this device and its key.
  package static func byAccessKey(
    _ connection: ServerConnection, _ accessKey: AccessKey, deviceID: DeviceID, deviceKey: SigningKey
  ) async throws -> SessionResponse {
    let challenge = try await challenge(connection, ChallengeRequest(lookupID: accessKey.lookupID))
    var request = LoginRequest(
      lookupID: accessKey.lookupID, origin: connection.origin, deviceID: deviceID,
      deviceKey: WireBytes(deviceKey.publicKey), nonce: challenge.nonce, expiresMs: challenge.expiresMs,
      signature: WireBytes([]))
    request.signature = WireBytes(try accessKey.loginKey.sign(label: "login", message: request.signedBytes))
    return try checked(try await connection.login(request), connection)
  }

  static func open(
    _ connection: ServerConnection, _ credentials: SessionCredentials, byDevice: Bool
  ) async throws -> SessionResponse {
    guard !byDevice else { return try await self.byDevice(connection, credentials) }
    return try await byAccessKey(
      connection, credentials.accessKey, deviceID: credentials.deviceID, deviceKey: credentials.deviceKey)
  }

  private static func byDevice(
    _ connection: ServerConnection, _ credentials: SessionCredentials
  ) async throws -> SessionResponse {
    let challenge = try await challenge(connection, ChallengeRequest(userID: credentials.userID))
    var request = DeviceLoginRequest(
      userID: credentials.userID, origin: connection.origin, deviceID: credentials.deviceID,
      nonce: challenge.nonce, expiresMs: challenge.expiresMs, signature: WireBytes([]))
    request.signature = WireBytes(
      try credentials.deviceKey.sign(label: "device-login", message: request.signedBytes))
    return try checked(try await connection.deviceLogin(request), connection)
  }
}
