package import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport

// The mailbox of the user's inbox.

extension SyncScheduler {
  /// Returns the row of the inbox; nil if this device has no tree yet.
  package func inbox() async throws -> ZoneRow? {
    try await zones().first { $0.trunk == .inbox && $0.owner == nil }
  }

  /// Takes over the pending messages, if the server says that there are any, and pulls the zones of which they name
  /// heads that this device does not have.
  func takeMessages(newest: UInt64?, into round: inout ZoneRound<ZDCPullSummary>) async throws {
    guard newest != nil, let inbox = try await inbox() else { return }
    do {
      round.take(try await worker(inbox.id).takeMessages())
    } catch {
      try round.add(inbox.id, Result<Void, any Error>.failure(error)) { _, _ in }
    }
    try await pullZonesBehindMembers(into: &round)
  }

  private func pullZonesBehindMembers(into round: inout ZoneRound<ZDCPullSummary>) async throws {
    let zones = try await zonesBehindMembers()
    guard !zones.isEmpty else { return }
    try await round.run(zones.map { worker($0) }, atOnce: Self.zonesAtOnce, { try await $0.pull() }) { $0.take($1) }
  }

  /// Takes over the pending messages, as one round, and pulls the zones of which they name heads that this device does
  /// not have. In the background, the caller has these zones pulled.
  package func messageRound(inBackground: Bool = false) async throws -> ZoneRound<ZDCPullSummary> {
    guard let inbox = try await inbox() else { return ZoneRound(ZDCPullSummary(), inBackground: inBackground) }
    var round = try await pullRound(of: [inbox.id], inBackground: inBackground) { worker, _ in
      try await worker.takeMessages()
    }
    if !inBackground {
      // The caller asked for messages. An error in another zone is recorded, and the next pull throws it.
      var others = ZoneRound(ZDCPullSummary())
      try await pullZonesBehindMembers(into: &others)
      round.summary += others.summary
    }
    return round
  }

  /// Returns the zones of which a member has named a head that this device neither has nor has asked for, and those whose
  /// key a member has sent.
  package func zonesBehindMembers() async throws -> [Int64] {
    let behind = try await session.database.asyncRead { [session] transaction in
      try MemberHeadStore.zonesToPull(localUser: session.localUser, tree: session.appTreeID, transaction)
    }
    let readable = session.sentKeys.withLock { Set($0.keys) }
    return behind + readable.subtracting(behind).sorted()
  }
}
