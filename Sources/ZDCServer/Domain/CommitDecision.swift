internal import ZDCProtocol

/// Inputs to a commit decision that are prepared outside its transaction.
struct CommitAids: Sendable {
  /// Nil without limits.
  var rates: MemberRates?
  var splits: PreparedSplits = [:]
  var lists = ListCache()
  /// Maximum number of zones of an account.
  var zones = Configuration.Bounds().zonesPerUser
}

/// Decides about a commit request: compares it with the heads, replays it, and returns the resulting changes. It only
/// reads.
struct CommitDecision {
  let user: UserID
  let quotas: Quotas
  let work: SubtreeWork
  let now: UInt64
  let reader: any MetadataReader
  var aids = CommitAids()

  /// - Throws: ``StaleHead``, `ServerError`, or the broken rule as `ZDCSecurityError`.
  func delta(for request: CommitRequest) throws -> CommitDelta {
    var delta = CommitDelta(zones: try zones(of: request))
    // Last, so that content that this request replaces or deletes makes room for its new content.
    for (owner, zones) in Dictionary(grouping: delta.zones, by: { $0.head.acl.fields.owner }) {
      delta.released += try room(for: zones, of: owner)
    }
    return delta
  }

  /// Decides about the commits of all zones, and returns their changes in the order of the request. A zone that is split
  /// off comes after the one that it was in.
  private func zones(of request: CommitRequest) throws -> [ZoneDelta] {
    var deltas: [ZoneID: ZoneDelta] = [:]
    var splits = RequestedSplits()
    let (later, first) = request.parts.partitioned { $0.commit.fields.genesisState != nil }
    for part in first + later {
      deltas[part.commit.fields.zone] = try decide(part, of: request, &splits)
    }
    try splits.finish()
    try checkCount(ofNew: deltas.values.count(where: \.beginsZone))
    return request.parts.compactMap { deltas[$0.commit.fields.zone] }
  }

  /// New zones are in trees of the user.
  private func checkCount(ofNew count: Int) throws {
    guard count > 0, try reader.zoneCount(of: user, limit: aids.zones) + count > aids.zones else { return }
    throw ZDCSecurityError(.tooManyZones, user: user)
  }

  private func room(for zones: [ZoneDelta], of owner: UserID) throws -> [BlobRow] {
    if zones.contains(where: { needsRoom($0, owner: owner) }) {
      try quotas.checkRecords(of: owner, by: user, added: zones.reduce(0) { $0 + $1.usage.bytes }, reader)
    }
    var change = ContentChange(owner: owner)
    for zone in zones { change.count(zone) }
    return try quotas.room(for: change, by: user, reader)
  }

  /// An owner can always delete, change the access list and rotate keys, also when there is no room for records.
  private func needsRoom(_ zone: ZoneDelta, owner: UserID) -> Bool {
    guard user == owner else { return zone.list != nil || !zone.puts.isEmpty }
    return !zone.puts.allSatisfy(\.isRotation)
  }

  private func decide(
    _ part: CommitRequest.ZonePart, of request: CommitRequest, _ splits: inout RequestedSplits
  ) throws -> ZoneDelta {
    guard try !begins(part.commit.fields) else { return try begin(part, of: request, &splits) }
    let row = try checkedZone(of: part.commit)
    let old = row.zoneHead(acl: try aids.lists.list(row.acl, named: part.commit.fields.aclHash))
    let owner = old.acl.fields.owner
    if owner != user {
      try checkOwner(owner)
      try aids.rates?.take(user, in: row.zone, bytes: part.byteCount(with: request.contents))
    }
    let known = aids.splits[row.zone].flatMap { $0.parentHead == row.head ? $0 : nil }
    let snapshot = try ZoneSnapshot(
      of: row.key, for: part.commit.fields.operations, reader: reader, work: work, prepared: known)
    var (delta, split) = try replay(
      part, of: request, snapshot: snapshot, after: old, target: .existing(row.key))
    if let split, let top = snapshot.node(split.zone.root) {
      delta.splitOff = top
      let stored = known.flatMap { $0.node == split.zone.root ? $0.stored : nil } ?? StoredState(split.list)
      splits.add(
        RequestedSplits.Branch(split: split, parent: row.key, list: delta.head.acl, top: top, stored: stored))
    }
    return delta
  }

  private func replay(
    _ part: CommitRequest.ZonePart, of request: CommitRequest, snapshot: ZoneSnapshot,
    after old: ZoneHead?, target: ZoneDelta.Target, splitOff branch: RequestedSplits.Branch? = nil
  ) throws -> (delta: ZoneDelta, split: ZoneSplit?) {
    guard let acl = part.acl ?? old?.acl else { throw ZDCSecurityError(.nonCanonicalEncoding) }
    let contents = try PutContents(of: part, in: request, snapshot: snapshot, reader: reader, now: now)
    var draft = ZoneDraft(
      part: part, acl: acl.fields, permissions: (old?.acl ?? acl).fields.entry(for: user)?.permissions ?? [],
      snapshot: snapshot, contents: contents, now: now)
    let step = try ZoneReplay(identities: StoredIdentities(reader: reader))
      .advance(part.commit, acl: part.acl, list: branch?.split.list, after: old, to: &draft)
    try draft.checkNames(in: reader)
    var delta = ZoneDelta(target: target, head: step.head, commit: part.commit, receivedMs: now)
    delta.take(draft)
    let list = try listChange(step.head.acl, grants: part.grants, after: old?.acl, inParent: branch?.list)
    if let list { delta.change(to: list) }
    return (delta, step.split)
  }

  /// Whether the commit is the first of a zone that does not exist, in a tree of the user.
  private func begins(_ fields: ZoneCommit.Fields) throws -> Bool {
    guard fields.seq == 0, try reader.zone(fields.zone) == nil else { return false }
    return try reader.trees(of: user).contains { $0.tree == fields.zone.tree }
  }

  /// Decides about the genesis of a zone in a tree that exists (PROTOCOL 3.7). The zone begins with a root that no zone
  /// of the tree has, or with a branch that another commit of the request splits off.
  private func begin(
    _ part: CommitRequest.ZonePart, of request: CommitRequest, _ splits: inout RequestedSplits
  ) throws -> ZoneDelta {
    let fields = part.commit.fields
    guard fields.writer == user else { throw Self.foreignWriter }
    try checkWriter(part.commit)
    try fields.checkOrderOfOperations()
    try require(fields.putsOneNode, .commitChainBroken, node: fields.zone.root)
    guard fields.genesisState == nil else {
      return try begin(part, of: request, with: try splits.take(part.commit))
    }
    if let other = try reader.zone(ofNode: fields.zone.root, tree: fields.zone.tree) {
      guard !other.isClosed else { throw ServerError.nodeIsLeaving }
      throw ZDCSecurityError(.splitMismatch, node: fields.zone.root)
    }
    return try replay(
      part, of: request, snapshot: ZoneSnapshot(reader: reader, work: work), after: nil,
      target: .newZone(owner: user)
    ).delta
  }

  private func begin(
    _ part: CommitRequest.ZonePart, of request: CommitRequest,
    with branch: RequestedSplits.Branch
  ) throws -> ZoneDelta {
    try replay(
      part, of: request, snapshot: ZoneSnapshot(reader: reader, work: work, root: branch.root), after: nil,
      target: .splitOff(from: branch.parent, state: branch.stored, owner: user), splitOff: branch
    ).delta
  }

  private static let foreignWriter = ServerError(.forbidden, "the commit's writer is not this session's user")

  private func checkedZone(of commit: ZoneCommit) throws -> ZoneRow {
    let fields = commit.fields
    guard fields.writer == user else { throw Self.foreignWriter }
    let (row, permissions) = try Access.entry(fields.zone, of: user, in: reader)
    if !permissions.contains(.write) { try checkOperations(fields) }
    try checkHead(commit, of: row)
    try checkWriter(commit)
    return row
  }

  /// A member without `w` may only leave the zone and retire their own old keys. Otherwise a reader could grow the log
  /// and win the race for its head.
  private func checkOperations(_ fields: ZoneCommit.Fields) throws {
    let isAllowed =
      !fields.operations.isEmpty
      && fields.operations.allSatisfy { operation in
        switch operation {
        case .acl: true
        case .retireKey(let target, _): target == user
        default: false
        }
      }
    guard isAllowed else { throw ServerError(.forbidden, "you have no permission to write in this zone") }
  }

  private func checkHead(_ commit: ZoneCommit, of row: ZoneRow) throws {
    let fields = commit.fields
    guard fields.seq > 0 else { throw ServerError(.zoneExists, "the zone has a genesis commit") }
    guard fields.seq - 1 == row.seq, fields.prev == row.head else {
      throw StaleHead(zone: fields.zone, after: fields.seq - 1)
    }
  }

  /// The server accepts only commits signed with the writer's current key (PROTOCOL 3.9).
  private func checkWriter(_ commit: ZoneCommit) throws {
    guard let writer = try reader.user(commit.fields.writer) else { throw ZDCSecurityError(.writerUnknown) }
    guard !writer.isClosed else { throw ServerError(.accountClosed, "the account is closed") }
    guard commit.fields.writerGen == writer.signGen else { throw ZDCSecurityError(.writerNotAuthorized) }
  }

  /// After the owner has closed their account, the zone can only be read.
  private func checkOwner(_ owner: UserID) throws {
    guard try reader.user(owner)?.isClosed == true else { return }
    throw ServerError(.accountClosed, "the account of the tree's owner is closed").with(user: owner)
  }

  /// Returns the access list from replay, if it is a new one. Every member whose wrap is new needs a grant with it.
  ///
  /// - Parameter parent: The list of the zone that the list's zone is split off from.
  private func listChange(
    _ acl: ZoneACL, grants: [Grant], after old: ZoneACL?, inParent parent: ZoneACL?
  ) throws -> ZoneDelta.ListChange? {
    guard acl.hash != old?.hash else { return nil }
    try Grants.check(grants, of: acl, after: old)
    try Recipients.check(acl, after: old, membersBefore: old ?? parent, in: reader)
    let removed = Set(old?.fields.entries.map(\.user) ?? []).subtracting(acl.fields.entries.map(\.user))
    return ZoneDelta.ListChange(acl: acl, grants: grants, removed: removed)
  }
}

extension Array {
  /// Returns the elements that match, and the others, each in their order.
  fileprivate func partitioned(by matches: (Element) -> Bool) -> (matching: [Element], others: [Element]) {
    (filter(matches), filter { !matches($0) })
  }
}

extension ZoneDelta {
  fileprivate var beginsZone: Bool { if case .existing = target { false } else { true } }

  fileprivate mutating func take(_ draft: ZoneDraft) {
    puts = draft.puts
    removed = Array(draft.removed.values)
    usage.add(draft.usage)
  }
}
