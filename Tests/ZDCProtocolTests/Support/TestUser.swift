import Crypto
import ZDCProtocol

/// A user with real signature keys; calls extend its chain.
struct TestUser {
  private(set) var chain: [IdentityLink] = []
  private(set) var rootKey = Curve25519.Signing.PrivateKey()
  private(set) var signKey: Curve25519.Signing.PrivateKey
  /// By generation, starting with the first.
  private var signKeys: [Curve25519.Signing.PrivateKey]
  private var encPub: [UInt8]

  init(seed: UInt64 = 1) throws {
    signKey = Curve25519.Signing.PrivateKey()
    signKeys = [signKey]
    var generator = SeededGenerator(seed: seed)
    encPub = generator.bytes(IdentityLink.encPubBytes)
    let genesis = IdentityLink.Fields(
      kind: .genesis, timeMs: 1, rootPub: rootKey.publicBytes, signPub: signKey.publicBytes, encPub: encPub)
    chain = [try Self.sign(genesis, root: rootKey, signer: signKey)]
  }

  /// The same user on a device that has only the sign key of an older generation.
  init(sharing user: TestUser, generation: UInt32) throws {
    self = user
    signKey = user.signKeys[Int(generation) - 1]
    chain = Array(user.chain.prefix { $0.signGen <= generation })
  }

  var id: UserID { chain[0].userID }
  var signGen: UInt32 { chain[chain.count - 1].signGen }

  func signature(_ label: StaticString, _ message: [UInt8]) throws -> [UInt8] {
    try signKey.sign(label, message)
  }

  static func sign(
    _ fields: IdentityLink.Fields, root: Curve25519.Signing.PrivateKey,
    newRoot: Curve25519.Signing.PrivateKey? = nil, signer: Curve25519.Signing.PrivateKey
  ) throws -> IdentityLink {
    let message = fields.unsignedBytes
    let zero = [UInt8](repeating: 0, count: 64)
    let signatures =
      try root.sign("link", message) + (newRoot?.sign("link", message) ?? zero)
      + signer.sign("link", message)
    return try IdentityLink(message + signatures)
  }

  /// Returns the fields of a link that changes nothing yet.
  func nextFields(_ kind: IdentityLink.Kind) -> IdentityLink.Fields {
    let last = chain[chain.count - 1]
    var fields = IdentityLink.Fields(
      kind: kind, timeMs: last.timeMs + 1, rootPub: last.rootPub, signPub: last.signPub, encPub: last.encPub)
    fields.seq = last.seq + 1
    fields.prev = last.hash
    fields.userID = id
    fields.signGen = last.signGen
    fields.encGen = last.encGen
    fields.keyringVersion = last.keyringVersion
    fields.keyringHash = last.keyringHash
    return fields
  }

  /// Signs the fields with the current keys, without appending.
  func sign(_ fields: IdentityLink.Fields) throws -> IdentityLink {
    try Self.sign(fields, root: rootKey, signer: signKey)
  }

  mutating func rotateSignKey(compromised: Bool = false) throws {
    let key = Curve25519.Signing.PrivateKey()
    var fields = nextFields(.rotateKeys)
    fields.signGen += 1
    fields.signPub = key.publicBytes
    fields.compromise = compromised ? 1 : 0
    fields.keyringVersion += 1
    chain.append(try Self.sign(fields, root: rootKey, signer: key))
    signKeys.append(key)
    signKey = key
  }

  mutating func rotateRoot() throws {
    let key = Curve25519.Signing.PrivateKey()
    var fields = nextFields(.rotateRoot)
    fields.rootPub = key.publicBytes
    chain.append(try Self.sign(fields, root: rootKey, newRoot: key, signer: signKey))
    rootKey = key
  }

  mutating func append(_ fields: IdentityLink.Fields) throws {
    chain.append(try sign(fields))
  }
}

extension Curve25519.Signing.PrivateKey {
  var publicBytes: [UInt8] { Array(publicKey.rawRepresentation) }

  func sign(_ label: StaticString, _ message: [UInt8]) throws -> [UInt8] {
    Array(try signature(for: labelPrefix(label) + message))
  }
}

/// Answers from verified chains, as client and server do.
struct TestDirectory: IdentityDirectory {
  private var identities: [UserID: VerifiedIdentity] = [:]

  init(_ users: [TestUser]) throws {
    for user in users { identities[user.id] = try IdentityReplay.verify(user.chain, expected: user.id) }
  }

  func signKey(user: UserID, generation: UInt32) -> [UInt8]? { identities[user]?.signKeys[generation] }
}
