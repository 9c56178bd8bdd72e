internal import Foundation
internal import ZDCAccounts
internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport

/// How much is sent again after a server had lost it.
public struct ZDCRestoreSummary: Sendable, Hashable {
  /// Nodes that the server has no longer: they are created again.
  public var created = 0
  /// Nodes of which the server may have an older version: what is older is sent again.
  public var changed = 0
  /// Nodes that were deleted, and that the server has again: they are deleted again.
  public var deleted = 0
  /// Verified commits that the server's log lacks: with more than 0 it has gone back.
  public var missingCommits: UInt64 = 0
}

/// Takes a server's log, which is not the one that this device had verified, as the zone's log, and queues what it lacks
/// (PROTOCOL 3.7, "Accepting a restored server").
///
/// The whole log is verified anew from its genesis. Nothing changes until that has succeeded, and then all of it in one
/// transaction. Memory holds a page of it at a time and the ids of nodes that differ; the disk holds what members have
/// signed and nothing else.
struct ZoneRestore {
  package let session: SyncSession
  package let zone: Int64

  /// On the user's word. A log that lacks verified commits is recorded as a rollback, if the user does not know yet.
  ///
  /// - Throws: `ZDCSecurityError` if the server's log does not hold; then everything is as before.
  /// - Returns: also the first of the app's errors on the way.
  package func run() async throws -> (summary: ZDCRestoreSummary, refusal: DelegateError?) {
    guard let row = try await zoneRow() else { return (ZDCRestoreSummary(), nil) }
    let log = try await fetchLog(row.zone)
    let (result, refusal) = try await session.writeTelling { [session, zone] transaction in
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

  /// Without the user: the log that ends with `head`, and no other one, lacks what `event` says.
  ///
  /// - Returns: the first of the app's errors on the way.
  func runUnasked(_ event: ZDCSecurityError, head: CommitHash) async throws -> DelegateError? {
    guard let row = try await zoneRow() else { return nil }
    let log = try await fetchLog(row.zone)
    try require(log.head == head, .commitChainBroken)
    let (_, refusal) = try await session.writeTelling { [session, zone] transaction in
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

  private func fetchLog(_ zone: ZoneID) async throws -> FetchedLog {
    let pages = try PageSpool()
    var writers = WriterKeys(own: session.keys)
    var chain = LogChain(zone: zone)
    while true {
      let page = try await session.api.commitPage(zone, after: chain.seq, withRecords: false)
      let before = chain.seq
      let contents = try PageContents(page.body)
      writers.add(try await session.keys(for: contents, after: chain.list, zone: self.zone))
      try pages.append(try chain.verified(contents, writers: writers))
      guard page.hasMore else { return FetchedLog(pages: pages, head: page.head.hash, writers: writers) }
      guard chain.seq != before else { throw ZDCSecurityError(.commitChainBroken, zone: zone) }
    }
  }
}

/// A whole log: signed by members, one commit behind the other, and not yet replayed.
struct FetchedLog: Sendable {
  package var pages: PageSpool
  package var head: CommitHash
  package var writers: WriterKeys
}

/// Replaces a zone's verified log by another one, inside one transaction, and queues the difference.
struct ZoneRewind {
  package let session: SyncSession
  package let zone: Int64
  package let transaction: ZDCReadWriteTransaction
  /// The user was not asked.
  package var isUnasked = false
  private let nodes: NodeStore
  private let log: CommitLogStore
  private var leaves: LeafStore

  package init(session: SyncSession, zone: Int64, transaction: ZDCReadWriteTransaction) {
    self.session = session
    self.zone = zone
    self.transaction = transaction
    nodes = transaction.nodes
    log = CommitLogStore(db: transaction.database, zone: zone)
    leaves = LeafStore(db: transaction.database, zone: zone)
  }

  /// What the replay of the other log has found.
  private struct Replayed {
    /// The last commit that both logs have.
    var common: UInt64?
    /// Removed by commits behind that one, with the time of it.
    var removals: [(removal: LeafStore.Removal, receivedMs: UInt64)] = []
  }

  package func apply(_ fetched: FetchedLog) throws -> ZDCRestoreSummary {
    guard var row = try transaction.zones.zone(id: zone) else { return ZDCRestoreSummary() }
    let pinned = row.head?.seq
    try leaves.setAside()
    (row.head, row.frozen, row.isProven, row.doubt) = (nil, nil, false, nil)
    row.hasRestored = isUnasked
    let replayed = try replay(fetched, row: &row)
    guard row.head?.hash == fetched.head else { throw ZDCSecurityError(.commitChainBroken, zone: row.zone) }
    try log.remove(from: (row.head?.seq ?? 0) + 1)
    try transaction.zones.update(row)
    // The request in flight names a head that is no more; if it has arrived after all, replay has met it.
    try InFlightCompletion(session: session, zone: zone, transaction: transaction).abandon()
    var summary = try settle(replayed, root: row.zone.root)
    summary.missingCommits = pinned.map { $0 + 1 - (replayed.common.map { $0 + 1 } ?? 0) } ?? 0
    try leaves.forgetAside()
    return summary
  }

  private func replay(_ fetched: FetchedLog, row: inout ZoneRow) throws -> Replayed {
    let applier = PageApplier(session: session, zone: zone, transaction: transaction, writers: fetched.writers)
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
        if !isCommon { result.removals += removed.map { ($0, item.receivedMs) } }
      }
    }
    return result
  }

  private func replay(
    _ item: PageContents.Commit, _ page: PageContents, isOwn: Bool, _ applier: PageApplier, row: inout ZoneRow
  ) throws -> [LeafStore.Removal] {
    let state = try applier.replay(item.commit, page: page, isOwn: isOwn, row: &row)
    if isOwn {
      try InFlightCompletion(session: session, zone: zone, transaction: transaction)
        .complete(receivedMs: item.receivedMs)
    }
    return state.removed
  }

  // MARK: The difference

  private func settle(_ replayed: Replayed, root: NodeID) throws -> ZDCRestoreSummary {
    var removed = try removedUntold()
    for (removal, _) in replayed.removals {
      for node in removal.all where try leaves.leaf(node) == nil { removed.insert(node) }
    }
    var summary = ZDCRestoreSummary()
    summary.created = try createLost(except: removed, root: root)
    try remove(replayed.removals)
    try leaves.keepProgressOfUnchanged()
    var resurrected: [LeafStore.Changed] = []
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

  /// What was deleted before, and is here still because the app threw: no loss of the server's.
  private func removedUntold() throws -> Set<NodeID> {
    var removed: Set<NodeID> = []
    for top in try transaction.delegateFailures.deletedNodes(zone: zone) {
      guard let row = try nodes.node(zone: zone, nodeID: top) else { continue }
      for below in try nodes.subtree(of: row.id) where try leaves.leaf(below.nodeID) == nil {
        removed.insert(below.nodeID)
      }
    }
    return removed
  }

  /// - Returns: how many nodes may have to be sent again.
  private func settle(_ row: NodeRow, _ leaf: LeafStore.Changed, isRoot: Bool) throws -> Int {
    guard let cloud = row.cloud else { return 0 }
    if cloud.recordHash == leaf.record {
      try leaves.set(.applied, leaf.node)
      return 0
    }
    guard !isRoot else {
      // The zone's keys are what its access list says: no version of the root is newer than that.
      var root = row
      root.cloud = nil
      try nodes.update(root)
      return 0
    }
    try sendAgain(row, cloud)
    return 1
  }

  /// Nodes that were in the cloud and that the server does not know: new to it, under their old ids, because other
  /// devices send the same ones.
  private func createLost(except removed: Set<NodeID>, root: NodeID) throws -> Int {
    guard let top = try nodes.root(zone: zone) else { return 0 }
    var count = 0
    // Shallow first: a child's creation waits for its parent's.
    for id in try nodes.subtreeIDs(of: top.id) {
      guard var row = try nodes.node(id: id), row.isUploaded, row.nodeID != root else { continue }
      if try removed.contains(row.nodeID) || leaves.leaf(row.nodeID) != nil { continue }
      // The new record names the content that the lost one had: the server may still store it, and this device has its
      // key. `LostContent` asks the app for it if the server does not.
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

  /// A queued change of place is part of the creation; an edit is based on the content that was lost.
  private func reset(_ operation: OperationRow, _ row: NodeRow) throws {
    switch operation.kind {
    case .move, .modify: try transaction.operations.delete(id: operation.id)
    case .putData:
      var operation = operation
      operation.baseETag = row.content?.content.eTag
      try transaction.operations.update(operation)
    case .create, .delete: break
    }
  }

  /// Which side is older the record will tell when it is there (`ChangeApplier`); what is not needed is dropped then.
  private func sendAgain(_ row: NodeRow, _ cloud: NodeRow.CloudFacts) throws {
    try queue(.move, row, resend: cloud.recordVersion, dependsOn: nil)
  }

  /// Top-most only: the rest goes with them.
  private func deleteAgain(_ resurrected: [LeafStore.Changed]) throws -> Int {
    let all = Set(resurrected.map(\.node))
    for leaf in resurrected {
      try leaves.set(.applied, leaf.node)
      if all.contains(leaf.parent) { continue }
      var operation = OperationRow(
        uuid: SortedUUID.make(atMs: session.now()), zone: zone, kind: .delete, node: nil, nodeUUID: UUID().uuidString,
        nodeID: leaf.node,
        createdMs: session.now())
      operation.resend = 1
      try transaction.operations.insert(&operation)
    }
    return all.count
  }

  private func remove(_ removals: [(removal: LeafStore.Removal, receivedMs: UInt64)]) throws {
    for (removal, receivedMs) in removals {
      let remover = RemoteRemoval(session: session, zone: zone, transaction: transaction, receivedMs: receivedMs)
      try remover.apply(LeafStore.Removal(top: removal.top, all: try removal.all.filter { try leaves.leaf($0) == nil }))
    }
  }

  @discardableResult
  private func queue(
    _ kind: OperationRow.Kind, _ row: NodeRow, resend: UInt64, dependsOn: Int64?,
    namesContent: String? = nil
  ) throws -> Int64 {
    var operation = OperationRow(
      uuid: SortedUUID.make(atMs: session.now()), zone: zone, kind: kind, node: row.id, nodeUUID: row.uuid,
      nodeID: row.nodeID,
      createdMs: session.now())
    operation.resend = resend
    operation.baseETag = namesContent
    try transaction.operations.insert(&operation, dependsOn: dependsOn.map { [$0] } ?? [])
    return operation.id
  }
}
