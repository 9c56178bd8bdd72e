import ZDCProtocol

@testable import ZDCCrypto

extension VectorCases {
  mutating func addAccount() throws {
    let birth = world.birth
    add(
      "account", "account", "a new account with its four trunks; everything follows from the access key",
      [
        "entropy": VectorValue(birth.accessKey.exportBytes()),
        "words": .text(birth.accessKey.words.joined(separator: " ")),
        "lookupID": VectorValue(birth.accessKey.lookupID.bytes),
        "loginPub": VectorValue(birth.accessKey.loginKey.publicKey),
        "rootPub": VectorValue(birth.accessKey.rootKey.publicKey),
        "keyringKey": VectorValue(birth.accessKey.keyringKey.exportBytes()),
        "userID": VectorValue(birth.userID.bytes), "userIDText": .text(birth.userID.text),
        "appTreeID": .text(FrozenWorld.appTreeID),
        "genesis": VectorValue(birth.genesis.bytes), "keyring": VectorValue(birth.keyringBlob),
        "signSeed": VectorValue(birth.signingKey.seed.exportBytes()),
        "encSeed": VectorValue(birth.decryptionKey.seed.exportBytes()),
        "trunks": VectorValue(
          birth.trunks.map { trunk in
            [
              "trunk": VectorValue(trunk.trunk.rawValue), "treeID": VectorValue(trunk.zone.tree.bytes),
              "nodeKey": VectorValue(trunk.key.exportBytes()), "record": VectorValue(trunk.root.bytes),
              "grant": VectorValue(trunk.grant.bytes), "acl": VectorValue(trunk.acl.bytes),
              "commit": VectorValue(trunk.commit.bytes),
            ]
          }),
      ])
    addMnemonics()
  }

  private mutating func addMnemonics() {
    let words = world.birth.accessKey.words
    func phrase(_ words: [String]) -> [String: VectorValue] { ["words": .text(words.joined(separator: " "))] }
    var swapped = words
    swapped.swapAt(3, 4)
    var capital = words
    capital[0] = capital[0].uppercased()
    add("mnemonic-23-words", "mnemonic", "one word is missing", expect: "wordCount", phrase(words.dropLast()))
    add("mnemonic-25-words", "mnemonic", "one word too many", expect: "wordCount", phrase(words + ["zoo"]))
    add("mnemonic-checksum", "mnemonic", "two words are swapped", expect: "checksum", phrase(swapped))
    add("mnemonic-capital", "mnemonic", "a word in capitals is not in the list", expect: "unknownWord", phrase(capital))
    add(
      "mnemonic-unknown", "mnemonic", "a word that is not in the list", expect: "unknownWord",
      phrase(["zdc"] + words.dropFirst()))
  }

  // MARK: chains

  struct Links {
    let rotateKeys, claims, rotateRoot, closed: IdentityLink
    let newAccess: AccessKey
    let newEnc: DecryptionKey
    let keyring: Keyring
    let blob: [UInt8]
  }

  func links() throws -> Links {
    let birth = world.birth
    var source = SeededSource("zdc1 vectors chain")
    let (newSign, newEnc) = (SigningKey.random(&source), try DecryptionKey.random(&source))
    let newAccess = AccessKey.random(&source)
    var keyring = birth.keyring
    keyring.version = 2
    keyring.entries = [
      Keyring.Entry(signing: newSign, gen: 2, status: .current, createdMs: FrozenWorld.timeMs + 1),
      Keyring.Entry(decryption: birth.decryptionKey, gen: 1, status: .retired, createdMs: FrozenWorld.timeMs),
      Keyring.Entry(decryption: newEnc, gen: 2, status: .current, createdMs: FrozenWorld.timeMs + 1),
    ]
    let blob = try keyring.seal(birth.accessKey.keyringKey, random: &source)
    let root = birth.accessKey.rootKey
    var fields = next(.rotateKeys, after: birth.genesis)
    (fields.signGen, fields.signPub, fields.encGen, fields.encPub) = (2, newSign.publicKey, 2, newEnc.publicKey)
    (fields.keyringVersion, fields.keyringHash) = (2, Keyring.hash(blob))
    let rotateKeys = try IdentityLink(signing: fields, root: root, sign: newSign)
    var claim = next(.claims, after: rotateKeys)
    claim.claims = [IdentityLink.Claim(type: IdentityLink.Claim.handle, value: Array("alice".utf8))]
    let claims = try IdentityLink(signing: claim, root: root, sign: newSign)
    keyring.version = 3
    let resealed = try keyring.seal(newAccess.keyringKey, random: &source)
    var change = next(.rotateRoot, after: claims)
    change.rootPub = newAccess.rootKey.publicKey
    (change.keyringVersion, change.keyringHash) = (3, Keyring.hash(resealed))
    let rotateRoot = try IdentityLink(signing: change, root: root, newRoot: newAccess.rootKey, sign: newSign)
    let closed = try IdentityLink(signing: next(.closed, after: rotateRoot), root: newAccess.rootKey, sign: newSign)
    return Links(
      rotateKeys: rotateKeys, claims: claims, rotateRoot: rotateRoot, closed: closed, newAccess: newAccess,
      newEnc: newEnc, keyring: keyring, blob: resealed)
  }

  private func next(_ kind: IdentityLink.Kind, after link: IdentityLink) -> IdentityLink.Fields {
    var fields = IdentityLink.Fields(
      kind: kind, timeMs: link.timeMs + 1, rootPub: link.rootPub, signPub: link.signPub, encPub: link.encPub)
    (fields.seq, fields.prev, fields.userID) = (link.seq + 1, link.hash, world.birth.userID)
    (fields.signGen, fields.encGen) = (link.signGen, link.encGen)
    (fields.keyringVersion, fields.keyringHash) = (link.keyringVersion, link.keyringHash)
    return fields
  }

  mutating func addChains() throws {
    let links = try links()
    let genesis = world.birth.genesis
    let chain = [genesis, links.rotateKeys, links.claims, links.rotateRoot, links.closed]
    func members(_ bytes: [[UInt8]], user: UserID? = nil) -> [String: VectorValue] {
      [
        "links": VectorValue(bytes.map { VectorValue($0) }),
        "userID": VectorValue((user ?? world.birth.userID).bytes),
      ]
    }
    let bytes = chain.map(\.bytes)
    add("chain", "chain", "genesis, rotateKeys, claims, rotateRoot, closed", members(bytes))
    add(
      "chain-other-user", "chain", "a valid chain of somebody else", expect: .userIDMismatch,
      members(bytes, user: .init(w: 1)))
    add("chain-empty", "chain", "no link at all", expect: .accountStateMissing, members([]))
    add("chain-gap", "chain", "a link is left out", expect: .identityChainInvalid, members([bytes[0], bytes[2]]))
    add(
      "chain-after-closed", "chain", "a link behind the closing one", expect: .identityChainInvalid,
      members(bytes + [bytes[4]]))
    for (name, offset) in [("root", 64 * 3), ("sign", 1)] {
      let bit = (bytes[1].count - offset) * 8
      add(
        "chain-bad-signature-\(name)", "chain", "a flipped bit in the \(name) signature",
        expect: .identityChainInvalid, members([bytes[0], bytes[1].flipping(bit: bit)]))
    }
    add(
      "chain-version", "chain", "another format version", expect: .unsupportedVersion,
      members([bytes[0].flipping(bit: 33)]))
    add("chain-trailing", "chain", "a byte too many", expect: .nonCanonicalEncoding, members([bytes[0] + [0]]))
    add("chain-truncated", "chain", "a byte too few", expect: .nonCanonicalEncoding, members([bytes[0].dropLast()]))
    try addWeakKey()
    addClaimLimit(bytes[0])
    var same = next(.rotateKeys, after: genesis)
    same.signGen += 1
    let birth = world.birth
    let again = try IdentityLink(signing: same, root: birth.accessKey.rootKey, sign: birth.signingKey)
    add(
      "chain-same-key", "chain", "the next generation has the key of the one before", expect: .identityChainInvalid,
      members([bytes[0], again.bytes]))
    var handle = next(.claims, after: genesis)
    handle.claims = [IdentityLink.Claim(type: IdentityLink.Claim.handle, value: [0xC3, 0x28])]
    add(
      "chain-handle", "chain", "a handle that is not UTF-8", expect: .nonCanonicalEncoding,
      members([bytes[0], handle.unsignedBytes + [UInt8](repeating: 0, count: 192)]))
  }

  private mutating func addClaimLimit(_ genesis: [UInt8]) {
    var fields = next(.claims, after: world.birth.genesis)
    fields.claims = [IdentityLink.Claim(type: IdentityLink.Claim.handle, value: pattern(2_046))]
    let link = fields.unsignedBytes + [UInt8](repeating: 0, count: 192)
    add(
      "chain-claims-limit", "chain", "claims of 2,049 bytes", expect: .limitExceeded,
      [
        "links": VectorValue([VectorValue(genesis), VectorValue(link)]),
        "userID": VectorValue(world.birth.userID.bytes),
      ])
  }

  private mutating func addWeakKey() throws {
    let birth = world.birth
    var fields = IdentityLink.Fields(
      kind: .genesis, timeMs: FrozenWorld.timeMs, rootPub: birth.accessKey.rootKey.publicKey,
      signPub: [1] + [UInt8](repeating: 0, count: 31), encPub: birth.decryptionKey.publicKey)
    fields.keyringHash = Keyring.hash(birth.keyringBlob)
    let link = try IdentityLink(signing: fields, root: birth.accessKey.rootKey, sign: birth.signingKey)
    add(
      "chain-weak-key", "chain", "the signature key is a point of small order", expect: .weakPublicKey,
      ["links": VectorValue([VectorValue(link.bytes)]), "userID": VectorValue(link.userID.bytes)])
  }

  // MARK: keyrings

  mutating func addKeyrings() throws {
    let birth = world.birth
    let links = try links()
    let all = [birth.genesis, links.rotateKeys, links.claims, links.rotateRoot]
    func members(
      _ blob: [UInt8], _ chain: [IdentityLink], key: KeyringKey, pinned: UInt64 = 0, entries: Keyring? = nil
    ) -> [String: VectorValue] {
      var members: [String: VectorValue] = [
        "key": VectorValue(key.exportBytes()), "blob": VectorValue(blob), "pinnedVersion": VectorValue(pinned),
        "links": VectorValue(chain.map { VectorValue($0.bytes) }),
      ]
      if let entries {
        members["version"] = VectorValue(entries.version)
        members["entries"] = VectorValue(entries.entries.map(Self.describe))
      }
      return members
    }
    let (old, new) = (birth.accessKey.keyringKey, links.newAccess.keyringKey)
    let first = [birth.genesis]
    add(
      "keyring", "keyring", "after a rotation of keys and of the root",
      members(links.blob, all, key: new, entries: links.keyring))
    add(
      "keyring-flip-salt", "keyring", "a flipped bit in the salt", expect: .keyringAuthFailed,
      members(birth.keyringBlob.flipping(bit: 3), first, key: old))
    add(
      "keyring-flip-commitment", "keyring", "a flipped bit in the commitment", expect: .keyringAuthFailed,
      members(birth.keyringBlob.flipping(bit: 24 * 8), first, key: old))
    add(
      "keyring-flip-body", "keyring", "a flipped bit in the body", expect: .keyringAuthFailed,
      members(birth.keyringBlob.flipping(bit: 100 * 8), first, key: old))
    add(
      "keyring-truncated", "keyring", "a byte too few", expect: .keyringAuthFailed,
      members(birth.keyringBlob.dropLast(), first, key: old))
    add(
      "keyring-wrong-key", "keyring", "another access key", expect: .keyringAuthFailed,
      members(birth.keyringBlob, first, key: new))
    add(
      "keyring-older-version", "keyring", "the first version under a chain that names the second",
      expect: .keyringRollback, members(birth.keyringBlob, [birth.genesis, links.rotateKeys], key: old))
    add(
      "keyring-older-than-pinned", "keyring", "chain and keyring of version 1, version 2 was seen",
      expect: .keyringRollback, members(birth.keyringBlob, first, key: old, pinned: 2))
    var source = SeededSource("zdc1 vectors keyring")
    let resealed = try birth.keyring.seal(old, random: &source)
    add(
      "keyring-not-the-named", "keyring", "authentic, and not the one that the chain names", expect: .keyringMismatch,
      members(resealed, first, key: old))
  }

  private static func describe(_ entry: Keyring.Entry) -> VectorValue {
    [
      "kind": VectorValue(entry.kind.rawValue), "gen": VectorValue(entry.gen),
      "status": VectorValue(entry.status.rawValue), "createdMs": VectorValue(entry.createdMs),
      "seed": VectorValue(entry.seed),
    ]
  }
}
