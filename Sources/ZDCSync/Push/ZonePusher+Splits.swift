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
    let draft =
      wanted.isEmpty ? nil : try SplitDraft(wanted, choice, keys: keys, session: session)
    let staged = try await session.database.asyncReadWrite { [session] transaction in
      try SplitStager(session: session, choice: choice, wanted: wanted, draft: draft, transaction: transaction).stage()
    }
    guard case .request(let request) = staged else { return ZDCPushSummary(triesAgain: true) }
    return try await sender.send(request, isNew: true)
  }
}
