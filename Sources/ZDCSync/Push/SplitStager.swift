internal import ZDCAccounts
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport

/// Stores the request that splits a branch off, in one transaction: the parent zone's commit and the new zone's genesis.
struct SplitStager {
  let session: SyncSession
  let choice: SplitChoice
  let wanted: WantedList
  let draft: SplitDraft?
  let transaction: ZDCReadWriteTransaction

  /// The cases are those of ``ListStager/Staged``.
  enum Staged {
    case outdated, unread, nothing
    /// With the branch that it splits off.
    case request(InFlightStore.Request, ZoneSplit)
  }

  func stage() throws -> Staged {
    guard try isCurrent() else { return .outdated }
    try wanted.settle(in: transaction)
    guard let draft else { return .nothing }
    if let restoration = try QueuedRestoration(choice.top, transaction) {
      try LostContent(session: session, zone: choice.zone.id, transaction: transaction)
        .giveUp(restoration.operation, choice.top)
      return .unread
    }
    let drafts = RecordDrafts(session: session, zone: choice.zone, transaction: transaction)
    let (genesis, root, split) = try genesis(draft, drafts)
    guard let built = try parentCommit(split) else { return try park() }
    let request = built.request + bundle(genesis, root, draft)
    let inFlight = InFlightStore(transaction: transaction)
    try inFlight.store(
      built.commit.hash, request: request, zone: choice.zone.id,
      outcomes: wanted.effective.map { InFlightStore.Outcome(operation: $0, node: nil, facts: nil) },
      rotations: built.rotations, atMs: session.now())
    let uploads = try inFlight.uploads(zone: choice.zone.id)
    return .request(InFlightStore.Request(commitHash: built.commit.hash, body: request, uploads: uploads), split)
  }

  private func isCurrent() throws -> Bool {
    let leaves = transaction.leaves(zone: choice.zone.id)
    guard let row = try transaction.zones.zone(id: choice.zone.id), row.frozen == nil,
      row.head?.hash == choice.head.hash, try leaves.leaf(choice.top.nodeID) == choice.leaf,
      try transaction.nodes.node(id: choice.top.id)?.key == choice.top.key
    else { return false }
    return try choice.changes.allSatisfy { change in
      guard let now = try transaction.operations.operation(id: change.id) else { return false }
      return now.listChange == change.listChange && now.state == .pending
    }
  }

  /// Lets the rest of the queue pass until the branch can be split off.
  private func park() throws -> Staged {
    try transaction.pause(wanted.effective, in: session) { _ in nil }
    return .outdated
  }

  // MARK: The new zone

  private func genesis(
    _ draft: SplitDraft, _ drafts: RecordDrafts
  ) throws -> (ZoneCommit, NodeRecord, ZoneSplit) {
    let leaves = transaction.leaves(zone: choice.zone.id)
    let branch = try leaves.branch(choice.top.nodeID, upTo: Limits.splitNodes)
    try require(UInt64(branch.count) <= Limits.splitNodes, .limitExceeded, node: choice.top.nodeID)
    let list = StateList(branch: branch, top: choice.top.nodeID)
    let state = ZoneOperation.GenesisState(
      parentHead: choice.head.hash, stateRoot: list.root, count: list.count)
    // As in a rotation: a member could prevent with content that no device can open that they lose the branch.
    var top = try drafts.withNewestContent(choice.top)
    (top.key, top.keyGen) = (draft.key, draft.acl.fields.zoneKeyGen)
    let root = try RecordSealer.seal(try drafts.rootDraft(top, content: nil))
    let acl = draft.acl
    let fields = ZoneCommit.Fields(
      zone: choice.branch, seq: 0, prev: ZoneCommit.genesisPrev(zone: choice.branch, parentHead: choice.head.hash),
      aclHash: acl.hash, writer: session.user, writerGen: session.keys.signGen, timeMs: session.now(),
      operations: [.genesisState(state), .acl(version: acl.fields.version, hash: acl.hash)]
        + retirements(for: acl) + [.put(ZoneOperation.Put(root))])
    let commit = try ZoneCommit(fields) { try session.keys.signingKey.sign(label: "commit", message: $0) }
    let split = ZoneSplit(zone: choice.branch, genesis: commit.hash, parentHead: choice.head.hash, list: list)
    return (commit, root, split)
  }

  /// Keys that are retired in the parent zone sign nothing in the new one either.
  private func retirements(for acl: ZoneACL) -> [ZoneOperation] {
    acl.fields.entries.compactMap { entry in
      choice.head.retiredBelow[entry.user].map { ZoneOperation.retireKey(user: entry.user, gen: $0) }
    }
  }

  private func bundle(_ genesis: ZoneCommit, _ root: NodeRecord, _ draft: SplitDraft) -> [UInt8] {
    var bundle = Bundle.Writer(capacity: draft.acl.bytes.count + draft.grants.count * 1_400 + 4_096)
    bundle.append(acl: draft.acl.bytes)
    for grant in draft.grants { bundle.append(grant: grant.bytes) }
    bundle.append(record: root.bytes)
    bundle.append(commit: genesis.bytes)
    return bundle.bytes
  }

  // MARK: The parent zone

  /// Returns nil if the pointer cannot be put now.
  private func parentCommit(_ split: ZoneSplit) throws -> CommitBuilder.Built? {
    guard let parent = try transaction.nodes.node(zone: choice.zone.id, nodeID: choice.leaf.parent) else { return nil }
    var builder = CommitBuilder(
      session: session, zoneRow: choice.zone, head: choice.head, ahead: [:],
      heldNames: try HeldNames(zone: choice.zone, deletes: [], moving: [], transaction: transaction),
      transaction: transaction)
    let operation = ZoneOperation.split(node: choice.top.nodeID, genesis: split.genesis, count: split.list.count)
    let name = try builder.nameInCloud(of: choice.top, choice.leaf, below: parent)
    let pointer = try pointer(to: split, below: parent, named: name)
    guard try builder.split(operation, pointer: pointer, below: parent) else { return nil }
    return try builder.build()
  }

  /// Returns the pointer that takes the node's place in the cloud. A move that is queued becomes one of the pointer.
  private func pointer(to split: ZoneSplit, below parent: NodeRow, named name: [UInt8]) throws -> NodeRow {
    let top = choice.top
    var row = NodeRow(
      uuid: UUIDv7.make(atMs: session.now()), zone: choice.zone.id, nodeID: .mount(ofZoneWith: split.genesis),
      parent: parent.id, depth: parent.depth + 1,
      nameTag: try transaction.nodes.nameKeys(of: parent).nameTag(folded: name), name: name, key: .random(), keyGen: 1,
      createdMs: top.createdMs)
    row.unused = RecordPrivate(name: nil, createdMs: 0, pointer: split.pointer(owner: session.user))
    return row
  }
}
