import ZDCProtocol

@testable import ZDCCrypto

extension VectorCases {
  // MARK: grants

  private func members(
    _ grant: Grant, _ acl: ZoneACL, user: UserID? = nil, seed: DecryptionSeed? = nil
  ) -> [String: VectorValue] {
    [
      "grant": VectorValue(grant.bytes), "acl": VectorValue(acl.bytes),
      "user": VectorValue((user ?? world.birth.userID).bytes),
      "encSeed": VectorValue((seed ?? world.birth.decryptionKey.seed).exportBytes()),
    ]
  }

  mutating func addGrants() throws {
    let (home, prefs) = (world.home, world.birth.trunks[1])
    let user = world.birth.userID
    let encPub = world.birth.decryptionKey.publicKey
    add(
      "grant", "grant", "the owner's grant of home",
      members(home.grant, home.acl).merging(["granted": VectorValue(home.key.exportBytes())]) {
        $1
      })
    add(
      "grant-other-zone", "grant", "the grant of another zone", expect: .grantHashMismatch,
      members(prefs.grant, home.acl))
    add(
      "grant-not-listed", "grant", "the list has no entry of the user", expect: .grantMissing,
      members(home.grant, home.acl, user: UserID(w: 8)))
    add(
      "grant-other-key", "grant", "another decryption key", expect: .keyCommitmentMismatch,
      members(home.grant, home.acl, seed: DecryptionSeed(pattern(32))))
    let stale = Grant(zone: home.zone, zoneKeyGen: 2, user: user, wrap: home.grant.wrap)
    add("grant-generation", "grant", "another generation", expect: .grantHashMismatch, members(stale, home.acl))
    let foreign = GrantSealer(zone: home.zone, zoneKeyGen: 1, key: prefs.key)
    let substitute = try storedGrant("grant-substitute") { try foreign.seal(for: user, encGen: 1, encPub: encPub) }
    add(
      "grant-substitute", "grant", "a valid wrap of another key", expect: .grantHashMismatch,
      members(substitute, home.acl))
    var fields = home.acl.fields
    fields.entries[0].wrapHash = substitute.wrapHash
    let lying = try ZoneACL(fields, sign: world.sign("acl"))
    add(
      "grant-commitment", "grant", "the list names the wrap of another key", expect: .keyCommitmentMismatch,
      members(substitute, lying))
    add(
      "grant-trailing", "grant", "a byte too many", expect: .nonCanonicalEncoding,
      members(home.grant, home.acl).merging(["grant": VectorValue(home.grant.bytes + [0])]) { $1 })
    try addMemberGrant()
  }

  private mutating func addMemberGrant() throws {
    let home = world.home
    let friend = try DecryptionKey(seed: DecryptionSeed(pattern(32)) ?? .random())
    let user = UserID(w: 0xFFFF_FFFF_0000_0001)
    let sealer = GrantSealer(zone: home.zone, zoneKeyGen: 1, key: home.key)
    let grant = try storedGrant("grant-member") {
      try sealer.seal(for: user, encGen: 4, encPub: friend.publicKey)
    }
    var fields = home.acl.fields
    fields.entries.append(
      ZoneACL.Entry(user: user, permissions: .read, encGen: 4, wrapKind: .nodeKey, wrapHash: grant.wrapHash))
    fields.entries.sort { $0.user < $1.user }
    let acl = try ZoneACL(fields, sign: world.sign("acl"))
    add(
      "grant-member", "grant", "the grant of a member who may read",
      members(grant, acl, user: user, seed: friend.seed).merging(
        ["granted": VectorValue(home.key.exportBytes())]) { $1 })
  }

  // MARK: logs

  private struct Step {
    var commit: [UInt8]
    var acl: [UInt8]?
  }

  private func members(_ steps: [Step]) -> [String: VectorValue] {
    [
      "links": VectorValue([VectorValue(world.birth.genesis.bytes)]),
      "commits": VectorValue(
        steps.map { step in
          var members: [String: VectorValue] = ["commit": VectorValue(step.commit)]
          if let acl = step.acl { members["acl"] = VectorValue(acl) }
          return .object(members)
        }),
    ]
  }

  private func commit(_ seq: UInt64, after previous: ZoneCommit, _ operations: [ZoneOperation]) throws -> ZoneCommit {
    let fields = ZoneCommit.Fields(
      zone: previous.fields.zone, seq: seq, prev: previous.hash, aclHash: world.home.acl.hash,
      writer: world.birth.userID, writerGen: 1, timeMs: FrozenWorld.timeMs + seq, operations: operations)
    return try ZoneCommit(fields, sign: world.sign("commit"))
  }

  mutating func addLogs() throws {
    let home = world.home
    let genesis = Step(commit: home.commit.bytes, acl: home.acl.bytes)
    let (root, a, b) = (home.zone.root, NodeID(high: 1, low: 1), NodeID(high: 2, low: 2))
    func put(_ node: NodeID, _ parent: NodeID, _ hash: UInt64) -> ZoneOperation {
      .put(ZoneOperation.Put(node: node, parent: parent, record: RecordHash(hash, 0, 0, 0), keyGen: 1, parentKeyGen: 1))
    }
    let one = try commit(1, after: home.commit, [put(a, root, 1), put(b, a, 2)])
    let two = try commit(2, after: one, [put(b, root, 3)])
    let three = try commit(3, after: two, [.delete(node: a, record: RecordHash(1, 0, 0, 0), liveDescendants: 0)])
    let log = [one, two, three].map { Step(commit: $0.bytes) }
    let leaf = LogNode(node: b, parent: root, record: RecordHash(3, 0, 0, 0), putSeq: 2, keyGen: 1, parentKeyGen: 1)
    let rootLeaf = LogNode(node: root, parent: .zero, record: home.root.hash, putSeq: 0, keyGen: 1, parentKeyGen: 0)
    let leaves = [leaf, rootLeaf]
    let stateRoot = Self.stateRoot(leaves)
    add(
      "log", "log", "birth, two puts, a move, a delete; stateRoot over what lives",
      members([genesis] + log).merging(
        ["head": VectorValue(three.hash.bytes), "stateRoot": VectorValue(stateRoot.bytes)]) { $1 })
    try addLogFailures(genesis, one, two)
    addAskedZones(genesis)
  }

  /// Logs as answers to a client that asked for one zone.
  private mutating func addAskedZones(_ genesis: Step) {
    let (home, prefs) = (world.home, world.birth.trunks[1])
    let asked = ["treeID": VectorValue(home.zone.tree.bytes), "zoneRoot": VectorValue(home.zone.root.bytes)]
    let root = LogNode(
      node: home.zone.root, parent: .zero, record: home.root.hash, putSeq: 0, keyGen: 1, parentKeyGen: 0)
    let found = [
      "head": VectorValue(home.commit.hash.bytes), "stateRoot": VectorValue(Self.stateRoot([root]).bytes),
    ]
    add(
      "log-asked-zone", "log", "the zone that was asked for",
      members([genesis]).merging(asked) { $1 }.merging(found) { $1 })
    let other = Step(commit: prefs.commit.bytes, acl: prefs.acl.bytes)
    add(
      "log-other-zone", "log", "a valid first commit of another zone of the user", expect: .recordBindingMismatch,
      members([other]).merging(asked) { $1 })
  }

  static func stateRoot(_ leaves: [LogNode]) -> MerkleHash {
    MerkleTree.root(leafHashes: leaves.sorted { $0.node < $1.node }.map { MerkleTree.leafHash(bytes($0)) })
  }

  private static func bytes(_ leaf: LogNode) -> [UInt8] {
    var out = ByteWriter()
    out.append(leaf.node)
    out.append(leaf.parent)
    out.append(leaf.record)
    out.append(leaf.putSeq)
    out.append(leaf.keyGen)
    out.append(leaf.parentKeyGen)
    return out.bytes
  }

  private mutating func addLogFailures(_ genesis: Step, _ one: ZoneCommit, _ two: ZoneCommit) throws {
    let home = world.home
    let size = one.bytes.count
    add(
      "log-gap", "log", "a commit is left out", expect: .commitChainBroken, members([genesis, Step(commit: two.bytes)]))
    add(
      "log-signature", "log", "a flipped bit in a signature", expect: .signatureInvalid,
      members([genesis, Step(commit: one.bytes.flipping(bit: size * 8 - 1))]))
    add(
      "log-content", "log", "a flipped bit in a time", expect: .signatureInvalid,
      members([genesis, Step(commit: one.bytes.flipping(bit: 169 * 8))]))
    add(
      "log-trailing", "log", "a byte too many", expect: .nonCanonicalEncoding,
      members([genesis, Step(commit: one.bytes + [0])]))
    add(
      "log-no-list", "log", "the genesis without its access list", expect: .nonCanonicalEncoding,
      members([Step(commit: genesis.commit)]))
    add(
      "log-other-list", "log", "the genesis with another zone's list", expect: .nonCanonicalEncoding,
      members([Step(commit: genesis.commit, acl: world.birth.trunks[1].acl.bytes)]))
    let acl = genesis.acl ?? []
    add(
      "log-list-bytes", "log", "an access list with a flipped bit in its signature", expect: .nonCanonicalEncoding,
      members([Step(commit: genesis.commit, acl: acl.flipping(bit: acl.count * 8 - 1))]))
    var fields = one.fields
    fields.writer = UserID(w: 6)
    let stranger = try ZoneCommit(fields, sign: world.sign("commit"))
    add(
      "log-stranger", "log", "a writer without a chain", expect: .writerUnknown,
      members([genesis, Step(commit: stranger.bytes)]))
    let orphan = ZoneOperation.put(
      ZoneOperation.Put(
        node: NodeID(high: 3, low: 3), parent: NodeID(high: 4, low: 4), record: RecordHash(1, 0, 0, 0), keyGen: 1,
        parentKeyGen: 1))
    add(
      "log-orphan", "log", "a put below a node that is not there", expect: .objectMissing,
      members([genesis, Step(commit: try commit(1, after: home.commit, [orphan]).bytes)]))
    let zero = ZoneOperation.put(
      ZoneOperation.Put(
        node: .zero, parent: home.zone.root, record: RecordHash(1, 0, 0, 0), keyGen: 1, parentKeyGen: 1))
    add(
      "log-zero", "log", "a node with the ID that stands for the parent of the root", expect: .nonCanonicalEncoding,
      members([genesis, Step(commit: try commit(1, after: home.commit, [zero]).bytes)]))
    let count = ZoneOperation.delete(node: NodeID(high: 1, low: 1), record: RecordHash(1, 0, 0, 0), liveDescendants: 7)
    add(
      "log-delete-count", "log", "a delete that counts wrongly", expect: .moveMismatch,
      members([genesis, Step(commit: one.bytes), Step(commit: try commit(2, after: one, [count]).bytes)]))
    let many = ZoneOperation.delete(
      node: NodeID(high: 1, low: 1), record: RecordHash(1, 0, 0, 0), liveDescendants: 10_001)
    add(
      "log-delete-limit", "log", "a delete of more descendants than one commit may name", expect: .limitExceeded,
      members([genesis, Step(commit: one.bytes), Step(commit: try commit(2, after: one, [many]).bytes)]))
    let cycle = ZoneOperation.put(
      ZoneOperation.Put(
        node: NodeID(high: 1, low: 1), parent: NodeID(high: 2, low: 2), record: RecordHash(9, 0, 0, 0), keyGen: 1,
        parentKeyGen: 1))
    add(
      "log-cycle", "log", "a folder moved below its own child", expect: .treeCycle,
      members([genesis, Step(commit: one.bytes), Step(commit: try commit(2, after: one, [cycle]).bytes)]))
    let stale = ZoneOperation.put(
      ZoneOperation.Put(
        node: NodeID(high: 3, low: 3), parent: home.zone.root, record: RecordHash(1, 0, 0, 0), keyGen: 1,
        parentKeyGen: 0))
    add(
      "log-stale", "log", "a put under another generation of its parent", expect: .staleKeyGeneration,
      members([genesis, Step(commit: try commit(1, after: home.commit, [stale]).bytes)]))
  }
}
