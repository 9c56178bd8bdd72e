import ZDCProtocol

/// A branch that is about to become a zone: both commits, and everything that goes with them.
struct TestSplit {
  /// The new zone as it is once the server has taken the request.
  var child: TestZone
  /// The pointer in the parent zone.
  var mount: NodeRecord
  /// The parent zone's commit.
  var commit: ZoneCommit
  var genesis: ZoneCommit
  var list: StateList
  var grants: [Grant]
  /// The new zone's root.
  var root: NodeRecord

  var parentPart: [UInt8] { TestZone.body(commit, records: [mount]) }

  var genesisPart: [UInt8] {
    var writer = Bundle.Writer()
    writer.append(acl: child.acl.bytes)
    for grant in grants { writer.append(grant: grant.bytes) }
    return writer.bytes + TestZone.body(genesis, records: [root])
  }

  var body: [UInt8] { parentPart + genesisPart }
}

extension TestZone {
  /// A test's changes to a split before it is signed.
  struct SplitChange: Sendable {
    var state: @Sendable (inout ZoneOperation.GenesisState) -> Void = { _ in }
    var root: @Sendable (inout NodeRecord.Fields) -> Void = { _ in }
    var list: @Sendable (inout ZoneACL.Fields) -> Void = { _ in }
    var genesis: @Sendable (inout ZoneCommit.Fields) -> Void = { _ in }
    /// Of the parent zone's commit.
    var operations: @Sendable (inout [ZoneOperation]) -> Void = { _ in }
    var mount: @Sendable (inout NodeRecord.Fields) -> Void = { _ in }
  }

  /// Prepares the split of `node` with a mount of the same name in the same place.
  func split(
    _ node: NodeID, members: [(UserID, ZoneACL.Permissions)] = [], _ change: SplitChange = SplitChange()
  ) throws -> TestSplit {
    let old = records[node]
    let list = StateList(branch: branch(node), top: node)
    var child = try TestZone(
      owner: owner, signKey: signKey, trunk: acl.fields.trunk, app: acl.fields.appTreeID, root: node)
    let keyGen = (old?.fields.keyGen ?? 0) + 1
    var fields = child.acl.fields
    fields.zoneKeyGen = keyGen
    fields.historyWrap = randomBytes(108)
    let ownersRights: ZoneACL.Permissions = [.read, .write, .share]
    let all = [(owner, ownersRights)] + members
    let grants = all.map { user, _ in
      Grant(zone: child.zone, zoneKeyGen: keyGen, user: user, wrap: randomBytes(1_168))
    }
    fields.entries = zip(all, grants).map { member, grant in
      ZoneACL.Entry(
        user: member.0, permissions: member.1, encGen: 1, wrapKind: .nodeKey, wrapHash: grant.wrapHash)
    }.sorted { $0.user < $1.user }
    change.list(&fields)
    let acl = try ZoneACL(fields) { try signKey.sign("acl", $0) }
    let root = record(node) { root in
      (root.parent, root.keyGen, root.parentKeyGen, root.parentWrap) = (.zero, keyGen, 0, [])
      (root.nameTag, root.commitments) = (.zero, fields.commitments)
      change.root(&root)
    }
    var state = ZoneOperation.GenesisState(parentHead: headHash, stateRoot: list.root, count: list.count)
    change.state(&state)
    var genesisFields = ZoneCommit.Fields(
      zone: child.zone, seq: 0, prev: ZoneCommit.genesisPrev(zone: child.zone, parentHead: state.parentHead),
      aclHash: acl.hash, writer: owner, writerGen: 1, timeMs: 3,
      operations: [.genesisState(state), .acl(version: 1, hash: acl.hash), .put(.init(root))])
    change.genesis(&genesisFields)
    let genesis = try ZoneCommit(genesisFields) { try signKey.sign("commit", $0) }
    let mount = record(.random(), parent: old?.fields.parent, tag: old?.fields.nameTag) {
      $0.isPointer = true
      change.mount(&$0)
    }
    var operations: [ZoneOperation] = [
      .split(node: node, genesis: genesis.hash, count: list.count), .put(.init(mount)),
    ]
    change.operations(&operations)
    (child.acl, child.headHash, child.records) = (acl, genesis.hash, records.filter { list.node($0.key) != nil })
    child.records[node] = root
    return TestSplit(
      child: child, mount: mount, commit: try commit(operations), genesis: genesis, list: list, grants: grants,
      root: root)
  }

  /// A node and the nodes below it, as the log has them.
  func branch(_ top: NodeID) -> [LogNode] {
    let children = Dictionary(grouping: records.values, by: \.fields.parent)
    var found = [records[top]].compactMap(\.self)
    var next = 0
    while next < found.count {
      found += children[found[next].fields.node] ?? []
      next += 1
    }
    return found.map { record in
      LogNode(
        node: record.fields.node, parent: record.fields.parent, record: record.hash, putSeq: 0,
        keyGen: record.fields.keyGen, parentKeyGen: record.fields.parentKeyGen)
    }
  }

  /// The zone continues without the branch.
  mutating func accepted(_ split: TestSplit) {
    for node in split.list.nodes { records[node.node] = nil }
    accepted(split.commit, records: [split.mount])
  }
}

extension ServerClient {
  /// The owner splits a branch off; returns the new zone.
  func split(
    _ node: NodeID, of zone: inout TestZone, members: [(UserID, ZoneACL.Permissions)] = [], token: [UInt8]
  ) async throws -> TestZone {
    let split = try zone.split(node, members: members)
    _ = try await commit(split.body, token: token).expect(200)
    zone.accepted(split)
    return split.child
  }

  func state(_ zone: ZoneID, token: [UInt8]) async throws -> Answer {
    try await send(.GET, Routes.path(Routes.zoneState, zone.tree.text, zone.root.text), token: token)
  }

  func records(_ records: [NodeRecord], of zone: ZoneID, token: [UInt8]) async throws -> Answer {
    let names = TestServer.recordNames(records.map { ($0.fields.node, $0.hash) })
    return try await send(
      .POST, Routes.path(Routes.records, zone.tree.text, zone.root.text), token: token, body: names)
  }
}
