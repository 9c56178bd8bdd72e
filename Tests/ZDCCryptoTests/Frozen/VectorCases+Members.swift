import ZDCProtocol

@testable import ZDCCrypto

/// A member of the frozen zone with a chain of one link.
struct FrozenMember {
  let user: UserID
  let link: IdentityLink
  let signingKey: SigningKey
  let decryptionKey: DecryptionKey

  init(_ name: String) throws {
    var source = SeededSource("zdc1 vectors member \(name)")
    let root = AccessKey.random(&source).rootKey
    signingKey = SigningKey.random(&source)
    decryptionKey = try DecryptionKey.random(&source)
    let fields = IdentityLink.Fields(
      kind: .genesis, timeMs: FrozenWorld.timeMs, rootPub: root.publicKey, signPub: signingKey.publicKey,
      encPub: decryptionKey.publicKey)
    link = try IdentityLink(signing: fields, root: root, sign: signingKey)
    user = link.userID
  }

  func sign(_ label: StaticString) -> ([UInt8]) throws -> [UInt8] {
    { try signingKey.sign(label: label, message: $0) }
  }
}

/// Home with three members, and a commit that follows any step of its log.
struct FrozenMembers {
  struct Step {
    var commit: [UInt8]
    var acl: [UInt8]?
    /// The state with which a genesis begins.
    var list: [UInt8]?

    var value: VectorValue {
      var members: [String: VectorValue] = ["commit": VectorValue(commit)]
      if let acl { members["acl"] = VectorValue(acl) }
      if let list { members["list"] = VectorValue(list) }
      return .object(members)
    }
  }

  let world: FrozenWorld
  let links: [IdentityLink]
  /// May share, may write, may read.
  let (bob, carol, dave): (FrozenMember, FrozenMember, FrozenMember)
  let list: ZoneACL
  private(set) var steps: [Step]
  private(set) var head: ZoneCommit
  private var acl: ZoneACL

  init(_ world: FrozenWorld, links: [IdentityLink]) throws {
    self.world = world
    self.links = links
    (bob, carol, dave) = (try FrozenMember("bob"), try FrozenMember("carol"), try FrozenMember("dave"))
    let home = world.home
    var fields = home.acl.fields
    (fields.version, fields.prev, fields.timeMs) = (2, home.acl.hash, FrozenWorld.timeMs + 1)
    let rights: [(UserID, ZoneACL.Permissions)] = [
      (bob.user, [.read, .write, .share]), (carol.user, [.read, .write]), (dave.user, [.read]),
    ]
    fields.entries += rights.map { user, permissions in
      ZoneACL.Entry(
        user: user, permissions: permissions, encGen: 1, wrapKind: .nodeKey, wrapHash: GrantHash(2, 2, 2, 2))
    }
    fields.entries.sort { $0.user < $1.user }
    list = try ZoneACL(fields, sign: world.sign("acl"))
    (head, acl) = (home.commit, home.acl)
    steps = [Step(commit: home.commit.bytes, acl: home.acl.bytes)]
    try append([.acl(version: 2, hash: list.hash)], list: list)
  }

  /// Returns the next commit; without `writer`, by the owner.
  func commit(
    _ operations: [ZoneOperation], by writer: FrozenMember? = nil, list: ZoneACL? = nil,
    _ change: (inout ZoneCommit.Fields) -> Void = { _ in }
  ) throws -> ZoneCommit {
    var fields = ZoneCommit.Fields(
      zone: head.fields.zone, seq: head.fields.seq + 1, prev: head.hash, aclHash: (list ?? acl).hash,
      writer: writer?.user ?? world.birth.userID, writerGen: 1, timeMs: FrozenWorld.timeMs + head.fields.seq,
      operations: operations)
    change(&fields)
    return try ZoneCommit(fields, sign: writer?.sign("commit") ?? world.sign("commit"))
  }

  mutating func append(
    _ operations: [ZoneOperation], by writer: FrozenMember? = nil, list: ZoneACL? = nil
  ) throws {
    head = try commit(operations, by: writer, list: list)
    steps.append(Step(commit: head.bytes, acl: list?.bytes))
    if let list { acl = list }
  }

  func nextList(by writer: FrozenMember? = nil, _ change: (inout ZoneACL.Fields) -> Void) throws -> ZoneACL {
    var fields = acl.fields
    (fields.version, fields.prev) = (fields.version + 1, acl.hash)
    (fields.writer, fields.writerGen) = (writer?.user ?? world.birth.userID, 1)
    change(&fields)
    return try ZoneACL(fields, sign: writer?.sign("acl") ?? world.sign("acl"))
  }

  /// Returns the list of a rotation.
  func rotation(by writer: FrozenMember? = nil) throws -> ZoneACL {
    try nextList(by: writer) { fields in
      fields.zoneKeyGen += 1
      fields.commitments = world.birth.trunks[1].key.commitments
      fields.historyWrap = pattern(108)
      for index in fields.entries.indices { fields.entries[index].wrapHash = GrantHash(3, 3, 3, 3) }
    }
  }

  func rootPut(keyGen: UInt32) -> ZoneOperation {
    put(world.home.zone.root, .zero, 5, keyGen: keyGen, parentKeyGen: 0)
  }

  func put(
    _ node: NodeID, _ parent: NodeID, _ hash: UInt64, keyGen: UInt32 = 1, parentKeyGen: UInt32 = 1
  ) -> ZoneOperation {
    .put(
      ZoneOperation.Put(
        node: node, parent: parent, record: RecordHash(hash, 0, 0, 0), keyGen: keyGen, parentKeyGen: parentKeyGen))
  }

  func members(_ last: Step? = nil) -> [String: VectorValue] {
    [
      "links": VectorValue(links.map { VectorValue($0.bytes) }),
      "others": VectorValue([bob, carol, dave].map { VectorValue($0.link.bytes) }),
      "commits": VectorValue((steps + (last.map { [$0] } ?? [])).map(\.value)),
    ]
  }
}

extension VectorCases {
  /// The owner's chain has sign keys of generations 1 and 2.
  func membersOfHome() throws -> FrozenMembers {
    try FrozenMembers(world, links: [world.birth.genesis, try links().rotateKeys])
  }

  mutating func addMembers() throws {
    var zone = try membersOfHome()
    let (root, a) = (world.home.zone.root, NodeID(high: 1, low: 1))
    try zone.append([zone.put(a, root, 1)], by: zone.carol)
    let rotation = try zone.rotation(by: zone.bob)
    let acl = ZoneOperation.acl(version: rotation.fields.version, hash: rotation.hash)
    try zone.append([acl, zone.rootPut(keyGen: 2)], by: zone.bob, list: rotation)
    try zone.append([zone.put(a, root, 2, keyGen: 2, parentKeyGen: 2)], by: zone.carol)
    try zone.append([.retireKey(user: world.birth.userID, gen: 2)])
    let leaves = [
      LogNode(node: a, parent: root, record: RecordHash(2, 0, 0, 0), putSeq: 4, keyGen: 2, parentKeyGen: 2),
      LogNode(node: root, parent: .zero, record: RecordHash(5, 0, 0, 0), putSeq: 3, keyGen: 2, parentKeyGen: 0),
    ]
    add(
      "log-members", "log", "three members; one who may share rotates, a stale node is put again, a key is retired",
      zone.members().merging(
        ["head": VectorValue(zone.head.hash.bytes), "stateRoot": VectorValue(Self.stateRoot(leaves).bytes)]) { $1 })
    try addMemberFailures()
    try addRetirementFailures()
    try addReservedValues()
  }

  mutating func refuse(
    _ name: String, _ about: String, _ code: ZDCSecurityError.Code, _ zone: FrozenMembers, _ commit: ZoneCommit,
    acl: [UInt8]? = nil
  ) {
    add("log-\(name)", "log", about, expect: code, zone.members(FrozenMembers.Step(commit: commit.bytes, acl: acl)))
  }

  private mutating func addMemberFailures() throws {
    var zone = try membersOfHome()
    let (root, a) = (world.home.zone.root, NodeID(high: 1, low: 1))
    try zone.append([zone.put(a, root, 1)])
    refuse(
      "stray-list", "a list that no operation names", .nonCanonicalEncoding, zone,
      try zone.commit([zone.put(NodeID(high: 2, low: 2), root, 2)]), acl: zone.list.bytes)
    refuse(
      "trunk-root", "a member puts a trunk's root", .writerNotAuthorized, zone,
      try zone.commit([zone.rootPut(keyGen: 1)], by: zone.bob))
    refuse(
      "root-raise", "the root's generation rises without the list", .keyCommitmentMismatch, zone,
      try zone.commit([zone.rootPut(keyGen: 2)]))
    refuse(
      "inflated", "a node that is not stale gets another generation", .staleKeyGeneration, zone,
      try zone.commit([zone.put(a, root, 2, keyGen: 2)], by: zone.carol))
    refuse(
      "new-generation", "a new node begins above the zone's generation", .staleKeyGeneration, zone,
      try zone.commit([zone.put(NodeID(high: 2, low: 2), root, 2, keyGen: 2)], by: zone.carol))
    refuse(
      "reader", "a member who may read puts a node", .writerNotAuthorized, zone,
      try zone.commit([zone.put(NodeID(high: 2, low: 2), root, 2)], by: zone.dave))
    let owner = world.birth.userID
    let wrap = try zone.nextList(by: zone.bob) { fields in
      for index in fields.entries.indices where fields.entries[index].user == owner {
        fields.entries[index].wrapHash = GrantHash(4, 4, 4, 4)
      }
    }
    refuse(
      "owner-wrap", "a member replaces the owner's wrap without a new key", .aclOwnerImmutable, zone,
      try zone.commit([.acl(version: 3, hash: wrap.hash)], by: zone.bob, list: wrap), acl: wrap.bytes)
    let rotation = try zone.rotation()
    refuse(
      "stale-put", "a list rotates and the root is not put", .keyCommitmentMismatch, zone,
      try zone.commit([.acl(version: 3, hash: rotation.hash)], list: rotation), acl: rotation.bytes)
  }

  private mutating func addRetirementFailures() throws {
    let zone = try membersOfHome()
    func retire(_ user: UserID, _ gen: UInt32, by writer: FrozenMember? = nil) throws -> ZoneCommit {
      try zone.commit([.retireKey(user: user, gen: gen)], by: writer)
    }
    refuse(
      "retire-owner", "a member retires the owner's key", .writerNotAuthorized, zone,
      try retire(world.birth.userID, 2, by: zone.bob))
    refuse(
      "retire-future", "a generation that the chain does not have", .writerUnknown, zone, try retire(zone.bob.user, 2))
    refuse(
      "retire-nothing", "a retirement that changes nothing", .writerNotAuthorized, zone,
      try retire(world.birth.userID, 1))
    refuse(
      "retire-stranger", "the owner retires the key of a user who is no member", .writerNotAuthorized, zone,
      try retire(UserID(9, 9, 9, 9), 2))
  }

  private mutating func addReservedValues() throws {
    let zone = try membersOfHome()
    let commit = try zone.commit([.acl(version: 3, hash: zone.list.hash)])
    func list(_ change: (inout ZoneACL.Fields) -> Void) throws -> [UInt8] { try zone.nextList(change).bytes }
    let rights = try list { $0.entries[0].permissions.formUnion(.init(rawValue: 256)) }
    refuse("list-rights", "a right that is reserved", .unsupportedVersion, zone, commit, acl: rights)
    let narrowed = try list { $0.entries[0].permissions.formUnion(.writeOnce) }
    refuse("list-narrowed", "a narrowed right to share", .nonCanonicalEncoding, zone, commit, acl: narrowed)
    let burn = try list { $0.entries[0].permissions = [.read, .write, .burnIfSender] }
    refuse("list-burn", "a right to burn without create only", .nonCanonicalEncoding, zone, commit, acl: burn)
    let none = try list { $0.entries[0].permissions = [] }
    refuse("list-no-rights", "an entry without rights", .nonCanonicalEncoding, zone, commit, acl: none)
    let generation = try list { $0.entries[0].encGen = 0 }
    refuse("list-generation", "an entry of generation 0", .nonCanonicalEncoding, zone, commit, acl: generation)
    let linked = try list { $0.parentLinked = true }
    refuse("list-linked", "a list that is linked to a parent", .unsupportedVersion, zone, commit, acl: linked)
    let history = try list { $0.historyWrap = pattern(108) }
    refuse("list-history", "old keys in generation 1", .nonCanonicalEncoding, zone, commit, acl: history)
    var kind = try list { _ in }
    // Followed by 32 bytes of the last entry's wrapHash, 44 of writer, generation and time, and the signature.
    kind[kind.count - 64 - 44 - 32 - 1] = 2
    refuse("list-wrap-kind", "a wrap of another kind", .unsupportedVersion, zone, commit, acl: kind)
    let put = zone.put(NodeID(high: 2, low: 2), world.home.zone.root, 2)
    let whole = try zone.commit([put]) { ($0.transparencySize, $0.transparencyRoot) = (3, .init(1, 1, 1, 1)) }
    refuse("transparency", "a size and a root of the key log", .unsupportedVersion, zone, whole)
    let half = try zone.commit([put]) { $0.transparencySize = 3 }
    refuse("transparency-half", "a size of the key log without its root", .nonCanonicalEncoding, zone, half)
  }
}
