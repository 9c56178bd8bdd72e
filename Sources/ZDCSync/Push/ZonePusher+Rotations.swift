internal import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport

// Finishes removals: replaces the keys of nodes that were not written since. Each commit rotates up to a thousand nodes,
// from the top down, and nothing else. The log shows which nodes are left, so nothing has to be stored.

extension ZonePusher {
  /// Sends at most one commit. An earlier request without a known outcome is sent again first.
  ///
  /// - Returns: A summary without a commit whose `waiting` is not 0 if there are stale nodes that cannot be put now.
  package func pushRotations() async throws -> ZDCPushSummary {
    if let request = try await storedRequest() { return try await send(request) }
    let (request, isBlocked) = try await session.database.asyncReadWrite { [session, zone] transaction in
      try RotationStager(session: session, zone: zone, transaction: transaction).stage()
    }
    guard let request else { return ZDCPushSummary(waiting: isBlocked ? 1 : 0) }
    return try await send(request, isNew: true)
  }
}

private struct RotationStager {
  let session: SyncSession
  let zone: Int64
  let transaction: ZDCReadWriteTransaction

  /// - Returns: The request, or whether there are stale nodes all the same.
  func stage() throws -> (request: InFlightStore.Request?, isBlocked: Bool) {
    guard let row = try transaction.zones.zone(id: zone), let head = row.head, row.frozen == nil,
      row.unreadableReason == nil, row.mayWrite(session.user),
      try transaction.pushPause(localUser: session.localUser) == nil
    else { return (nil, true) }
    var builder = CommitBuilder(
      session: session, zoneRow: row, head: head, ahead: [:],
      heldNames: try HeldNames(zone: row, deletes: [], moving: [], transaction: transaction), transaction: transaction)
    let stale = try transaction.leaves(zone: zone).staleNodes(limit: Limits.commitOperations)
    for node in stale where !builder.isFull {
      guard let node = try transaction.nodes.node(zone: zone, nodeID: node) else { continue }
      _ = try builder.refreshed(node)
    }
    guard !builder.isEmpty else { return (nil, !stale.isEmpty) }
    let built = try builder.build()
    try InFlightStore(transaction: transaction).store(
      built.commit.hash, request: built.request, zone: zone, outcomes: built.outcomes, rotations: built.rotations,
      atMs: session.now())
    return (InFlightStore.Request(commitHash: built.commit.hash, body: built.request, uploads: []), false)
  }
}
