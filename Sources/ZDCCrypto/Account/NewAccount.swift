package import ZDCProtocol

/// The initial objects of an account (PROTOCOL 3.1, 3.2, 3.9): keys, keyring, genesis link and the four trunks.
///
/// Created once, by an explicit "create account", and stored locally before anything is sent.
package struct NewAccount: Sendable {
  package let accessKey: AccessKey
  package let signingKey: SigningKey
  package let decryptionKey: DecryptionKey
  package let userID: UserID
  package let keyring: Keyring
  /// The sealed keyring.
  package let keyringBlob: [UInt8]
  package let genesis: IdentityLink
  /// home, prefs, outbox, inbox.
  package let trunks: [TrunkGenesis]

  /// Generates the keys and objects of a new account.
  ///
  /// - Parameters:
  ///   - appTreeID: The app's name from `ZDCConfig(primaryTreeID:)`.
  ///   - timeMs: The device's clock, in milliseconds since 1970.
  package init(accessKey: AccessKey, appTreeID: String, timeMs: UInt64) throws {
    var source = SystemRandomSource()
    try self.init(accessKey: accessKey, appTreeID: appTreeID, timeMs: timeMs, random: &source)
  }

  package init(
    accessKey: AccessKey, appTreeID: String, timeMs: UInt64, random: inout some RandomSource,
    wrap: TrunkGenesis.WrapKey = { try $0.seal(for: $1.user, encGen: $1.encGen, encPub: $1.encPub) }
  ) throws {
    let signingKey = SigningKey.random(&random)
    let decryptionKey = try DecryptionKey.random(&random)
    var fields = IdentityLink.Fields(
      kind: .genesis, timeMs: timeMs, rootPub: accessKey.rootKey.publicKey, signPub: signingKey.publicKey,
      encPub: decryptionKey.publicKey)
    let userID = fields.genesisUserID
    keyring = Keyring(
      version: 1, user: userID,
      entries: [
        Keyring.Entry(signing: signingKey, gen: 1, status: .current, createdMs: timeMs),
        Keyring.Entry(decryption: decryptionKey, gen: 1, status: .current, createdMs: timeMs),
      ])
    keyringBlob = try keyring.seal(accessKey.keyringKey, random: &random)
    let owner = TrunkOwner(
      user: userID, signingKey: signingKey, signGen: 1, encPub: decryptionKey.publicKey, encGen: 1)
    var trunks: [TrunkGenesis] = []
    for trunk in Trunk.allCases {
      trunks.append(
        try TrunkGenesis(trunk, appTreeID: appTreeID, owner: owner, timeMs: timeMs, random: &random, wrap: wrap))
    }
    fields.keyringHash = Keyring.hash(keyringBlob)
    fields.claims = [.tree(appTreeID: appTreeID, genesisCommits: trunks.map(\.commit.hash))]
    genesis = try IdentityLink(signing: fields, root: accessKey.rootKey, sign: signingKey)
    self.accessKey = accessKey
    self.signingKey = signingKey
    self.decryptionKey = decryptionKey
    self.userID = userID
    self.trunks = trunks
  }
}

extension IdentityLink {
  /// Signs a link.
  ///
  /// - Parameters:
  ///   - root: The root key that is current before this link.
  ///   - newRoot: For `rotateRoot`, the key that it introduces.
  ///   - sign: The signature key that the link names. Its signature proves possession.
  package init(
    signing fields: Fields, root: SigningKey, newRoot: SigningKey? = nil, sign: SigningKey
  ) throws {
    let unsigned = fields.unsignedBytes
    let none = [UInt8](repeating: 0, count: 64)
    let sigRoot = try root.sign(label: "link", message: unsigned)
    let sigNewRoot = try newRoot?.sign(label: "link", message: unsigned) ?? none
    try self.init(unsigned + sigRoot + sigNewRoot + (try sign.sign(label: "link", message: unsigned)))
  }
}
