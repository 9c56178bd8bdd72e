internal import ZDCAccounts
internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport

// Changes of access lists. All that are queued for a zone go out as one version of its list, in a commit that contains
// nothing else but the root under a fresh key.

extension ZonePusher {
  func push(_ choice: ListChoice) async throws -> ZDCPushSummary {
    if let next = choice.nextMs { await sender.handle(.operationsPaused(for: pause(untilMs: next))) }
    let (wanted, keys, unknown) = try await recipients(of: choice.changes, list: choice.head.acl.fields)
    if !unknown.isEmpty { try await pauseUnknown(unknown) }
    reportExcess(wanted, choice.zone.zone)
    var staged = try await stage(wanted, choice, keys)
    // A zone that was split off in this push has a root that was not read yet.
    if case .unread? = staged {
      try await readRoot(wanted)
      staged = try await stage(wanted, choice, keys)
    }
    switch staged {
    case .outdated?, nil: return ZDCPushSummary(triesAgain: true)
    case .unread?: return try await waitForRoot(wanted)
    // Other operations of the queue may go out now.
    case .nothing?: return ZDCPushSummary(triesAgain: wanted.hasSettled || !unknown.isEmpty)
    case .request(let request)?: return try await sender.send(request, isNew: true)
    }
  }

  private func readRoot(_ wanted: WantedList) async throws {
    do {
      await sender.note(try await ZonePuller(session: session, zone: zone).pull().refusal)
    } catch {
      _ = try await waitForRoot(wanted)
      throw error
    }
  }

  /// Lets the rest of the queue pass until a later pull reads the zone's root.
  private func waitForRoot(_ wanted: WantedList) async throws -> ZDCPushSummary {
    try await session.database.asyncReadWrite { [session] transaction in
      try transaction.pause(wanted.effective, in: session) { _ in nil }
    }
    return ZDCPushSummary(triesAgain: true)
  }

  /// Returns nil if the next version would exceed a limit. The changes that cause it are then paused.
  private func stage(
    _ wanted: WantedList, _ choice: ListChoice, _ keys: [UserID: RecipientKey]
  ) async throws -> ListStager.Staged? {
    do {
      let draft = try await draft(wanted, choice, keys)
      return try await session.database.asyncReadWrite { [session] transaction in
        try ListStager(session: session, choice: choice, wanted: wanted, draft: draft, transaction: transaction)
          .stage()
      }
    } catch let error as ZDCSecurityError where error.code == .limitExceeded {
      // Only the fresh key, with the old ones in its history, can exceed one.
      let causes = choice.changes.filter { wanted.effective.contains($0.id) && $0.listChange?.replacesKey == true }
      try await pause(causes.isEmpty ? wanted.effective : causes.map(\.id), after: error)
      return nil
    }
  }

  func reportExcess(_ wanted: WantedList, _ zone: ZoneID) {
    if !wanted.excess.isEmpty { session.events.report(ZDCSecurityError(.limitExceeded, zone: zone)) }
  }

  /// Pauses changes that would exceed a limit. Replaced keys or deleted nodes may make room.
  func pause(_ operations: [Int64], after error: ZDCSecurityError) async throws {
    try await session.database.asyncReadWrite { [session] transaction in
      try transaction.record(error, orElse: .serverSaid, of: operations)
      try transaction.pause(operations, in: session) { _ in
        RecordDrafts.Refusal(reason: .serverSaid, code: error.code)
      }
    }
    session.events.report(error)
  }

  /// Fetches the keys of all members that need a grant. Changes for users without one are left out.
  ///
  /// - Parameter isNewZone: Whether all members need a grant, because the zone begins with the list.
  func recipients(
    of operations: [OperationRow], list: ZoneACL.Fields, isNewZone: Bool = false
  ) async throws -> (WantedList, keys: [UserID: RecipientKey], unknown: [Int64]) {
    let changes = operations.compactMap { row in
      row.listChange.map { WantedList.Change(operation: row.id, change: $0) }
    }
    let wanted = WantedList(after: list, changes, by: session.user)
    let needed =
      isNewZone ? wanted.permissions.keys.sorted() : wanted.isSelfRemoval ? [] : wanted.recipients(after: list)
    guard !needed.isEmpty else { return (wanted, [:], []) }
    var (keys, refused) = try await session.identities.recipients(needed, own: session.keys)
    try await sender.reportAndStore(refused)
    for user in try await unaccepted(needed.filter { list.entry(for: $0) == nil }) { keys[user] = nil }
    let missing = Set(needed.filter { keys[$0] == nil })
    guard !missing.isEmpty else { return (wanted, keys, []) }
    // Without the key of a member who stays, the zone's key cannot be replaced.
    let isBlocked = missing.contains { list.entry(for: $0) != nil }
    let unknown = changes.filter { isBlocked || $0.change.member.map(missing.contains) ?? false }
    let rest = changes.filter { !unknown.contains($0) }
    return (WantedList(after: list, rest, by: session.user), keys, unknown.map(\.operation))
  }

  /// Returns those of the new members who get no access: their account is closed, or their words were changed after
  /// they were verified, and the app has not accepted the change.
  private func unaccepted(_ users: [UserID]) async throws -> [UserID] {
    guard !users.isEmpty else { return [] }
    return try await session.database.asyncRead { transaction in
      users.filter { [.changed, .closed].contains(transaction.user(id: $0.text)?.identity) }
    }
  }

  /// Returns nil if there is nothing to send.
  private func draft(
    _ wanted: WantedList, _ choice: ListChoice, _ keys: [UserID: RecipientKey]
  ) async throws -> ListDraft? {
    guard !wanted.isEmpty else { return nil }
    let used = try await session.database.asyncRead { transaction in
      try transaction.leaves(zone: choice.zone.id).parentKeyGens(below: choice.zone.zone.root)
    }
    return try ListDraft(wanted, choice, keys: keys, used: used, session: session)
  }

  /// Pauses changes for users whose identity chain the server does not show, or who have no access yet.
  func pauseUnknown(_ operations: [Int64]) async throws {
    try await session.database.asyncReadWrite { [session] transaction in
      try transaction.pause(operations, in: session) { change in
        let isChanged = change.member.map { transaction.user(id: $0.text)?.identity == .changed } ?? false
        let code: ZDCSecurityError.Code = isChanged ? .identityChangedNeedsAcceptance : .accountStateMissing
        return RecordDrafts.Refusal(reason: .serverSaid, code: code)
      }
    }
  }
}

extension ZDCReadWriteTransaction {
  /// Pauses changes of access lists that cannot be made now. Until then, the rest of the zone's queue is sent.
  ///
  /// - Parameter reason: Why a change cannot be made; nil if that ends without this device.
  func pause(
    _ operations: [Int64], in session: SyncSession, _ reason: (ListChange) -> RecordDrafts.Refusal?
  ) throws {
    for id in operations {
      guard let change = try self.operations.operation(id: id)?.listChange else { continue }
      let refusal = reason(change)
      try pause([id], in: session, reason: refusal?.reason ?? .backoff, detail: refusal?.code.rawValue)
    }
  }

  func pause(
    _ operations: [Int64], in session: SyncSession, reason: OperationRow.Reason, detail: String?
  ) throws {
    for id in operations {
      guard var row = try self.operations.operation(id: id), row.state == .pending else { continue }
      row.attempts += 1
      (row.reason, row.reasonDetail) = (reason, detail)
      row.notBeforeMs = session.now() + Backoff.pause(attempts: row.attempts, random: session.time.random())
      try self.operations.update(row)
    }
  }
}
