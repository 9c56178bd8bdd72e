package import ZDCClientStore
package import ZDCCrypto
package import ZDCProtocol

/// A local user's verified identity and its secret keys, with which engines sign and open.
package struct UserKeys: Sendable {
  /// The identity as of the newest link.
  package let identity: VerifiedIdentity
  /// The identity as of the newest link that matches this device's keyring. It is older than `identity` only after
  /// another device changed the access key.
  private let own: VerifiedIdentity
  /// The current signature key.
  package let signingKey: SigningKey
  package let accessKey: AccessKey
  let keyring: Keyring
  /// The current decryption key, expanded once.
  let decryptionKey: DecryptionKey

  /// The version of the keyring that is open on this device.
  package var keyringVersion: UInt64 { own.keyringVersion }
  package var userID: UserID { identity.userID }
  package var signGen: UInt32 { own.signGen }
  package var encGen: UInt32 { own.encGen }
  /// Whether another device has changed the account's words. This device keeps using its session until it is given the
  /// new words.
  package var isAccessKeyChanged: Bool { identity.rootPub != accessKey.rootKey.publicKey }
  /// Whether this device signs with the user's current key and the identity is not closed.
  package var canSign: Bool { own.signGen == identity.signGen && !identity.isClosed }

  /// Verifies chain and keyring (PROTOCOL 3.1, 3.2, 3.4).
  ///
  /// - Parameter mayHaveNewRoot: Whether to accept an account whose access key has changed since this device was given
  ///   its words. Never true at a login.
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

  /// Returns the generation below which the user's sign keys are compromised, and must still be retired in a zone of which
  /// the user is the owner or a member. Nil if the zone needs no retirement, or this device cannot sign it.
  ///
  /// Only the chain and the log decide: any device of the user retires the keys, also in zones that it learns of later.
  package func retirement(in head: ZoneHead) -> UInt32? {
    let (trusted, list) = (identity.trustedSignGen, head.acl.fields)
    guard canSign, !head.isClosed, list.owner == userID || list.entry(for: userID) != nil,
      trusted > max(1, head.retiredBelow[userID] ?? 1)
    else { return nil }
    return trusted
  }

  /// Returns the zones in which compromised keys of the user must still be retired.
  package func retirements(in zones: [ZoneRow]) -> [ZoneRow] {
    zones.filter { zone in
      guard zone.frozen == nil, zone.ownerAccount == .open, let head = zone.head else { return false }
      return retirement(in: head) != nil
    }
  }

  /// Whether the user has ever declared a sign key compromised.
  package var hasCompromisedKeys: Bool { identity.trustedSignGen > 1 }

  /// Returns the decryption key of a generation. Old keys open old grants.
  package func decryptionKey(gen: UInt32) throws -> DecryptionKey? {
    gen == own.encGen ? decryptionKey : try keyring.decryptionKey(gen: gen)
  }

  /// Opens this user's grant of a zone's key.
  ///
  /// - Parameter acl: The verified access list that names the grant.
  /// - Throws: `ZDCSecurityError` with `grantMissing`, `grantHashMismatch`, `keyCommitmentMismatch` and similar codes.
  package func open(_ grant: Grant, in acl: ZoneACL) throws -> NodeKey {
    let zone = acl.fields.zone
    guard let entry = acl.fields.entry(for: userID), let key = try decryptionKey(gen: entry.encGen) else {
      throw ZDCSecurityError(.grantMissing, zone: zone, user: userID)
    }
    return try GrantOpener.open(grant, acl: acl, user: userID, key: key)
  }
}

/// Looks up keys for zones with one member, where only the user's own signatures count.
extension UserKeys: IdentityDirectory {
  package func signKey(user: UserID, generation: UInt32) throws -> [UInt8]? {
    user == identity.userID ? identity.signKeys[generation] : nil
  }
}
