internal import ZDCAccounts
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport

/// Stores the decisions about changes of an access list in one transaction: finished and refused ones, and the request.
struct ListStager {
  let session: SyncSession
  let choice: ListChoice
  let wanted: WantedList
  let draft: ListDraft?
  let transaction: ZDCReadWriteTransaction

  enum Staged {
    /// A pull or the app has changed what the draft is based on, or the list cannot be changed now.
    case outdated
    /// The newest record of the zone's root, or of the node that is split off, has to be read first.
    case unread
    /// Nothing has to be sent.
    case nothing
    case request(InFlightStore.Request)
  }

  func stage() throws -> Staged {
    guard try isCurrent() else { return .outdated }
    try wanted.settle(in: transaction)
    guard let draft else { return .nothing }
    var operations: [ZoneOperation] = [.acl(version: draft.acl.fields.version, hash: draft.acl.hash)]
    var root: (record: NodeRecord, rotation: InFlightStore.Rotation)?
    if let key = draft.key {
      guard let rotated = try rotatedRoot(key, draft.acl.fields) else { return .unread }
      root = rotated
      operations.append(.put(ZoneOperation.Put(rotated.record)))
    }
    let commit = try commit(operations, draft.acl)
    let request = request(commit, draft, root?.record)
    let inFlight = InFlightStore(transaction: transaction)
    try inFlight.store(
      commit.hash, request: request, zone: choice.zone.id,
      outcomes: wanted.effective.map { InFlightStore.Outcome(operation: $0, node: nil, facts: nil) },
      rotations: root.map { [$0.rotation] } ?? [], atMs: session.now())
    let uploads = try inFlight.uploads(zone: choice.zone.id)
    return .request(InFlightStore.Request(commitHash: commit.hash, body: request, uploads: uploads))
  }

  private func isCurrent() throws -> Bool {
    guard let row = try transaction.zones.zone(id: choice.zone.id), row.frozen == nil,
      row.head?.hash == choice.head.hash
    else { return false }
    return try choice.changes.allSatisfy { change in
      guard let now = try transaction.operations.operation(id: change.id) else { return false }
      return now.listChange == change.listChange && now.state == .pending
    }
  }

  /// Returns the root's next record under the fresh key, or nil before its newest version is here.
  private func rotatedRoot(
    _ key: NodeKey, _ list: ZoneACL.Fields
  ) throws -> (record: NodeRecord, rotation: InFlightStore.Rotation)? {
    let leaves = transaction.leaves(zone: choice.zone.id)
    guard let row = try transaction.nodes.root(zone: choice.zone.id), row.isUploaded,
      try !transaction.isUnread(row), try leaves.leaf(row.nodeID) != nil
    else { return nil }
    let drafts = RecordDrafts(session: session, zone: choice.zone, transaction: transaction)
    // The root of a trunk has no content.
    var next = try choice.zone.isTrunk ? row : drafts.withNewestContent(row)
    (next.key, next.keyGen) = (key, list.zoneKeyGen)
    let record = try RecordSealer.seal(try drafts.rootDraft(next, content: nil))
    var facts = InFlightStore.Outcome.Facts(
      recordVersion: record.fields.recordVersion, recordHash: record.hash, parent: .zero, nameTag: .zero,
      name: row.name, keyGen: list.zoneKeyGen)
    facts.burnMs = record.fields.burnMs
    facts.rekeyed = (key, list.historyWrap)
    facts.carry(next.content, insteadOf: row.content)
    return (record, InFlightStore.Rotation(node: row.id, facts: facts))
  }

  private func commit(_ operations: [ZoneOperation], _ acl: ZoneACL) throws -> ZoneCommit {
    let fields = ZoneCommit.Fields(
      zone: choice.zone.zone, seq: choice.head.seq + 1, prev: choice.head.hash, aclHash: acl.hash,
      writer: session.user, writerGen: session.keys.signGen, timeMs: session.now(), operations: operations)
    return try ZoneCommit(fields) { try session.keys.signingKey.sign(label: "commit", message: $0) }
  }

  private func request(_ commit: ZoneCommit, _ draft: ListDraft, _ root: NodeRecord?) -> [UInt8] {
    var bundle = Bundle.Writer(capacity: draft.acl.bytes.count + draft.grants.count * 1_400 + 4_096)
    bundle.append(acl: draft.acl.bytes)
    for grant in draft.grants { bundle.append(grant: grant.bytes) }
    if let root { bundle.append(record: root.bytes) }
    bundle.append(commit: commit.bytes)
    return bundle.bytes
  }
}

extension WantedList {
  /// Deletes finished operations. Those that the list does not allow, or has no room for, wait for another list.
  func settle(in transaction: ZDCReadWriteTransaction) throws {
    for id in done { try transaction.operations.delete(id: id) }
    for id in refused { try transaction.operations.setState(.pending, reason: .notAllowed, id: id) }
    let code = ZDCSecurityError.Code.limitExceeded.rawValue
    for id in excess { try transaction.operations.setState(.pending, reason: .notAllowed, detail: code, id: id) }
  }
}
