internal import ZDCAccounts
internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol

extension ZoneRow {
  /// Whether the zone is another user's, and this device has read nothing of it yet.
  var isUnread: Bool { owner != nil && head == nil }
}

extension SyncSession {
  /// Follows a zone that was split off from one that the user has accepted, or that they have grafted. A user who has lost
  /// access to it since reads in its log that they have.
  func accept(_ zone: ZoneID) async throws {
    do { try await api.acceptZone(zone) } catch let error as ServerError where error.code == .notFound {}
  }
}

/// Another user's zone, from the moment the user has grafted it until its log is read.
struct GraftAcceptance {
  let session: SyncSession
  let zone: Int64

  /// Notes that the branch cannot be read. Another pull asks again, because access may be given after the invitation.
  func noteUnreachable() async throws {
    try await session.database.asyncReadWrite { [zone] transaction in
      guard var row = try transaction.zones.zone(id: zone), row.doubt != .inviteNotAuthorized else { return }
      row.doubt = .inviteNotAuthorized
      try transaction.zones.update(row)
    }
  }

  /// Accepts a grafted zone on the server before its first pull. Each device of the user does so that sees the pointer: it
  /// is the acceptance, and the server's membership only decides what it lists and announces (G-2).
  func acceptIfGrafted(_ row: ZoneRow) async throws {
    guard row.head == nil, let owner = row.owner, try await pointer() != nil else { return }
    guard try await session.identities.recipients([owner], own: session.keys).keys[owner] != nil else {
      throw ZDCSecurityError(.writerUnknown, zone: row.zone, user: owner)
    }
    // A former member is refused, and reads in the log that they were removed.
    try await session.accept(row.zone)
  }

  /// Accepts a zone again after its log has removed the user and added them again: the membership ended in between.
  func acceptIfAddedAgain() async throws {
    let added = try await session.database.asyncRead { [session, zone] transaction -> ZoneID? in
      guard let row = try transaction.zones.zone(id: zone), row.owner != nil, !row.hasLostAccess(session.user),
        try !transaction.grafts.isLeft(zone: zone),
        try RemovalStore(transaction, zone: zone).removals().contains(where: { $0.member == session.user })
      else { return nil }
      return row.zone
    }
    guard let added else { return }
    try await session.accept(added)
    try await session.database.asyncReadWrite { [session, zone] transaction in
      try RemovalStore(transaction, zone: zone).forget(session.user)
    }
  }

  /// Checks that the zone's log contains the commit that the invitation named (G-5). The server may have lost it, or may
  /// hide it: the zone is shown once it has it.
  func checkInvitation() async throws {
    guard let target = try await pointer()?.pointer else { return }
    let (row, known) = try await session.database.asyncRead { [zone] transaction in
      let log = CommitLogStore(db: transaction.database, zone: zone)
      return (try transaction.zones.zone(id: zone), try log.hash(seq: target.seq))
    }
    guard let row, known != target.head else { return }
    throw Doubt(ZDCSecurityError(.inviteHeadMismatch, zone: row.zone, user: target.owner), .none)
  }

  func pointer() async throws -> NodeRow? {
    try await session.database.asyncRead { [zone] transaction in try transaction.grafts.pointer(toZone: zone) }
  }
}
