internal import ZDCProtocol

/// The zone's head is not the commit's `prev`. The response shows the commits after the head that the caller knew.
struct StaleHead: Error {
  var zone: ZoneID
  var after: UInt64?
}

/// `POST /v1/commits`: compare with the head, replay, store (PROTOCOL 3.7, 3.12).
enum Commits {
  struct Outcome: Sendable {
    var response: CommitResponse
    /// Empty for a request that the log already contained.
    var notices: [HeadNotice]
    var operations: Int
    var closesZone = false
    /// Retained blobs that were removed to make room for new ones.
    var released: [BlobID] = []
  }

  /// Applies a request, to all zones or none.
  ///
  /// - Throws: ``StaleHead``, `ServerError`, or the broken rule as `ZDCSecurityError`; then the transaction is undone.
  static func apply(
    _ request: CommitRequest, by user: UserID, quotas: Quotas, work: SubtreeWork, aids: CommitAids = CommitAids(),
    now: UInt64, in tx: any MetadataTransaction
  ) throws -> Outcome {
    try tx.prefetchCommits(of: user, to: request.parts.map(\.commit.fields.zone))
    if let replayed = try replayed(request, by: user, in: tx) {
      return Outcome(response: replayed, notices: [], operations: 0)
    }
    let decision = CommitDecision(
      user: user, quotas: quotas, work: work, now: now, reader: tx, aids: aids)
    let delta = try decision.delta(for: request)
    let statuses = try tx.apply(delta)
    try Inboxes.takeOver(delta, in: tx)
    let notices = zip(request.parts, zip(delta.zones, statuses)).map { part, applied in
      HeadNotice(status: applied.1, part: part, delta: applied.0)
    }
    return Outcome(
      response: CommitResponse(receivedMs: now, zones: statuses), notices: notices,
      operations: request.parts.reduce(0) { $0 + $1.commit.fields.operations.count },
      closesZone: delta.zones.contains { $0.head.isClosed },
      released: delta.released.filter { !$0.isInline }.map(\.id))
  }

  /// Returns the original response if the client resends a request whose response was lost.
  private static func replayed(
    _ request: CommitRequest, by user: UserID, in tx: any MetadataTransaction
  ) throws -> CommitResponse? {
    let commits = request.parts.map(\.commit)
    let known = try commits.compactMap { $0.fields.writer == user ? try stored($0, in: tx) : nil }
    guard let first = known.first else { return nil }
    guard known.count == commits.count else {
      throw ServerError(.conflict, "some of these commits are already in the log")
    }
    let statuses = commits.map { ZoneStatus(zone: $0.fields.zone, seq: $0.fields.seq, head: $0.hash) }
    return CommitResponse(receivedMs: first.receivedMs, zones: statuses)
  }

  private static func stored(_ commit: ZoneCommit, in tx: any MetadataReader) throws -> StoredCommit? {
    guard let zone = try tx.zone(commit.fields.zone), commit.fields.seq <= zone.seq,
      let stored = try tx.commit(commit.fields.seq, of: zone.key)
    else { return nil }
    return stored.hash == commit.hash ? stored : nil
  }
}

/// Grants and the access list that names them by hash (PROTOCOL 3.9).
enum Grants {
  static func check(_ grants: [Grant], of acl: ZoneACL, after old: ZoneACL?) throws {
    let entries = acl.fields.entriesByUser
    var given: Set<UserID> = []
    for grant in grants {
      let isNamed =
        entries[grant.user]?.wrapHash == grant.wrapHash && grant.zone == acl.fields.zone
        && grant.zoneKeyGen == acl.fields.zoneKeyGen
      try require(isNamed && given.insert(grant.user).inserted, .grantHashMismatch)
    }
    for entry in acl.fields.newWraps(after: old?.fields) { try require(given.contains(entry.user), .grantMissing) }
  }
}

/// The users whom a new access list wraps the zone's key for (PROTOCOL 3.12).
enum Recipients {
  /// - Parameter members: The list with those who are members already. For a zone that is split off, it is the list of
  ///   the zone that the branch was in.
  /// - Throws: `recipientKeyStale` with the user if a new wrap is not for their current key, or they are unknown;
  ///   `accountClosed` for a new member whose account is closed.
  static func check(
    _ acl: ZoneACL, after old: ZoneACL?, membersBefore members: ZoneACL?, in reader: any MetadataReader
  ) throws {
    let wraps = acl.fields.newWraps(after: old?.fields)
    let before = members?.fields.entriesByUser ?? [:]
    let users = try reader.users(wraps.map(\.user))
    for entry in wraps {
      let user = users[entry.user]
      guard let user, user.encGen == entry.encGen else { throw ZDCSecurityError(.recipientKeyStale, user: entry.user) }
      guard !user.isClosed || before[entry.user] != nil else {
        throw ServerError(.accountClosed, "the new member's account is closed").with(user: entry.user)
      }
    }
  }
}

extension ZoneACL.Fields {
  fileprivate var entriesByUser: [UserID: ZoneACL.Entry] {
    Dictionary(entries.map { ($0.user, $0) }) { first, _ in first }
  }

  /// Returns the entries whose wrap is not in the list before. A wrap is bound to the zone's key and to the member's
  /// key: if either changes, the wrap is new.
  fileprivate func newWraps(after old: ZoneACL.Fields?) -> [ZoneACL.Entry] {
    guard let old, old.zoneKeyGen == zoneKeyGen else { return entries }
    let before = old.entriesByUser
    return entries.filter { entry in before[entry.user].map { !$0.sharesWrap(with: entry) } ?? true }
  }
}

extension ZoneACL.Entry {
  fileprivate func sharesWrap(with other: ZoneACL.Entry) -> Bool {
    wrapHash == other.wrapHash && encGen == other.encGen
  }
}

extension ZoneRow {
  /// Returns the head that replay compares the next commit with.
  func zoneHead(acl: ZoneACL) -> ZoneHead {
    var zoneHead = ZoneHead(zone: zone, seq: seq, hash: head, acl: acl, retiredBelow: retiredBelow)
    zoneHead.isClosed = isClosed
    return zoneHead
  }
}
