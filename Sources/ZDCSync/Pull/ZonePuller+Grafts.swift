internal import ZDCAccounts
internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol

// Branches that the user has grafted.

extension ZonePuller {
  /// Accepts a grafted zone on the server before its first pull. Each device of the user does so that sees the pointer: it
  /// is the acceptance, and the server's membership only decides what it lists and announces (G-2).
  func acceptIfGrafted(_ row: ZoneRow) async throws {
    guard row.head == nil, let owner = row.owner, try await pointer() != nil else { return }
    guard try await session.identities.recipients([owner], own: session.keys).keys[owner] != nil else {
      throw ZDCSecurityError(.writerUnknown, zone: row.zone, user: owner)
    }
    do {
      try await session.api.acceptZone(row.zone)
    } catch let error as ServerError where error.code == .notFound {
      // A former member reads in the log that they were removed.
    }
  }

  /// Checks that the zone's log contains the commit that the invitation named (G-5). The server may have lost it, or may
  /// hide it: the zone is shown once it has it.
  func checkInvitation() async throws {
    guard let row = try await zoneRow(), let target = try await pointer()?.pointer else { return }
    let known = try await session.database.asyncRead { [zone] transaction in
      try CommitLogStore(db: transaction.database, zone: zone).hash(seq: target.seq)
    }
    guard known != target.head else { return }
    throw Doubt(ZDCSecurityError(.inviteHeadMismatch, zone: row.zone, user: target.owner), .none)
  }

  private func pointer() async throws -> NodeRow? {
    try await session.database.asyncRead { [zone] transaction in try transaction.grafts.pointer(toZone: zone) }
  }
}
