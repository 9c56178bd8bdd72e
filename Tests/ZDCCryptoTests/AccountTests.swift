import Testing
import ZDCProtocol

@testable import ZDCCrypto

@Suite struct AccountTests {
  private let world: World

  init() throws { world = try World("account") }

  @Test func aNewAccountVerifiesByTheRulesThatServerAndClientsApply() throws {
    let birth = world.birth
    #expect(world.identity.userID == birth.userID)
    #expect(world.identity.hasTreeClaim(appTreeID: World.appTreeID))
    #expect(world.identity.rootPub == birth.accessKey.rootKey.publicKey)
    #expect(birth.trunks.map(\.trunk) == [.home, .prefs, .outbox, .inbox])
    for trunk in birth.trunks {
      var state = MemoryZoneState()
      let head = try ZoneReplay(identities: world).apply(trunk.commit, acl: trunk.acl, after: nil, to: &state)
      #expect(head.hash == trunk.commit.hash)
      let put = ZoneOperation.Put(trunk.root)
      try RecordRules.check(trunk.root, put: put, zone: trunk.zone, replaced: nil)
    }
  }

  @Test func theOwnerOpensEverythingWithTheWordsAlone() throws {
    let birth = world.birth
    let access = try AccessKey(words: birth.accessKey.words)
    let keyring = try Keyring.open(birth.keyringBlob, key: access.keyringKey, identity: world.identity)
    #expect(keyring == birth.keyring)
    #expect(keyring.signingKey(gen: 1) == birth.signingKey)
    let decryption = try #require(try keyring.decryptionKey(gen: 1))
    for trunk in birth.trunks {
      let granted = try GrantOpener.open(trunk.grant, acl: trunk.acl, user: birth.userID, key: decryption)
      #expect(granted == trunk.key)
      let opened = try RecordOpener.open(
        zoneRoot: trunk.root, key: trunk.key, commitments: trunk.acl.fields.commitments)
      #expect(opened.secrets.name.isEmpty && opened.secrets.createdMs == World.timeMs)
      #expect(try opened.history().entries.isEmpty)
    }
  }

  @Test func thePublicWayMakesFreshKeysEachTime() throws {
    let access = AccessKey.random()
    let one = try NewAccount(accessKey: access, appTreeID: World.appTreeID, timeMs: 1)
    let two = try NewAccount(accessKey: access, appTreeID: World.appTreeID, timeMs: 1)
    #expect(one.userID != two.userID)
    #expect(one.accessKey.lookupID == two.accessKey.lookupID)
    let owner = TrunkOwner(
      user: one.userID, signingKey: one.signingKey, signGen: 1, encPub: one.decryptionKey.publicKey, encGen: 1)
    let again = try TrunkGenesis(.home, appTreeID: World.appTreeID, owner: owner, timeMs: 1)
    #expect(again.zone == one.trunks[0].zone && again.key != one.trunks[0].key)
    #expect(throws: CryptoFailure.invalidParameter) {
      try TrunkGenesis(.home, appTreeID: ".bad", owner: owner, timeMs: 1)
    }
  }

  @Test func loginAndRootKeysAreDerivedApart() {
    let access = world.birth.accessKey
    #expect(access.loginKey != access.rootKey)
    #expect(access.keyringKey.exportBytes() != access.exportBytes())
  }

  // MARK: keyring

  private func openKeyring(_ blob: [UInt8], pinned: UInt64 = 0) throws -> ZDCSecurityError.Code? {
    try securityCode {
      _ = try Keyring.open(
        blob, key: world.birth.accessKey.keyringKey, identity: world.identity, pinnedVersion: pinned)
    }
  }

  @Test func everyFlippedByteOfAKeyringIsKeyringAuthFailed() throws {
    let blob = world.birth.keyringBlob
    for bit in stride(from: 0, to: blob.count * 8, by: 5) {
      #expect(try openKeyring(blob.flipping(bit: bit)) == .keyringAuthFailed)
    }
  }

  @Test func anotherAuthenticKeyringThanTheChainNamesIsAMismatch() throws {
    let resealed = try world.birth.keyring.seal(world.birth.accessKey.keyringKey)
    #expect(try openKeyring(resealed) == .keyringMismatch)
    let other = try World("other")
    #expect(try openKeyring(other.birth.keyringBlob) == .keyringAuthFailed)
  }

  @Test func anOlderKeyringOrChainIsARollback() throws {
    #expect(try openKeyring(world.birth.keyringBlob, pinned: 2) == .keyringRollback)
    var older = world.birth.keyring
    older.version = 0
    #expect(try openKeyring(try older.seal(world.birth.accessKey.keyringKey)) == .keyringRollback)
    let large = [UInt8](repeating: 0, count: Limits.keyringBytes + 1)
    #expect(try openKeyring(large) == .limitExceeded)
  }

  /// Opens a keyring that the account's own key sealed and its own chain names, but whose fields do not match the
  /// chain.
  private func openForged(_ change: (inout Keyring) throws -> Void) throws -> ZDCSecurityError.Code? {
    let birth = world.birth
    var keyring = birth.keyring
    try change(&keyring)
    let sealed = try Seal.seal(
      key: birth.accessKey.keyringKey, label: "keyring", context: birth.userID.bytes + [0, 0, 0, 0, 0, 0, 0, 1],
      keyring.bytes)
    var fields = IdentityLink.Fields(
      kind: .genesis, timeMs: World.timeMs, rootPub: birth.accessKey.rootKey.publicKey,
      signPub: birth.signingKey.publicKey, encPub: birth.decryptionKey.publicKey)
    fields.keyringHash = Keyring.hash(sealed)
    let link = try IdentityLink(signing: fields, root: birth.accessKey.rootKey, sign: birth.signingKey)
    let identity = try IdentityReplay.begin(link)
    return try securityCode {
      _ = try Keyring.open(sealed, key: birth.accessKey.keyringKey, identity: identity)
    }
  }

  @Test func storedSeedsAreNotBelieved() throws {
    #expect(try openForged { _ in } == nil)
    #expect(try openForged { $0.version = 2 } == .keyringMismatch)
    #expect(try openForged { $0.user = .zero } == .keyringMismatch)
    #expect(try openForged { $0.entries[0].seed = pattern(32) } == .keyringMismatch)
    #expect(try openForged { $0.entries[1].seed = pattern(32) } == .keyringMismatch)
    #expect(try openForged { $0.entries[0].gen = 2 } == .keyringMismatch)
    #expect(try openForged { $0.entries[0].gen = 0 } == .keyringMismatch)
    #expect(try openForged { $0.entries.swapAt(0, 1) } == .keyringMismatch)
    #expect(try openForged { $0.entries.removeLast() } == .keyringMismatch)
    #expect(try openForged { $0.entries.append($0.entries[1]) } == .keyringMismatch)
    #expect(try openForged { $0.entries[0].status = .retired } == .keyringMismatch)
  }

  @Test func anUnsortedKeyringIsNotSealed() {
    var keyring = world.birth.keyring
    keyring.entries.swapAt(0, 1)
    #expect(throws: CryptoFailure.invalidParameter) { try keyring.seal(world.birth.accessKey.keyringKey) }
  }

  @Test func hostilePlaintextOfAKeyringNeverTraps() throws {
    let bytes = world.birth.keyring.bytes
    #expect(bytes.count == 512)
    #expect(try Keyring(bytes) == world.birth.keyring)
    #expect(try securityCode { _ = try Keyring(bytes + [0]) } == .nonCanonicalEncoding)
    #expect(try securityCode { _ = try Keyring(bytes + [UInt8](repeating: 0, count: 512)) } == .nonCanonicalEncoding)
    #expect(try securityCode { _ = try Keyring([]) } == .nonCanonicalEncoding)
    let huge = [UInt8](repeating: 0, count: Limits.keyringBytes + 512)
    #expect(try securityCode { _ = try Keyring(huge) } == .limitExceeded)
    for bit in 0..<bytes.count * 8 {
      if let other = try? Keyring(bytes.flipping(bit: bit)) { #expect(other.bytes == bytes.flipping(bit: bit)) }
    }
  }

  // MARK: rotation and grants

  @Test func oldDecryptionKeysStayForOldGrants() throws {
    let birth = world.birth
    let newKey = try DecryptionKey.random()
    var keyring = birth.keyring
    keyring.version = 2
    keyring.entries[1].status = .retired
    keyring.entries.append(Keyring.Entry(decryption: newKey, gen: 2, status: .current, createdMs: 5))
    let blob = try keyring.seal(birth.accessKey.keyringKey)
    var fields = IdentityLink.Fields(
      kind: .rotateKeys, timeMs: 5, rootPub: birth.genesis.rootPub, signPub: birth.genesis.signPub,
      encPub: newKey.publicKey)
    fields.seq = 1
    fields.prev = birth.genesis.hash
    fields.userID = birth.userID
    fields.encGen = 2
    fields.keyringVersion = 2
    fields.keyringHash = Keyring.hash(blob)
    let link = try IdentityLink(signing: fields, root: birth.accessKey.rootKey, sign: birth.signingKey)
    let identity = try IdentityReplay.verify([birth.genesis, link])
    let opened = try Keyring.open(blob, key: birth.accessKey.keyringKey, identity: identity)
    #expect(try opened.decryptionKey(gen: 1) == birth.decryptionKey)
    #expect(try opened.decryptionKey(gen: 2) == newKey)
    #expect(try opened.decryptionKey(gen: 3) == nil)
    #expect(opened.signingKey(gen: 2) == nil)
    // The first version, served again, opens only under its own number.
    let code = try securityCode {
      _ = try Keyring.open(birth.keyringBlob, key: birth.accessKey.keyringKey, identity: identity)
    }
    #expect(code == .keyringRollback)
  }

  @Test func rotatingTheRootNeedsTheOldAndTheNewRoot() throws {
    let birth = world.birth
    let next = AccessKey.random()
    var keyring = birth.keyring
    keyring.version = 2
    let blob = try keyring.seal(next.keyringKey)
    var fields = IdentityLink.Fields(
      kind: .rotateRoot, timeMs: 5, rootPub: next.rootKey.publicKey, signPub: birth.genesis.signPub,
      encPub: birth.genesis.encPub)
    fields.seq = 1
    fields.prev = birth.genesis.hash
    fields.userID = birth.userID
    fields.keyringVersion = 2
    fields.keyringHash = Keyring.hash(blob)
    let link = try IdentityLink(
      signing: fields, root: birth.accessKey.rootKey, newRoot: next.rootKey, sign: birth.signingKey)
    let identity = try IdentityReplay.verify([birth.genesis, link])
    #expect(try Keyring.open(blob, key: next.keyringKey, identity: identity).signingKey(gen: 1) == birth.signingKey)
    let stolen = try IdentityLink(signing: fields, root: next.rootKey, newRoot: next.rootKey, sign: birth.signingKey)
    #expect(try securityCode { _ = try IdentityReplay.verify([birth.genesis, stolen]) } == .identityChainInvalid)
  }

  private func openGrant(_ grant: Grant, _ acl: ZoneACL, key: DecryptionKey? = nil) throws -> ZDCSecurityError.Code? {
    try securityCode {
      _ = try GrantOpener.open(grant, acl: acl, user: world.birth.userID, key: key ?? world.birth.decryptionKey)
    }
  }

  @Test func aGrantOpensOnlyWhereTheListPutsIt() throws {
    let (home, prefs) = (world.birth.trunks[0], world.birth.trunks[1])
    #expect(try openGrant(home.grant, home.acl) == nil)
    #expect(try openGrant(prefs.grant, home.acl) == .grantHashMismatch)
    let later = Grant(zone: home.zone, zoneKeyGen: 2, user: world.birth.userID, wrap: home.grant.wrap)
    #expect(try openGrant(later, home.acl) == .grantHashMismatch)
    let substitute = try GrantSealer(zone: home.zone, zoneKeyGen: 1, key: .random()).seal(
      for: world.birth.userID, encGen: 1, encPub: world.birth.decryptionKey.publicKey)
    #expect(try openGrant(substitute, home.acl) == .grantHashMismatch)
    #expect(try openGrant(home.grant, home.acl, key: DecryptionKey.random()) == .keyCommitmentMismatch)
    let stranger = UserID(w: 7)
    let code = try securityCode {
      _ = try GrantOpener.open(home.grant, acl: home.acl, user: stranger, key: world.birth.decryptionKey)
    }
    #expect(code == .grantMissing)
  }

  /// The list names the wrap, but the wrapped key is not the one that the list commits to (SECURITY B7).
  @Test func differentKeysForDifferentMembersAreFound() throws {
    let home = world.home
    var fields = home.acl.fields
    let user = world.birth.userID
    let other = GrantSealer(zone: home.zone, zoneKeyGen: 1, key: .random())
    let grant = try other.seal(for: user, encGen: 1, encPub: world.birth.decryptionKey.publicKey)
    fields.entries[0].wrapHash = grant.wrapHash
    let acl = try ZoneACL(fields) { try world.birth.signingKey.sign(label: "acl", message: $0) }
    #expect(try openGrant(grant, acl) == .keyCommitmentMismatch)
  }
}

extension UserID {
  init(w: UInt64) { self.init(w, w, w, w) }
}
