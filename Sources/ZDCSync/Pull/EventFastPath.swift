internal import ZDCAccounts
internal import ZDCClientStore
internal import ZDCProtocol

/// Applies the most frequent kind of event in one transaction: a commit that puts a few nodes, and continues the pinned
/// log. The transaction covers the page, its records and the app's changes.
///
/// All other events, and all errors, are left to ``ZonePuller``, which starts over.
struct EventFastPath: Sendable {
  /// The maximum number of nodes. Records of more nodes are applied in the order that the app prefers.
  private static let maxPuts = 16

  package let session: SyncSession
  package let status: ZoneStatus
  package let contents: PageContents
  private let writers: WriterKeys
  private let puts: [Put]

  private typealias Put = (node: NodeID, record: PageContents.Record)

  package enum Outcome: Sendable {
    /// A rejected push has already fetched the commit, this device made it, or the zone does not belong to this tree.
    case known
    case applied(ZDCPullSummary, isDrained: Bool)
  }

  /// The event needs the general path.
  struct NotEligible: Error {}

  /// - Returns: Nil unless the event holds one commit with a few puts, and the signers' keys are cached.
  package init?(_ event: HeadEvent, session: SyncSession) {
    guard let page = event.page, let contents = try? PageContents(page.bytes), contents.commits.count == 1,
      let puts = Self.puts(of: contents, event.status), let writers = session.cachedKeys(of: contents.signers)
    else { return nil }
    (self.session, status, self.contents, self.writers, self.puts) = (session, event.status, contents, writers, puts)
  }

  /// - Returns: Nil if the commit does anything else, or if a record is missing.
  private static func puts(of contents: PageContents, _ status: ZoneStatus) -> [Put]? {
    guard let commit = contents.commits.first?.commit, commit.hash == status.head, commit.fields.seq == status.seq,
      (1...maxPuts).contains(commit.fields.operations.count)
    else { return nil }
    let puts = commit.fields.operations.compactMap { operation -> Put? in
      guard case .put(let put) = operation else { return nil }
      return contents.records[put.record].map { (put.node, $0) }
    }
    return puts.count == commit.fields.operations.count ? puts : nil
  }

  /// - Throws: ``NotEligible``, or an error from the protocol's rules. The transaction must then be rolled back.
  package func take(in transaction: ZDCReadWriteTransaction) throws -> Outcome {
    guard let row = try transaction.zones.zone(localUser: session.localUser, status.zone),
      row.appTreeID == session.appTreeID
    else { return .known }
    if try CommitLogStore(db: transaction.database, zone: row.id).hash(seq: status.seq) == status.head { return .known }
    let leaves = transaction.leaves(zone: row.id)
    guard row.frozen == nil, row.doubt == nil, let head = row.head, head.seq < .max, head.seq + 1 == status.seq,
      !session.hasStrangers(head.acl), try leaves.pendingCount() == 0,
      try transaction.delegateFailures.isEmpty(zone: row.id),
      try !transaction.grafts.isLeft(zone: row.id)
    else { throw NotEligible() }
    var summary = ZDCPullSummary()
    let applier = PageApplier(session: session, zone: row.id, transaction: transaction, writers: writers)
    summary.commits = try applier.apply(contents)
    // The commit may have restored a branch, which needs more records than its own.
    guard summary.commits == 1, try leaves.pendingCount() <= puts.count else { throw NotEligible() }
    try apply(try pending(leaves), zone: row.id, &summary, transaction)
    let isDrained = try transaction.operations.isEmpty(localUser: session.localUser)
    return .applied(summary, isDrained: isDrained)
  }

  /// Returns the puts with a record to apply, parents first. This device's own commit whose answer was lost needs none.
  private func pending(_ leaves: LogNodeStore) throws -> [Put] {
    let pending = try puts.filter { try leaves.pendingLeaf($0.node) != nil }
    guard pending.count > 1 else { return pending }
    let placed = try pending.map { (put: $0, depth: try leaves.ancestors(of: $0.node).count) }
    return placed.sorted { $0.depth < $1.depth }.map(\.put)
  }

  /// Applies the records. One that the app refuses stays pending.
  private func apply(
    _ puts: [Put], zone: Int64, _ summary: inout ZDCPullSummary, _ transaction: ZDCReadWriteTransaction
  ) throws {
    guard !puts.isEmpty else { return }
    var applier = try ChangeApplier(session: session, zone: zone, transaction: transaction)
    for put in puts {
      let before = applier
      let isTold = try session.part(.record, of: zone, put.node, in: transaction) {
        guard try applier.apply(put.record, node: put.node) else { throw NotEligible() }
      }
      if isTold { summary.records += 1 } else { applier = before }
    }
    try applier.finishBatch()
    if let row = try transaction.zones.zone(id: zone) {
      try MessageGaps(session: session, transaction: transaction, zone: row).settle()
    }
    summary.announced = applier.announced
  }
}
