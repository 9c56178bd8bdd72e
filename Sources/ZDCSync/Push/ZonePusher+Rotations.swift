internal import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport

// Finishes removals: replaces the keys of nodes that were not written since. Each commit rotates up to a thousand nodes,
// from the top down, and nothing else. The log shows which nodes are left, so nothing has to be stored.

extension ZonePusher {
  /// Sends at most one commit. An earlier request without a known outcome is sent again first.
  package func pushRotations() async throws -> PushSummary {
    if let request = try await storedRequest() { return try await send(request) }
    let request = try await session.database.asyncReadWrite { [session, zone] transaction in
      try RotationStager(session: session, zone: zone, transaction: transaction).stage()
    }
    guard let request else { return PushSummary() }
    return try await send(request, isNew: true)
  }
}

private struct RotationStager {
  let session: SyncSession
  let zone: Int64
  let transaction: ZDCReadWriteTransaction

  func stage() throws -> InFlightStore.Request? {
    guard let row = try transaction.zones.zone(id: zone), let head = row.head, row.frozen == nil,
      row.unreadableReason == nil, row.mayWrite(session.user),
      try transaction.pushPause(localUser: session.localUser) == nil
    else { return nil }
    var builder = CommitBuilder(
      session: session, zoneRow: row, head: head, ahead: [:],
      heldNames: try HeldNames(zone: row, deletes: [], moving: [], transaction: transaction), transaction: transaction)
    for node in try transaction.leaves(zone: zone).staleNodes(limit: Limits.commitOperations) where !builder.isFull {
      guard let node = try transaction.nodes.node(zone: zone, nodeID: node) else { continue }
      _ = try builder.refreshed(node)
    }
    guard !builder.isEmpty else { return nil }
    let built = try builder.build()
    try InFlightStore(transaction: transaction).store(
      built.commit.hash, request: built.request, zone: zone, outcomes: built.outcomes, rotations: built.rotations,
      atMs: session.now())
    return InFlightStore.Request(commitHash: built.commit.hash, body: built.request, uploads: [])
  }
}
