internal import ZDCAccounts
internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport

/// Finds out which owners of shared branches have closed their accounts (PROTOCOL 3.12).
///
/// Only a link of the owner's verified identity chain proves that. A server that merely refuses changes does not.
struct OwnerCheck: Sendable {
  /// The pause between two requests for an owner's chain, in milliseconds: a day. A change that the server refuses asks at
  /// once.
  private static let intervalMs: UInt64 = 86_400_000

  let session: SyncSession

  /// Asks for the chains that are due, at most once a day for each owner, and reports the owners who have closed their
  /// accounts to the app.
  func runIfDue() async throws {
    let (owners, due) = try await session.database.asyncRead { [session] transaction in
      let owners = Set(try transaction.zones.ofOwners(localUser: session.localUser).compactMap(\.owner))
      let open = owners.filter { transaction.user(id: $0.text)?.identity != .closed }
      let now = session.now()
      return (owners, try transaction.users.due(open, since: now - min(Self.intervalMs, now)))
    }
    guard !owners.isEmpty else { return }
    if !due.isEmpty { try await refresh(due) }
    try await settle()
  }

  /// Asks for the chain of an owner, after the server has refused a change because the account is closed.
  ///
  /// - Returns: Whether the chain confirms it.
  func confirm(_ owner: UserID) async throws -> Bool {
    guard owner != session.user else { return false }
    try await refresh([owner])
    try await settle()
    return try await session.database.asyncRead { $0.user(id: owner.text)?.identity == .closed }
  }

  private func refresh(_ owners: [UserID]) async throws {
    let refused = try await session.identities.refresh(owners)
    try await session.database.asyncReadWrite { [session] transaction in
      try transaction.users.noteRefreshed(owners, atMs: session.now())
      for error in refused {
        try transaction.record(error, localUser: session.localUser, zone: nil, atMs: session.now())
      }
    }
    for error in refused { session.events.report(error) }
  }

  private func settle() async throws {
    let (kept, left) = try await session.database.asyncRead { [session] transaction in
      let closed = try transaction.zones.ofOwners(localUser: session.localUser).filter {
        $0.owner.map { transaction.user(id: $0.text)?.identity == .closed } ?? false
      }
      let left = try closed.filter { try transaction.grafts.isLeft(zone: $0.id) }
      return (closed.map(\.id).filter { !left.map(\.id).contains($0) }, left)
    }
    if !kept.isEmpty {
      _ = try await session.writeNotifyingDelegate { [session] transaction in
        for zone in kept { try ClosedOwner(session: session, zone: zone, transaction: transaction).settle() }
      }
    }
    for zone in left { try await leave(zone) }
  }

  /// Ends the membership in a zone that the user leaves: the list that would confirm it cannot come.
  private func leave(_ zone: ZoneRow) async throws {
    try await session.api.forgetZone(zone.zone)
    try await session.database.asyncReadWrite { [session] transaction in
      // The user may have come back in the meantime.
      guard try transaction.grafts.isLeft(zone: zone.id), let row = try transaction.zones.zone(id: zone.id) else {
        return
      }
      try GraftChange(transaction, localUser: session.localUser, user: session.user).remove(row)
    }
  }
}

/// Ends all changes of a branch whose owner has closed their account, inside a transaction. The branch's nodes and files
/// stay on this device until the app deletes the graft.
private struct ClosedOwner {
  let session: SyncSession
  let zone: Int64
  let transaction: ZDCReadWriteTransaction

  func settle() throws {
    guard let row = try transaction.zones.zone(id: zone) else { return }
    if row.ownerAccount == .open { try end() }
    try report()
  }

  private func end() throws {
    try note(.closed)
    try ZoneCrossing(session: session, transaction: transaction).cancel(with: zone)
    for operation in try transaction.operations.operations(zone: zone, limit: .max) where operation.kind == .changeList
    {
      try transaction.operations.setState(.pending, reason: .notAllowed, id: operation.id)
    }
  }

  /// Reports a grafted branch. If the app throws, it is reported again with the next check.
  private func report() throws {
    guard let root = try transaction.nodes.root(zone: zone), try transaction.grafts.pointer(to: root) != nil else {
      return try note(.closedAndReported)
    }
    guard !root.isPlaceholder else { return }
    guard transaction.appCalls.isolates else { return try announce(root) }
    do { try transaction.undoable { try announce(root) } } catch let error as DelegateError {
      transaction.appCalls.failure = transaction.appCalls.failure ?? error
      transaction.afterCommit { [events = session.events] in events.report(error) }
    }
  }

  private func announce(_ root: NodeRow) throws {
    let (node, path) = (try session.node(root, in: transaction), try session.path(root, in: transaction))
    try session.tell(.didDiscoverConflict, root.nodeID, in: transaction) {
      try $0.didDiscoverConflict(.graft_DstUserAccountDeleted, forNode: node, atPath: path, transaction: transaction)
    }
    try note(.closedAndReported)
  }

  private func note(_ account: ZoneRow.OwnerAccount) throws {
    // The app may have deleted the graft in its call.
    guard var row = try transaction.zones.zone(id: zone) else { return }
    row.ownerAccount = account
    try transaction.zones.update(row)
    transaction.cloudState.forget(zone: zone)
  }
}
