internal import Crypto
internal import ZDCProtocol

/// Login challenges. Nothing is stored until one is used: a challenge's own bytes prove that this server made it, and
/// when it expires.
///
/// nonce = 16 random bytes ‖ first 16 bytes of HMAC(key, random ‖ u64 expires). The key is lost when the server stops,
/// and all challenges become invalid.
struct Challenges: Sendable {
  private let key: SymmetricKey

  init(key: [UInt8]) { self.key = SymmetricKey(data: key) }

  func make(now: UInt64, lifetimeMs: UInt64) -> ChallengeResponse {
    let salt = Bytes16<LookupRole>.random().bytes
    let expires = now + lifetimeMs
    return ChallengeResponse(nonce: WireBytes(salt + proof(salt, expires)), expiresMs: expires)
  }

  func isValid(nonce: [UInt8], expiresMs: UInt64, now: UInt64) -> Bool {
    guard nonce.count == 32, expiresMs > now else { return false }
    return Bytes16<LookupRole>(proof(Array(nonce.prefix(16)), expiresMs)) == Bytes16(nonce.suffix(16))
  }

  private func proof(_ salt: [UInt8], _ expires: UInt64) -> [UInt8] {
    var message = ByteWriter(capacity: 24)
    message.append(contentsOf: salt)
    message.append(expires)
    return Array(HMAC<SHA256>.authenticationCode(for: message.bytes, using: key).prefix(16))
  }
}

/// Sessions and the devices that hold them (PROTOCOL 3.4).
enum Sessions {
  /// The same message for an unknown account, a wrong signature and a stale challenge.
  static let refusal = ServerError(.unauthorized, "login refused")

  struct Opened: Sendable {
    var response: SessionResponse
    /// Older sessions of the device that were ended to make room, by the hashes of their tokens.
    var ended: [[UInt8]]
    /// Other devices that were removed to make room.
    var removed: [DeviceID]
  }

  /// A login whose signature is valid under the key that was read. ``open(_:token:now:lifetimeMs:in:)`` checks that the
  /// key is still in force.
  struct VerifiedLogin: Sendable {
    fileprivate(set) var user: UserID
    fileprivate var device: DeviceID
    /// The key that verified the signature.
    fileprivate var key: [UInt8]
    /// The device key that the account's login key has signed; nil if the device's own key signed the login.
    fileprivate var deviceKey: [UInt8]?
  }

  /// - Parameter user: the account that the request names; nil if it does not exist.
  static func verify(_ request: LoginRequest, by user: UserRow?) throws -> VerifiedLogin {
    // Also verifies a signature for unknown accounts, so that the response time does not reveal whether an account
    // exists.
    let isValid = Signatures.isValid(
      request.signature.bytes, by: user?.loginKey ?? stranger, label: "login", message: request.signedBytes)
    guard let user, isValid, !Signatures.isWeak(request.deviceKey.bytes) else { throw refusal }
    return VerifiedLogin(
      user: user.id, device: request.deviceID, key: user.loginKey, deviceKey: request.deviceKey.bytes)
  }

  static func verify(_ request: DeviceLoginRequest, by device: DeviceRow?) throws -> VerifiedLogin {
    let isValid = Signatures.isValid(
      request.signature.bytes, by: device?.key ?? stranger, label: "device-login", message: request.signedBytes)
    guard let device, isValid else { throw refusal }
    return VerifiedLogin(user: request.userID, device: request.deviceID, key: device.key)
  }

  /// Opens a session, and registers the device's key if the account's login key has signed it.
  ///
  /// - Parameter devices: the maximum number of the account's devices. A new one takes the place of the one that was used
  ///   longest ago.
  static func open(
    _ login: VerifiedLogin, token: [UInt8], now: UInt64, lifetimeMs: UInt64, devices: Int,
    in tx: any MetadataTransaction
  ) throws -> Opened {
    let known = try tx.device(login.device, of: login.user)
    let inForce = try login.deviceKey == nil ? known?.key : tx.user(login.user)?.loginKey
    guard inForce == login.key else { throw refusal }
    guard try tx.user(login.user)?.suspendedMs == nil else {
      throw ServerError(.accountSuspended, "the server's operator has suspended the account")
    }
    var removed: [DeviceID] = []
    if let key = login.deviceKey, key != known?.key {
      if known == nil { removed = try tx.trimDevices(of: login.user, keeping: devices - 1) }
      try tx.putDevice(DeviceRow(id: login.device, key: key, createdMs: now), of: login.user)
    }
    let row = SessionRow(
      tokenHash: hash(token), user: login.user, device: login.device, createdMs: now, expiresMs: now + lifetimeMs)
    try tx.insertSession(row)
    let ended = try tx.trimSessions(of: login.user, device: login.device, keeping: perDevice)
    let response = SessionResponse(token: WireBytes(token), userID: login.user, expiresMs: row.expiresMs)
    return Opened(response: response, ended: ended, removed: removed)
  }

  /// More sessions than a device uses concurrently, but few enough that endless logins do not fill the database.
  static let perDevice = 8

  static func hash(_ token: [UInt8]) -> [UInt8] {
    Bytes32<LookupRole>(labelledHash: "session", token).bytes
  }

  static func list(of current: SessionRow, now: UInt64, in reader: any MetadataReader) throws -> SessionList {
    let rows = try reader.sessions(of: current.user).filter { $0.expiresMs > now }
    let lastLogin = Dictionary(rows.map { ($0.device, $0.createdMs) }, uniquingKeysWith: max)
    return SessionList(
      sessions: rows.map { row in
        SessionList.Session(
          deviceID: row.device, createdMs: row.createdMs, expiresMs: row.expiresMs,
          isCurrent: row.tokenHash == current.tokenHash)
      },
      devices: try reader.devices(of: current.user).map { device in
        SessionList.Device(
          deviceID: device.id, createdMs: device.createdMs, lastLoginMs: lastLogin[device.id],
          isCurrent: device.id == current.device)
      })
  }

  private static let stranger = Array(Curve25519.Signing.PrivateKey().publicKey.rawRepresentation)
}
