internal import Crypto
internal import Synchronization
internal import ZDCProtocol

/// Login challenges. Nothing is stored until one is used: a challenge proves by its own bytes that this process made
/// it, and when it ends.
///
/// nonce = 16 random bytes ‖ first 16 bytes of HMAC(process key, random ‖ u64 expires). The key dies with the process,
/// and so do challenges.
final class Challenges: Sendable {
  private let key = SymmetricKey(size: .bits256)
  /// Nonces that opened a session, until they expire by themselves.
  private let used = Mutex<[[UInt8]: UInt64]>([:])

  func make(now: UInt64, lifetimeMs: UInt64) -> ChallengeResponse {
    let salt = Bytes16<LookupRole>.random().bytes
    let expires = now + lifetimeMs
    return ChallengeResponse(nonce: WireBytes(salt + proof(salt, expires)), expiresMs: expires)
  }

  func isValid(nonce: [UInt8], expiresMs: UInt64, now: UInt64) -> Bool {
    guard nonce.count == 32, expiresMs > now else { return false }
    return Bytes16<LookupRole>(proof(Array(nonce.prefix(16)), expiresMs)) == Bytes16(nonce.suffix(16))
      && used.withLock { $0[nonce] == nil }
  }

  /// Takes a nonce out of circulation; false if somebody did before.
  func use(nonce: [UInt8], expiresMs: UInt64, now: UInt64) -> Bool {
    used.withLock { used in
      if used.count > 1_024 { used = used.filter { $0.value > now } }
      return used.updateValue(expiresMs, forKey: nonce) == nil
    }
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
  /// The same words for an unknown account, a wrong signature and a stale challenge.
  static let refusal = ServerError(.unauthorized, "login refused")

  struct Opened: Sendable {
    var response: SessionResponse
    /// Older sessions of the device that made room, by the hashes of their tokens.
    var ended: [[UInt8]]
  }

  /// The account's login key vouches for a device: the device's key is registered and a session opened.
  static func login(
    _ request: LoginRequest, token: [UInt8], now: UInt64, lifetimeMs: UInt64, in tx: any MetadataTransaction
  ) throws -> Opened {
    let user = try tx.user(lookup: request.lookupID)
    // Somebody's key is tried in any case, so that the time tells nothing about who is known.
    let isValid = Signatures.isValid(
      request.signature.bytes, by: user?.loginKey ?? stranger, label: "login", message: request.signedBytes)
    guard let user, isValid else { throw refusal }
    guard !Signatures.isWeak(request.deviceKey.bytes) else { throw refusal }
    let known = try tx.device(request.deviceID, of: user.id)
    if known?.key != request.deviceKey.bytes {
      let device = DeviceRow(id: request.deviceID, key: request.deviceKey.bytes, createdMs: now)
      try tx.putDevice(device, of: user.id)
    }
    return try open(user: user.id, device: request.deviceID, token: token, now: now, lifetimeMs: lifetimeMs, in: tx)
  }

  static func login(
    _ request: DeviceLoginRequest, token: [UInt8], now: UInt64, lifetimeMs: UInt64, in tx: any MetadataTransaction
  ) throws -> Opened {
    let device = try tx.device(request.deviceID, of: request.userID)
    let isValid = Signatures.isValid(
      request.signature.bytes, by: device?.key ?? stranger, label: "device-login", message: request.signedBytes)
    guard device != nil, isValid else { throw refusal }
    return try open(
      user: request.userID, device: request.deviceID, token: token, now: now, lifetimeMs: lifetimeMs, in: tx)
  }

  private static func open(
    user: UserID, device: DeviceID, token: [UInt8], now: UInt64, lifetimeMs: UInt64, in tx: any MetadataTransaction
  ) throws -> Opened {
    let row = SessionRow(
      tokenHash: hash(token), user: user, device: device, createdMs: now, expiresMs: now + lifetimeMs)
    try tx.removeExpiredSessions(now: now)
    try tx.insertSession(row)
    let ended = try tx.trimSessions(of: user, device: device, keeping: perDevice)
    let response = SessionResponse(token: WireBytes(token), userID: user, expiresMs: row.expiresMs)
    return Opened(response: response, ended: ended)
  }

  /// More sessions than a device uses at once, and few enough that logging in for ever fills nothing.
  static let perDevice = 8

  static func hash(_ token: [UInt8]) -> [UInt8] {
    Bytes32<LookupRole>(labelledHash: "session", token).bytes
  }

  static func list(of current: SessionRow, now: UInt64, in reader: any MetadataReader) throws -> SessionList {
    let rows = try reader.sessions(of: current.user).filter { $0.expiresMs > now }
    return SessionList(
      sessions: rows.map { row in
        SessionList.Session(
          deviceID: row.device, createdMs: row.createdMs, expiresMs: row.expiresMs,
          isCurrent: row.tokenHash == current.tokenHash)
      })
  }

  private static let stranger = Array(Curve25519.Signing.PrivateKey().publicKey.rawRepresentation)
}
