internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol

/// Tries the keys that a removed member had on everything that the zone's log has since the removal.
///
/// Works like the member would: from the zone's old keys to those of nodes, through the records of that time. The log is
/// read again from the server, a page at a time, and each commit must be the one that this device has verified.
struct RemovalCheck {
  private let session: SyncSession
  private let zone: ZoneRow
  private let removal: RemovalStore.Removal
  private let headSeq: UInt64
  /// The generations of the zone's key that the member had.
  private let zoneKeys: [KeyHistory.Entry]

  /// - Throws: `ZDCCloudError`: `unknownUser` if the user was never removed from the zone.
  init(session: SyncSession, zone: ZoneRow, member: UserID, _ transaction: ZDCReadTransaction) throws {
    guard let removal = try RemovalStore(transaction, zone: zone.id).removals().last(where: { $0.member == member }),
      let head = zone.head, let root = try transaction.nodes.root(zone: zone.id)
    else { throw ZDCCloudError(.unknownUser, detail: "the user did not lose access to this tree") }
    (self.session, self.zone, self.removal, headSeq) = (session, zone, removal, head.seq)
    zoneKeys = Self.keys(of: root, in: zone, upTo: removal.keyGen)
  }

  /// Returns the keys of a node up to a generation.
  private static func keys(of row: NodeRow, in zone: ZoneRow, upTo keyGen: UInt32) -> [KeyHistory.Entry] {
    // That of a zone's root comes from another member, and may not open.
    let history = try? KeyHistory(
      opening: row.historyWrap, tree: zone.zone.tree, node: row.nodeID, key: row.key, keyGen: row.keyGen)
    let all = (history?.entries ?? []) + [KeyHistory.Entry(keyGen: row.keyGen, key: row.key)]
    return all.filter { $0.keyGen <= keyGen }
  }

  func run() async throws -> ZDCAccessCheck {
    var check = ZDCAccessCheck(removal, keyGenerations: zoneKeys.map(\.keyGen))
    var next = removal.seq
    while next <= headSeq {
      try Task.checkCancellation()
      let page = try await page(from: next)
      let commits = page.commits.map(\.commit).prefix { $0.fields.seq <= headSeq && !addsMember($0, page) }
      for commit in commits { try checkList(of: commit, page, &check) }
      try await checkRecords(of: commits, page, &check)
      if let last = commits.last { check.lastCommitNumber = last.fields.seq }
      next += UInt64(commits.count)
      // The rest was written for a member again, or is not verified yet.
      if commits.count < page.commits.count { break }
    }
    return check
  }

  private func addsMember(_ commit: ZoneCommit, _ page: PageContents) -> Bool {
    page.acl(of: commit)?.fields.entry(for: removal.member) != nil
  }

  // MARK: The log

  private func page(from seq: UInt64) async throws -> PageContents {
    let body = try await session.api.commitPage(zone.zone, after: seq > 0 ? seq - 1 : nil, withRecords: true).body
    let page = try PageContents(body)
    let commits = page.commits.map(\.commit)
    let isVerified = try await session.database.asyncRead { [zone, headSeq] transaction in
      let log = CommitLogStore(db: transaction.database, zone: zone.id)
      return try commits.enumerated().allSatisfy { offset, commit in
        guard commit.fields.seq == seq + UInt64(offset) else { return false }
        return try commit.fields.seq > headSeq || log.hash(seq: commit.fields.seq) == commit.hash
      }
    }
    guard isVerified, !commits.isEmpty else { throw ZDCSecurityError(.commitChainBroken, zone: zone.zone) }
    return page
  }

  /// A list that keeps the zone's key has nothing to hide from someone who has left.
  private func checkList(of commit: ZoneCommit, _ page: PageContents, _ check: inout ZDCAccessCheck) throws {
    guard let list = page.acl(of: commit)?.fields, list.zoneKeyGen > removal.keyGen else { return }
    check.listCount += 1
    guard zoneKeys.contains(where: { KeyHistory.isOpened(list, by: $0.key) }) else { return }
    check.note(.accessList, zone.zone.root, at: commit.fields.seq)
  }

  private func checkRecords(
    of commits: some Collection<ZoneCommit>, _ page: PageContents, _ check: inout ZDCAccessCheck
  ) async throws {
    var rest = commits.flatMap(\.putNodes)[...]
    while !rest.isEmpty {
      let puts = rest.prefix(Limits.recordsPerRequest)
      rest = rest.dropFirst(puts.count)
      try await checkRecords(puts, page, &check)
    }
  }

  private func checkRecords(
    _ puts: ArraySlice<LogNode>, _ page: PageContents, _ check: inout ZDCAccessCheck
  ) async throws {
    // A page has the newest version of each node. The server still has some of those that were replaced.
    let replaced = puts.filter { page.records[$0.record] == nil }
    let fetched = try await FormerReader(session: session).records(Array(replaced), zone: zone.zone)
    let keys = try await keys(for: puts)
    for put in puts {
      guard let record = (page.records[put.record] ?? fetched[put.record])?.record else {
        check.missingCount += 1
        continue
      }
      check.recordCount += 1
      if keys.open(record, put) { check.note(.record, put.node, at: put.putSeq) }
      try await checkContent(of: record, put, keys, &check)
    }
  }

  // MARK: Keys

  /// The keys of the member that could open some of the log's puts.
  private struct MemberKeys: Sendable {
    var zone: [NodeKey]
    var nodes: [NodeID: [NodeKey]] = [:]
    /// The content that each node had when the member was removed.
    var contents: [NodeID: ContentReference] = [:]

    func open(_ record: NodeRecord, _ put: LogNode) -> Bool {
      let all = zone + (nodes[put.node] ?? []) + (nodes[put.parent] ?? [])
      return all.contains { RecordOpener.isOpened(record, by: $0) }
    }
  }

  private func keys(for puts: ArraySlice<LogNode>) async throws -> MemberKeys {
    let nodes = Set(puts.flatMap { [$0.node, $0.parent] }).subtracting([.zero, zone.zone.root])
    let (known, versions) = try await session.database.asyncRead { try knownKeys(of: nodes, $0) }
    var keys = known
    for read in try await FormerReader(session: session).read(versions) {
      guard let opened = read.opened?.opened else { continue }
      keys.nodes[read.version.node, default: []] += [opened.key] + (try opened.history()).entries.map(\.key)
      keys.contents[read.version.node] = opened.contentReference
    }
    return keys
  }

  /// Returns the keys that this device has, and the versions of the time of the removal, which have the others.
  private func knownKeys(
    of nodes: Set<NodeID>, _ transaction: ZDCReadTransaction
  ) throws -> (MemberKeys, [FormerVersion]) {
    var keys = MemberKeys(zone: zoneKeys.map(\.key))
    var versions: [FormerVersion] = []
    let (former, leaves) = (FormerStore(transaction), transaction.leaves(zone: zone.id))
    for node in nodes {
      let version = try former.version(of: node, at: removal.seq - 1, zone: zone.id)
      if let version { versions.append(version) }
      guard let leaf = try version?.expected.leaf ?? leaves.leaf(node), leaf.putSeq < removal.seq,
        let row = try transaction.nodes.node(zone: zone.id, nodeID: node)
      else { continue }
      keys.nodes[node] = Self.keys(of: row, in: zone, upTo: leaf.keyGen).map(\.key)
    }
    return (keys, versions)
  }

  // MARK: Content

  /// Tries the key of the node's content at the time of the removal on the header of newer content.
  private func checkContent(
    of record: NodeRecord, _ put: LogNode, _ keys: MemberKeys, _ check: inout ZDCAccessCheck
  ) async throws {
    guard let content = record.fields.content, let old = keys.contents[put.node], content.blobID != old.content.blobID
    else { return }
    guard let header = try await header(of: content.blobID, put.node) else {
      check.missingCount += 1
      return
    }
    check.contentCount += 1
    if old.secrets.open(prefix: header, of: content.blobID) { check.note(.content, put.node, at: put.putSeq) }
  }

  /// Returns nil if the server no longer has the content.
  private func header(of blob: BlobID, _ node: NodeID) async throws -> [UInt8]? {
    let range = 0..<UInt64(ContentGeometry.prefixBytes)
    do {
      let (_, body) = try await session.api.content(zone.zone, node: node, blob: blob, range: range)
      return try await body.collect(upTo: ContentGeometry.prefixBytes)
    } catch let error as ServerError where error.code == .blobGone || error.code == .gone {
      return nil
    } catch let error as ZDCSecurityError where error.code == .objectMissing { return nil }
  }
}

extension ZoneCommit {
  fileprivate var putNodes: [LogNode] {
    fields.operations.compactMap { operation in
      guard case .put(let put) = operation else { return nil }
      return LogNode(
        node: put.node, parent: put.parent, record: put.record, putSeq: fields.seq, keyGen: put.keyGen,
        parentKeyGen: put.parentKeyGen)
    }
  }
}
