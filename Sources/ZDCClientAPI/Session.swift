package import ZDCCrypto
package import ZDCProtocol
internal import ZDCSupport

/// The credentials with which a device authenticates.
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

/// Stores a session's token between launches, and for other processes on the same database.
package protocol SessionStorage: Sendable {
  func load() async throws -> [UInt8]?
  func save(_ token: [UInt8]?) async throws
}

/// A user's session on a server. It is opened on first use, and again when the server no longer knows it
/// (PROTOCOL 3.4).
///
/// If several requests find the session gone at the same time, it is opened only once. The token is stored, so the next
/// launch uses it until the server refuses it. The device's clock does not affect this.
package actor Session {
  private let connection: ServerConnection
  private var credentials: SessionCredentials
  private let storage: (any SessionStorage)?
  private var token: String?
  private let openings = SharedWork<Int, String>()

  package init(
    connection: ServerConnection, credentials: SessionCredentials, storage: (any SessionStorage)? = nil
  ) {
    self.connection = connection
    self.credentials = credentials
    self.storage = storage
  }

  /// Returns the bearer token. Opens a session if there is none.
  package func currentToken() async throws -> String {
    if let token { return token }
    return try await obtain(not: nil)
  }

  /// Returns a token other than the refused one.
  package func token(after refused: String) async throws -> String {
    if let token, token != refused { return token }
    token = nil
    return try await obtain(not: refused)
  }

  /// Returns the stored token, unless it is the refused one; otherwise opens a session. A cancelled caller does not wait
  /// for the server, whose answer the other callers still get.
  private func obtain(not refused: String?) async throws -> String {
    try await openings.value(0) { try await self.storedOrNewToken(not: refused) }
  }

  private func storedOrNewToken(not refused: String?) async throws -> String {
    let kept = try await storage?.load().map(ZBase32.encode)
    if let kept, kept != refused {
      token = kept
      return kept
    }
    // The server does not know a device that never had a session.
    let isKnown = kept != nil || refused != nil || storage == nil
    let opened = try await Self.open(connection, credentials, byDeviceFirst: isKnown)
    try await storage?.save(opened)
    let text = ZBase32.encode(opened)
    token = text
    return text
  }

  /// Opens a session with the device's key or with the access key, which registers the device's key. If the server
  /// refuses the first one, it tries the other.
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

  /// Uses other credentials from the next login on. The running session continues.
  package func renew(_ credentials: SessionCredentials) { self.credentials = credentials }

  /// Adopts a session that a login has just opened.
  package func adopt(_ response: SessionResponse) {
    adopt(response.token.bytes)
  }

  package func adopt(_ token: [UInt8]) {
    self.token = ZBase32.encode(token)
  }

  /// Discards the token. The next request opens another session.
  package func forget() async throws {
    token = nil
    try await storage?.save(nil)
  }
}

/// The two ways to answer a challenge (PROTOCOL 3.4).
package enum Login {
  package static let tokenBytes = 32
  /// Length of a challenge's nonce. The limit bounds the server-chosen bytes that a device signs.
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

  /// Logs in with the account's login key, which vouches for this device and its key.
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
