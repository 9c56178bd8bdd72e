import Testing
import ZDCProtocol

/// Zones that are split off a parent zone, and zones that end (PROTOCOL, "Zone log").
@Suite struct SplitTests {
  private let alice: TestUser
  private let bob: TestUser

  init() throws {
    alice = try TestUser(seed: 1)
    bob = try TestUser(seed: 2)
  }

  /// Returns `/1/2/3` and `/4`; bob may do everything but own the zone.
  private func parent() throws -> TestZone {
    var zone = try TestZone.born(owner: alice, members: [(bob, [.read, .write, .share])])
    try zone.apply([
      zone.put(.n(1)), zone.put(.n(2), below: .n(1), parentKeyGen: 1),
      zone.put(.n(3), below: .n(2), parentKeyGen: 1), zone.put(.n(4)),
    ])
    return zone
  }

  private func refusalOf(
    _ operations: [ZoneOperation], in zone: TestZone, by user: TestUser? = nil
  ) throws -> ZDCSecurityError.Code? {
    var copy = zone
    let commit = try zone.commit(operations, by: user)
    return refusal { try copy.apply(commit) }
  }

  @Test func aBranchBecomesAZone() throws {
    var parent = try parent()
    let before = parent.state.leaves
    var child = try TestSplit.split(.n(1), of: &parent)
    #expect(Set(parent.state.leaves.keys) == [parent.zone.root, .n(4), .n(9_999)])
    #expect(Set(child.state.leaves.keys) == [.n(1), .n(2), .n(3)])
    #expect(child.state.leaf(.n(1))?.parent == .zero)
    #expect(child.state.leaf(.n(1))?.keyGen == 2)
    #expect(child.state.leaf(.n(2))?.record == before[.n(2)]?.record)
    #expect(child.state.leaves.values.allSatisfy { $0.putSeq == 0 })
    // The new zone's key is new for everything below, and the branch is unknown in the parent zone.
    #expect(try refusalOf([child.put(.n(5), below: .n(2))], in: child) == .staleKeyGeneration)
    #expect(try refusalOf([parent.put(.n(5), below: .n(2), parentKeyGen: 1)], in: parent) == .objectMissing)
    try child.apply([child.put(.n(2), below: .n(1), keyGen: 2), child.put(.n(5), below: .n(2), parentKeyGen: 2)])
    try parent.apply([parent.put(.n(6), below: .n(4))])
  }

  @Test("S-10: a member who may share still may not split")
  func onlyTheOwnerSplits() throws {
    let zone = try parent()
    #expect(try refusalOf(TestSplit(.n(1), of: zone).operations, in: zone, by: bob) == .splitNeedsOwner)
  }

  @Test func aSplitStandsBeforeAllChanges() throws {
    let zone = try parent()
    let (split, mount) = try {
      let operations = try TestSplit(.n(1), of: zone).operations
      return (operations[0], operations[1])
    }()
    let other = try TestSplit(.n(4), of: zone, mount: .n(9_998)).operations
    let record = try #require(zone.state.leaf(.n(4))?.record)
    let delete = ZoneOperation.delete(node: .n(4), record: record, liveDescendants: 0)
    let rows: [([ZoneOperation], ZDCSecurityError.Code?)] = [
      ([split, mount], nil), ([split, delete, mount], .nonCanonicalEncoding),
      ([split, mount, delete], .nonCanonicalEncoding),
      ([mount, split], .nonCanonicalEncoding), ([delete, split, mount], .nonCanonicalEncoding),
      ([split, other[0], mount, other[1]], .nonCanonicalEncoding),
      ([split, mount, zone.put(.n(1))], .nonCanonicalEncoding),
      ([split, mount, zone.put(.n(3))], .nonCanonicalEncoding),
      ([split, mount, zone.put(.n(7), below: .n(2), parentKeyGen: 1)], .objectMissing),
    ]
    for (operations, expected) in rows { #expect(try refusalOf(operations, in: zone) == expected) }
  }

  @Test func aSplitNamesTheBranchAsItIs() throws {
    let zone = try parent()
    let mount = try TestSplit(.n(1), of: zone).operations[1]
    func split(_ node: NodeID, _ count: UInt64) -> ZoneOperation {
      .split(node: node, genesis: .zero, count: count)
    }
    let rows: [(ZoneOperation, ZDCSecurityError.Code?)] = [
      (split(.n(1), 3), nil), (split(.n(1), 2), .splitMismatch), (split(.n(1), 4), .splitMismatch),
      (split(.n(1), 0), .splitMismatch), (split(.n(8), 1), .objectMissing),
      (split(zone.zone.root, 5), .splitMismatch), (split(.n(1), 1_000_001), .limitExceeded),
    ]
    for (operation, expected) in rows { #expect(try refusalOf([operation, mount], in: zone) == expected) }
  }

  @Test func aSplitLeavesAMountBehind() throws {
    let zone = try parent()
    let inner = ZoneOperation.split(node: .n(2), genesis: .zero, count: 2)
    let rows: [([ZoneOperation], ZDCSecurityError.Code?)] = [
      ([inner, zone.put(.n(9), below: .n(1))], nil), ([inner], .splitMismatch),
      ([inner, zone.put(.n(9))], .splitMismatch),
      // A node that is moved there is none.
      ([inner, zone.put(.n(4), below: .n(1))], .splitMismatch),
    ]
    for (operations, expected) in rows { #expect(try refusalOf(operations, in: zone) == expected) }
  }

  // MARK: Genesis

  private func refusalOf(
    _ genesis: ZoneCommit, acl: ZoneACL, list: StateList?, in zone: TestZone
  ) -> ZDCSecurityError.Code? {
    var copy = zone
    return refusal { try copy.apply(genesis, acl: acl, list: list) }
  }

  @Test("S-1: a zone that was split off begins with a new key", arguments: [UInt32(1), 2, 3])
  func theGenesisRaisesTheKey(keyGen: UInt32) throws {
    let split = try TestSplit(.n(1), of: try parent())
    var fields = split.acl.fields
    fields.zoneKeyGen = keyGen
    if keyGen == 1 { fields.historyWrap = [] }
    let acl = try split.child.signed(fields, by: alice)
    let genesis = try TestSplit.genesis(of: split.child, split.state, acl: acl)
    let expected: ZDCSecurityError.Code? = keyGen == 2 ? nil : .staleKeyGeneration
    #expect(refusalOf(genesis, acl: acl, list: split.list, in: split.child) == expected)
  }

  @Test func aGenesisBeginsWithTheStateThatItNames() throws {
    let parent = try parent()
    let split = try TestSplit(.n(1), of: parent)
    let other = try TestSplit(.n(2), of: parent).list
    func refusalOf(
      list: StateList?, _ change: (inout ZoneOperation.GenesisState) -> Void = { _ in }
    ) throws
      -> ZDCSecurityError.Code?
    {
      var state = try split.state
      change(&state)
      let genesis = try TestSplit.genesis(of: split.child, state, acl: split.acl)
      return self.refusalOf(genesis, acl: split.acl, list: list, in: split.child)
    }
    #expect(try refusalOf(list: split.list) == nil)
    #expect(try refusalOf(list: nil) == .objectMissing)
    #expect(try refusalOf(list: other) == .splitMismatch)
    #expect(try refusalOf(list: split.list) { $0.count += 1 } == .splitMismatch)
    #expect(try refusalOf(list: split.list) { $0.stateRoot = .init(1, 1, 1, 1) } == .splitMismatch)
    // The list of another node of the same zone, under that list's root.
    #expect(try refusalOf(list: other) { ($0.count, $0.stateRoot) = (other.count, other.root) } == .splitMismatch)
  }

  @Test func aStateBeginsAGenesisAndNothingElse() throws {
    let split = try TestSplit(.n(1), of: try parent())
    func refusalOf(_ change: (inout ZoneCommit.Fields) -> Void) throws -> ZDCSecurityError.Code? {
      let genesis = try TestSplit.genesis(of: split.child, split.state, acl: split.acl, change)
      return self.refusalOf(genesis, acl: split.acl, list: split.list, in: split.child)
    }
    let plain = ZoneCommit.genesisPrev(zone: split.child.zone)
    #expect(try refusalOf { $0.prev = plain } == .commitChainBroken)
    #expect(try refusalOf { $0.operations.swapAt(0, 1) } == .commitChainBroken)
    #expect(
      try refusalOf {
        $0.operations.swapAt(0, 1)
        $0.prev = plain
      } == .nonCanonicalEncoding)
    #expect(try refusalOf { $0.operations.append($0.operations[0]) } == .nonCanonicalEncoding)
    #expect(try refusalOf { $0.operations.remove(at: 2) } == .keyCommitmentMismatch)
    var child = split.child
    try child.apply(split.genesis, acl: split.acl, list: split.list)
    let late = try child.commit([.genesisState(split.state)])
    #expect(refusal { try child.apply(late, list: split.list) } == .nonCanonicalEncoding)
  }

  @Test func aTrunkIsNotSplitOff() throws {
    let trunk = TestZone(owner: alice)
    let root = LogNode(
      node: trunk.zone.root, parent: .zero, record: .init(1, 1, 1, 1), putSeq: 0, keyGen: 1, parentKeyGen: 0)
    let list = StateList(branch: [root], top: root.node)
    let acl = try trunk.firstACL()
    let state = ZoneOperation.GenesisState(parentHead: .init(1, 1, 1, 1), stateRoot: list.root, count: 1)
    let genesis = try TestSplit.genesis(of: trunk, state, acl: acl)
    #expect(refusalOf(genesis, acl: acl, list: list, in: trunk) == .splitMismatch)
  }

  @Test func theParentsLogDecidesAboutTheGenesis() throws {
    var parent = try parent()
    let split = try TestSplit(.n(1), of: parent)
    let other = try TestSplit(.n(4), of: parent)
    try parent.apply(split.operations)
    let known = try #require(parent.split)
    #expect(known.list == split.list)
    #expect(refusal { try known.check(split.genesis) } == nil)
    #expect(refusal { try known.check(other.genesis) } == .splitMismatch)
    // The owner names a genesis that begins with something else: only members of the parent zone notice.
    let changes: [(inout ZoneOperation.GenesisState) -> Void] = [
      { $0.stateRoot = other.list.root }, { $0.count += 1 }, { $0.parentHead = .init(7, 7, 7, 7) },
    ]
    for change in changes {
      var state = try split.state
      change(&state)
      var lie = known
      let genesis = try TestSplit.genesis(of: split.child, state, acl: split.acl)
      lie.genesis = genesis.hash
      #expect(refusal { try lie.check(genesis) } == .splitMismatch)
    }
  }

  @Test("S-13: a node that was never uploaded becomes a zone without a split")
  func aPlainZone() throws {
    let zone = try TestZone.born(owner: alice, root: .n(77))
    #expect(zone.head?.seq == 0)
    #expect(zone.state.leaf(.n(77))?.keyGen == 1)
  }

  @Test func aStateWithoutSplitsRefusesThem() throws {
    let zone = try parent()
    let split = try TestSplit(.n(1), of: zone)
    var plain = PlainState(inner: zone.state)
    let replay = ZoneReplay(identities: try TestDirectory(zone.users))
    let commit = try zone.commit(split.operations)
    #expect(refusal { _ = try replay.apply(commit, acl: nil, after: zone.head, to: &plain) } == .unsupportedVersion)
    var state = MemoryZoneState()
    #expect(
      refusal { _ = try replay.apply(split.genesis, acl: split.acl, after: nil, to: &state) } == .unsupportedVersion)
    var empty = PlainState(inner: MemoryZoneState())
    #expect(
      refusal {
        _ = try replay.advance(split.genesis, acl: split.acl, list: split.list, after: nil, to: &empty)
      } == .unsupportedVersion)
  }

  // MARK: End

  private func delete(_ zone: TestZone, count: UInt64 = 0) throws -> ZoneOperation {
    let root = try #require(zone.state.leaf(zone.zone.root))
    return .delete(node: root.node, record: root.record, liveDescendants: count)
  }

  @Test("S-9: the owner ends a zone, and nothing follows")
  func aZoneEnds() throws {
    var parent = try parent()
    var child = try TestSplit.split(.n(1), of: &parent)
    let late = try child.firstACL()
    try child.apply([delete(child)])
    #expect(child.head?.isClosed == true)
    #expect(child.state.leaves.isEmpty)
    #expect(try refusalOf([.retireKey(user: alice.id, gen: 2)], in: child) == .commitChainBroken)
    #expect(try refusalOf([child.put(.n(8), below: .n(1))], in: child) == .commitChainBroken)
    let change = try child.commit([.acl(version: 1, hash: late.hash)], acl: late)
    #expect(refusal { try child.apply(change, acl: late) } == .commitChainBroken)
  }

  @Test func onlyTheOwnerEndsAZoneAndNeverATrunk() throws {
    var zone = try TestZone.born(owner: alice, members: [(bob, [.read, .write, .share])], root: .n(50))
    try zone.apply([zone.put(.n(1))])
    #expect(try refusalOf([delete(zone)], in: zone, by: bob) == .writerNotAuthorized)
    #expect(try refusalOf([delete(zone, count: 1)], in: zone) == .nonCanonicalEncoding)
    #expect(try refusalOf([delete(zone), zone.put(.n(2))], in: zone) == .nonCanonicalEncoding)
    #expect(try refusalOf([zone.put(.n(2)), delete(zone)], in: zone) == .nonCanonicalEncoding)
    let other = ZoneOperation.delete(node: .n(50), record: .init(1, 2, 3, 4), liveDescendants: 0)
    #expect(try refusalOf([other], in: zone) == .recordHashMismatch)
    #expect(try refusalOf([delete(zone)], in: zone) == nil)
    let trunk = try parent()
    #expect(try refusalOf([delete(trunk)], in: trunk) == .writerNotAuthorized)
  }

  // MARK: Records

  @Test("S-7: the root's record continues its versions and keeps its content")
  func theRootsRecordContinues() {
    var generator = SeededGenerator(seed: 3)
    let old = NodeRecord(Samples.record(&generator, allFields: true))
    func refusalOf(_ change: (inout NodeRecord.Fields) -> Void) -> ZDCSecurityError.Code? {
      var fields = old.fields
      (fields.recordVersion, fields.prevRecord, fields.parent) = (old.fields.recordVersion + 1, old.hash, .zero)
      change(&fields)
      return refusal { try RecordRules.check(splitRoot: NodeRecord(fields), continuing: old) }
    }
    #expect(refusalOf { _ in } == nil)
    #expect(refusalOf { $0.recordVersion += 1 } == .splitMismatch)
    #expect(refusalOf { $0.recordVersion = 1 } == .splitMismatch)
    #expect(refusalOf { $0.prevRecord = .zero } == .splitMismatch)
    #expect(refusalOf { $0.content?.dataVersion += 1 } == .splitMismatch)
    #expect(refusalOf { ($0.content, $0.dataAuthor) = (nil, nil) } == .splitMismatch)
  }
}

/// A state of a reader that knows no splits.
private struct PlainState: ZoneState {
  var inner: MemoryZoneState

  func leaf(_ node: NodeID) -> LogNode? { inner.leaf(node) }
  func height(of node: NodeID, upTo limit: Int) -> Int { inner.height(of: node, upTo: limit) }
  func descendantCount(of node: NodeID, upTo limit: UInt64) -> UInt64 { inner.descendantCount(of: node, upTo: limit) }
  func writer(of leaf: LogNode) -> UserID? { inner.writer(of: leaf) }
  mutating func put(_ leaf: LogNode, replacing old: LogNode?) { inner.put(leaf, replacing: old) }
  mutating func removeSubtree(_ node: NodeID) { inner.removeSubtree(node) }
}
