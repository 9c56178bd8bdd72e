import Testing
import ZDCProtocol

@testable import ZDCClientStore
@testable import ZDCCrypto

extension VectorOpening {
  /// The put of a record, by itself or after the record that it replaces.
  func openPut() throws {
    let record = try NodeRecord(try vector.bytes("record"))
    let previous = vector["previous"] == nil ? nil : try NodeRecord(try vector.bytes("previous"))
    let replaced = previous.map { previous in
      let fields = previous.fields
      return LogNode(
        node: fields.node, parent: fields.parent, record: previous.hash, putSeq: 1, keyGen: fields.keyGen,
        parentKeyGen: fields.parentKeyGen)
    }
    try RecordRules.check(
      record, put: ZoneOperation.Put(record), zone: ZoneID(trunkOf: record.fields.tree), replaced: replaced,
      previous: previous)
    try expect(record.hash.bytes, "recordHash")
  }

  /// A chain that is made here: a genesis, and claims of the stated lengths.
  func openLongChain() throws {
    let chain = try LongChain(
      access: try #require(AccessKey(try vector.bytes("accessKey"))),
      sign: SigningKey(seed: try key("signSeed")), encryption: try DecryptionKey(seed: try key("encSeed")),
      fullLinks: try vector.int("fullLinks"), lastValue: try vector.int("lastValue"))
    let identity = try IdentityReplay.verify(chain.links)
    #expect(try vector.int("byteCount") == identity.byteCount)
    // NB: CryptoKit's Ed25519 signatures are randomized.
    #if !canImport(CryptoKit)
      try expect(identity.head.bytes, "head")
    #endif
  }

  /// Both devices: the one of the account checks the offer and the nonce, the new one opens the answer.
  func openDeviceLink() throws {
    let code = try #require(DeviceLinkCode(try vector.string("code")))
    let offer = try DeviceLinkOffer(try vector.bytes("offer"))
    try code.check(offer)
    let answer = try DeviceLinkAnswer(
      opening: try vector.bytes("answer"), key: try DecryptionKey(seed: try key("seed")), code: code)
    let nonce = try #require(DeviceLinkNonce(try vector.bytes("nonce")))
    try offer.check(nonce)
    try expect(answer.accessKey.exportBytes(), "accessKey")
    try expect(answer.user.bytes, "user")
    #expect(try vector.int("chainSeq") == Int(answer.chainSeq))
    try expect(answer.chainHash.bytes, "chainHash")
    #expect(try vector.string("digits") == code.digits(offer, nonce: nonce, user: answer.user))
    #expect(try vector.list("heads") == answer.heads.map(\.value))
  }

  func openCloudPath() throws {
    guard let path = ZDCCloudPath(path: try vector.string("text")) else {
      throw ZDCSecurityError(.nonCanonicalEncoding)
    }
    try expect(path.target.owner.bytes, "owner")
    try expect(path.target.zone.tree.bytes, "treeID")
    try expect(path.target.zone.root.bytes, "zoneRoot")
    try expect(path.target.node.bytes, "nodeID")
    try expect(path.target.genesis.bytes, "genesis")
    #expect(try vector.int("seq") == Int(path.target.seq))
    try expect(path.target.head.bytes, "head")
    #expect(try path.path() == vector.string("text"))
  }
}

extension VerifiedHead {
  var value: VectorValue {
    [
      "treeID": VectorValue(zone.tree.bytes), "zoneRoot": VectorValue(zone.root.bytes), "seq": VectorValue(seq),
      "head": VectorValue(hash.bytes),
    ]
  }
}

/// A chain of almost any length: a genesis, links with claims of 2 KiB, and one that ends it.
struct LongChain {
  private(set) var links: [IdentityLink] = []

  init(access: AccessKey, sign: SigningKey, encryption: DecryptionKey, fullLinks: Int, lastValue: Int) throws {
    var fields = IdentityLink.Fields(
      kind: .genesis, timeMs: FrozenWorld.timeMs, rootPub: access.rootKey.publicKey, signPub: sign.publicKey,
      encPub: encryption.publicKey)
    links.append(try IdentityLink(signing: fields, root: access.rootKey, sign: sign))
    (fields.kind, fields.userID) = (.claims, fields.genesisUserID)
    for length in [Int](repeating: 2_045, count: fullLinks) + [lastValue] {
      guard let last = links.last else { break }
      (fields.seq, fields.prev) = (last.seq + 1, last.hash)
      let value = [UInt8](repeating: 0x61, count: length)
      fields.claims = [IdentityLink.Claim(type: IdentityLink.Claim.handle, value: value)]
      links.append(try IdentityLink(signing: fields, root: access.rootKey, sign: sign))
    }
  }
}
