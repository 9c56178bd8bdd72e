import ZDCProtocol

@testable import ZDCCrypto

/// A branch of the frozen home that is split off: `/1/2/3`, and what the parent zone and the new one say about it.
private struct FrozenSplit {
  static let (a, b, c) = (NodeID(high: 1, low: 1), NodeID(high: 2, low: 2), NodeID(high: 3, low: 3))
  static let mount = NodeID(high: 9, low: 9)

  let parent: FrozenMembers
  let list: StateList
  let acl: ZoneACL
  let state: ZoneOperation.GenesisState
  let genesis: ZoneCommit

  var zone: ZoneID { acl.fields.zone }

  init(_ home: FrozenMembers) throws {
    var parent = home
    let root = home.world.home.zone.root
    try parent.append([parent.put(Self.a, root, 1), parent.put(Self.b, Self.a, 2), parent.put(Self.c, Self.b, 3)])
    self.parent = parent
    let nodes = [(Self.a, root, UInt64(1)), (Self.b, Self.a, 2), (Self.c, Self.b, 3)].map { node, parent, record in
      LogNode(
        node: node, parent: parent, record: RecordHash(record, 0, 0, 0), putSeq: 2, keyGen: 1, parentKeyGen: 1)
    }
    list = StateList(branch: nodes, top: Self.a)
    acl = try Self.list(parent, keyGen: 2)
    state = ZoneOperation.GenesisState(parentHead: parent.head.hash, stateRoot: list.root, count: list.count)
    genesis = try Self.genesis(parent, state: state, acl: acl)
  }

  static func list(_ parent: FrozenMembers, keyGen: UInt32) throws -> ZoneACL {
    let home = parent.world.home.acl
    var fields = home.fields
    fields.zone = ZoneID(tree: fields.zone.tree, root: a)
    fields.zoneKeyGen = keyGen
    fields.commitments = parent.world.birth.trunks[1].key.commitments
    fields.historyWrap = keyGen > 1 ? pattern(108) : []
    return try ZoneACL(fields, sign: parent.world.sign("acl"))
  }

  static func genesis(
    _ parent: FrozenMembers, state: ZoneOperation.GenesisState, acl: ZoneACL,
    _ change: (inout ZoneCommit.Fields) -> Void = { _ in }
  ) throws -> ZoneCommit {
    let zone = acl.fields.zone
    let root = ZoneOperation.Put(
      node: zone.root, parent: .zero, record: RecordHash(8, 8, 8, 8), keyGen: acl.fields.zoneKeyGen, parentKeyGen: 0)
    var fields = ZoneCommit.Fields(
      zone: zone, seq: 0, prev: ZoneCommit.genesisPrev(zone: zone, parentHead: state.parentHead), aclHash: acl.hash,
      writer: parent.world.birth.userID, writerGen: 1, timeMs: FrozenWorld.timeMs + 9,
      operations: [.genesisState(state), .acl(version: 1, hash: acl.hash), .put(root)])
    change(&fields)
    return try ZoneCommit(fields, sign: parent.world.sign("commit"))
  }

  /// The operations with which the parent zone names a genesis.
  func operations(_ genesis: ZoneCommit? = nil, count: UInt64 = 3) -> [ZoneOperation] {
    let root = parent.world.home.zone.root
    return [
      .split(node: Self.a, genesis: (genesis ?? self.genesis).hash, count: count), parent.put(Self.mount, root, 7),
    ]
  }

  /// The members of a vector in which a member of both zones reads them.
  func members(_ commit: ZoneCommit, _ genesis: ZoneCommit? = nil) -> [String: VectorValue] {
    parent.members(FrozenMembers.Step(commit: commit.bytes)).merging(
      [
        "genesis": FrozenMembers.Step(commit: (genesis ?? self.genesis).bytes, acl: acl.bytes).value,
        "list": VectorValue(list.bytes),
      ]) { $1 }
  }

  /// The members of a vector in which a member of the new zone reads its log.
  func log(_ steps: [FrozenMembers.Step]) -> [String: VectorValue] {
    parent.members().merging(["commits": VectorValue(steps.map(\.value))]) { $1 }
  }

  var first: FrozenMembers.Step {
    FrozenMembers.Step(commit: genesis.bytes, acl: acl.bytes, list: list.bytes)
  }

  /// Returns a commit of the new zone that follows `previous`.
  func commit(after previous: ZoneCommit, _ operations: [ZoneOperation]) throws -> ZoneCommit {
    let fields = ZoneCommit.Fields(
      zone: zone, seq: previous.fields.seq + 1, prev: previous.hash, aclHash: acl.hash,
      writer: parent.world.birth.userID, writerGen: 1, timeMs: FrozenWorld.timeMs + 10, operations: operations)
    return try ZoneCommit(fields, sign: parent.world.sign("commit"))
  }
}

extension VectorCases {
  mutating func addSplits() throws {
    let split = try FrozenSplit(try membersOfHome())
    let head: [String: VectorValue] = ["head": VectorValue(split.genesis.hash.bytes)]
    add(
      "split", "split", "a branch of three nodes becomes a zone; a member of both zones reads it",
      split.members(try split.parent.commit(split.operations())).merging(head) { $1 })
    try addSplitFailures(split)
    try addBeginnings(split)
    try addFalseBeginnings(split)
  }

  private mutating func addSplitFailures(_ split: FrozenSplit) throws {
    func refuse(
      _ name: String, _ about: String, _ code: ZDCSecurityError.Code, _ operations: [ZoneOperation],
      by writer: FrozenMember? = nil
    ) throws {
      let commit = try split.parent.commit(operations, by: writer)
      add("split-\(name)", "split", about, expect: code, split.members(commit))
    }
    let whole = split.operations()
    try refuse("member", "a member who may share splits", .splitNeedsOwner, whole, by: split.parent.bob)
    try refuse("late", "a split after a put", .nonCanonicalEncoding, whole.reversed())
    try refuse("twice", "two splits in a commit", .nonCanonicalEncoding, [whole[0], whole[0], whole[1]])
    let mount = ZoneOperation.delete(node: FrozenSplit.mount, record: RecordHash(7, 0, 0, 0), liveDescendants: 0)
    try refuse("delete", "a delete beside a split", .nonCanonicalEncoding, whole + [mount])
    try refuse("count", "a node too many", .splitMismatch, split.operations(count: 4))
    try refuse("limit", "more nodes than a split may move", .limitExceeded, split.operations(count: 1_000_001))
    try refuse("no-mount", "nothing is put where the branch was", .splitMismatch, [whole[0]])
    let root = split.parent.world.home.zone.root
    let trunk = ZoneOperation.split(node: root, genesis: split.genesis.hash, count: 4)
    try refuse("root", "the zone's own root", .splitMismatch, [trunk, whole[1]])
    var state = split.state
    state.stateRoot = .init(1, 2, 3, 4)
    let lie = try FrozenSplit.genesis(split.parent, state: state, acl: split.acl)
    add(
      "split-other-state", "split", "the genesis begins with another state than the parent's log has",
      expect: .splitMismatch, split.members(try split.parent.commit(split.operations(lie)), lie))
    state = split.state
    state.parentHead = split.parent.world.home.commit.hash
    let moved = try FrozenSplit.genesis(split.parent, state: state, acl: split.acl)
    add(
      "split-other-head", "split", "the genesis names another head of the parent zone", expect: .splitMismatch,
      split.members(try split.parent.commit(split.operations(moved)), moved))
    add(
      "split-other-genesis", "split", "the split names another genesis", expect: .splitMismatch,
      split.members(try split.parent.commit(split.operations(lie))))
  }

  private mutating func addBeginnings(_ split: FrozenSplit) throws {
    let (a, b) = (FrozenSplit.a, FrozenSplit.b)
    let rotated = split.parent.put(b, a, 4, keyGen: 2, parentKeyGen: 2)
    let next = try split.commit(after: split.genesis, [rotated])
    let leaves = [
      LogNode(node: a, parent: .zero, record: RecordHash(8, 8, 8, 8), putSeq: 0, keyGen: 2, parentKeyGen: 0),
      LogNode(node: b, parent: a, record: RecordHash(4, 0, 0, 0), putSeq: 1, keyGen: 2, parentKeyGen: 2),
      LogNode(
        node: FrozenSplit.c, parent: b, record: RecordHash(3, 0, 0, 0), putSeq: 0, keyGen: 1, parentKeyGen: 1),
    ]
    add(
      "log-split", "log", "a zone begins with a state; a node below gets its next key",
      split.log([split.first, FrozenMembers.Step(commit: next.bytes)]).merging(
        ["head": VectorValue(next.hash.bytes), "stateRoot": VectorValue(Self.stateRoot(leaves).bytes)]) { $1 })
    let stale = try split.commit(after: split.genesis, [split.parent.put(FrozenSplit.c, b, 4)])
    add(
      "log-split-stale", "log", "a put below a node that has no key under the new zone's", expect: .staleKeyGeneration,
      split.log([split.first, FrozenMembers.Step(commit: stale.bytes)]))
  }

  private mutating func addFalseBeginnings(_ split: FrozenSplit) throws {
    func refuse(_ name: String, _ about: String, _ code: ZDCSecurityError.Code, _ step: FrozenMembers.Step) {
      add("log-split-\(name)", "log", about, expect: code, split.log([step]))
    }
    var step = split.first
    step.list = nil
    refuse("no-list", "the state is not there", .objectMissing, step)
    step.list = split.list.bytes.flipping(bit: 40 * 8)
    refuse("list", "a flipped bit in a record's hash", .splitMismatch, step)
    step.list = split.list.bytes.dropLast(72)
    refuse("list-short", "a node is missing", .splitMismatch, step)
    step.list = split.list.bytes + [0]
    refuse("list-trailing", "a byte too many", .nonCanonicalEncoding, step)
    let bytes = split.list.bytes
    step.list = Array(bytes[72..<144] + bytes[..<72] + bytes[144...])
    refuse("list-order", "nodes that do not ascend", .nonCanonicalEncoding, step)
    for keyGen in [UInt32(1), 3] {
      let acl = try FrozenSplit.list(split.parent, keyGen: keyGen)
      let genesis = try FrozenSplit.genesis(split.parent, state: split.state, acl: acl)
      refuse(
        "key-\(keyGen)", "the root is put with another generation than the next", .staleKeyGeneration,
        FrozenMembers.Step(commit: genesis.bytes, acl: acl.bytes, list: split.list.bytes))
    }
    func genesis(_ change: (inout ZoneCommit.Fields) -> Void) throws -> FrozenMembers.Step {
      let genesis = try FrozenSplit.genesis(split.parent, state: split.state, acl: split.acl, change)
      return FrozenMembers.Step(commit: genesis.bytes, acl: split.acl.bytes, list: split.list.bytes)
    }
    let plain = ZoneCommit.genesisPrev(zone: split.zone)
    refuse("prev", "prev without the parent's head", .commitChainBroken, try genesis { $0.prev = plain })
    refuse(
      "second", "the state is not the first operation", .nonCanonicalEncoding,
      try genesis {
        $0.operations.swapAt(0, 1)
        $0.prev = plain
      })
    refuse("no-root", "the root is not put", .keyCommitmentMismatch, try genesis { $0.operations.removeLast() })
    try addFalseTrees(split)
  }

  /// Adds states that the owner has signed and that are no trees.
  private mutating func addFalseTrees(_ split: FrozenSplit) throws {
    let trees: [(String, String, (inout [UInt8]) -> Void)] = [
      ("ring", "two nodes are each other's parents", { $0.replaceSubrange(88..<104, with: FrozenSplit.c.bytes) }),
      ("orphan", "a node's parent is not there", { $0.replaceSubrange(88..<104, with: FrozenSplit.mount.bytes) }),
      ("place", "the root has a parent", { $0.replaceSubrange(16..<32, with: FrozenSplit.mount.bytes) }),
      ("future", "a generation that the parent does not have yet", { $0[72 + 71] = 9 }),
    ]
    for (name, about, change) in trees {
      var bytes = split.list.bytes
      change(&bytes)
      var state = split.state
      state.stateRoot = try StateList(bytes).root
      let genesis = try FrozenSplit.genesis(split.parent, state: state, acl: split.acl)
      add(
        "log-split-\(name)", "log", about, expect: .splitMismatch,
        split.log([FrozenMembers.Step(commit: genesis.bytes, acl: split.acl.bytes, list: bytes)]))
    }
  }

  // MARK: End of a zone

  mutating func addClosings() throws {
    let split = try FrozenSplit(try membersOfHome())
    let root = RecordHash(8, 8, 8, 8)
    func close(_ record: RecordHash = root, count: UInt64 = 0) -> ZoneOperation {
      .delete(node: FrozenSplit.a, record: record, liveDescendants: count)
    }
    let end = try split.commit(after: split.genesis, [close()])
    let steps = [split.first, FrozenMembers.Step(commit: end.bytes)]
    add(
      "log-close", "log", "the owner ends a zone with all that is in it",
      split.log(steps).merging(
        ["head": VectorValue(end.hash.bytes), "stateRoot": VectorValue(Self.stateRoot([]).bytes)]) { $1 })
    let late = try split.commit(after: end, [.retireKey(user: split.parent.world.birth.userID, gen: 2)])
    add(
      "log-close-followed", "log", "a commit after the end", expect: .commitChainBroken,
      split.log(steps + [FrozenMembers.Step(commit: late.bytes)]))
    func refuse(_ name: String, _ about: String, _ code: ZDCSecurityError.Code, _ operations: [ZoneOperation]) throws {
      let commit = try split.commit(after: split.genesis, operations)
      add(
        "log-close-\(name)", "log", about, expect: code,
        split.log([split.first, FrozenMembers.Step(commit: commit.bytes)]))
    }
    try refuse("count", "an end that counts", .nonCanonicalEncoding, [close(count: 2)])
    let retire = ZoneOperation.retireKey(user: split.parent.world.birth.userID, gen: 2)
    try refuse("more", "an end among other operations", .nonCanonicalEncoding, [close(), retire])
    try refuse("record", "another record than the root's", .recordHashMismatch, [close(RecordHash(1, 1, 1, 1))])
    let home = split.parent.world.home
    let trunk = ZoneOperation.delete(node: home.zone.root, record: home.root.hash, liveDescendants: 0)
    self.refuse(
      "close-trunk", "the end of a trunk", .writerNotAuthorized, split.parent, try split.parent.commit([trunk]))
    self.refuse(
      "close-member", "a member who may share ends a zone", .writerNotAuthorized, split.parent,
      try split.parent.commit([trunk], by: split.parent.bob))
  }
}
