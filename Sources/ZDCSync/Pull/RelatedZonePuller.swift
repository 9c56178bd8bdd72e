internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCProtocol

/// Pulls other zones before a page of a zone is applied, because what the page deletes may be in them.
struct RelatedZonePuller {
  let session: SyncSession
  let zone: Int64

  /// Pulls the zones that this device shows at or below nodes that a page deletes, before the page is applied.
  ///
  /// An owner ends a branch before they delete the pointer to it, so this device then knows the branches that have ended.
  /// It treats the others as open: they keep their nodes, and the owner's devices give them another place (S-8). If such a
  /// zone cannot be pulled because of its own state, that does not hold up this one.
  ///
  /// - Returns: The first error that the app threw.
  /// - Throws: `ZDCServerError`, `ZDCTransportError`, `CancellationError`.
  func pullBranches(at deleted: [NodeID]) async throws -> DelegateError? {
    try await pullFirst(try await branches(at: deleted))
  }

  /// Pulls the other zones with news before a page is applied that deletes nodes which this device has: the writer may have
  /// moved them there, and the copies take over their local IDs, links and queued changes (M-3).
  ///
  /// - Returns: The first error that the app threw.
  /// - Throws: as ``pullBranches(at:)``.
  func pullDestinations(of deleted: [NodeID], _ row: ZoneRow) async throws -> DelegateError? {
    guard try await hasAny(of: deleted) else { return nil }
    let others = try await others(than: row)
    guard !others.isEmpty else { return nil }
    let named = try await session.api.zones(since: nil).zones
    let heads = Dictionary(named.map { ($0.zone, $0.head) }) { first, _ in first }
    let news = others.filter { other in other.isUnfinished || heads[other.zone, default: other.head] != other.head }
    return try await pullFirst(news.map(\.id))
  }

  /// Pulls the zone that holds the root of a branch before the first pull of the branch: its split is not read yet, and takes
  /// over the nodes that are here, with queued changes.
  ///
  /// - Returns: The first error that the app threw.
  /// - Throws: as ``pullBranches(at:)``.
  func pullHolder(of row: ZoneRow) async throws -> DelegateError? {
    let holder = try await session.database.asyncRead { transaction in
      try transaction.zones.holder(of: row.zone.root, besides: row)
    }
    return try await pullFirst(holder.map { [$0] } ?? [])
  }

  private struct OtherZone: Sendable {
    let id: Int64
    let zone: ZoneID
    let head: CommitHash
    /// Whether records of it are still to be read.
    let isUnfinished: Bool
  }

  /// Returns the zones of the user's home tree, and those of others, in which nodes can be moved.
  private func others(than zone: ZoneRow) async throws -> [OtherZone] {
    try await session.database.asyncRead { [session] transaction in
      try transaction.zones.zones(localUser: session.localUser).compactMap { row in
        let isPlace = row.id != zone.id && row.appTreeID == session.appTreeID && (!row.isTrunk || row.trunk == .home)
        guard isPlace, row.frozen == nil, !row.isClosed, let head = row.head,
          try !transaction.grafts.isLeft(zone: row.id)
        else { return nil }
        let isUnfinished = try transaction.leaves(zone: row.id).pendingCount() > 0
        return OtherZone(id: row.id, zone: row.zone, head: head.hash, isUnfinished: isUnfinished)
      }
    }
  }

  private func pullFirst(_ zones: [Int64]) async throws -> DelegateError? {
    var refusal: DelegateError?
    for zone in zones {
      do {
        var puller = ZonePuller(session: session, zone: zone)
        puller.isInsideOther = true
        let pulled = try await puller.pull()
        refusal = refusal ?? pulled.refusal
      } catch let error as ZDCSecurityError {
        session.events.report(error)
      } catch let error as ServerError where error.code == .notFound {
        session.events.report(error)
      }
    }
    return refusal
  }

  private func hasAny(of deleted: [NodeID]) async throws -> Bool {
    guard !deleted.isEmpty else { return false }
    return try await session.database.asyncRead { [zone] transaction in
      try deleted.contains { try transaction.nodes.node(zone: zone, nodeID: $0) != nil }
    }
  }

  private func branches(at deleted: [NodeID]) async throws -> [Int64] {
    guard !deleted.isEmpty else { return [] }
    return try await session.database.asyncRead { [zone] transaction in
      guard try !transaction.mounts.isEmpty else { return [] }
      return try deleted.compactMap { try transaction.nodes.node(zone: zone, nodeID: $0) }
        .flatMap { try transaction.mounts.zones(below: $0.id) }
    }
  }
}
