internal import ZDCProtocol

/// The zone's head is not the commit's `prev`: the caller is shown what came behind the head that he knew.
struct StaleHead: Error {
  var zone: ZoneID
  var after: UInt64?
}

/// `POST /v1/commits`: compare with the head, replay, store (PROTOCOL 3.7, 3.12).
enum Commits {
  struct Outcome: Sendable {
    var response: CommitResponse
    /// Empty for a request that the log had already.
    var notices: [HeadNotice]
    var operations: Int
    /// Kept contents that made room for new ones.
    var released: [BlobID] = []
  }

  /// Applies a request, all zones or none.
  ///
  /// - Throws: ``StaleHead``, `ServerError`, or the broken rule as `ZDCSecurityError`; then the transaction is undone.
  static func apply(
    _ request: CommitRequest, by user: UserID, quotas: Quotas, work: SubtreeWork, now: UInt64,
    in tx: any MetadataTransaction
  ) throws -> Outcome {
    if let replayed = try replayed(request, by: user, in: tx) {
      return Outcome(response: replayed, notices: [], operations: 0)
    }
    var notices: [HeadNotice] = []
    var added: [(zone: ZoneKey, bytes: UInt64)] = []
    for part in request.parts {
      let applied = try apply(part, contents: request.contents, by: user, work: work, now: now, in: tx)
      notices.append(applied.notice)
      added.append((applied.zone, applied.addedBytes))
      if part.addsRecords { try quotas.checkRecords(in: applied.zone, added: applied.usage.bytes, tx) }
    }
    // Last, so that what this very request replaces or deletes makes room for what it brings.
    let released = try added.flatMap { try quotas.makeRoom(for: $0.bytes, in: $0.zone, tx) }
    let response = CommitResponse(receivedMs: now, zones: notices.map(\.status))
    return Outcome(
      response: response, notices: notices,
      operations: request.parts.reduce(0) { $0 + $1.commit.fields.operations.count }, released: released)
  }

  /// A lost response is asked for again with the same bytes: the answer is the first one.
  private static func replayed(
    _ request: CommitRequest, by user: UserID, in tx: any MetadataTransaction
  ) throws -> CommitResponse? {
    var known: [StoredCommit] = []
    for part in request.parts where part.commit.fields.writer == user {
      if let commit = try tx.commit(part.commit.hash) { known.append(commit) }
    }
    guard let first = known.first else { return nil }
    guard known.count == request.parts.count else {
      throw ServerError(.conflict, "some of these commits are in the log already")
    }
    return CommitResponse(receivedMs: first.receivedMs, zones: known.map(\.status))
  }

  private static func apply(
    _ part: CommitRequest.ZonePart, contents: [BlobID: CommitRequest.InlineContent], by user: UserID,
    work: SubtreeWork, now: UInt64, in tx: any MetadataTransaction
  ) throws -> (notice: HeadNotice, zone: ZoneKey, addedBytes: UInt64, usage: ZoneUsage) {
    let fields = part.commit.fields
    guard fields.writer == user else { throw ServerError(.forbidden, "the commit's writer is not this session's user") }
    let row = try Access.zone(fields.zone, of: user, needs: [], in: tx)
    try checkOperations(fields, user: user, zone: row.key, in: tx)
    try checkHead(part.commit, of: row)
    try checkWriter(part.commit, in: tx)
    let old = try row.zoneHead()
    var state = CommitState(
      part: part, contents: contents, zone: row.key, acl: (part.acl ?? old.acl).fields, work: work, now: now, tx: tx)
    let head = try ZoneReplay(identities: StoredIdentities(reader: tx))
      .apply(part.commit, acl: part.acl, after: old, to: &state)
    try state.finishNames()
    let acl = try storeACL(head.acl, grants: part.grants, after: old.acl, zone: row.key, in: tx)
    var usage = state.usage
    usage.logBytes = part.logBytes
    let stored = NewCommit(
      head: head, bytes: part.commit.bytes, receivedMs: now, acl: acl, records: state.recordRange, usage: usage)
    let feedPosition = try tx.appendCommit(stored, to: row.key)
    let status = ZoneStatus(zone: fields.zone, seq: head.seq, head: head.hash, feedPosition: feedPosition)
    let notice = HeadNotice(status: status, part: part, acl: head.acl, stored: state.stored, receivedMs: now)
    return (notice, row.key, state.addedBytes, usage)
  }

  /// A member without `w` may only leave the zone and retire their own old keys. Otherwise a reader could grow the log and
  /// win the race for its head.
  private static func checkOperations(
    _ fields: ZoneCommit.Fields, user: UserID, zone: ZoneKey, in tx: any MetadataTransaction
  ) throws {
    guard try !Access.holds(.write, user: user, zone: zone, in: tx) else { return }
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

  private static func checkHead(_ commit: ZoneCommit, of row: ZoneRow) throws {
    let fields = commit.fields
    guard fields.seq > 0 else { throw ServerError(.zoneExists, "the zone has a genesis commit") }
    guard fields.seq - 1 == row.seq, fields.prev == row.head else {
      throw StaleHead(zone: fields.zone, after: fields.seq - 1)
    }
  }

  /// The server takes commits only under the writer's current key (PROTOCOL 3.9).
  private static func checkWriter(_ commit: ZoneCommit, in tx: any MetadataTransaction) throws {
    guard let writer = try tx.user(commit.fields.writer) else { throw ZDCSecurityError(.writerUnknown) }
    guard !writer.isClosed else { throw ServerError(.accountClosed, "the account is closed") }
    guard commit.fields.writerGen == writer.signGen else { throw ZDCSecurityError(.writerNotAuthorized) }
  }

  /// Stores the list that replay returned, if it is a new one. Every member whose wrap is new gets a grant with it.
  private static func storeACL(
    _ acl: ZoneACL, grants: [Grant], after old: ZoneACL, zone: ZoneKey, in tx: any MetadataTransaction
  ) throws -> Int64? {
    guard acl.hash != old.hash else { return nil }
    try Grants.check(grants, of: acl, after: old)
    return try tx.insertACL(acl, grants: grants, in: zone)
  }
}

/// Grants and the access list that names them by hash (PROTOCOL 3.9).
enum Grants {
  static func check(_ grants: [Grant], of acl: ZoneACL, after old: ZoneACL?) throws {
    var given: Set<UserID> = []
    for grant in grants {
      let entry = acl.fields.entry(for: grant.user)
      let isNamed =
        entry?.wrapHash == grant.wrapHash && grant.zone == acl.fields.zone
        && grant.zoneKeyGen == acl.fields.zoneKeyGen
      try require(isNamed && given.insert(grant.user).inserted, .grantHashMismatch)
    }
    // A wrap is bound to the zone's key and to the member's: with another of either it is a new one.
    let isSameKey = old?.fields.zoneKeyGen == acl.fields.zoneKeyGen
    for entry in acl.fields.entries {
      let isKept = isSameKey && old?.fields.entry(for: entry.user).map { $0.sharesWrap(with: entry) } == true
      try require(isKept || given.contains(entry.user), .grantMissing)
    }
  }
}

extension ZoneACL.Entry {
  fileprivate func sharesWrap(with other: ZoneACL.Entry) -> Bool {
    wrapHash == other.wrapHash && encGen == other.encGen
  }
}

extension ZoneRow {
  /// What replay compares the next commit with.
  func zoneHead() throws -> ZoneHead {
    ZoneHead(zone: zone, seq: seq, hash: head, acl: try ZoneACL(acl), retiredBelow: retiredBelow)
  }
}
