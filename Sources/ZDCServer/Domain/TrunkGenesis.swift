internal import ZDCProtocol

/// The four objects that create a trunk: its root's record, the owner's grant, access list 1 and commit 0 (PROTOCOL
/// 3.9).
struct TrunkGenesis: Sendable {
  let record: NodeRecord
  let grant: Grant
  let acl: ZoneACL
  let commit: ZoneCommit

  /// Requires exactly these four items, in this order.
  init(_ items: some Collection<Bundle.Item>) throws {
    var iterator = items.makeIterator()
    guard items.count == 4, case .record(_, _, let record)? = iterator.next(),
      case .grant(let grant)? = iterator.next(), case .acl(let acl)? = iterator.next(),
      case .commit(_, let commit)? = iterator.next()
    else { throw ServerError(.invalidRequest, "a trunk is a record, a grant, an access list and a commit") }
    self.record = record
    self.grant = grant
    self.acl = acl
    self.commit = commit
  }

  /// Reads the four trunks of one app, from one bundle each.
  static func all(_ bundles: [[UInt8]]) throws -> [TrunkGenesis] {
    guard bundles.count == Trunk.allCases.count else { throw ServerError(.invalidRequest, "an app has four trunks") }
    return try bundles.map { bytes in
      var reader = Bundle.Reader(bytes)
      return try TrunkGenesis(try reader.all())
    }
  }

  /// Reads the four trunks of one app, from one bundle with all their items.
  static func all(_ bundle: [UInt8]) throws -> [TrunkGenesis] {
    var reader = Bundle.Reader(bundle)
    let items = try reader.all()
    guard items.count == 4 * Trunk.allCases.count else {
      throw ServerError(.invalidRequest, "an app has four trunks of four objects")
    }
    return try stride(from: 0, to: items.count, by: 4).map { try TrunkGenesis(items[$0..<$0 + 4]) }
  }

  /// Verifies a trunk against its owner by the rules that clients use; stores nothing.
  func verify(trunk: Trunk, appTreeID: String, owner: UserID, identities: some IdentityDirectory) throws {
    let tree = TreeID.derive(owner: owner, trunk: trunk, appTreeID: appTreeID)
    let zone = ZoneID(trunkOf: tree)
    try require(commit.fields.zone == zone && acl.fields.zone == zone, .recordBindingMismatch)
    try require(acl.fields.owner == owner && commit.fields.writer == owner, .aclNotAuthorized)
    try require(acl.fields.trunk == trunk && acl.fields.appTreeID == appTreeID, .recordBindingMismatch)
    try require(acl.fields.entries.count == 1, .aclNotAuthorized)
    let put = ZoneOperation.Put(record)
    let expected: [ZoneOperation] = [.acl(version: acl.fields.version, hash: acl.hash), .put(put)]
    try require(commit.fields.operations == expected, .commitChainBroken)
    var state = MemoryZoneState()
    _ = try ZoneReplay(identities: identities).apply(commit, acl: acl, after: nil, to: &state)
    try RecordRules.check(record, put: put, zone: zone, replaced: nil)
    try RecordRules.check(record, commit: commit.fields, acl: acl.fields)
    try checkRoot()
    try Grants.check([grant], of: acl, after: nil)
  }

  /// A trunk's root has no name, no parent key and no content.
  private func checkRoot() throws(ZDCSecurityError) {
    let fields = record.fields
    let isBare =
      fields.nameTag == .zero && fields.parentWrap.isEmpty && fields.historyWrap.isEmpty && fields.content == nil
      && fields.keyGen == 1
    try require(isBare, .recordBindingMismatch, node: fields.node)
  }

  func delta(owner: UserID, now: UInt64) -> ZoneDelta {
    let zone = commit.fields.zone
    let tree = TreeRow(tree: zone.tree, trunk: acl.fields.trunk, appTreeID: acl.fields.appTreeID)
    let head = ZoneHead(zone: zone, seq: 0, hash: commit.hash, acl: acl)
    var delta = ZoneDelta(target: .new(tree, owner: owner), head: head, commit: commit, receivedMs: now)
    delta.change(to: ZoneDelta.ListChange(acl: acl, grants: [grant]))
    let leaf = LogNode(
      node: zone.root, parent: .zero, record: record.hash, putSeq: 0, keyGen: record.fields.keyGen, parentKeyGen: 0)
    let stored = StoredRecord(bytes: record.bytes, recordReceivedMs: now, dataReceivedMs: 0)
    delta.puts = [NodePut(leaf: leaf, tag: nil, record: stored, content: .none, replaced: nil)]
    delta.usage.nodes = 1
    delta.usage.count(record: record.bytes)
    return delta
  }
}

/// `PUT /v1/trees/{appTreeID}`: adds another app to an existing account.
enum Trees {
  struct Outcome: Sendable {
    var zones: ZoneList
    var isNew: Bool
  }

  struct Limit: Sendable {
    /// Maximum number of apps of one account.
    var trees: Int
    var quotas: Quotas
  }

  static func create(
    _ births: [TrunkGenesis], appTreeID: String, owner: UserID, limit: Limit, now: UInt64,
    in tx: any MetadataTransaction
  ) throws -> Outcome {
    guard AppTreeID.isValid(appTreeID) else { throw ServerError(.invalidRequest, "not the name of an app's tree") }
    let known = try tx.genesisCommits(owner: owner, appTreeID: appTreeID)
    let isNew = known.isEmpty
    guard isNew || known == births.map(\.commit.hash) else {
      throw ServerError(.zoneExists, "the app already has a tree: discard yours and pull")
    }
    if isNew {
      guard try tx.trees(of: owner).count < limit.trees * Trunk.allCases.count else {
        throw ServerError(.limitExceeded, "an account may have \(limit.trees) apps")
      }
      try store(births, appTreeID: appTreeID, owner: owner, now: now, in: tx)
      try limit.quotas.checkRecords(of: owner, by: owner, added: 0, tx)
    }
    let zones = try births.compactMap { try tx.zone($0.commit.fields.zone)?.status }
    return Outcome(zones: ZoneList(zones: zones), isNew: isNew)
  }

  private static func store(
    _ births: [TrunkGenesis], appTreeID: String, owner: UserID, now: UInt64, in tx: any MetadataTransaction
  ) throws {
    guard let user = try tx.user(owner), !user.isClosed else {
      throw ServerError(.accountClosed, "the account is closed")
    }
    for (trunk, birth) in zip(Trunk.allCases, births) {
      try birth.verify(trunk: trunk, appTreeID: appTreeID, owner: owner, identities: StoredIdentities(reader: tx))
      try require(birth.commit.fields.writerGen == user.signGen, .writerNotAuthorized)
    }
    _ = try tx.apply(CommitDelta(zones: births.map { $0.delta(owner: owner, now: now) }))
  }
}
