import Crypto
import ZDCProtocol

struct SigningKey {
  private let key = Curve25519.Signing.PrivateKey()

  var publicBytes: [UInt8] { Array(key.publicKey.rawRepresentation) }

  /// `SIGN(sk, label, message)` of PROTOCOL 3.0.
  func sign(_ label: StaticString, _ message: some Collection<UInt8>) throws -> [UInt8] {
    Array(try key.signature(for: labelPrefix(label) + message))
  }
}

/// Unpredictable enough for bytes that are never opened, and quick without optimisation.
func randomBytes(_ count: Int) -> [UInt8] {
  var generator = SystemRandomNumberGenerator()
  var word = generator.next() | 1
  let words = (count + 7) / 8
  return [UInt8](unsafeUninitializedCapacity: words * 8) { buffer, initialized in
    for index in 0..<words {
      word ^= word << 13
      word ^= word >> 7
      word ^= word << 17
      UnsafeMutableRawBufferPointer(buffer).storeBytes(of: word, toByteOffset: index * 8, as: UInt64.self)
    }
    initialized = count
  }
}

/// An account as its owner's device knows it. Sealed fields are random bytes: a server that noticed would know too
/// much.
struct TestAccount {
  static let app = "org.example.tests"

  let rootKey = SigningKey()
  let signKey = SigningKey()
  let loginKey = SigningKey()
  let deviceKey = SigningKey()
  let deviceID = DeviceID.random()
  let lookupID = LookupID.random()
  let keyring = randomBytes(584)
  let userID: UserID
  let genesis: IdentityLink
  let zones: [Trunk: TestZone]

  init(app: String = TestAccount.app) throws {
    var fields = IdentityLink.Fields(
      kind: .genesis, timeMs: 1, rootPub: rootKey.publicBytes, signPub: signKey.publicBytes,
      encPub: randomBytes(IdentityLink.encPubBytes))
    fields.keyringHash = KeyringHash(labelledHash: "keyring-blob", keyring)
    userID = fields.genesisUserID
    var zones: [Trunk: TestZone] = [:]
    for trunk in Trunk.allCases {
      zones[trunk] = try TestZone(owner: userID, signKey: signKey, trunk: trunk, app: app)
    }
    self.zones = zones
    let commits = Trunk.allCases.compactMap { zones[$0]?.headHash }
    fields.claims = [.tree(appTreeID: app, genesisCommits: commits)]
    genesis = try Self.sign(fields, root: rootKey, sign: signKey)
  }

  static func sign(
    _ fields: IdentityLink.Fields, root: SigningKey, newRoot: SigningKey? = nil, sign: SigningKey
  ) throws -> IdentityLink {
    try IdentityLink(try signed(fields, root: root, newRoot: newRoot, sign: sign))
  }

  /// The bytes of a link, also of one that cannot be read.
  static func signed(
    _ fields: IdentityLink.Fields, root: SigningKey, newRoot: SigningKey? = nil, sign: SigningKey
  ) throws -> [UInt8] {
    let message = fields.unsignedBytes
    let second = try newRoot?.sign("link", message) ?? [UInt8](repeating: 0, count: 64)
    return try message + root.sign("link", message) + second + sign.sign("link", message)
  }

  var home: TestZone { zones[.home]! }

  func registration(app: String = TestAccount.app, invite: String? = nil) -> RegisterRequest {
    RegisterRequest(
      genesis: WireBytes(genesis.bytes), keyring: WireBytes(keyring), lookupID: lookupID,
      loginKey: WireBytes(loginKey.publicBytes), invite: invite,
      tree: RegisterRequest.Tree(
        appTreeID: app, trunks: Trunk.allCases.compactMap { zones[$0].map { WireBytes($0.birth) } }))
  }

  func login(
    _ challenge: ChallengeResponse, origin: String, device deviceID: DeviceID? = nil
  ) throws -> LoginRequest {
    let deviceID = deviceID ?? self.deviceID
    var request = LoginRequest(
      lookupID: lookupID, origin: origin, deviceID: deviceID, deviceKey: WireBytes(deviceKey.publicBytes),
      nonce: challenge.nonce, expiresMs: challenge.expiresMs, signature: WireBytes([]))
    request.signature = WireBytes(try loginKey.sign("login", request.signedBytes))
    return request
  }

  func deviceLogin(_ challenge: ChallengeResponse, origin: String) throws -> DeviceLoginRequest {
    var request = DeviceLoginRequest(
      userID: userID, origin: origin, deviceID: deviceID, nonce: challenge.nonce, expiresMs: challenge.expiresMs,
      signature: WireBytes([]))
    request.signature = WireBytes(try deviceKey.sign("device-login", request.signedBytes))
    return request
  }

  /// The second link of the chain, after a change.
  private func second(
    _ kind: IdentityLink.Kind, change: (inout IdentityLink.Fields) -> Void
  ) throws -> IdentityLink {
    var fields = IdentityLink.Fields(
      kind: kind, timeMs: 2, rootPub: rootKey.publicBytes, signPub: signKey.publicBytes, encPub: genesis.encPub)
    (fields.seq, fields.prev, fields.userID) = (1, genesis.hash, userID)
    fields.keyringHash = genesis.keyringHash
    change(&fields)
    return try Self.sign(fields, root: rootKey, sign: signKey)
  }

  /// The link that puts a new decryption key in place, and another keyring if one is given.
  func encryptionRotation(keyring: [UInt8]? = nil) throws -> IdentityLink {
    try second(.rotateKeys) { fields in
      if let keyring { fields.keyringHash = KeyringHash(labelledHash: "keyring-blob", keyring) }
      fields.encGen = 2
      fields.encPub = randomBytes(IdentityLink.encPubBytes)
    }
  }

  func closing(after last: IdentityLink? = nil) throws -> IdentityLink {
    try second(.closed) { fields in
      guard let last else { return }
      (fields.seq, fields.prev, fields.keyringHash) = (last.seq + 1, last.hash, last.keyringHash)
      (fields.encGen, fields.encPub) = (last.encGen, last.encPub)
    }
  }

  /// The link that puts new signature keys in place.
  ///
  /// - Parameter root: the key that signs the link; nil for the account's own.
  func rotation(to newSign: SigningKey, seq: UInt32 = 1, signedBy root: SigningKey? = nil) throws -> IdentityLink {
    var fields = IdentityLink.Fields(
      kind: .rotateKeys, timeMs: 2, rootPub: rootKey.publicBytes, signPub: newSign.publicBytes,
      encPub: genesis.encPub)
    fields.seq = seq
    fields.prev = genesis.hash
    fields.userID = userID
    fields.signGen = 2
    fields.keyringHash = genesis.keyringHash
    return try Self.sign(fields, root: root ?? rootKey, sign: newSign)
  }
}
