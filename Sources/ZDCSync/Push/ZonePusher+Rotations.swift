internal import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport

// Finishes removals: replaces the keys of nodes that were not written since. Each commit rotates up to a thousand nodes,
// from the top down, and nothing else. The log shows which nodes are left, so nothing has to be stored; between commits
// the list of them is in memory, so that not each commit walks through the zone.

extension ZonePusher {
  /// Sends at most one commit. An earlier request without a known outcome is sent again first.
  ///
  /// - Parameter staleNodes: The result of an earlier call.
  /// - Returns: A summary without a commit whose `waiting` is not 0 if there are stale nodes that cannot be put now.
  ///   The list is for the next call.
  func pushRotations(_ staleNodes: StaleNodes) async throws -> (ZDCPushSummary, StaleNodes) {
    if let request = try await sender.storedRequest() { return try await send(request, staleNodes) }
    let limit = await sender.state.commitLimit ?? Limits.commitOperations
    let staged = try await session.database.asyncReadWrite { [session, zone] transaction in
      try RotationStager(session: session, zone: zone, transaction: transaction, limit: limit).stage(staleNodes)
    }
    guard let request = staged.request else {
      return (ZDCPushSummary(waiting: staged.isBlocked ? 1 : 0), staged.staleNodes)
    }
    return try await send(request, isNew: true, staged.staleNodes)
  }

  private func send(
    _ request: InFlightStore.Request, isNew: Bool = false, _ staleNodes: StaleNodes
  ) async throws -> (ZDCPushSummary, StaleNodes) {
    let summary = try await sender.send(request, isNew: isNew)
    var left = staleNodes
    if let refused = await sender.refusedRotation { left.refused.insert(refused) }
    return (summary, left)
  }
}

/// The stale nodes of a zone that no commit of a run has rotated yet, parents before their children.
///
/// It is a hint: nodes may have been written since, and the nodes of a refused commit are not in it any more. The list
/// that is made after its end finds those.
struct StaleNodes: Sendable {
  private var left: ArraySlice<NodeID> = []
  /// Nodes whose rotation the server has refused. They and the nodes below them are tried again in the next run.
  var refused: Set<NodeID> = []

  /// Calls `rotate` for each node until it returns false, which leaves the others for the next commit. If that puts
  /// nothing into the commit, makes a new list and repeats.
  ///
  /// - Parameters:
  ///   - find: Lists all stale nodes.
  ///   - isEmpty: Whether the commit is empty.
  ///   - rotate: Puts a node into the commit if it can be put; returns whether the commit has room.
  /// - Returns: Whether the newest list was not empty.
  mutating func fill(
    find: () throws -> [NodeID], isEmpty: () -> Bool, rotate: (NodeID) throws -> Bool
  ) rethrows -> Bool {
    try take(rotate)
    guard isEmpty() else { return true }
    left = try find()[...]
    let isSomeStale = !left.isEmpty
    try take(rotate)
    return isSomeStale
  }

  private mutating func take(_ rotate: (NodeID) throws -> Bool) rethrows {
    while let node = left.first, try rotate(node) { left.removeFirst() }
  }
}

private struct RotationStager {
  let session: SyncSession
  let zone: Int64
  let transaction: ZDCReadWriteTransaction
  /// Maximum number of nodes in the commit.
  let limit: Int

  struct Staged: Sendable {
    /// Nil if nothing can be rotated now.
    var request: InFlightStore.Request?
    /// Whether there are stale nodes all the same.
    var isBlocked = false
    var staleNodes: StaleNodes
  }

  func stage(_ known: StaleNodes) throws -> Staged {
    guard let row = try transaction.zones.zone(id: zone), let head = row.head, row.frozen == nil,
      row.unreadableReason == nil, row.mayWrite(session.user),
      try transaction.pushPause(localUser: session.localUser) == nil
    else { return Staged(isBlocked: true, staleNodes: known) }
    var builder = CommitBuilder(
      session: session, zoneRow: row, head: head, ahead: [:],
      heldNames: try HeldNames(zone: row, deletes: [], moving: [], transaction: transaction), transaction: transaction)
    var staged = Staged(staleNodes: known)
    let isSomeStale = try staged.staleNodes.fill(
      find: { try transaction.leaves(zone: zone).staleNodes(below: row.zone.root) }, isEmpty: { builder.isEmpty }
    ) { try rotate($0, except: known.refused, &builder) }
    guard !builder.isEmpty else { return Staged(isBlocked: isSomeStale, staleNodes: StaleNodes()) }
    let built = try builder.build()
    try InFlightStore(transaction: transaction).store(
      built.commit.hash, request: built.request, zone: zone, outcomes: built.outcomes, rotations: built.rotations,
      atMs: session.now())
    staged.request = InFlightStore.Request(commitHash: built.commit.hash, body: built.request, uploads: [])
    return staged
  }

  /// - Returns: Whether the commit has room for another node.
  private func rotate(_ node: NodeID, except refused: Set<NodeID>, _ builder: inout CommitBuilder) throws -> Bool {
    guard builder.operations.count < limit, builder.hasRoom(for: nil, besides: Limits.historyWrapBytes) else {
      return false
    }
    guard let row = try transaction.nodes.node(zone: zone, nodeID: node) else { return true }
    if !refused.isEmpty {
      let path = try [node] + transaction.leaves(zone: zone).ancestors(of: node)
      guard refused.isDisjoint(with: path) else { return true }
    }
    _ = try builder.refreshed(row)
    return true
  }
}
