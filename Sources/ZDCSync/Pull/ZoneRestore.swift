internal import Foundation
internal import ZDCAccounts
internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport

/// The amount of data that is sent again after a server lost it.
///
/// ```swift
/// guard let zone = try await session.syncManager.frozenZones(localUserID: user.uuid).first else { return }
/// let summary = try await session.syncManager.acceptServerState(ofZone: zone.zone, localUserID: user.uuid)
/// print(summary.created, "nodes are sent again;", summary.missingCommits, "commits are lost")
/// ```
public struct ZDCRestoreSummary: Sendable, Hashable {
  /// The number of nodes that the server no longer has. They are created again.
  public var created = 0
  /// The number of nodes of which the server may have an older version. Older parts are sent again.
  public var changed = 0
  /// The number of deleted nodes that the server has again. They are deleted again.
  public var deleted = 0
  /// The number of verified commits that the server's log lacks. If it is greater than 0, the server has gone back.
  public var missingCommits: UInt64 = 0
}

/// Accepts a server's log in place of the one that this device had verified, and queues the changes that it lacks
/// (PROTOCOL 3.7, "Accepting a restored server").
///
/// The whole log is verified again from its genesis. Nothing changes until that has succeeded; then everything changes
/// in one transaction. Memory holds one page of the log and the IDs of nodes that differ. The disk holds only commits
/// that members have signed.
struct ZoneRestore {
  package let session: SyncSession
  package let zone: Int64

  /// Accepts the server's log at the user's request. If the log lacks verified commits and the user does not know yet,
  /// this is recorded as a rollback.
  ///
  /// - Throws: `ZDCSecurityError` if the server's log is invalid; nothing has changed then.
  /// - Returns: The summary, and the first error that the app threw.
  package func run() async throws -> (summary: ZDCRestoreSummary, refusal: DelegateError?) {
    guard let row = try await zoneRow() else { return (ZDCRestoreSummary(), nil) }
    let log = try await fetchLog(row.zone)
    let (result, refusal) = try await session.writeNotifyingDelegate { [session, zone] transaction in
      let summary = try ZoneRewind(session: session, zone: zone, transaction: transaction).apply(log)
      let event = HeadRules.rollback(missing: summary.missingCommits, frozen: row.frozen).map {
        ZDCSecurityError($0, zone: row.zone)
      }
      if let event { try transaction.record(event, localUser: session.localUser, zone: zone, atMs: session.now()) }
      return Accepted(summary: summary, event: event)
    }
    if let event = result.event { session.events.report(event) }
    return (result.summary, refusal)
  }

  private struct Accepted: Sendable {
    var summary: ZDCRestoreSummary
    var event: ZDCSecurityError?
  }

  /// Accepts the server's log without asking the user. Only a log that ends with `head` is accepted; `event` describes
  /// what it lacks.
  ///
  /// - Returns: The first error that the app threw.
  func runUnasked(_ event: ZDCSecurityError, head: CommitHash) async throws -> DelegateError? {
    guard let row = try await zoneRow() else { return nil }
    let log = try await fetchLog(row.zone)
    try require(log.head == head, .commitChainBroken)
    let (_, refusal) = try await session.writeNotifyingDelegate { [session, zone] transaction in
      try transaction.record(event, localUser: session.localUser, zone: zone, atMs: session.now())
      var rewind = ZoneRewind(session: session, zone: zone, transaction: transaction)
      rewind.isUnasked = true
      return try rewind.apply(log)
    }
    session.events.report(event)
    return refusal
  }

  private func zoneRow() async throws -> ZoneRow? {
    try await session.database.asyncRead { [zone] in try $0.zones.zone(id: zone) }
  }

  private func origins(of page: PageContents, writers: WriterKeys) async throws -> ZoneOrigins {
    guard var row = try await zoneRow() else { return ZoneOrigins() }
    row.head = nil
    let reader = OriginReader(session: session, zone: zone)
    do { return try await reader.origins(of: page, row, writers: writers) } catch let doubt as Doubt {
      throw doubt.error
    }
  }

  private func fetchLog(_ zone: ZoneID) async throws -> FetchedLog {
    let pages = try PageSpool()
    var writers = WriterKeys(own: session.keys)
    var chain = LogChain(zone: zone)
    var origins = ZoneOrigins()
    while true {
      let page = try await session.api.commitPage(zone, after: chain.seq, withRecords: false)
      let before = chain.seq
      let contents = try PageContents(page.body)
      writers.add(try await session.keys(for: contents, after: chain.list, zone: self.zone))
      try pages.append(try chain.verified(contents, writers: writers))
      let found = try await self.origins(of: contents, writers: writers)
      writers.add(try await session.keys(of: found.signers, zone: self.zone))
      origins.add(found)
      guard page.hasMore else {
        return FetchedLog(pages: pages, head: page.head.hash, writers: writers, origins: origins)
      }
      guard chain.seq != before else { throw ZDCSecurityError(.commitChainBroken, zone: zone) }
    }
  }
}

/// A whole log: signed by members, each commit following the previous one, and not yet replayed.
struct FetchedLog: Sendable {
  package var pages: PageSpool
  package var head: CommitHash
  package var writers: WriterKeys
  var origins: ZoneOrigins
}

/// Replaces a zone's verified log with another one, inside one transaction, and queues the difference.
struct ZoneRewind {
  package let session: SyncSession
  package let zone: Int64
  package let transaction: ZDCReadWriteTransaction
  /// Whether the log is accepted without asking the user.
  package var isUnasked = false
  private let nodes: NodeStore
  private let log: CommitLogStore
  private var leaves: LogNodeStore

  package init(session: SyncSession, zone: Int64, transaction: ZDCReadWriteTransaction) {
    self.session = session
    self.zone = zone
    self.transaction = transaction
    nodes = transaction.nodes
    log = CommitLogStore(db: transaction.database, zone: zone)
    leaves = LogNodeStore(db: transaction.database, zone: zone)
  }

  /// The result of replaying the other log.
  private struct Replayed {
    /// The last commit that both logs have.
    var common: UInt64?
    /// The access list after it.
    var commonList: ZoneACL.Fields?
    /// Nodes removed by later commits, with the time of each commit.
    var removals: [(removal: LogNodeStore.Removal, receivedMs: UInt64)] = []
  }

  package func apply(_ fetched: FetchedLog) throws -> ZDCRestoreSummary {
    guard var row = try transaction.zones.zone(id: zone) else { return ZDCRestoreSummary() }
    let (pinned, pinnedList) = (row.head?.seq, row.head?.acl.fields)
    try leaves.setAside()
    (row.head, row.frozen, row.isProven, row.doubt) = (nil, nil, false, nil)
    row.hasRestored = isUnasked
    let replayed = try replay(fetched, row: &row)
    guard row.head?.hash == fetched.head else { throw ZDCSecurityError(.commitChainBroken, zone: row.zone) }
    try log.remove(from: (row.head?.seq ?? 0) + 1)
    try transaction.zones.update(row)
    // The user knows that the log they accept may lack what members and other devices have verified.
    if !isUnasked {
      try MemberHeadStore(transaction, zone: zone).removeAll()
      try ExpectedHeadStore(transaction, localUser: session.localUser).remove(row.zone)
    }
    // The request in flight names a head that no longer exists. If the server did receive it, replay has found its
    // commit.
    try InFlightCompletion(session: session, zone: zone, transaction: transaction).abandon()
    var summary = try row.isClosed ? end(replayed) : settle(replayed, root: row.zone.root)
    if let list = pinnedList { try changeAgain(list, replayed.commonList, row) }
    if row.trunk == .inbox, row.owner == nil { try putProfileAgain(row) }
    summary.missingCommits = pinned.map { $0 + 1 - (replayed.common.map { $0 + 1 } ?? 0) } ?? 0
    try leaves.forgetAside()
    return summary
  }

  /// The other log ends with the end of the zone.
  private func end(_ replayed: Replayed) throws -> ZDCRestoreSummary {
    let receivedMs = replayed.removals.last?.receivedMs ?? 0
    try LostAccess(session: session, zone: zone, transaction: transaction, receivedMs: receivedMs, isEnd: true).settle()
    return ZDCRestoreSummary()
  }

  private func replay(_ fetched: FetchedLog, row: inout ZoneRow) throws -> Replayed {
    let applier = PageApplier(
      session: session, zone: zone, transaction: transaction, writers: fetched.writers, origins: fetched.origins)
    let ownHash = try InFlightStore(transaction: transaction).commitHash(zone: zone)
    var result = Replayed()
    var isCommon = true
    try fetched.pages.readAll { bytes in
      let page = try PageContents(bytes)
      for item in page.commits {
        let seq = item.commit.fields.seq
        isCommon = try isCommon && log.hash(seq: seq) == item.commit.hash
        if isCommon { result.common = seq } else { try log.remove(from: seq) }
        let removed = try replay(item, page, isOwn: item.commit.hash == ownHash, applier, row: &row)
        if isCommon { result.commonList = row.head?.acl.fields }
        if !isCommon { result.removals += removed.map { ($0, item.receivedMs) } }
      }
    }
    return result
  }

  private func replay(
    _ item: PageContents.Commit, _ page: PageContents, isOwn: Bool, _ applier: PageApplier, row: inout ZoneRow
  ) throws -> [LogNodeStore.Removal] {
    let state = try applier.replay(item.commit, page: page, isOwn: isOwn, row: &row)
    if let split = state.split { _ = try applier.settle(split, item, state, parentList: row.head?.acl, isOwn: isOwn) }
    if isOwn {
      try InFlightCompletion(session: session, zone: zone, transaction: transaction)
        .complete(receivedMs: item.receivedMs)
    }
    return state.removed
  }

  // MARK: Members

  /// Queues the changes of the access list that the server has forgotten, if they took rights from members: the owner would
  /// believe them to be removed. What a member got is not given again. Changes that the accepted log contains since stand.
  private func changeAgain(_ pinned: ZoneACL.Fields, _ common: ZoneACL.Fields?, _ row: ZoneRow) throws {
    guard let common, !row.isClosed, let list = row.head?.acl.fields, pinned.entry(for: session.user) != nil,
      let root = try nodes.root(zone: zone)
    else { return }
    let store = ListChangeStore(transaction)
    for entry in list.entries where common.entry(for: entry.user)?.permissions == entry.permissions {
      guard let change = pinned.reduction(of: entry), list.allows(change, by: session.user),
        try store.waiting(node: root, member: entry.user).isEmpty
      else { continue }
      try transaction.queue(change, of: root, localUser: session.localUser, atMs: session.now())
    }
  }

  /// Queues the own profile if the other log lacks it. Its node has no row here. A change that is queued already stands.
  private func putProfileAgain(_ row: ZoneRow) throws {
    let profiles = transaction.profiles
    guard let known = try profiles.profile(of: session.user, localUser: row.localUser, tree: row.appTreeID),
      try leaves.leaf(known.node) == nil, try profiles.queued(inbox: zone) == nil
    else { return }
    try transaction.queue(known.profile, inbox: zone, atMs: session.now())
  }

  // MARK: The difference

  private func settle(_ replayed: Replayed, root: NodeID) throws -> ZDCRestoreSummary {
    var removed = try removedWithoutNotice()
    for (removal, _) in replayed.removals {
      for node in removal.all where try leaves.leaf(node) == nil { removed.insert(node) }
    }
    var summary = ZDCRestoreSummary()
    summary.created = try createLost(except: removed, root: root)
    try remove(replayed.removals)
    try leaves.keepProgressOfUnchanged()
    var resurrected: [LogNodeStore.Changed] = []
    try leaves.forEachChanged { leaf in
      if let row = try nodes.node(zone: zone, nodeID: leaf.node) {
        summary.changed += try settle(row, leaf, isRoot: leaf.node == root)
      } else if leaf.isNew, let common = replayed.common, leaf.putSeq <= common {
        resurrected.append(leaf)
      }
    }
    summary.deleted = try deleteAgain(resurrected)
    return summary
  }

  /// Returns nodes that were deleted earlier but are still here because the app threw. The server did not lose them.
  private func removedWithoutNotice() throws -> Set<NodeID> {
    var removed: Set<NodeID> = []
    for top in try transaction.delegateFailures.deletedNodes(zone: zone) {
      guard let row = try nodes.node(zone: zone, nodeID: top) else { continue }
      for below in try nodes.subtree(of: row.id) where try leaves.leaf(below.nodeID) == nil {
        removed.insert(below.nodeID)
      }
    }
    return removed
  }

  /// - Returns: The number of nodes that may have to be sent again.
  private func settle(_ row: NodeRow, _ leaf: LogNodeStore.Changed, isRoot: Bool) throws -> Int {
    guard let cloud = row.cloud else { return 0 }
    if cloud.recordHash == leaf.record {
      try leaves.set(.applied, leaf.node)
      return 0
    }
    guard !isRoot else {
      // The access list defines the zone's keys, so no version of the root is newer.
      var root = row
      root.cloud = nil
      try nodes.update(root)
      return 0
    }
    try sendAgain(row, cloud)
    return 1
  }

  /// Queues the creation of nodes that were in the cloud but are unknown to the server. They keep their old IDs,
  /// because other devices send the same ones.
  private func createLost(except removed: Set<NodeID>, root: NodeID) throws -> Int {
    guard let top = try nodes.root(zone: zone) else { return 0 }
    var count = 0
    // Parents first, because a child's creation waits for its parent's.
    for id in try nodes.subtreeIDs(of: top.id) {
      guard var row = try nodes.node(id: id), row.isUploaded, row.nodeID != root else { continue }
      if try removed.contains(row.nodeID) || leaves.leaf(row.nodeID) != nil { continue }
      // The new record names the lost record's content: the server may still store it, and this device has its key.
      // `LostContent` asks the app for the content if the server does not have it.
      row.cloud = nil
      row.quarantine = nil
      try nodes.update(row)
      for operation in try transaction.operations.operations(node: row.id) {
        try reset(operation, row)
      }
      let parent = try row.parent.flatMap { try transaction.operations.create(ofNode: $0) }
      try queue(.create, row, resend: 1, dependsOn: parent, namesContent: row.content?.content.eTag)
      count += 1
    }
    return count
  }

  /// Resets a queued operation: a move is part of the creation, and an edit is based on the lost content.
  private func reset(_ operation: OperationRow, _ row: NodeRow) throws {
    switch operation.kind {
    case .move, .modify: try transaction.operations.delete(id: operation.id)
    case .putData:
      var operation = operation
      operation.baseETag = row.content?.content.eTag
      try transaction.operations.update(operation)
    case .create, .delete, .changeList, .deliver, .putProfile: break
    }
  }

  /// Queues a record. Once the server's record is here, `ChangeApplier` determines which side is older and drops
  /// operations that are not needed.
  private func sendAgain(_ row: NodeRow, _ cloud: NodeRow.RemoteState) throws {
    try queue(.move, row, resend: cloud.recordVersion, dependsOn: nil)
  }

  /// Queues deletes of the topmost nodes only, because the rest is deleted with them.
  private func deleteAgain(_ resurrected: [LogNodeStore.Changed]) throws -> Int {
    let all = Set(resurrected.map(\.node))
    for leaf in resurrected {
      try leaves.set(.applied, leaf.node)
      if all.contains(leaf.parent) { continue }
      var operation = OperationRow(
        uuid: UUIDv7.make(atMs: session.now()), zone: zone, kind: .delete, node: nil, nodeUUID: UUID().uuidString,
        nodeID: leaf.node,
        createdMs: session.now())
      operation.resend = 1
      try transaction.operations.insert(&operation)
    }
    return all.count
  }

  private func remove(_ removals: [(removal: LogNodeStore.Removal, receivedMs: UInt64)]) throws {
    for (removal, receivedMs) in removals {
      let remover = RemoteRemoval(session: session, zone: zone, transaction: transaction, receivedMs: receivedMs)
      try remover.apply(
        LogNodeStore.Removal(top: removal.top, all: try removal.all.filter { try leaves.leaf($0) == nil }))
    }
  }

  @discardableResult
  private func queue(
    _ kind: OperationRow.Kind, _ row: NodeRow, resend: UInt64, dependsOn: Int64?,
    namesContent: String? = nil
  ) throws -> Int64 {
    var operation = OperationRow(
      uuid: UUIDv7.make(atMs: session.now()), zone: zone, kind: kind, node: row.id, nodeUUID: row.uuid,
      nodeID: row.nodeID,
      createdMs: session.now())
    operation.resend = resend
    operation.baseETag = namesContent
    try transaction.operations.insert(&operation, dependsOn: dependsOn.map { [$0] } ?? [])
    return operation.id
  }
}

extension ZoneACL.Fields {
  /// Returns the change after which a member has the rights of this list; nil if that would take nothing from them.
  fileprivate func reduction(of member: ZoneACL.Entry) -> ListChange? {
    guard let permissions = entry(for: member.user)?.permissions else { return .remove(member.user) }
    let isReduction = permissions != member.permissions && member.permissions.mayGive(permissions)
    return isReduction ? .modify(member.user, permissions) : nil
  }
}
