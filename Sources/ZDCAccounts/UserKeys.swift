package import ZDCCrypto
package import ZDCProtocol

/// A local user's verified identity with the secret keys behind it: what engines sign and open with.
package struct UserKeys: Sendable {
  /// As the newest link has it.
  package let identity: VerifiedIdentity
  /// As the newest link has it that this device's keyring belongs to; older than `identity` only after another device
  /// changed the access key.
  private let own: VerifiedIdentity
  /// The current signature key.
  package let signingKey: SigningKey
  package let accessKey: AccessKey
  private let keyring: Keyring
  /// The current decryption key, expanded once.
  private let decryptionKey: DecryptionKey

  /// The version of the keyring that is open here.
  package var keyringVersion: UInt64 { own.keyringVersion }
  package var userID: UserID { identity.userID }
  package var signGen: UInt32 { own.signGen }
  package var encGen: UInt32 { own.encGen }
  /// Another device has changed the account's words: this one goes on with its session, until it is given the new ones.
  package var isAccessKeyChanged: Bool { identity.rootPub != accessKey.rootKey.publicKey }
  /// Whether what this device signs is still signed with the user's current key.
  package var canSign: Bool { own.signGen == identity.signGen && !identity.isClosed }

  /// Verifies chain and keyring (PROTOCOL 3.1, 3.2, 3.4).
  ///
  /// - Parameter mayHaveNewRoot: also for an account whose access key was changed since its words were given to this
  ///   device; never at a login.
  /// - Throws: `accountStateMissing` for an empty chain, `identityChainInvalid`, `userIDMismatch`,
  ///   `identityChainRollback` if the newest link does not belong to this access key, `keyringAuthFailed`,
  ///   `keyringMismatch`, `keyringRollback`.
  package init(
    chain: [UInt8], keyringBlob: [UInt8], accessKey: AccessKey, expected: UserID, pinnedVersion: UInt64 = 0,
    mayHaveNewRoot: Bool = false
  ) throws {
    let links = try IdentityChain.links(chain, of: expected)
    identity = try IdentityReplay.verify(links, expected: expected)
    let root = accessKey.rootKey.publicKey
    if identity.rootPub == root {
      own = identity
    } else {
      let isOwn = { (link: IdentityLink) in link.rootPub == root && link.keyringHash == Keyring.hash(keyringBlob) }
      guard mayHaveNewRoot, let last = links.lastIndex(where: isOwn) else {
        throw ZDCSecurityError(.identityChainRollback, user: expected)
      }
      own = try IdentityReplay.verify(Array(links[...last]), expected: expected)
    }
    keyring = try Keyring.open(
      keyringBlob, key: accessKey.keyringKey, identity: own, pinnedVersion: pinnedVersion)
    guard let signing = keyring.signingKey(gen: own.signGen),
      let decryption = try keyring.decryptionKey(gen: own.encGen)
    else { throw ZDCSecurityError(.keyringMismatch, user: expected) }
    signingKey = signing
    decryptionKey = decryption
    self.accessKey = accessKey
  }

  /// The decryption key of a generation; old ones open old grants.
  package func decryptionKey(gen: UInt32) throws -> DecryptionKey? {
    gen == own.encGen ? decryptionKey : try keyring.decryptionKey(gen: gen)
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
    return try GrantOpener.open(grant, acl: acl, user: userID, key: key)
  }
}

/// Zones with one member: the only writer whose signatures count is the user himself.
extension UserKeys: IdentityDirectory {
  package func signKey(user: UserID, generation: UInt32) throws -> [UInt8]? {
    user == identity.userID ? identity.signKeys[generation] : nil
  }
}
