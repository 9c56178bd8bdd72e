internal import ZDCAccounts
internal import ZDCClientStore
internal import ZDCProtocol

/// Applies the most frequent kind of event in one transaction: a single change of one node that continues the pinned
/// log. The transaction covers the page, its record and the app's changes.
///
/// All other events, and all errors, are left to ``ZonePuller``, which starts over.
struct SingleChangeFastPath: Sendable {
  package let session: SyncSession
  package let status: ZoneStatus
  package let contents: PageContents
  private let writers: WriterKeys

  package enum Outcome: Sendable {
    /// A rejected push has already fetched the commit, this device made it, or the zone does not belong to this tree.
    case known
    case applied(ZDCPullSummary, isDrained: Bool)
  }

  /// The event needs the general path.
  struct NotEligible: Error {}

  /// - Returns: Nil unless the event holds one commit with one put, and the signers' keys are cached.
  package init?(_ event: HeadEvent, session: SyncSession) {
    guard let page = event.page, let contents = try? PageContents(page.bytes), contents.commits.count == 1,
      let writers = session.cachedKeys(of: contents.signers)
    else { return nil }
    (self.session, status, self.contents, self.writers) = (session, event.status, contents, writers)
    guard put != nil else { return nil }
  }

  private var put: (node: NodeID, record: PageContents.Record)? {
    guard let commit = contents.commits.first?.commit, commit.hash == status.head, commit.fields.seq == status.seq,
      commit.fields.operations.count == 1, case .put(let put)? = commit.fields.operations.first,
      let record = contents.records[put.record]
    else { return nil }
    return (put.node, record)
  }

  /// - Throws: ``NotEligible``, or an error from the protocol's rules. The transaction must then be rolled back.
  package func take(in transaction: ZDCReadWriteTransaction) throws -> Outcome {
    guard let row = try transaction.zones.zone(localUser: session.localUser, status.zone),
      row.appTreeID == session.appTreeID
    else { return .known }
    if try CommitLogStore(db: transaction.database, zone: row.id).hash(seq: status.seq) == status.head { return .known }
    guard let put, row.frozen == nil, row.doubt == nil, let head = row.head, head.seq < .max,
      head.seq + 1 == status.seq,
      try transaction.leaves(zone: row.id).pendingCount() == 0,
      try transaction.delegateFailures.isEmpty(zone: row.id), try !transaction.grafts.isLeft(zone: row.id)
    else { throw NotEligible() }
    var summary = ZDCPullSummary()
    let applier = PageApplier(session: session, zone: row.id, transaction: transaction, writers: writers)
    summary.commits = try applier.apply(contents)
    // The commit may have restored a branch, which needs more records than its own.
    guard summary.commits == 1, try transaction.leaves(zone: row.id).pendingCount() <= 1 else { throw NotEligible() }
    // A record that the app refuses stays pending.
    try session.part(.record, of: row.id, put.node, in: transaction) {
      try apply(put.record, node: put.node, zone: row.id, &summary, transaction)
    }
    let isDrained = try transaction.operations.isEmpty(localUser: session.localUser)
    return .applied(summary, isDrained: isDrained)
  }

  private func apply(
    _ record: PageContents.Record, node: NodeID, zone: Int64, _ summary: inout ZDCPullSummary,
    _ transaction: ZDCReadWriteTransaction
  ) throws {
    // This device's own commit whose answer was lost needs no record.
    guard try transaction.leaves(zone: zone).pendingLeaf(node) != nil else { return }
    var applier = try ChangeApplier(session: session, zone: zone, transaction: transaction)
    guard try applier.apply(record, node: node) else { throw NotEligible() }
    try applier.finishBatch()
    if let row = try transaction.zones.zone(id: zone) {
      try MessageGaps(session: session, transaction: transaction, zone: row).settle()
    }
    summary.records = 1
    summary.announced = applier.announced
  }
}
