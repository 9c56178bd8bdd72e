internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCProtocol

// Zones that are shown inside of other zones.

extension ZonePuller {
  /// Pulls the zones that this device shows at or below nodes that a page deletes, before the page is applied.
  ///
  /// An owner ends a branch before they delete the pointer to it, so this device then knows the branches that have ended.
  /// It treats the others as open: they keep their nodes, and the owner's devices give them another place (S-8). If such a
  /// zone cannot be pulled because of its own state, that does not hold up this one.
  ///
  /// - Returns: The first error that the app threw.
  /// - Throws: `ZDCServerError`, `ZDCTransportError`, `CancellationError`.
  func pullBranches(deletedBy page: PageContents, _ row: ZoneRow) async throws -> DelegateError? {
    var refusal: DelegateError?
    for branch in try await branches(deletedBy: page, row) {
      do {
        let pulled = try await ZonePuller(session: session, zone: branch).pull()
        refusal = refusal ?? pulled.refusal
      } catch let error as ZDCSecurityError {
        session.events.report(error)
      } catch let error as ServerError where error.code == .notFound {
        session.events.report(error)
      }
    }
    return refusal
  }

  private func branches(deletedBy page: PageContents, _ row: ZoneRow) async throws -> [Int64] {
    let new = page.commits.filter { item in row.head.map { item.commit.fields.seq > $0.seq } ?? true }
    let deleted = new.flatMap(\.commit.fields.operations).compactMap { operation in
      if case .delete(let node, _, _) = operation { node } else { nil }
    }
    guard !deleted.isEmpty else { return [] }
    return try await session.database.asyncRead { [zone] transaction in
      guard try !transaction.mounts.isEmpty else { return [] }
      return try deleted.compactMap { try transaction.nodes.node(zone: zone, nodeID: $0) }
        .flatMap { try transaction.mounts.zones(below: $0.id) }
    }
  }
}

extension ZDCReadTransaction {
  /// Whether the verified log of a zone has a commit with that number, or the zone has ended here. Another pull may have
  /// applied the page.
  func isKnown(_ seq: UInt64, zone: Int64) throws -> Bool {
    try zones.zone(id: zone).map { row in row.head.map { $0.seq >= seq } ?? false } ?? true
  }
}
