import ZDCProtocol

@testable import ZDCClientStore
@testable import ZDCCrypto

extension VectorCases {
  // MARK: chains at their limit

  mutating func addLongChains() throws {
    try addLongChain("chain-longest", "a chain of 1 MiB", lastValue: 317)
    try addLongChain("chain-too-long", "a chain of 1 MiB and a byte", expect: .limitExceeded, lastValue: 318)
  }

  private mutating func addLongChain(
    _ name: String, _ about: String, expect code: ZDCSecurityError.Code? = nil, lastValue: Int
  ) throws {
    let (birth, fullLinks) = (world.birth, 286)
    let chain = try LongChain(
      access: birth.accessKey, sign: birth.signingKey, encryption: birth.decryptionKey, fullLinks: fullLinks,
      lastValue: lastValue)
    add(
      name, "long-chain", about, expect: code?.rawValue ?? "ok",
      [
        "accessKey": VectorValue(birth.accessKey.exportBytes()),
        "signSeed": VectorValue(birth.signingKey.seed.exportBytes()),
        "encSeed": VectorValue(birth.decryptionKey.seed.exportBytes()), "timeMs": VectorValue(FrozenWorld.timeMs),
        "fullLinks": .number(fullLinks), "lastValue": .number(lastValue),
        "byteCount": .number(chain.links.reduce(0) { $0 + $1.bytes.count }),
        "head": VectorValue(chain.links.last?.hash.bytes ?? []),
      ])
  }

  // MARK: links of devices

  private struct FrozenLink {
    let key: DecryptionKey
    let nonce: DeviceLinkNonce
    let offer: DeviceLinkOffer
    let code: DeviceLinkCode

    init() throws {
      var source = SeededSource("zdc1 vectors device link")
      key = try DecryptionKey.random(&source)
      nonce = DeviceLinkNonce(1, 2, 3, 4)
      offer = DeviceLinkOffer(publicKey: key.publicKey, nonce: nonce)
      code = DeviceLinkCode(id: DeviceLinkID(high: 5, low: 6), offer: offer)
    }
  }

  mutating func addDeviceLinks() throws {
    let link = try FrozenLink()
    let heads = [VerifiedHead(zone: world.home.zone, seq: 3, hash: CommitHash(1, 2, 3, 4))]
    let answer = DeviceLinkAnswer(
      accessKey: world.birth.accessKey, user: world.birth.userID, chainSeq: 0, chainHash: world.birth.genesis.hash,
      heads: heads)
    let sealed = try Self.storedAnswer("device-link") { try answer.seal(to: link.offer, code: link.code) }
    let whole = members(link, sealed, heads)
    add("device-link", "device-link", "a new device and one of the account", whole)
    func refuse(_ name: String, _ about: String, _ code: ZDCSecurityError.Code, _ changes: [String: VectorValue]) {
      add("device-link-\(name)", "device-link", about, expect: code, whole.merging(changes) { $1 })
    }
    let other = DeviceLinkOffer(publicKey: link.key.publicKey, nonce: DeviceLinkNonce(1, 2, 3, 5))
    refuse("offer", "another offer than the code's", .keyCommitmentMismatch, ["offer": VectorValue(other.bytes)])
    refuse(
      "nonce", "another nonce than the offer's", .keyCommitmentMismatch,
      ["nonce": VectorValue(DeviceLinkNonce(1, 2, 3, 5).bytes)])
    let code = DeviceLinkCode(id: DeviceLinkID(high: 5, low: 7), offer: link.offer)
    refuse("code", "an answer to another code", .messageAuthFailed, ["code": .text(code.text)])
    refuse("flip", "a flipped bit", .messageAuthFailed, ["answer": VectorValue(sealed.flipping(bit: 9_000))])
    let many = try Self.storedAnswer("device-link-heads") {
      let plain = Array("ZDLK".utf8) + [1, 1] + [UInt8](repeating: 7, count: 100) + [1, 1]
      return try Wrap.wrap(
        to: link.key.publicKey, label: "device-link", context: link.code.id.bytes + link.code.offerHash.bytes,
        plaintext: plain)
    }
    refuse("heads", "an answer with 257 heads", .limitExceeded, ["answer": VectorValue(many)])
  }

  private func members(_ link: FrozenLink, _ answer: [UInt8], _ heads: [VerifiedHead]) -> [String: VectorValue] {
    let user = world.birth.userID
    return [
      "code": .text(link.code.text), "offer": VectorValue(link.offer.bytes),
      "seed": VectorValue(link.key.seed.exportBytes()), "nonce": VectorValue(link.nonce.bytes),
      "answer": VectorValue(answer), "accessKey": VectorValue(world.birth.accessKey.exportBytes()),
      "user": VectorValue(user.bytes), "chainSeq": 0, "chainHash": VectorValue(world.birth.genesis.hash.bytes),
      "heads": VectorValue(heads.map(\.value)),
      "digits": .text(link.code.digits(link.offer, nonce: link.nonce, user: user)),
    ]
  }

  /// The platform's HPKE takes no seed, so an answer is sealed only once.
  private static func storedAnswer(_ name: String, make: () throws -> [UInt8]) throws -> [UInt8] {
    guard let vector = try? Vector(contentsOf: Vector.url(name)) else { return try make() }
    return try vector.bytes("answer")
  }

  // MARK: cloud paths

  mutating func addCloudPaths() {
    let zone = ZoneID(tree: world.home.zone.tree, root: NodeID(high: 1, low: 1))
    let target = PointerTarget(
      owner: world.birth.userID, zone: zone, node: zone.root, genesis: CommitHash(5, 6, 7, 8), seq: 9,
      head: CommitHash(1, 2, 3, 4))
    let text = ZDCCloudPath(target).path()
    let members: [String: VectorValue] = [
      "owner": VectorValue(target.owner.bytes), "treeID": VectorValue(zone.tree.bytes),
      "zoneRoot": VectorValue(zone.root.bytes), "nodeID": VectorValue(target.node.bytes),
      "genesis": VectorValue(target.genesis.bytes), "seq": VectorValue(target.seq),
      "head": VectorValue(target.head.bytes),
    ]
    add("cloud-path", "cloud-path", "the place of a branch", members.merging(["text": .text(text)]) { $1 })
    for (name, about, text) in [
      ("short", "a letter too few", String(text.dropLast())), ("long", "a letter too many", text + "y"),
      ("version", "another version", "o" + text.dropFirst()), ("capital", "a capital letter", text.uppercased()),
      ("unused", "an unused bit that is not zero", text.dropLast() + "9"), ("empty", "no text", ""),
    ] {
      add(
        "cloud-path-\(name)", "cloud-path", about, expect: .nonCanonicalEncoding,
        members.merging(["text": .text(text)]) { $1 })
    }
  }
}
