import ZDCProtocol

@testable import ZDCCrypto

/// Home as a server has it after Alice has shared it with Bob and Carol, removed Carol, and given a folder a list of its own.
struct FrozenTree {
  private typealias Member = (user: UserID, encPub: [UInt8], permissions: ZoneACL.Permissions)

  private struct Log {
    var steps: [FrozenMembers.Step]
    var head: ZoneCommit
    var acl: ZoneACL
  }

  private static let (root, groceries, photos) = ("/", "/Groceries", "/Photos")

  private let world: FrozenWorld
  private let links: [IdentityLink]
  private let (bob, carol): (FrozenMember, FrozenMember)
  private var source = SeededSource("zdc1 vectors tree")
  private var home: Log
  private var branch: Log?
  /// The newest version of each node, by the path at which it was made.
  private var drafts: [String: RecordDraft] = [:]
  private var newest: [String: NodeRecord] = [:]
  private var (records, contents, grants): ([NodeRecord], [SealedContent], [Grant])

  init(_ world: FrozenWorld, links: [IdentityLink]) throws {
    (self.world, self.links) = (world, links)
    (bob, carol) = (try FrozenMember("bob"), try FrozenMember("carol"))
    let home = world.home
    self.home = Log(
      steps: [.init(commit: home.commit.bytes, acl: home.acl.bytes)], head: home.commit, acl: home.acl)
    (records, contents, grants) = ([home.root], [], [home.grant])
    newest[Self.root] = home.root
    drafts[Self.root] = RecordDraft(
      tree: home.zone.tree, node: home.zone.root, parent: .zero, key: home.key, parentLink: .none,
      secrets: RecordPrivate(name: nil, createdMs: FrozenWorld.timeMs), writer: world.birth.userID, writerGen: 1,
      timeMs: FrozenWorld.timeMs)
    drafts[Self.root]?.isZoneRoot = true
    try share()
    try remove()
    try splitOff()
  }

  // MARK: the story

  private mutating func share() throws {
    let list = try nextList([member(bob, [.read, .write]), member(carol, [.read, .write, .share])])
    try append([.acl(version: 2, hash: list.hash)], list: list)
    let milk = try content(pattern(40))
    let summer = try content(pattern(1_500), metadata: pattern(20), thumbnail: pattern(30))
    try append([
      try put(Self.groceries), try put(Self.photos), try put("/draft"), try put("/Groceries/milk", milk),
      try put("/Photos/summer.jpg", summer),
    ])
    let edited = try content(pattern(44))
    try append([try put("/Groceries/milk", edited, by: carol)], by: carol)
  }

  /// Alice removes Carol, which changes the zone's key. Bob writes below a folder that still has its old key.
  private mutating func remove() throws {
    try rotate(Self.root)
    let rootPut = try put(Self.root)
    let list = try nextList([member(bob, [.read, .write])], rotating: true)
    try append([.acl(version: 3, hash: list.hash), rootPut], list: list)
    try rotate(Self.photos)
    let folder = try put(Self.photos, by: bob)
    let winter = try content(pattern(50))
    guard let draft = newest["/draft"] else { throw FrozenTreeError.noSuchNode }
    try append(
      [
        folder, try put("/Photos/winter.jpg", winter, by: bob),
        .delete(node: draft.fields.node, record: draft.hash, liveDescendants: 0),
      ], by: bob)
  }

  private mutating func splitOff() throws {
    let list = try branchState()
    let (genesis, acl) = try beginBranch(list)
    let split = ZoneOperation.split(node: acl.fields.zone.root, genesis: genesis.hash, count: list.count)
    try append([split, try putMount(to: acl.fields.zone, genesis: genesis.hash)])
    let bread = try content(pattern(33))
    let put = try put("/Groceries/bread", bread, by: bob)
    branch = try branch.map { try next($0, [put], by: bob) }
  }

  // MARK: the branch

  /// Returns the branch as the log of home has it before the split.
  private func branchState() throws -> StateList {
    guard let top = newest[Self.groceries], let milk = newest["/Groceries/milk"] else {
      throw FrozenTreeError.noSuchNode
    }
    let nodes = [top, milk].map { record in
      LogNode(
        node: record.fields.node, parent: record.fields.parent, record: record.hash, putSeq: 2, keyGen: 1,
        parentKeyGen: 1)
    }
    return StateList(branch: nodes, top: top.fields.node)
  }

  private mutating func beginBranch(_ list: StateList) throws -> (ZoneCommit, ZoneACL) {
    try rotate(Self.groceries)
    guard var draft = drafts[Self.groceries] else { throw FrozenTreeError.noSuchNode }
    let acl = try branchList(draft)
    (draft.parent, draft.parentLink, draft.isZoneRoot, draft.historyWrap) = (.zero, .none, true, [])
    draft.secrets = RecordPrivate(name: nil, createdMs: draft.secrets.createdMs)
    drafts[Self.groceries] = draft
    let genesis = try branchGenesis(acl, list)
    branch = Log(
      steps: [.init(commit: genesis.bytes, acl: acl.bytes, list: list.bytes)], head: genesis, acl: acl)
    return (genesis, acl)
  }

  private mutating func branchList(_ root: RecordDraft) throws -> ZoneACL {
    var fields = home.acl.fields
    fields.zone = ZoneID(tree: root.tree, root: root.node)
    (fields.version, fields.prev) = (1, .zero)
    (fields.zoneKeyGen, fields.historyWrap) = (root.keyGen, root.historyWrap)
    return try sign(fields, key: root.key, [member(bob, [.read, .write])])
  }

  private mutating func branchGenesis(_ acl: ZoneACL, _ list: StateList) throws -> ZoneCommit {
    let zone = acl.fields.zone
    let state = ZoneOperation.GenesisState(parentHead: home.head.hash, stateRoot: list.root, count: list.count)
    let fields = ZoneCommit.Fields(
      zone: zone, seq: 0, prev: ZoneCommit.genesisPrev(zone: zone, parentHead: state.parentHead), aclHash: acl.hash,
      writer: world.birth.userID, writerGen: 1, timeMs: FrozenWorld.timeMs + 9,
      operations: [.genesisState(state), .acl(version: 1, hash: acl.hash), try put(Self.groceries)])
    return try commit(fields)
  }

  private mutating func putMount(to zone: ZoneID, genesis: CommitHash) throws -> ZoneOperation {
    var draft = try newDraft("/mount")
    draft.secrets = RecordPrivate(name: try FoldedName("Groceries"), createdMs: FrozenWorld.timeMs)
    draft.secrets.pointer = PointerTarget(
      owner: world.birth.userID, zone: zone, node: zone.root, genesis: genesis, seq: 0, head: genesis)
    drafts["/mount"] = draft
    return try put("/mount")
  }

  // MARK: lists and commits

  private func member(_ member: FrozenMember, _ permissions: ZoneACL.Permissions) -> Member {
    (member.user, member.decryptionKey.publicKey, permissions)
  }

  private mutating func nextList(_ others: [Member], rotating: Bool = false) throws -> ZoneACL {
    guard let root = drafts[Self.root] else { throw FrozenTreeError.noSuchNode }
    var fields = home.acl.fields
    (fields.version, fields.prev) = (fields.version + 1, home.acl.hash)
    if rotating {
      let old = KeyHistory.Entry(keyGen: fields.zoneKeyGen, key: world.home.key)
      fields.zoneKeyGen = root.keyGen
      fields.historyWrap = try KeyHistory().adding(old).seal(
        tree: root.tree, node: root.node, key: root.key, keyGen: root.keyGen, random: &source)
    }
    return try sign(fields, key: root.key, others)
  }

  private mutating func sign(_ fields: ZoneACL.Fields, key: NodeKey, _ others: [Member]) throws -> ZoneACL {
    var fields = fields
    fields.timeMs += 1
    fields.commitments = key.commitments
    let sealer = GrantSealer(zone: fields.zone, zoneKeyGen: fields.zoneKeyGen, key: key)
    let owner: Member = (world.birth.userID, world.birth.decryptionKey.publicKey, [.read, .write, .share])
    fields.entries = try (others + [owner]).sorted { $0.user < $1.user }.map { member in
      let grant = try grant(sealer, for: member)
      return ZoneACL.Entry(
        user: member.user, permissions: member.permissions, encGen: 1, wrapKind: .nodeKey, wrapHash: grant.wrapHash)
    }
    return try ZoneACL(fields, sign: world.sign("acl"))
  }

  /// The platform's HPKE takes no seed, so a grant is made only once, and then comes from the stored file.
  private mutating func grant(_ sealer: GrantSealer, for member: Member) throws -> Grant {
    func isWanted(_ grant: Grant) -> Bool {
      grant.zone == sealer.zone && grant.zoneKeyGen == sealer.zoneKeyGen && grant.user == member.user
    }
    if let grant = grants.first(where: isWanted) { return grant }
    let stored = try? Vector(contentsOf: Vector.url("tree")).byteLists("grants").map { try Grant($0) }
    let grant =
      try stored?.first(where: isWanted) ?? sealer.seal(for: member.user, encGen: 1, encPub: member.encPub)
    grants.append(grant)
    return grant
  }

  private func commit(_ fields: ZoneCommit.Fields, by writer: FrozenMember? = nil) throws -> ZoneCommit {
    try ZoneCommit(fields, sign: writer?.sign("commit") ?? world.sign("commit"))
  }

  private func next(
    _ log: Log, _ operations: [ZoneOperation], by writer: FrozenMember? = nil, list: ZoneACL? = nil
  ) throws -> Log {
    let head = log.head.fields
    let fields = ZoneCommit.Fields(
      zone: head.zone, seq: head.seq + 1, prev: log.head.hash, aclHash: (list ?? log.acl).hash,
      writer: writer?.user ?? world.birth.userID, writerGen: 1, timeMs: head.timeMs + 1, operations: operations)
    let commit = try commit(fields, by: writer)
    return Log(
      steps: log.steps + [.init(commit: commit.bytes, acl: list?.bytes)], head: commit, acl: list ?? log.acl)
  }

  private mutating func append(
    _ operations: [ZoneOperation], by writer: FrozenMember? = nil, list: ZoneACL? = nil
  ) throws {
    home = try next(home, operations, by: writer, list: list)
  }

  // MARK: nodes

  private func newDraft(_ path: String) throws -> RecordDraft {
    let parts = path.split(separator: "/").map(String.init)
    guard let name = parts.last, let parent = drafts["/" + parts.dropLast().joined(separator: "/")] else {
      throw FrozenTreeError.noSuchNode
    }
    var source = SeededSource("zdc1 vectors tree \(path)")
    return RecordDraft(
      tree: parent.tree, node: source.nodeID(), parent: parent.node, key: .random(&source),
      parentLink: .keys(ParentKeys(parent.key, keyGen: parent.keyGen)),
      secrets: RecordPrivate(name: try FoldedName(name), createdMs: FrozenWorld.timeMs), writer: world.birth.userID,
      writerGen: 1, timeMs: FrozenWorld.timeMs)
  }

  /// Gives a node a fresh key, with the old one in its history. The history of a zone's root is in the list.
  private mutating func rotate(_ path: String) throws {
    guard var draft = drafts[path] else { throw FrozenTreeError.noSuchNode }
    let old = KeyHistory.Entry(keyGen: draft.keyGen, key: draft.key)
    (draft.key, draft.keyGen) = (.random(&source), draft.keyGen + 1)
    if path != Self.root, let root = drafts[Self.root] {
      draft.parentLink = .keys(ParentKeys(root.key, keyGen: root.keyGen))
      draft.historyWrap = try KeyHistory().adding(old).seal(
        tree: draft.tree, node: draft.node, key: draft.key, keyGen: draft.keyGen, random: &source)
    }
    drafts[path] = draft
  }

  /// Seals the next version of a node's record, and returns the operation that puts it.
  private mutating func put(
    _ path: String, _ content: SealedContent? = nil, by writer: FrozenMember? = nil
  ) throws -> ZoneOperation {
    var draft = try drafts[path] ?? newDraft(path)
    if let last = newest[path] {
      (draft.recordVersion, draft.prevRecord) = (last.fields.recordVersion + 1, last.hash)
    }
    (draft.writer, draft.timeMs) = (writer?.user ?? world.birth.userID, FrozenWorld.timeMs + UInt64(records.count))
    if let content {
      draft.secrets.content = content.secrets
      draft.content = content.content(dataVersion: (draft.content?.dataVersion ?? 0) + 1)
    }
    let record = try RecordSealer.seal(draft, random: &source)
    (drafts[path], newest[path]) = (draft, record)
    records.append(record)
    return .put(ZoneOperation.Put(record))
  }

  private mutating func content(
    _ data: [UInt8], metadata: [UInt8] = [], thumbnail: [UInt8] = []
  ) throws -> SealedContent {
    let sealer = try ContentSealer(
      metadata: metadata, thumbnail: thumbnail, dataSize: UInt64(data.count), padding: .padme,
      blobID: source.blobID(), random: &source)
    let content = try sealer.sealAll(data)
    contents.append(content)
    return content
  }

  private enum FrozenTreeError: Error { case noSuchNode }
}

extension FrozenTree {
  /// The errors with which two readers refuse 1,000 copies that differ by a bit.
  private static let refusals = [
    "aclSignatureInvalid": 12, "commitChainBroken": 21, "contentHashMismatch": 82, "grantHashMismatch": 294,
    "identityChainInvalid": 217, "nonCanonicalEncoding": 80, "objectMissing": 190, "recordBindingMismatch": 15,
    "signatureInvalid": 65, "splitMismatch": 9, "unsupportedVersion": 3, "userIDMismatch": 4, "writerUnknown": 8,
  ]

  var members: [String: VectorValue] {
    [
      "links": VectorValue(links.map { VectorValue($0.bytes) }),
      "others": VectorValue([bob, carol].map { VectorValue($0.link.bytes) }),
      "zones": VectorValue([home, branch].compactMap { $0 }.map { VectorValue($0.steps.map(\.value)) }),
      "grants": VectorValue(grants.map { VectorValue($0.bytes) }),
      "records": VectorValue(records.map { VectorValue($0.bytes) }),
      "contents": VectorValue(
        contents.map { ["blobID": VectorValue($0.blobID.bytes), "bytes": VectorValue($0.bytes)] }),
      "refusals": .object(Self.refusals.mapValues { .number($0) }),
      "readers": VectorValue([
        reader(
          bob, closed: 0,
          [
            ("/Groceries", nil), ("/Groceries/bread", 33), ("/Groceries/milk", 44), ("/Photos", nil),
            ("/Photos/summer.jpg", 1_500), ("/Photos/winter.jpg", 50),
          ]),
        reader(
          carol, closed: 6,
          [
            ("/Groceries", nil), ("/Groceries/milk", 44), ("/Photos", nil), ("/Photos/summer.jpg", 1_500),
            ("/draft", nil),
          ]),
      ]),
    ]
  }

  /// A member with the nodes that they open, the sizes of data that ``pattern(_:)`` makes, and the number of records of
  /// later commits, which stay closed.
  private func reader(
    _ member: FrozenMember, closed: Int, _ nodes: [(path: String, size: Int?)]
  ) -> VectorValue {
    let tree = nodes.map { node in
      var members: [String: VectorValue] = ["path": .text(node.path)]
      if let size = node.size { members["size"] = .number(size) }
      return VectorValue.object(members)
    }
    return [
      "user": VectorValue(member.user.bytes), "encSeed": VectorValue(member.decryptionKey.seed.exportBytes()),
      "closed": .number(closed), "tree": VectorValue(tree),
    ]
  }
}

extension VectorCases {
  mutating func addTree() throws {
    let tree = try FrozenTree(world, links: [world.birth.genesis, try links().rotateKeys])
    add(
      "tree", "tree", "a server's copy of a shared tree: a member is removed, then a folder gets a list of its own",
      tree.members)
  }
}
