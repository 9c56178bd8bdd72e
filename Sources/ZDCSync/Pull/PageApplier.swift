internal import Foundation
internal import GRDB
package import ZDCAccounts
package import ZDCClientStore
internal import ZDCCrypto
package import ZDCProtocol

/// Replays a page of commits inside one transaction: the log table, the pin, the zone's key, deletions, and this
/// device's own commit if its answer was lost.
package struct PageApplier {
  package let session: SyncSession
  package let zone: Int64
  package let transaction: ZDCReadWriteTransaction
  package let writers: WriterKeys
  /// The beginnings of zones that the page's commits split off, and of this zone.
  var origins = ZoneOrigins()
  /// Signatures of the page's commits that were verified before the transaction.
  var signatures = CommitSignatures()

  /// Returns the number of new commits. Commits up to the pin are skipped once they are known to match the pinned ones.
  package func apply(_ page: PageContents) throws -> Int {
    guard var row = try transaction.zones.zone(id: zone) else { return 0 }
    let inFlight = InFlightStore(transaction: transaction)
    let ownHash = try inFlight.commitHash(zone: zone)
    let deleted = Set(try transaction.operations.deletes(zone: zone).map(\.nodeID))
    let expectedHeads = ExpectedHeadStore(transaction, localUser: session.localUser)
    let expected = try expectedHeads.head(of: row.zone)
    let listBefore = row.head?.acl
    var count = 0
    var versions: [AccessChange.Version] = []
    var unwritten: [CommitLogStore.Entry] = []
    for item in page.commits {
      // A request of this device may contain the genesis of another zone.
      if origins.isOwnRequest, item.commit.fields.zone != row.zone { continue }
      try require(item.commit.fields.zone == row.zone, .recordBindingMismatch)
      if let head = row.head, item.commit.fields.seq <= head.seq {
        try write(&unwritten)
        try checkKnown(item.commit, head: head)
        continue
      }
      let isOwn = item.commit.hash == ownHash
      if !isOwn { try crossing.prepare(for: item.commit, in: zone) }
      let before = row.head?.acl
      let state = try follow(item.commit, page: page, isOwn: isOwn, row: &row)
      unwritten.append(CommitLogStore.Entry(item.commit, isOwn: isOwn, raisesKeys: state.raisesKeys))
      // All other commits lead to steps or calls of the app that may read the log.
      let isPlain = !isOwn && item.commit.hasOnlyPuts
      if !isPlain || unwritten.count == CommitLogStore.block { try write(&unwritten) }
      if expected?.seq == item.commit.fields.seq { try expectedHeads.fulfil(item.commit) }
      if state.split != nil { try transaction.zones.update(row) }
      let split = try state.split.map { try settle($0, item, state, parentList: row.head?.acl, isOwn: isOwn) }
      if isOwn {
        try InFlightCompletion(session: session, zone: zone, transaction: transaction)
          .complete(receivedMs: item.receivedMs)
        if let split { try split.applyOwnRecords(page, receivedMs: item.receivedMs) }
      }
      if let before, let after = row.head?.acl, after.hash != before.hash {
        versions.append(
          AccessChange.Version(
            before: before.fields, after: after.fields, seq: item.commit.fields.seq, commit: item.commit.hash,
            receivedMs: item.receivedMs, isOwn: isOwn))
      }
      count += 1
      if row.isClosed {
        if isOwn { for removal in state.removed { try crossing.forget(removal.all, in: zone) } }
        continue
      }
      if MessageGaps.concern(row) {
        try MessageNumberStore(transaction, inbox: zone).countUnread(state.removed.flatMap(\.all))
      }
      try remove(state.removed, item)
      if !deleted.isEmpty, !isOwn { try readAgain(state.moved.keys, outside: deleted) }
    }
    try write(&unwritten)
    try transaction.zones.update(row)
    if count > 0 { try MemberHeads(session: session, transaction: transaction).settle(row) }
    if row.isClosed, count > 0 {
      try end(receivedMs: page.commits.last?.receivedMs ?? 0)
      return count
    }
    if count > 0 { try releaseNames() }
    try AccessChange(session: session, zone: zone, transaction: transaction).apply(versions)
    if let list = row.head?.acl, list.hash != listBefore?.hash {
      try ProfileDeliveries(session: session, transaction: transaction)
        .queue(for: row, before: listBefore?.fields, isOwn: versions.contains(where: \.isOwn))
    }
    return count
  }

  /// Stores commits in the table of the log.
  private func write(_ unwritten: inout [CommitLogStore.Entry]) throws {
    try log.insert(unwritten)
    unwritten.removeAll(keepingCapacity: true)
  }

  /// Ends the zone here, after its last commit.
  private func end(receivedMs: UInt64) throws {
    try LostAccess(session: session, zone: zone, transaction: transaction, receivedMs: receivedMs, isEnd: true).settle()
    // The commit that deletes the pointer to the zone waits for this one.
    transaction.signal(.queue(localUser: session.localUser))
  }

  /// Releases names. A commit, even this device's own, may have freed a name that two nodes had.
  private func releaseNames() throws {
    let places = LocalTreeResolver(session: session, transaction: transaction)
    let leaves = LogNodeStore(db: transaction.database, zone: zone)
    _ = try DuplicateNames(session: session, transaction: transaction, places: places, leaves: leaves).release()
  }

  /// Checks a commit at or below the pin. A different commit at a known position proves a second history if a member
  /// signed it.
  private func checkKnown(_ commit: ZoneCommit, head: ZoneHead) throws {
    let known = commit.fields.seq == head.seq ? head.hash : try log.hash(seq: commit.fields.seq)
    guard let known, known != commit.hash else { return }
    try commit.checkSigner(writers)
    throw ZDCSecurityError(.zoneForkDetected, zone: head.zone, user: commit.fields.writer)
  }

  /// Checks for a fork. A signed commit after the pinned one that names a different predecessor proves a second
  /// history; a gap proves nothing.
  private func checkFork(_ commit: ZoneCommit, head: ZoneHead?) throws {
    let fields = commit.fields
    guard let head, fields.zone == head.zone, head.seq < .max, fields.seq == head.seq + 1, fields.prev != head.hash
    else { return }
    do { try commit.checkSigner(writers) } catch is ZDCSecurityError { return }
    throw ZDCSecurityError(.zoneForkDetected, zone: head.zone, user: fields.writer)
  }

  /// Replays the next commit, and stores it in the table of the log.
  package func replay(
    _ commit: ZoneCommit, page: PageContents, isOwn: Bool, row: inout ZoneRow
  ) throws -> LogNodeStore {
    let state = try follow(commit, page: page, isOwn: isOwn, row: &row)
    try log.insert(commit, isOwn: isOwn, raisesKeys: state.raisesKeys)
    return state
  }

  private func follow(
    _ commit: ZoneCommit, page: PageContents, isOwn: Bool, row: inout ZoneRow
  ) throws -> LogNodeStore {
    var state = LogNodeStore(
      db: transaction.database, zone: zone, commit: commit, after: row.head?.acl.fields, pending: !isOwn,
      branchZone: try origins.branchZone(of: commit, parent: row, user: session.user, transaction),
      knownSplit: origins.knownSplit(of: commit, after: row.head))
    let acl = page.acl(of: commit)
    try require(commit.fields.zone == row.zone, .recordBindingMismatch)
    if commit.fields.seq == 0 { try checkGenesis(commit, acl, row) }
    try checkFork(commit, head: row.head)
    let step = try advance(commit, acl, after: row.head, to: &state)
    (row.head, state.split) = (step.head, step.split)
    if row.trunk == .inbox, row.owner == nil {
      try transaction.messages.setSeen(commit.fields.operations.compactMap(\.putNode), zone: zone)
    }
    if let acl {
      row.listSeq = commit.fields.seq
      try ZoneKeys(session: session, transaction: transaction).take(acl, page.grants, row: &row)
    }
    return state
  }

  private func advance(
    _ commit: ZoneCommit, _ acl: ZoneACL?, after head: ZoneHead?, to state: inout LogNodeStore
  ) throws -> ZoneStep {
    do {
      return try ZoneReplay(identities: writers, signatures: signatures)
        .advance(commit, acl: acl, list: origins.state, after: head, to: &state)
    } catch let error as ZDCSecurityError where error.code == .keyCommitmentMismatch {
      // Everywhere else this code is about one key. Replay checks the commit's signature first, so this is proof.
      throw Doubt(error, isSigned: true)
    }
  }

  /// Checks the first commit of a log: the owner's chain names that of a trunk, and the split that of a branch.
  private func checkGenesis(_ commit: ZoneCommit, _ acl: ZoneACL?, _ row: ZoneRow) throws {
    guard !row.isTrunk else {
      return try ownerIdentity(of: row).checkGenesis(commit, trunk: row.trunk, appTreeID: row.appTreeID)
    }
    let isOrigin = row.genesis.map { $0 == commit.hash } ?? true
    try require(isOrigin, .zoneForkDetected)
    try require(acl?.fields.owner == row.owner ?? session.user, .recordBindingMismatch)
  }

  /// Applies a split after its commit was replayed.
  func settle(
    _ split: ZoneSplit, _ item: PageContents.Commit, _ state: LogNodeStore, parentList: ZoneACL?, isOwn: Bool
  ) throws -> SplitApplier {
    let applier = SplitApplier(
      session: session, zone: zone, transaction: transaction, writers: writers, split: split,
      origin: origins.branches[split.genesis], branch: state.branchZone, receivedMs: item.receivedMs, isOwn: isOwn)
    try applier.apply(item.commit, state.departed, parentList: parentList)
    return applier
  }

  /// Returns the identity whose chain names the trunk's first commit. The chain of another owner was pinned before the
  /// zone was accepted.
  private func ownerIdentity(of row: ZoneRow) throws -> VerifiedIdentity {
    guard let owner = row.owner else { return session.keys.identity }
    guard let chain = try transaction.users.chain(of: owner) else {
      throw ZDCSecurityError(.writerUnknown, zone: row.zone, user: owner)
    }
    return try IdentityReplay.verify(IdentityChain.links(chain, of: owner), expected: owner)
  }

  /// Reads nodes again that another device moved out of a branch in time. The branch's deletion is queued here, so its
  /// nodes have no rows.
  private func readAgain(_ moved: some Sequence<NodeID>, outside deleted: Set<NodeID>) throws {
    let leaves = LogNodeStore(db: transaction.database, zone: zone)
    for node in moved where try transaction.nodes.node(zone: zone, nodeID: node) == nil {
      let isDeleted = try deleted.contains(node) || leaves.ancestors(of: node).contains(where: deleted.contains)
      if !isDeleted { try leaves.requeueLost(below: node) }
    }
  }

  /// Applies deletions. They need no record and are announced with the page.
  private func remove(_ removals: [LogNodeStore.Removal], _ item: PageContents.Commit) throws {
    guard !removals.isEmpty else { return }
    try transaction.unreadable.forgetPast(zone: zone)
    let remover = RemoteRemoval(
      session: session, zone: zone, transaction: transaction, receivedMs: item.receivedMs,
      writer: item.commit.fields.writer)
    for removal in removals {
      try crossing.cancel(below: Set(removal.all), in: zone)
      try crossing.forget(removal.all, in: zone)
      try remover.apply(removal)
    }
  }

  private var crossing: ZoneCrossing { ZoneCrossing(session: session, transaction: transaction) }

  private var log: CommitLogStore { CommitLogStore(db: transaction.database, zone: zone) }
}

extension ZoneCommit {
  fileprivate var hasOnlyPuts: Bool { fields.operations.allSatisfy { $0.putNode != nil } }
}

extension ZoneOperation {
  fileprivate var putNode: NodeID? { if case .put(let put) = self { put.node } else { nil } }
}
