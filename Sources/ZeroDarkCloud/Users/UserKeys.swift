package import ZDCCrypto
package import ZDCProtocol

/// A local user's verified identity with the secret keys behind it: what engines sign and open with.
package struct UserKeys: Sendable {
  package let identity: VerifiedIdentity
  /// The current signature key.
  package let signingKey: SigningKey
  package let accessKey: AccessKey
  private let keyring: Keyring
  /// The current decryption key, expanded once.
  private let decryptionKey: DecryptionKey

  package var userID: UserID { identity.userID }
  package var signGen: UInt32 { identity.signGen }
  package var encGen: UInt32 { identity.encGen }

  /// Verifies chain and keyring (PROTOCOL 3.1, 3.2, 3.4).
  ///
  /// - Throws: `accountStateMissing` for an empty chain, `identityChainInvalid`, `userIDMismatch`,
  ///   `identityChainRollback` if the newest link does not belong to this access key, `keyringAuthFailed`,
  ///   `keyringMismatch`, `keyringRollback`.
  package init(
    chain: [UInt8], keyringBlob: [UInt8], accessKey: AccessKey, expected: UserID, pinnedVersion: UInt64 = 0
  ) throws {
    identity = try Self.verify(chain, expected: expected)
    guard identity.rootPub == accessKey.rootKey.publicKey else {
      throw ZDCSecurityError(.identityChainRollback, user: expected)
    }
    keyring = try Keyring.open(
      keyringBlob, key: accessKey.keyringKey, identity: identity, pinnedVersion: pinnedVersion)
    guard let signing = keyring.signingKey(gen: identity.signGen),
      let decryption = try keyring.decryptionKey(gen: identity.encGen)
    else { throw ZDCSecurityError(.keyringMismatch, user: expected) }
    signingKey = signing
    decryptionKey = decryption
    self.accessKey = accessKey
  }

  private static func verify(_ chain: [UInt8], expected: UserID) throws(ZDCSecurityError) -> VerifiedIdentity {
    var links: [IdentityLink] = []
    for item in try Bundle.Reader.items(of: chain) {
      guard case .link(let link) = item else { throw ZDCSecurityError(.nonCanonicalEncoding, user: expected) }
      links.append(link)
    }
    return try IdentityReplay.verify(links, expected: expected)
  }

  /// The decryption key of a generation; old ones open old grants.
  package func decryptionKey(gen: UInt32) throws -> DecryptionKey? {
    gen == identity.encGen ? decryptionKey : try keyring.decryptionKey(gen: gen)
  }

  /// Opens this user's grant of a zone's key.
  ///
  /// - Parameter acl: the verified access list that names the grant.
  /// - Throws: `ZDCSecurityError`: `grantMissing`, `grantHashMismatch`, `keyCommitmentMismatch` and the like.
  package func open(_ grant: Grant, in acl: ZoneACL) throws -> NodeKey {
    let zone = acl.fields.zone
    guard let entry = acl.fields.entry(for: userID), let key = try decryptionKey(gen: entry.encGen) else {
      throw ZDCSecurityError(.grantMissing, zone: zone, user: userID)
    }
    guard case .node(let node) = try GrantOpener.open(grant, acl: acl, user: userID, key: key) else {
      // A grant of one node's content gives no zone; the API for those comes later.
      throw ZDCSecurityError(.grantMissing, zone: zone, user: userID)
    }
    return node
  }
}

/// Zones with one member: the only writer whose signatures count is the user himself.
extension UserKeys: IdentityDirectory {
  package func signKey(user: UserID, generation: UInt32) throws -> [UInt8]? {
    user == identity.userID ? identity.signKeys[generation] : nil
  }
}

extension Bundle.Reader {
  fileprivate static func items(of bytes: [UInt8]) throws(ZDCSecurityError) -> [Bundle.Item] {
    var reader = Bundle.Reader(bytes)
    return try reader.all()
  }
}
