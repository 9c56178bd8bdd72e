internal import ZDCAccounts
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport

// Retiring the user's old sign keys in a zone after they were compromised (PROTOCOL 3.4, 3.9).

extension ZonePusher {
  /// Sends a commit that retires the user's old sign keys.
  ///
  /// Like every commit, it is stored before it is sent, so that a pull recognizes it as this device's own if the answer
  /// is lost. Otherwise a server that later loses it would seem to have lost another device's commit.
  func retireKeys() async throws -> ZDCPushSummary {
    try await identity.require()
    // The keys were retired by another device in the meantime, so the caller makes a new plan.
    guard let request = try await storeRetirement() else { return ZDCPushSummary(triesAgain: true) }
    var summary = try await sender.send(request, isNew: true)
    // The retirement is not in the queue: it may have lost against another commit even if the queue is empty.
    if summary.commits > 0 { (summary.triesAgain, summary.isDrained) = (true, false) }
    return summary
  }

  /// - Returns: Nil if there is nothing to retire any more.
  private func storeRetirement() async throws -> InFlightStore.Request? {
    try await session.database.asyncReadWrite { [session, zone] transaction -> InFlightStore.Request? in
      let keys = session.keys
      guard let row = try transaction.zones.zone(id: zone), row.frozen == nil, let head = row.head,
        keys.retirement(in: head) != nil
      else { return nil }
      let commit = try Self.retirement(after: head, keys, atMs: session.now())
      var bundle = Bundle.Writer()
      bundle.append(commit: commit.bytes)
      let body = bundle.bytes
      try InFlightStore(transaction: transaction).store(
        commit.hash, request: body, zone: zone, outcomes: [], atMs: session.now())
      return InFlightStore.Request(commitHash: commit.hash, body: body, uploads: [])
    }
  }

  private static func retirement(after head: ZoneHead, _ keys: UserKeys, atMs time: UInt64) throws -> ZoneCommit {
    let fields = ZoneCommit.Fields(
      zone: head.zone, seq: head.seq + 1, prev: head.hash, aclHash: head.acl.hash, writer: keys.userID,
      writerGen: keys.signGen, timeMs: time, operations: [.retireKey(user: keys.userID, gen: keys.signGen)])
    return try ZoneCommit(fields) { try keys.signingKey.sign(label: "commit", message: $0) }
  }
}
