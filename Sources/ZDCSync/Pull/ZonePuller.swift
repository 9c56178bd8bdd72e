internal import Foundation
internal import ZDCAccounts
package import ZDCClientAPI
package import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol

/// Follows one zone's log: fetches pages, verifies them by replay, and pins the head.
///
/// There are two steps, which may be interrupted at any point. Each page of the log is stored together with the pin in
/// one transaction. ``RecordPuller`` applies its records after that. A first pull reads the whole log before the first
/// record, with one request for all that is not in the first page. The table of leaves holds the records to fetch, so a
/// relaunch resumes.
package struct ZonePuller {
  package let session: SyncSession
  package let zone: Int64

  /// The result of a pull, and the first error that the app threw. An app error does not stop the other nodes.
  package struct Pulled: Sendable {
    package var summary = ZDCPullSummary()
    package var refusal: DelegateError?
    /// Whether the server provides nothing of a grafted branch, so that it must be asked again later.
    var isUnreachable = false

    package static func += (a: inout Pulled, b: Pulled) {
      a.summary += b.summary
      a.refusal = a.refusal ?? b.refusal
      a.isUnreachable = a.isUnreachable || b.isUnreachable
    }
  }

  /// Whether this is the second attempt, over another connection.
  var isSecondTry = false
  /// Whether another zone's pull needs this one first.
  var isInsideOther = false

  private var records: RecordPuller { RecordPuller(session: session, zone: zone) }
  var doubts: DoubtStore { DoubtStore(session: session, zone: zone) }
  private var related: RelatedZonePuller { RelatedZonePuller(session: session, zone: zone) }
  var graft: GraftAcceptance { GraftAcceptance(session: session, zone: zone) }

  /// Pulls until the local tree matches the server's head.
  ///
  /// - Parameter pages: The pages of a round's zones.
  /// - Throws: `ZDCSecurityError` if the answers could not be followed on the second attempt either; `ZDCServerError`,
  ///   `ZDCTransportError`.
  package func pull(_ pages: RoundPages? = nil) async throws -> Pulled { try await follow(nil, pages) }

  /// Applies a page that arrived with an event or a 409 response, then fetches and applies its records.
  package func take(_ page: CommitPage) async throws -> Pulled { try await follow(page) }

  func pullPages(
    _ pages: RoundPages?, _ summary: inout ZDCPullSummary, _ left: inout DeferredNodes
  ) async throws {
    guard var row = try await zoneRow() else { return }
    try await graft.acceptIfGrafted(row)
    if row.head == nil, row.owner != nil {
      left.note(try await related.pullHolder(of: row))
      guard let current = try await zoneRow() else { return }
      row = current
    }
    try await Doubt.catching(row.zone) { [row] in try await GrantRetry(session: session, zone: zone).run(row) }
    try await ZoneKeyRequests(session: session).takeSentKey(of: zone)
    let isFirst = try await isFirstPull(row)
    if isFirst { try await session.beginMessages(in: row) }
    var fetched = try await pages?.page(of: zone)
    var hasMore = true
    while hasMore {
      let page = try await nextPage(row, fetched, withRecords: !isFirst)
      fetched = nil
      if isFirst { try await checkExpected(page, row) }
      let applied = try await apply(page, to: row)
      summary.commits += applied.commits
      left.note(applied.refusal)
      hasMore = page.hasMore && applied.commits > 0
      guard let next = try await zoneRow() else { break }
      row = next
      // A first pull reads the whole log before it shows anything, because only then are depth and age of all nodes
      // known.
      if !isFirst { try await records.pull(applied.records, &summary, &left, isWholeLog: !hasMore) }
      if isFirst, hasMore { hasMore = try await pullWholeLog(&row, &summary, &left) }
    }
    if isFirst { try await graft.checkInvitation() }
    try await records.pull([:], &summary, &left)
    try await session.findMessageGaps(in: row)
    try await ZoneKeyRequests(session: session).ask(zone)
  }

  /// Returns whether no node of the zone is shown yet. An earlier first pull may have been interrupted.
  private func isFirstPull(_ row: ZoneRow) async throws -> Bool {
    if row.head == nil { return true }
    return try await session.database.asyncRead { [zone] transaction in
      try transaction.nodes.root(zone: zone)?.isPlaceholder ?? true
    }
  }

  func takePage(_ page: CommitPage, _ summary: inout ZDCPullSummary, _ left: inout DeferredNodes) async throws {
    guard let row = try await zoneRow() else { return }
    let isFirst = try await isFirstPull(row)
    if isFirst { try await session.beginMessages(in: row) }
    let applied = try await apply(page, to: row)
    summary.commits += applied.commits
    left.note(applied.refusal)
    if isFirst { try await graft.checkInvitation() }
    try await records.pull(applied.records, &summary, &left)
    try await session.findMessageGaps(in: row)
  }

  package func zoneRow() async throws -> ZoneRow? {
    try await session.database.asyncRead { [zone] transaction in try transaction.zones.zone(id: zone) }
  }

  // MARK: Pages

  struct AppliedPage: Sendable {
    var commits = 0
    var records: [RecordHash: PageContents.Record] = [:]
    var refusal: DelegateError?
  }

  func apply(_ page: CommitPage, to row: ZoneRow) async throws -> AppliedPage {
    let pin = row.head.map { (seq: $0.seq, hash: $0.hash) }
    switch HeadRules.compare(pin: pin, server: page.head) {
    case .upToDate:
      try await session.meetMembers(of: [row.head?.acl], zone: zone)
      return AppliedPage()
    case .broken(let code): return try await broken(code, page, row)
    case .behind: break
    }
    let contents = try await Doubt.catching(row.zone) { try PageContents(page.body, after: page.listBefore) }
    guard contents.commits.allSatisfy({ $0.commit.fields.zone == row.zone }) else {
      throw Doubt(ZDCSecurityError(.recordBindingMismatch, zone: row.zone), .none)
    }
    var known = try await writerKeys(contents.memberSigners(after: row.head?.acl), row)
    let origins = try await OriginReader(session: session, zone: zone).origins(of: contents, row, writers: known)
    known.add(try await writerKeys(origins.signers, row))
    let writers = known
    try await readKeys(namedIn: Array(contents.lists.values) + origins.branches.values.map(\.acl))
    try await meetMembers(of: contents, origins, row, writers: writers)
    let inOthers = try await pullOthers(before: contents, row)
    // A long page would hold the database's writer for most of the time on one core.
    let signatures = await CommitSignatures.check(contents.commits.map(\.commit), writers)
    return try await Doubt.catching(row.zone, isSigned: { contents.isSigned(by: writers) }) {
      let ((count, isKnown), refusal) = try await session.writeNotifyingDelegate { [session, zone] transaction in
        let applier = PageApplier(
          session: session, zone: zone, transaction: transaction, writers: writers, origins: origins,
          signatures: signatures)
        return (try applier.apply(contents), try transaction.isKnown(page.head.seq, zone: zone))
      }
      if count > 0 { session.activity.foundChanges() }
      // The server claims that there are more commits but shows none.
      guard count > 0 || isKnown else { throw ZDCSecurityError(.commitChainBroken) }
      return AppliedPage(commits: count, records: contents.records, refusal: inOthers ?? refusal)
    }
  }

  /// Meets the members of the lists that are in force after the page. Replay verifies the lists afterwards: here, the
  /// signature keeps the server from naming users whom the app would then see.
  private func meetMembers(
    of page: PageContents, _ origins: ZoneOrigins, _ row: ZoneRow, writers: WriterKeys
  ) async throws {
    let known = row.head?.acl
    let lists = [page.newestList ?? known].compactMap { $0 } + origins.branches.values.map(\.acl)
    let certain = lists.filter { $0.hash == known?.hash || $0.isSigned(by: writers) }
    try await session.meetMembers(of: certain, zone: zone)
  }

  /// Pulls other zones that this one needs first.
  private func pullOthers(before page: PageContents, _ row: ZoneRow) async throws -> DelegateError? {
    let deleted = page.deletes(after: row.head?.seq)
    let refusal = try await related.pullBranches(at: deleted)
    return try await isInsideOther ? refusal : related.pullDestinations(of: deleted, row) ?? refusal
  }

  /// Returns the writers' keys. The server may show a member's missing key later, so a missing key is no evidence
  /// against the log.
  private func writerKeys(_ signers: Set<Signer>, _ row: ZoneRow) async throws -> WriterKeys {
    let keys: WriterKeys
    do {
      keys = try await session.keys(of: signers, zone: zone)
    } catch let error as ZDCSecurityError {
      throw Doubt(error.with(zone: row.zone), isSigned: false)
    }
    guard let unknown = keys.missing(of: signers).first else { return keys }
    throw Doubt(ZDCSecurityError(.writerUnknown, zone: row.zone, user: unknown.user), .none)
  }

  /// Sends commits again if the server lost only this device's last few. All other cases are for the user to decide.
  private func broken(_ code: ZDCSecurityError.Code, _ page: CommitPage, _ row: ZoneRow) async throws -> AppliedPage {
    var (code, lost) = (code, OwnCommits?.none)
    if code == .zoneRollback {
      (code, lost) = try await session.database.asyncRead { [zone] transaction in
        let log = CommitLogStore(db: transaction.database, zone: zone)
        let lost = try log.ownCommits(after: page.head.seq)
        let known = try log.hash(seq: page.head.seq)
        return (HeadRules.shorter(known: known, server: page.head.hash, isMissingOwn: lost != nil), lost)
      }
    }
    let error = ZDCSecurityError(code, zone: row.zone)
    guard code == .ownCommitMissing, isSecondTry, let lost,
      HeadRules.isSentAgainUnasked(lost, hasRestored: row.hasRestored, nowMs: session.now())
    else { throw Doubt(error, .suspicion) }
    return try await Doubt.catching(row.zone) {
      let restore = ZoneRestore(session: session, zone: zone)
      return AppliedPage(refusal: try await restore.runUnasked(error, head: page.head.hash))
    }
  }
}

extension ZDCReadTransaction {
  /// Whether the verified log of a zone has a commit with that number, or the zone has ended here. Another pull may have
  /// applied the page.
  func isKnown(_ seq: UInt64, zone: Int64) throws -> Bool {
    try zones.zone(id: zone).map { row in row.head.map { $0.seq >= seq } ?? false } ?? true
  }
}
