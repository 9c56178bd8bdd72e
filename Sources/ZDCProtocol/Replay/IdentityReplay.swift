/// The source of writers' signature keys for replay. Clients and server answer from chains that they verified.
package protocol IdentityDirectory {
  /// Returns the user's signature key of that generation, or nil if the verified chain has none.
  func signKey(user: UserID, generation: UInt32) throws -> [UInt8]?
}

/// One of a user's signature keys, in the form in which commits and access lists name it.
package struct Signer: Sendable, Hashable {
  package var user: UserID
  package var generation: UInt32

  package init(user: UserID, generation: UInt32) {
    (self.user, self.generation) = (user, generation)
  }
}

/// The known length of a user's chain.
package struct ChainPosition: Sendable, Hashable {
  package var user: UserID
  /// The number of known links, which is also the number of the next one.
  package var count: UInt32

  package init(user: UserID, count: UInt32) {
    (self.user, self.count) = (user, count)
  }
}

/// A verified identity chain of a user (PROTOCOL 3.2).
package struct VerifiedIdentity: Sendable, Hashable {
  package let userID: UserID
  package internal(set) var seq: UInt32
  package internal(set) var head: LinkHash
  /// The total length of all links, in bytes.
  package internal(set) var byteCount: Int
  package internal(set) var rootPub: [UInt8]
  package internal(set) var signGen: UInt32
  package internal(set) var encGen: UInt32
  /// All keys that the chain ever named, by generation.
  package internal(set) var signKeys: [UInt32: [UInt8]]
  package internal(set) var encKeys: [UInt32: [UInt8]]
  /// Signature generations below this are distrusted.
  package internal(set) var trustedSignGen: UInt32
  package internal(set) var keyringVersion: UInt64
  package internal(set) var keyringHash: KeyringHash
  package internal(set) var claims: [IdentityLink.Claim]
  package internal(set) var isClosed: Bool

  /// The user's handle: that of the newest link that says something about it.
  package internal(set) var handle: Handle?

  package func hasTreeClaim(appTreeID: String) -> Bool {
    let prefix = IdentityLink.Claim.tree(appTreeID: appTreeID, genesisCommits: []).value
    return claims.contains { $0.type == IdentityLink.Claim.tree && $0.value.starts(with: prefix) }
  }

  /// Returns the genesis commits of an app's four trunks, in trunk order, as the chain claims them; nil without a
  /// claim.
  ///
  /// The first claim of a tree counts; later claims change nothing.
  package func genesisCommits(appTreeID: String) -> [CommitHash]? {
    let prefix = IdentityLink.Claim.tree(appTreeID: appTreeID, genesisCommits: []).value
    let claim = claims.first { $0.type == IdentityLink.Claim.tree && $0.value.starts(with: prefix) }
    guard let bytes = claim?.value.dropFirst(prefix.count), bytes.count == Trunk.allCases.count * 32 else { return nil }
    return stride(from: bytes.startIndex, to: bytes.endIndex, by: 32).compactMap { CommitHash(bytes[$0..<$0 + 32]) }
  }

  /// Checks that the first commit of an own trunk is the one that the chain names (PROTOCOL 3.7). This prevents a
  /// server from restarting the tree.
  ///
  /// - Throws: `zoneForkDetected`.
  package func checkGenesis(_ commit: ZoneCommit, trunk: Trunk, appTreeID: String) throws(ZDCSecurityError) {
    let named = genesisCommits(appTreeID: appTreeID)?[Int(trunk.rawValue) - 1]
    guard named == commit.hash else {
      throw ZDCSecurityError(.zoneForkDetected, zone: commit.fields.zone, user: userID)
    }
  }
}

/// The rules of identity chains, as a pure function over received bytes.
package enum IdentityReplay {
  /// Verifies a whole chain from its genesis.
  ///
  /// - Parameter expected: The requested user. A valid chain of another user fails with `userIDMismatch`.
  package static func verify(
    _ chain: [IdentityLink], expected: UserID? = nil
  ) throws(ZDCSecurityError) -> VerifiedIdentity {
    guard let genesis = chain.first else { throw ZDCSecurityError(.accountStateMissing, user: expected) }
    var identity = try begin(genesis)
    if let expected, identity.userID != expected { throw ZDCSecurityError(.userIDMismatch, user: expected) }
    for link in chain.dropFirst() { try extend(&identity, with: link) }
    return identity
  }

  /// Verifies a genesis link.
  package static func begin(_ link: IdentityLink) throws(ZDCSecurityError) -> VerifiedIdentity {
    let isWellFormed =
      link.kind == .genesis && link.seq == 0 && link.prev == .zero && link.statedUserID == .zero
      && link.compromise == 0 && link.sigNewRoot.allSatisfy { $0 == 0 }
    try require(isWellFormed, .identityChainInvalid)
    try checkKeys(link)
    try checkSignatures(link, rootPub: link.rootPub)
    return VerifiedIdentity(
      userID: link.userID, seq: 0, head: link.hash, byteCount: link.bytes.count, rootPub: link.rootPub,
      signGen: link.signGen,
      encGen: link.encGen, signKeys: [link.signGen: link.signPub], encKeys: [link.encGen: link.encPub],
      trustedSignGen: link.signGen, keyringVersion: link.keyringVersion, keyringHash: link.keyringHash,
      claims: link.claims, isClosed: false, handle: link.claimedHandle ?? nil)
  }

  /// Returns the state against which the next link is checked, without reading the chain again.
  ///
  /// Claims, the handle and older keys are omitted.
  ///
  /// - Parameters:
  ///   - link: The newest link of a chain that the caller has verified.
  ///   - byteCount: The total length of all its links.
  package static func resume(after link: IdentityLink, byteCount: Int) -> VerifiedIdentity {
    VerifiedIdentity(
      userID: link.userID, seq: link.seq, head: link.hash, byteCount: byteCount, rootPub: link.rootPub,
      signGen: link.signGen, encGen: link.encGen, signKeys: [link.signGen: link.signPub],
      encKeys: [link.encGen: link.encPub], trustedSignGen: link.signGen, keyringVersion: link.keyringVersion,
      keyringHash: link.keyringHash, claims: [], isClosed: link.kind == .closed)
  }

  /// Verifies the next link and updates the identity, which is unchanged if this throws.
  ///
  /// A link that would make the chain too long is refused, so that an accepted chain can always be read.
  package static func extend(_ identity: inout VerifiedIdentity, with link: IdentityLink) throws(ZDCSecurityError) {
    let user = identity.userID
    do {
      try require(identity.byteCount + link.bytes.count <= Limits.chainBytes, .limitExceeded)
      try checkOrder(link, after: identity)
      try checkKeys(link)
      try checkChange(link, from: identity)
      try checkSignatures(link, rootPub: identity.rootPub)
    } catch { throw error.with(user: user) }
    advance(&identity, to: link)
  }

  private static func checkOrder(_ link: IdentityLink, after identity: VerifiedIdentity) throws(ZDCSecurityError) {
    let (next, overflow) = identity.seq.addingReportingOverflow(1)
    try require(!overflow && link.seq == next && link.prev == identity.head, .identityChainInvalid)
    try require(link.kind != .genesis && !identity.isClosed, .identityChainInvalid)
    try require(link.statedUserID == identity.userID, .userIDMismatch)
    try require(link.keyringVersion >= identity.keyringVersion, .keyringRollback)
  }

  private static func checkKeys(_ link: IdentityLink) throws(ZDCSecurityError) {
    try require(!Signatures.isWeak(link.rootPub) && !Signatures.isWeak(link.signPub), .weakPublicKey)
  }

  /// Checks that a link changes only what its kind may change.
  private static func checkChange(_ link: IdentityLink, from identity: VerifiedIdentity) throws(ZDCSecurityError) {
    let sameRoot = link.rootPub == identity.rootPub
    let sameSign = link.signGen == identity.signGen && link.signPub == identity.signKeys[identity.signGen]
    let sameEnc = link.encGen == identity.encGen && link.encPub == identity.encKeys[identity.encGen]
    let sameKeyring = link.keyringVersion == identity.keyringVersion && link.keyringHash == identity.keyringHash
    switch link.kind {
    case .genesis: throw ZDCSecurityError(.identityChainInvalid)
    case .rotateKeys:
      let signIsNext =
        identity.signGen < .max && link.signGen == identity.signGen + 1
        && link.signPub != identity.signKeys[identity.signGen]
      let encIsNext =
        identity.encGen < .max && link.encGen == identity.encGen + 1 && link.encPub != identity.encKeys[identity.encGen]
      let isRotation = sameRoot && (sameSign || signIsNext) && (sameEnc || encIsNext) && !(sameSign && sameEnc)
      try require(isRotation && link.claims.isEmpty, .identityChainInvalid)
    case .rotateRoot:
      try require(!sameRoot && sameSign && sameEnc && link.claims.isEmpty, .identityChainInvalid)
    case .claims:
      try require(sameRoot && sameSign && sameEnc && sameKeyring && !link.claims.isEmpty, .identityChainInvalid)
    case .closed:
      try require(sameRoot && sameSign && sameEnc && link.claims.isEmpty, .identityChainInvalid)
    }
    try require(link.compromise == 0 || link.kind == .rotateKeys, .identityChainInvalid)
  }

  /// Checks a link's signatures. `rootPub` is the root key that was current before this link.
  private static func checkSignatures(_ link: IdentityLink, rootPub: [UInt8]) throws(ZDCSecurityError) {
    let message = link.signedBytes
    var isValid =
      Signatures.isValid(link.sigRoot, by: rootPub, label: "link", message: message)
      && Signatures.isValid(link.sigSign, by: link.signPub, label: "link", message: message)
    if link.kind == .rotateRoot {
      isValid = isValid && Signatures.isValid(link.sigNewRoot, by: link.rootPub, label: "link", message: message)
    } else {
      isValid = isValid && link.sigNewRoot.allSatisfy { $0 == 0 }
    }
    try require(isValid, .identityChainInvalid)
  }

  private static func advance(_ identity: inout VerifiedIdentity, to link: IdentityLink) {
    identity.seq = link.seq
    identity.head = link.hash
    identity.byteCount += link.bytes.count
    identity.rootPub = link.rootPub
    identity.signGen = link.signGen
    identity.encGen = link.encGen
    identity.signKeys[link.signGen] = link.signPub
    identity.encKeys[link.encGen] = link.encPub
    if link.compromise & 1 == 1 { identity.trustedSignGen = link.signGen }
    identity.keyringVersion = link.keyringVersion
    identity.keyringHash = link.keyringHash
    identity.claims += link.claims
    if let handle = link.claimedHandle { identity.handle = handle }
    if link.kind == .closed { identity.isClosed = true }
  }
}
