import Crypto
import Testing
import ZDCProtocol

@Suite struct IdentityReplayTests {
  private func refusalOf(_ chain: [IdentityLink], expected: UserID? = nil) -> ZDCSecurityError.Code? {
    refusal { _ = try IdentityReplay.verify(chain, expected: expected) }
  }

  /// Verifies a chain of one link and the next one, changed before it is signed.
  private func refusalOfNext(
    _ kind: IdentityLink.Kind, _ change: (inout IdentityLink.Fields) -> Void
  ) throws -> ZDCSecurityError.Code? {
    let user = try TestUser()
    var fields = user.nextFields(kind)
    change(&fields)
    return refusalOf(user.chain + [try user.sign(fields)])
  }

  @Test func aLifeOfAnAccountIsAccepted() throws {
    var user = try TestUser()
    try user.rotateSignKey()
    try user.rotateRoot()
    var claims = user.nextFields(.claims)
    claims.claims = [.tree(appTreeID: TestZone.appTreeID, genesisCommits: [.zero, .zero, .zero, .zero])]
    try user.append(claims)
    try user.rotateSignKey(compromised: true)
    try user.append(user.nextFields(.closed))

    let identity = try IdentityReplay.verify(user.chain, expected: user.id)
    #expect(identity.userID == user.id)
    #expect(identity.seq == 5)
    #expect(identity.head == user.chain[5].hash)
    #expect(identity.rootPub == user.rootKey.publicBytes)
    #expect(identity.signGen == 3)
    #expect(identity.trustedSignGen == 3)
    #expect(Set(identity.signKeys.keys) == [1, 2, 3])
    #expect(identity.signKeys[3] == user.signKey.publicBytes)
    #expect(identity.encGen == 1)
    #expect(identity.keyringVersion == 3)
    #expect(identity.isClosed)
    #expect(identity.hasTreeClaim(appTreeID: TestZone.appTreeID))
    #expect(!identity.hasTreeClaim(appTreeID: "com.example.other"))
  }

  /// - a chain claims a tree twice, the second time with other genesis commits
  /// => the first claim holds; a different first commit is a fork, in each trunk
  @Test func theFirstCommitOfATrunkIsTheOneThatTheChainNames() throws {
    var user = try TestUser()
    var zone = TestZone(owner: user)
    let genesis = try zone.genesis(acl: zone.firstACL())
    zone.users = [user]
    var other = try zone.nextFields([.acl(version: 1, hash: zone.firstACL().hash), zone.rootPut], acl: zone.firstACL())
    other.timeMs += 1
    let forged = try zone.signed(other, by: user)
    for commits in [[genesis.hash, .zero, .zero, .zero], [forged.hash, .zero, .zero, .zero]] {
      var claims = user.nextFields(.claims)
      claims.claims = [.tree(appTreeID: TestZone.appTreeID, genesisCommits: commits)]
      try user.append(claims)
    }
    let identity = try IdentityReplay.verify(user.chain, expected: user.id)
    func refusalOf(_ commit: ZoneCommit, _ trunk: Trunk, _ tree: String) -> ZDCSecurityError.Code? {
      refusal { try identity.checkGenesis(commit, trunk: trunk, appTreeID: tree) }
    }
    #expect(refusalOf(genesis, .home, TestZone.appTreeID) == nil)
    #expect(refusalOf(forged, .home, TestZone.appTreeID) == .zoneForkDetected)
    #expect(refusalOf(genesis, .prefs, TestZone.appTreeID) == .zoneForkDetected)
    #expect(refusalOf(genesis, .home, "com.example.other") == .zoneForkDetected)
  }

  @Test func anEmptyChainIsAMissingAccount() {
    #expect(refusalOf([]) == .accountStateMissing)
  }

  @Test func anotherUsersValidChainIsNotTheOneAskedFor() throws {
    let (alice, bob) = (try TestUser(), try TestUser(seed: 2))
    #expect(refusalOf(bob.chain, expected: alice.id) == .userIDMismatch)
  }

  @Test func encryptionKeyOfTheServersChoiceBreaksTheSignature() throws {
    let user = try TestUser()
    for offset in [100, 130, 160, 1_300, 1_371, 1_375, 1_400] {
      var bytes = user.chain[0].bytes
      bytes[offset] ^= 1
      let code = refusal { _ = try IdentityReplay.verify([try IdentityLink(bytes)]) }
      #expect(code == .identityChainInvalid || code == .weakPublicKey)
    }
  }

  @Test func everySignatureOfALinkIsChecked() throws {
    var user = try TestUser()
    try user.rotateRoot()
    for fromEnd in [192, 128, 64] {
      var bytes = user.chain[1].bytes
      bytes[bytes.count - fromEnd] ^= 1
      #expect(refusalOf([user.chain[0], try IdentityLink(bytes)]) == .identityChainInvalid)
    }
  }

  @Test func aNewRootsSignatureIsAllowedOnlyWithANewRoot() throws {
    let user = try TestUser()
    let genesis = user.chain[0].bytes
    var bytes = genesis
    bytes[genesis.count - 100] = 1
    #expect(refusalOf([try IdentityLink(bytes)]) == .identityChainInvalid)
    var claims = user.nextFields(.claims)
    claims.claims = [.init(type: 1, value: [1])]
    let link = try TestUser.sign(claims, root: user.rootKey, newRoot: user.rootKey, signer: user.signKey)
    #expect(refusalOf(user.chain + [link]) == .identityChainInvalid)
  }

  @Test func linksOutOfOrderMissingOrRepeatedAreRefused() throws {
    var user = try TestUser()
    for _ in 0..<3 { try user.rotateSignKey() }
    let chain = user.chain
    #expect(refusalOf([chain[0], chain[2], chain[1], chain[3]]) == .identityChainInvalid)
    #expect(refusalOf([chain[0], chain[2], chain[3]]) == .identityChainInvalid)
    #expect(refusalOf([chain[0], chain[1], chain[1]]) == .identityChainInvalid)
    #expect(refusalOf(Array(chain.dropFirst())) == .identityChainInvalid)
    #expect(refusalOf([chain[0], chain[0]]) == .identityChainInvalid)
    // A shorter chain is valid in itself; only a pin shows that it is old.
    #expect(refusalOf(Array(chain.dropLast())) == nil)
  }

  @Test func aFailedLinkLeavesTheIdentityAsItWas() throws {
    var user = try TestUser()
    var identity = try IdentityReplay.verify(user.chain)
    let before = identity
    try user.rotateSignKey()
    try user.rotateSignKey()
    #expect(refusal { try IdentityReplay.extend(&identity, with: user.chain[2]) } == .identityChainInvalid)
    #expect(identity == before)
  }

  @Test func afterTheEndThereIsNoLink() throws {
    var user = try TestUser()
    try user.append(user.nextFields(.closed))
    try user.rotateSignKey()
    #expect(refusalOf(user.chain) == .identityChainInvalid)
  }

  @Test func eachKindChangesWhatItMayAndNothingElse() throws {
    let key = Curve25519.Signing.PrivateKey().publicBytes
    let claim = IdentityLink.Claim(type: 1, value: [1])
    let refused: [(IdentityLink.Kind, @Sendable (inout IdentityLink.Fields) -> Void)] = [
      (.genesis, { _ in }),
      (.rotateKeys, { _ in }),
      (.rotateKeys, { $0.encGen += 2 }),
      (.rotateKeys, { $0.encPub[0] ^= 1 }),
      (.rotateKeys, { ($0.encGen, $0.rootPub) = ($0.encGen + 1, key) }),
      (.rotateKeys, { ($0.encGen, $0.claims) = ($0.encGen + 1, [claim]) }),
      (.rotateRoot, { _ in }),
      (.claims, { _ in }),
      (.claims, { ($0.claims, $0.encGen) = ([claim], $0.encGen + 1) }),
      (.claims, { ($0.claims, $0.keyringVersion) = ([claim], $0.keyringVersion + 1) }),
      (.claims, { ($0.claims, $0.compromise) = ([claim], 1) }),
      (.closed, { $0.claims = [claim] }),
      (.closed, { $0.encPub[9] ^= 1 }),
      (.closed, { $0.compromise = 2 }),
    ]
    for (index, (kind, change)) in refused.enumerated() {
      #expect(try refusalOfNext(kind, change) == .identityChainInvalid, "row \(index)")
    }
    #expect(try refusalOfNext(.rotateKeys) { ($0.encGen, $0.encPub[0]) = ($0.encGen + 1, 1) } == nil)
    #expect(try refusalOfNext(.claims) { $0.claims = [claim] } == nil)
    #expect(try refusalOfNext(.closed) { _ in } == nil)
  }

  @Test func anOlderKeyringIsARollback() throws {
    #expect(try refusalOfNext(.closed) { $0.keyringVersion = 0 } == .keyringRollback)
  }

  @Test func aLinkOfAnotherUserIsNamed() throws {
    #expect(try refusalOfNext(.closed) { $0.userID = UserID(1, 2, 3, 4) } == .userIDMismatch)
  }

  @Test func weakKeysAreRefusedBeforeAnySignatureCounts() throws {
    let weak = [UInt8](repeating: 0, count: 32)
    let user = try TestUser()
    var genesis = user.nextFields(.genesis)
    (genesis.seq, genesis.prev, genesis.userID, genesis.signPub) = (0, .zero, .zero, weak)
    #expect(refusalOf([try user.sign(genesis)]) == .weakPublicKey)
    #expect(try refusalOfNext(.rotateRoot) { $0.rootPub = weak } == .weakPublicKey)
    #expect(try refusalOfNext(.rotateKeys) { ($0.signGen, $0.signPub) = (2, weak) } == .weakPublicKey)
  }

  @Test func aGenesisStatesNothingButItself() throws {
    let user = try TestUser()
    let changes: [@Sendable (inout IdentityLink.Fields) -> Void] = [
      { $0.seq = 1 }, { $0.prev = LinkHash(1, 1, 1, 1) }, { $0.userID = UserID(1, 1, 1, 1) }, { $0.compromise = 1 },
    ]
    for change in changes {
      var fields = user.nextFields(.genesis)
      (fields.seq, fields.prev, fields.userID) = (0, .zero, .zero)
      change(&fields)
      #expect(refusalOf([try user.sign(fields)]) == .identityChainInvalid)
    }
  }
}
