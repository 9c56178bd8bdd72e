internal import ZDCAccounts
internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport

/// Puts the user's own profile into the inbox, where the user's other devices find it.
///
/// The queued change stays until ``ProfileChange`` finds it in the log. If the process ends in between, or another device
/// changes the profile at the same time, it is put once more with a higher version.
struct ProfilePublisher: Sendable {
  let session: SyncSession
  let zone: Int64
  let identity: IdentityCheck

  private struct Draft: Sendable {
    var inbox: InboxWriter
    var received: ReceivedMessage
    var profile: UserProfile
    /// The node of the profile before.
    var replaced: LogNode?
  }

  func publish(_ change: OperationRow) async throws -> (ZDCPushSummary, DelegateError?) {
    do {
      return try await identity.signing { try await send(change) }
    } catch let error as ServerError {
      // A full account, for example, must not hold up the deletions that make room.
      session.events.report(error)
      try await pause(change, error)
      return (ZDCPushSummary(triesAgain: true), nil)
    }
  }

  private func send(_ change: OperationRow) async throws -> (ZDCPushSummary, DelegateError?) {
    let draft = try await session.database.asyncRead { try makeDraft(change, $0) }
    guard let draft else { return (ZDCPushSummary(), nil) }
    session.activity.sends()
    return try await send(draft)
  }

  private func send(_ draft: Draft) async throws -> (ZDCPushSummary, DelegateError?) {
    let record = try draft.inbox.record(of: draft.received, timeMs: session.now(), profile: draft.profile)
    var request = Bundle.Writer()
    request.append(record: record.bytes)
    request.append(commit: try draft.inbox.commit([record], replacing: [draft.replaced].compactMap(\.self)).bytes)
    let puller = ZonePuller(session: session, zone: zone)
    switch try await session.api.push(request.bytes) {
    case .accepted:
      let pulled = try await puller.pull()
      let isDrained = try await session.database.asyncRead { [session] in
        try $0.operations.isEmpty(localUser: session.localUser)
      }
      return (ZDCPushSummary(commits: 1, operations: 1, isDrained: isDrained), pulled.refusal)
    case .headMismatch(let page):
      return (ZDCPushSummary(triesAgain: true), try await puller.take(page).refusal)
    }
  }

  private func makeDraft(_ change: OperationRow, _ transaction: ZDCReadTransaction) throws -> Draft? {
    guard let inbox = try InboxWriter(session: session, zone: zone, transaction), let bytes = change.changeset else {
      return nil
    }
    let known = try transaction.profiles.profile(
      of: session.user, localUser: session.localUser, tree: session.appTreeID)
    let version = try RecordRules.version(after: known?.version ?? 0)
    let received = ReceivedMessage(
      sender: session.user, senderGen: session.keys.signGen,
      device: try transaction.sendingDevice(session.localUserID), seq: version, id: .random())
    return Draft(
      inbox: inbox, received: received, profile: try UserProfile(bytes),
      replaced: try known.flatMap { try transaction.leaves(zone: zone).leaf($0.node) })
  }

  private func pause(_ change: OperationRow, _ error: ServerError) async throws {
    try await session.database.asyncReadWrite { [session] transaction in
      guard var row = try transaction.operations.operation(id: change.id) else { return }
      row.attempts += 1
      (row.reason, row.reasonDetail) = (.serverSaid, error.code.rawValue)
      row.notBeforeMs = session.now() + Backoff.pause(attempts: row.attempts, random: session.time.random())
      try transaction.operations.update(row)
    }
  }
}
