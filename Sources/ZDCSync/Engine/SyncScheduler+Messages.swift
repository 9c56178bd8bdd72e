package import ZDCClientStore
internal import ZDCProtocol

// The mailbox of the user's inbox.

extension SyncScheduler {
  /// Returns the row of the inbox; nil if this device has no tree yet.
  package func inbox() async throws -> ZoneRow? {
    try await zones().first { $0.trunk == .inbox && $0.owner == nil }
  }

  /// Takes over the pending messages, if the server says that there are any.
  func takeMessages(newest: UInt64?, into round: inout ZoneRound<ZDCPullSummary>) async throws {
    guard newest != nil, let inbox = try await inbox() else { return }
    do {
      round.take(try await worker(inbox.id).takeMessages())
    } catch {
      try round.add(inbox.id, Result<Void, any Error>.failure(error)) { _, _ in }
    }
  }

  /// Takes over the pending messages, as one round.
  package func messageRound(inBackground: Bool = false) async throws -> ZoneRound<ZDCPullSummary> {
    guard let inbox = try await inbox() else { return ZoneRound(ZDCPullSummary(), inBackground: inBackground) }
    return try await pullRound(of: [inbox.id], inBackground: inBackground) { worker, _ in
      try await worker.takeMessages()
    }
  }
}
