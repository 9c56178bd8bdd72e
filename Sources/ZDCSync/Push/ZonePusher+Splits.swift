internal import ZDCAccounts
internal import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport

// Branches that get a list of their own: one request with a commit of the parent zone and the genesis of the new one. All
// changes of the list that are queued by then are part of the genesis.

extension ZonePusher {
  func push(_ choice: SplitChoice) async throws -> ZDCPushSummary {
    let list = choice.head.acl.fields.inherited()
    let (wanted, keys, unknown) = try await recipients(of: choice.changes, list: list, isNewZone: true)
    if !unknown.isEmpty { try await pauseUnknown(unknown) }
    reportExcess(wanted, choice.zone.zone)
    switch try await stage(wanted, choice, keys) {
    case .request(let request, let split)?: return try await sender.send(request, isNew: true, split: split)
    case .unread?: await sender.note(try await ZonePuller(session: session, zone: zone).pull().refusal)
    default: break
    }
    return ZDCPushSummary(triesAgain: true)
  }

  /// Returns nil if the split would exceed a limit. The changes of the list are then paused.
  private func stage(
    _ wanted: WantedList, _ choice: SplitChoice, _ keys: [UserID: RecipientKey]
  ) async throws -> SplitStager.Staged? {
    do {
      let draft = wanted.isEmpty ? nil : try SplitDraft(wanted, choice, keys: keys, session: session)
      return try await session.database.asyncReadWrite { [session] transaction in
        try SplitStager(session: session, choice: choice, wanted: wanted, draft: draft, transaction: transaction)
          .stage()
      }
    } catch let error as ZDCSecurityError where error.code == .limitExceeded {
      try await pause(wanted.effective, after: error)
      return nil
    }
  }
}
