internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol

/// Nodes that stay pending until the next pull.
struct DeferredNodes: Sendable {
  var missing: Set<NodeID> = []
  /// Nodes for which the app threw.
  var refused: Set<NodeID> = []
  /// The first of these errors.
  var refusal: DelegateError?
  /// Senders of messages whom this device has not met.
  var unmet: Set<UserID> = []
  /// Those of them for whom this pull has asked the server. It does so once, whatever the answer.
  var asked: Set<UserID> = []
  /// Deleted folders into which other devices have moved nodes that wait for the folders' keys.
  var folders = DeletedFolders()

  mutating func note(_ error: DelegateError?) { refusal = refusal ?? error }

  func contains(_ node: NodeID) -> Bool { missing.contains(node) || refused.contains(node) }

  mutating func formUnion(_ other: DeferredNodes) {
    missing.formUnion(other.missing)
    refused.formUnion(other.refused)
    unmet.formUnion(other.unmet)
    folders.want(other.folders.wanted)
    note(other.refusal)
  }
}

/// Fetches the records that a zone's verified log names, and applies them to the local tree.
///
/// The table of leaves holds the records to fetch. Each batch is applied in one transaction with the app's changes.
struct RecordPuller {
  let session: SyncSession
  let zone: Int64

  /// Returns the number of nodes per transaction. It grows with the number of pending nodes, because each transaction
  /// changes nearly all pages of the name index.
  private static func batchSize(due: Int) -> Int { Limits.recordsPerRequest * min(max(due / 10_000, 1), 4) }

  /// Fetches and applies every pending record, in the app's preferred order.
  ///
  /// - Parameters:
  ///   - known: Records that came with their commits.
  ///   - left: Nodes for which the app threw. They are not retried in this pull and do not stop other nodes.
  ///   - isWholeLog: Whether the log was read to its end. Until then, later commits may have replaced records that the
  ///     server does not have any more.
  func pull(
    _ known: [RecordHash: PageContents.Record], _ summary: inout ZDCPullSummary, _ left: inout DeferredNodes,
    isWholeLog: Bool = true
  ) async throws {
    left.missing = []
    var refused = left.refused
    var order = try await pendingOrder().filter { !refused.contains($0) }
    while !order.isEmpty {
      let applied = try await pullInOrder(order, known, &summary, &left)
      refused = left.refused.union(left.missing)
      let hasMet = try await meetSenders(&left)
      let hasRead = try await readFolders(&left, known, isWholeLog: isWholeLog)
      // Children whose parents came late, messages of senders whom this device had not met, nodes in deleted folders,
      // and nodes of a page that arrived in the meantime, are still pending.
      order = applied == 0 && !hasMet && !hasRead ? [] : try await pendingOrder().filter { !refused.contains($0) }
    }
    if isWholeLog, !left.missing.isEmpty { try await reportMissing(left.missing) }
  }

  /// Fetches the identities of senders whose messages wait for that, as many as one request can name. The messages of
  /// the others are still pending.
  ///
  /// - Returns: Whether there were any.
  private func meetSenders(_ left: inout DeferredNodes) async throws -> Bool {
    let senders = Set(left.unmet.sorted().prefix(Limits.aclEntries))
    guard !senders.isEmpty else { return false }
    left.unmet = []
    left.asked.formUnion(senders)
    try await session.meet(senders, zone: zone)
    return true
  }

  /// Reads the records of deleted folders whose keys open nodes that were moved into them since. The nodes are still
  /// pending.
  ///
  /// - Returns: Whether that helps any of them.
  private func readFolders(
    _ left: inout DeferredNodes, _ known: [RecordHash: PageContents.Record], isWholeLog: Bool
  ) async throws -> Bool {
    let wanted = Array(left.folders.wanted)
    guard !wanted.isEmpty, let zone = try await zoneID() else { return false }
    let found = try await fetch(wanted, known, zone: zone).found
    return left.folders.add(found, isWholeLog: isWholeLog)
  }

  private func zoneID() async throws -> ZoneID? {
    try await session.database.asyncRead { [zone] in try $0.zones.zone(id: zone)?.zone }
  }

  private func pullInOrder(
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
      let result = try await apply(current, after: left)
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

  private func apply(_ batch: FetchedBatch, after left: DeferredNodes) async throws -> BatchResult {
    // The log, signed by members, names these records by their hashes.
    do {
      var (result, refusal) = try await apply(batch.records, to: batch.wanted, left)
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
    _ records: FetchedRecords, to wanted: [LogNode], _ left: DeferredNodes
  ) async throws -> (result: BatchResult, refusal: DelegateError?) {
    try await session.writeNotifyingDelegate { [session, zone] transaction in
      var applier = try ChangeApplier(session: session, zone: zone, transaction: transaction)
      (applier.asked, applier.folders) = (left.asked, left.folders)
      var result = BatchResult()
      for leaf in wanted {
        guard let record = records.found[leaf.record] else {
          if let error = records.unreadable[leaf.record] {
            if try applier.quarantine.add(error, leaf: leaf) { result.applied += 1 }
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
      result.left.unmet = applier.unmet
      result.left.folders.want(applier.folders.wanted)
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
      let answer = try await Doubt.catching(zone) { try PageContents(body) }
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
    let row = try await session.database.asyncRead { [zone] in try $0.zones.zone(id: zone) }
    let error = ZDCSecurityError(.objectMissing, zone: row?.zone, node: nodes.min())
    try await DoubtStore(session: session, zone: zone).report(error)
  }

  // MARK: Order

  /// Returns the nodes whose records are to be read, in the order in which the app and their age want them.
  private func pendingOrder() async throws -> [NodeID] {
    let preferred = await session.delegate().preferredNodeIDsForPullingRcrds() ?? []
    return try await session.database.asyncRead { [session, zone] transaction in
      // The server serves no records to former members.
      guard let row = try transaction.zones.zone(id: zone), !row.hasLostAccess(session.user),
        try !transaction.grafts.isLeft(zone: zone)
      else { return [] }
      let leaves = LogNodeStore(db: transaction.database, zone: zone)
      guard try leaves.pendingCount() > 0 else { return [] }
      // If the root cannot be opened, neither can any node below it. If it is deleted here, nothing has to be opened.
      guard
        try transaction.nodes.root(zone: zone) != nil || leaves.pendingLeaf(row.zone.root) != nil
          || !transaction.operations.operations(zone: zone, nodeID: row.zone.root).isEmpty
      else { return [] }
      let preferredIDs = try preferred.compactMap { try transaction.nodes.node(uuid: $0)?.nodeID }
      var priority = PullPriority(preferred: Set(preferredIDs))
      try Self.addPending(leaves, below: row.zone.root, to: &priority)
      return priority.sorted().map(\.node)
    }
  }

  /// Adds pending nodes. A change of a few nodes does not require a walk through the zone.
  private static func addPending(
    _ leaves: LogNodeStore, below root: NodeID, to priority: inout PullPriority
  ) throws {
    if let few = try leaves.pendingLeaves(limit: 256) {
      for leaf in few { priority.add(leaf.node, ancestors: try leaves.ancestors(of: leaf.node), putSeq: leaf.putSeq) }
      return
    }
    try leaves.forEachByDepth(root: root) { leaf in
      priority.add(
        leaf.node, parent: leaf.parent, depth: leaf.depth, putSeq: leaf.putSeq, isPending: leaf.isPending)
    }
  }
}
