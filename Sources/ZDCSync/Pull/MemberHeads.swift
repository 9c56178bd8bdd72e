package import ZDCClientStore
package import ZDCProtocol

/// Compares the heads that members name with this device's verified logs, inside one transaction (PROTOCOL 3.11,
/// "Heads").
///
/// A member may lie as well as a server. A head that does not fit is therefore recorded with the member's ID, and the
/// zone continues.
package struct MemberHeads {
  package let session: SyncSession
  package let transaction: ZDCReadWriteTransaction

  package init(session: SyncSession, transaction: ZDCReadWriteTransaction) {
    (self.session, self.transaction) = (session, transaction)
  }

  /// Compares a head that a member has just named. A head beyond the log is stored until the log reaches it.
  package func take(_ seq: UInt64, _ hash: CommitHash, of zone: ZoneID, from member: UserID) throws {
    guard let row = try transaction.zones.zone(localUser: session.localUser, zone), row.appTreeID == session.appTreeID
    else { return }
    let head = MemberHead(member: member, seq: seq, hash: hash)
    let verdict = try verdict(on: head, row)
    guard try isHeard(member, row, verdict) else { return }
    // The log of a frozen zone is in doubt itself. The comparison waits for the log that the user accepts.
    if row.frozen != nil || verdict == .ahead { return try store(head, row) }
    if verdict == .fork { try report(.zoneForkDetected, member, row) }
  }

  /// Compares the stored heads that a zone's log has reached.
  package func settle(_ row: ZoneRow) throws {
    guard row.frozen == nil else { return }
    let store = MemberHeadStore(transaction, zone: row.id)
    for head in try store.heads() {
      let verdict = try verdict(on: head, row)
      guard verdict != .ahead else { continue }
      try store.remove(of: head.member)
      if verdict == .fork { try report(.zoneForkDetected, head.member, row) }
    }
  }

  /// Reports heads that a pull has not reached.
  ///
  /// - Parameter heads: Those that were stored before the pull asked the server.
  package func reportMissing(_ heads: [MemberHead], zone: Int64) throws {
    guard let row = try transaction.zones.zone(id: zone), row.frozen == nil, !row.hasLostAccess(session.user) else {
      return
    }
    let store = MemberHeadStore(transaction, zone: zone)
    for head in try store.heads() where !head.isReported && heads.contains(head) {
      guard try verdict(on: head, row) == .ahead else { continue }
      try store.set(MemberHead(member: head.member, seq: head.seq, hash: head.hash, isReported: true))
      try report(.zoneRollback, head.member, row)
    }
  }

  private func verdict(on head: MemberHead, _ row: ZoneRow) throws -> MemberHeadRules.Verdict {
    let log = CommitLogStore(db: transaction.database, zone: row.id)
    let known = head.seq == row.head?.seq ? row.head?.hash : try log.hash(seq: head.seq)
    return MemberHeadRules.verdict(on: (head.seq, head.hash), pinned: row.head?.seq, known: known)
  }

  private func isHeard(_ user: UserID, _ row: ZoneRow, _ verdict: MemberHeadRules.Verdict) throws -> Bool {
    let isMember = row.head?.acl.fields.entry(for: user) != nil
    let wasMember = try !isMember && RemovalStore(transaction, zone: row.id).removals().contains { $0.member == user }
    return MemberHeadRules.isHeard(isMember: isMember, wasMember: wasMember, verdict)
  }

  /// Stores a head, unless a later one of the member is still to be compared: the server chooses the order of messages.
  private func store(_ head: MemberHead, _ row: ZoneRow) throws {
    let store = MemberHeadStore(transaction, zone: row.id)
    let heads = try store.heads()
    if let known = heads.first(where: { $0.member == head.member }) {
      let isSame = (known.seq, known.hash) == (head.seq, head.hash)
      guard !isSame, known.isReported || known.seq < head.seq else { return }
    } else {
      guard heads.count < Limits.aclEntries else { return }
    }
    try store.set(head)
  }

  private func report(_ code: ZDCSecurityError.Code, _ member: UserID, _ row: ZoneRow) throws {
    let error = ZDCSecurityError(code, zone: row.zone, user: member)
    try transaction.record(error, localUser: session.localUser, zone: row.id, atMs: session.now())
    transaction.afterCommit { [events = session.events] in events.report(error) }
  }
}

// Pulls of zones of which members have named a head.

extension ZonePuller {
  /// Returns the zone's row, with the heads beyond its log that members have named before this pull.
  func rowAndMemberHeads() async throws -> (row: ZoneRow, heads: [MemberHead])? {
    try await session.database.asyncRead { [zone] transaction in
      guard let row = try transaction.zones.zone(id: zone) else { return nil }
      return (row, try MemberHeadStore(transaction, zone: zone).heads().filter { !$0.isReported })
    }
  }

  /// Compares the heads with the log, after a pull that asked the server for everything it has.
  func settle(_ heads: [MemberHead]) async throws {
    guard !heads.isEmpty else { return }
    try await session.database.asyncReadWrite { [session, zone] transaction in
      let members = MemberHeads(session: session, transaction: transaction)
      if let row = try transaction.zones.zone(id: zone) { try members.settle(row) }
      try members.reportMissing(heads, zone: zone)
    }
  }
}
