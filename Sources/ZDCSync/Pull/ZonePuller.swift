internal import Foundation
internal import ZDCAccounts
package import ZDCClientAPI
package import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol

/// Follows one zone's log: fetches pages, verifies them by replay, pins the head, and applies the records to the local
/// tree.
///
/// There are two steps, which may be interrupted at any point. Each page of the log is stored together with the pin in
/// one transaction. Its records follow in batches, each in one transaction with the app's changes. A first pull reads
/// the whole log before the first record. The table of leaves holds the records to fetch, so a relaunch resumes.
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
    try await acceptIfGrafted(row)
    try await doubting(row.zone) { [row] in try await GrantRetry(session: session, zone: zone).run(row) }
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
      if !isFirst { try await materialize(applied.records, &summary, &left) }
    }
    if isFirst { try await checkInvitation() }
    try await materialize([:], &summary, &left)
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
    if isFirst { try await checkInvitation() }
    try await materialize(applied.records, &summary, &left)
    try await session.findMessageGaps(in: row)
  }

  package func zoneRow() async throws -> ZoneRow? {
    try await session.database.asyncRead { [zone] transaction in try transaction.zones.zone(id: zone) }
  }

  // MARK: Pages

  private struct AppliedPage: Sendable {
    var commits = 0
    var records: [RecordHash: PageContents.Record] = [:]
    var refusal: DelegateError?
  }

  private func apply(_ page: CommitPage, to row: ZoneRow) async throws -> AppliedPage {
    let pin = row.head.map { (seq: $0.seq, hash: $0.hash) }
    switch HeadRules.compare(pin: pin, server: page.head) {
    case .upToDate: return AppliedPage()
    case .broken(let code): return try await broken(code, page, row)
    case .behind: break
    }
    let contents = try decoding(row.zone) { try PageContents(page.body) }
    guard contents.commits.allSatisfy({ $0.commit.fields.zone == row.zone }) else {
      throw Doubt(ZDCSecurityError(.recordBindingMismatch, zone: row.zone), .none)
    }
    let writers = try await writerKeys(contents, row)
    let origins = try await origins(of: contents, row, writers: writers)
    try await readKeys(namedIn: Array(contents.lists.values) + origins.branches.values.map(\.acl))
    var inOthers = try await pullBranches(deletedBy: contents, row)
    inOthers = try await pullDestinations(deletedBy: contents, row) ?? inOthers
    return try await doubting(row.zone, isSigned: { Self.isSigned(contents, writers) }) {
      let ((count, isKnown), refusal) = try await session.writeNotifyingDelegate { [session, zone] transaction in
        let applier = PageApplier(
          session: session, zone: zone, transaction: transaction, writers: writers, origins: origins)
        return (try applier.apply(contents), try transaction.isKnown(page.head.seq, zone: zone))
      }
      if count > 0 { session.activity.foundChanges() }
      // The server claims that there are more commits but shows none.
      guard count > 0 || isKnown else { throw ZDCSecurityError(.commitChainBroken) }
      return AppliedPage(commits: count, records: contents.records, refusal: inOthers ?? refusal)
    }
  }

  /// Returns the writers' keys. The server may show a member's missing key later, so a missing key is no evidence
  /// against the log.
  private func writerKeys(_ page: PageContents, _ row: ZoneRow) async throws -> WriterKeys {
    let keys: WriterKeys
    do {
      keys = try await session.keys(for: page, after: row.head?.acl, zone: zone)
    } catch let error as ZDCSecurityError {
      throw Doubt(error.with(zone: row.zone), isSigned: false)
    }
    guard let unknown = keys.missing(of: page.memberSigners(after: row.head?.acl)).first else { return keys }
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
    return try await doubting(row.zone) {
      let restore = ZoneRestore(session: session, zone: zone)
      return AppliedPage(refusal: try await restore.runUnasked(error, head: page.head.hash))
    }
  }

  // MARK: Records

  /// Returns the number of nodes per transaction. It grows with the number of pending nodes, because each transaction
  /// changes nearly all pages of the name index.
  private static func batchSize(due: Int) -> Int { Limits.recordsPerRequest * min(max(due / 10_000, 1), 4) }

  /// Fetches and applies every pending record, in the app's preferred order.
  ///
  /// - Parameter left: Nodes for which the app threw. They are not retried in this pull and do not stop other nodes.
  func materialize(
    _ known: [RecordHash: PageContents.Record], _ summary: inout ZDCPullSummary, _ left: inout DeferredNodes
  ) async throws {
    left.missing = []
    var refused = left.refused
    var order = try await pendingOrder().filter { !refused.contains($0) }
    while !order.isEmpty {
      let applied = try await materializeInOrder(order, known, &summary, &left)
      refused = left.refused.union(left.missing)
      // Children whose parents came late, and nodes of a page that arrived in the meantime, are still pending.
      order = applied == 0 ? [] : try await pendingOrder().filter { !refused.contains($0) }
    }
    if !left.missing.isEmpty { try await reportMissing(left.missing) }
  }

  /// Nodes that stay pending until the next pull.
  struct DeferredNodes: Sendable {
    package var missing: Set<NodeID> = []
    /// Nodes for which the app threw.
    package var refused: Set<NodeID> = []
    /// The first of these errors.
    package var refusal: DelegateError?

    package mutating func note(_ error: DelegateError?) { refusal = refusal ?? error }

    package func contains(_ node: NodeID) -> Bool { missing.contains(node) || refused.contains(node) }

    package mutating func formUnion(_ other: DeferredNodes) {
      missing.formUnion(other.missing)
      refused.formUnion(other.refused)
      note(other.refusal)
    }
  }

  private func materializeInOrder(
    _ order: [NodeID], _ known: [RecordHash: PageContents.Record], _ summary: inout ZDCPullSummary,
    _ left: inout DeferredNodes
  ) async throws -> Int {
    var applied = 0
    var rest = order[...]
    let size = Self.batchSize(due: order.count)
    var asked = await session.delegate().preferredNodeIDsForPullingRcrds()
    var batch = try await fetchBatch(Self.takeBatch(size, &rest), known)
    while let current = batch {
      let following = Self.takeBatch(size, &rest)
      // Fetched while the current batch is applied.
      async let next = fetchBatch(following, known)
      let result = try await apply(current)
      applied += result.applied
      left.formUnion(result.left)
      summary.records += result.applied
      summary.announced += result.announced
      let preferred = await session.delegate().preferredNodeIDsForPullingRcrds()
      if preferred != asked, !following.isEmpty {
        let leftOut = left
        rest = try await pendingOrder().filter { !leftOut.contains($0) }[...]
        asked = preferred
        batch = try await fetchBatch(Self.takeBatch(size, &rest), known)
      } else {
        batch = try await next
      }
    }
    return applied
  }

  private static func takeBatch(_ size: Int, _ rest: inout ArraySlice<NodeID>) -> [NodeID] {
    let nodes = Array(rest.prefix(size))
    rest = rest.dropFirst(nodes.count)
    return nodes
  }

  /// Fetched records, and the leaves that name them.
  private struct FetchedBatch: Sendable {
    var zone: ZoneID
    var wanted: [LogNode]
    var records: FetchedRecords
  }

  private struct FetchedRecords: Sendable {
    var found: [RecordHash: PageContents.Record] = [:]
    /// Bytes that match the hash but are not a record.
    var unreadable: [RecordHash: ZDCSecurityError] = [:]

    func has(_ hash: RecordHash) -> Bool { found[hash] != nil || unreadable[hash] != nil }
  }

  private struct BatchResult: Sendable {
    var applied = 0
    var announced = 0
    var left = DeferredNodes()
  }

  private func fetchBatch(
    _ nodes: [NodeID], _ known: [RecordHash: PageContents.Record]
  ) async throws -> FetchedBatch? {
    guard !nodes.isEmpty else { return nil }
    let (row, wanted) = try await session.database.asyncRead { [zone] transaction in
      let leaves = LogNodeStore(db: transaction.database, zone: zone)
      return (try transaction.zones.zone(id: zone), try nodes.compactMap { try leaves.pendingLeaf($0)?.leaf })
    }
    guard let zone = row?.zone else { return nil }
    let records = try await fetch(wanted, known, zone: zone)
    return FetchedBatch(zone: zone, wanted: wanted, records: records)
  }

  private func apply(_ batch: FetchedBatch) async throws -> BatchResult {
    // The log, signed by members, names these records by their hashes.
    do {
      var (result, refusal) = try await apply(batch.records, to: batch.wanted)
      result.left.note(refusal)
      return result
    } catch let error as ZDCSecurityError where HeadRules.isAboutLog(error.code) {
      var doubt = Doubt(error.with(zone: batch.zone), isSigned: true)
      doubt.isFinal = doubt.evidence == .proof
      throw doubt
    }
  }

  /// Applies records. Nodes for which the app throws are left out; the others are applied.
  private func apply(
    _ records: FetchedRecords, to wanted: [LogNode]
  ) async throws -> (result: BatchResult, refusal: DelegateError?) {
    try await session.writeNotifyingDelegate { [session, zone] transaction in
      var applier = try ChangeApplier(session: session, zone: zone, transaction: transaction)
      var result = BatchResult()
      for leaf in wanted {
        guard let record = records.found[leaf.record] else {
          if let error = records.unreadable[leaf.record] {
            if try applier.quarantine(error, leaf: leaf) { result.applied += 1 }
          } else {
            try transaction.unreadable.record(.objectMissing, leaf, zone: zone)
            result.left.missing.insert(leaf.node)
          }
          continue
        }
        let before = applier
        let isTold = try session.part(.record, of: zone, leaf.node, in: transaction) {
          if try applier.apply(record, node: leaf.node) { result.applied += 1 }
        }
        guard !isTold else { continue }
        applier = before
        result.left.refused.insert(leaf.node)
      }
      try applier.finishBatch()
      result.announced = applier.announced
      return result
    }
  }

  /// Fetches records. A corrupt or substituted record counts as missing and does not affect the others. Missing records
  /// are requested once more.
  private func fetch(
    _ wanted: [LogNode], _ known: [RecordHash: PageContents.Record], zone: ZoneID
  ) async throws -> FetchedRecords {
    var fetched = FetchedRecords()
    for leaf in wanted { fetched.found[leaf.record] = known[leaf.record] }
    var askedBefore: Set<RecordHash> = []
    var rest = wanted.filter { !fetched.has($0.record) }
    while !rest.isEmpty {
      let next = rest.prefix(Limits.recordsPerRequest)
      let asked = Set(next.map(\.record))
      let body: [UInt8]
      do {
        body = try await session.api.records(zone, Array(next))
      } catch let error as ServerError where error.code == .gone {
        // None of the records are kept any more. The commits that replaced them arrive with the next pull.
        break
      } catch let error as ZDCSecurityError {
        throw Doubt(error.with(zone: zone), isSigned: false)
      }
      let answer = try decoding(zone) { try PageContents(body) }
      fetched.found.merge(answer.records.filter { asked.contains($0.key) }) { old, _ in old }
      fetched.unreadable.merge(answer.unreadable.filter { asked.contains($0.key) }) { old, _ in old }
      // An answer may stop early at its size limit. A second answer without any requested record ends the search.
      let isInVain = !asked.contains(where: fetched.has)
      if isInVain, asked.isSubset(of: askedBefore) { break }
      askedBefore.formUnion(asked)
      rest = rest.filter { !fetched.has($0.record) }
    }
    return fetched
  }

  /// Reports records that the log names but the server does not provide. They are requested again at the next pull.
  private func reportMissing(_ nodes: Set<NodeID>) async throws {
    _ = try await keep(ZDCSecurityError(.objectMissing, zone: try await zoneRow()?.zone, node: nodes.min()))
  }
}
