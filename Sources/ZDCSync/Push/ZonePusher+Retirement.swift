internal import ZDCAccounts
internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport

// Retiring the user's old sign keys in a zone after they were compromised (PROTOCOL 3.4, 3.9).

extension ZonePusher {
  /// The maximum number of commits in a row that lose against other devices.
  private static let retirementAttempts = 3

  /// Sends a commit that retires the user's old sign keys, and reads the commits before it.
  ///
  /// The verified log shows whether the keys are retired, so a lost answer is harmless.
  func retireKeys() async throws -> ZDCPushSummary {
    ZDCPushSummary(commits: try await sendRetirement(), triesAgain: true)
  }

  /// - Returns: The number of commits sent.
  private func sendRetirement() async throws -> Int {
    for sent in 0..<Self.retirementAttempts {
      guard try await isRetirementPending() else { return sent }
      try await identity.require()
      let request = try await identity.signing { try await pushRetirement() }
      guard let (commit, bytes, answer) = request else { return sent }
      switch answer {
      case .accepted(let response):
        let page = try PageContents(ownRequest: bytes, receivedMs: response.receivedMs)
        try await applyOwn(page)
        let head = ZoneSyncState.Head(seq: commit.fields.seq, hash: commit.hash)
        await sender.handle(.accepted(head: head, operations: []))
      case .headMismatch: _ = try await ZonePuller(session: session, zone: zone).pull()
      }
    }
    return Self.retirementAttempts
  }

  /// - Returns: Nil before the first pull of the zone.
  private nonisolated func pushRetirement() async throws -> (ZoneCommit, bytes: [UInt8], PushAnswer)? {
    guard let commit = try await retiringCommit() else { return nil }
    var bundle = Bundle.Writer()
    bundle.append(commit: commit.bytes)
    return (commit, bundle.bytes, try await session.api.push(bundle.bytes))
  }

  private func isRetirementPending() async throws -> Bool {
    let head = try await session.database.asyncRead { [zone] transaction in try transaction.zones.zone(id: zone)?.head }
    return head.flatMap { session.keys.retirement(in: $0) } != nil
  }

  /// - Returns: Nil before the first pull of the zone.
  private func retiringCommit() async throws -> ZoneCommit? {
    let head = try await session.database.asyncRead { [zone] transaction in try transaction.zones.zone(id: zone)?.head }
    guard let head else { return nil }
    let keys = session.keys
    let fields = ZoneCommit.Fields(
      zone: head.zone, seq: head.seq + 1, prev: head.hash, aclHash: head.acl.hash, writer: session.user,
      writerGen: keys.signGen, timeMs: session.now(),
      operations: [.retireKey(user: session.user, gen: keys.signGen)])
    return try ZoneCommit(fields) { try keys.signingKey.sign(label: "commit", message: $0) }
  }

  private func applyOwn(_ page: PageContents) async throws {
    let writers = WriterKeys(own: session.keys)
    _ = try await session.writeNotifyingDelegate { [session, zone] transaction in
      try PageApplier(session: session, zone: zone, transaction: transaction, writers: writers).apply(page)
    }
  }
}
