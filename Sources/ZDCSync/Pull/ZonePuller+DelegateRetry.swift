internal import ZDCClientStore
internal import ZDCProtocol

// Repeats delegate calls that threw.

extension ZonePuller {
  /// The maximum number of calls that one pull repeats. The others follow with the next pull.
  private static let limit = 1_000

  /// Repeats failed calls. Calls that belong to a record need no work here, because the record is still pending.
  func retryDelegateCalls(_ summary: inout ZDCPullSummary, _ left: inout DeferredNodes) async throws {
    let isEmpty = try await session.database.asyncRead { [zone] in try $0.delegateFailures.isEmpty(zone: zone) }
    if isEmpty { return }
    let (told, refusal) = try await session.database.asyncReadWrite { [session, zone] transaction in
      transaction.appCalls.isolates = true
      let told = try DelegateRetry(session: session, zone: zone, transaction: transaction).run(limit: Self.limit)
      return (told, transaction.appCalls.failure)
    }
    summary.announced += told
    left.note(refusal)
  }
}

/// One pass over a zone's failed calls, inside a transaction.
private struct DelegateRetry {
  let session: SyncSession
  let zone: Int64
  let transaction: ZDCReadWriteTransaction

  private struct Task: Hashable {
    var node: NodeID
    var part: DelegateFailureStore.Part
  }

  /// - Returns: The number of calls that the app has accepted.
  func run(limit: Int) throws -> Int {
    var told = 0
    // A part may have failed in several calls, but is repeated only once.
    var tried: Set<Task> = []
    for failure in try transaction.delegateFailures.failures(zone: zone, limit: limit)
    where tried.insert(Task(node: failure.node, part: failure.part)).inserted {
      if try tell(failure) { told += 1 }
    }
    return told
  }

  private func tell(_ failure: DelegateFailureStore.Failure) throws -> Bool {
    guard let row = try transaction.nodes.node(zone: zone, nodeID: failure.node) else {
      // The node is new to this device and still pending, or has been deleted since.
      if try !isPending(failure) { try forget(failure) }
      return false
    }
    switch failure.part {
    case .push: return try notifyPushed(row)
    case .deletion: return try tellDeleted(row, failure)
    case .name: return try releaseName(row, failure)
    case .access:
      let change = AccessChange(session: session, zone: zone, transaction: transaction)
      try change.announce()
      return try transaction.delegateFailures.failures(zone: zone, node: row.nodeID).allSatisfy { $0.part != .access }
    case .record:
      if try !isPending(failure) { try forget(failure) }
      return false
    }
  }

  private func isPending(_ failure: DelegateFailureStore.Failure) throws -> Bool {
    guard failure.part != .push else { return false }
    return try transaction.leaves(zone: zone).pendingLeaf(failure.node) != nil
  }

  private func forget(_ failure: DelegateFailureStore.Failure) throws {
    try transaction.delegateFailures.forget(zone: zone, node: failure.node, isPulled: failure.part != .push)
  }

  private func notifyPushed(_ row: NodeRow) throws -> Bool {
    let completion = InFlightCompletion(session: session, zone: zone, transaction: transaction)
    return try session.part(.push, of: zone, row.nodeID, in: transaction) { try completion.notifyPushed(row) }
  }

  private func tellDeleted(_ row: NodeRow, _ failure: DelegateFailureStore.Failure) throws -> Bool {
    guard try transaction.leaves(zone: zone).leaf(row.nodeID) == nil else {
      // A restored server has the node again.
      try forget(failure)
      return false
    }
    let removal = RemoteRemoval(
      session: session, zone: zone, transaction: transaction, receivedMs: failure.receivedMs)
    return try removal.retry(row)
  }

  /// Releases a name that became free. No record waits for this, unless there is a newer one.
  private func releaseName(_ row: NodeRow, _ failure: DelegateFailureStore.Failure) throws -> Bool {
    if try isPending(failure) { return false }
    let places = LocalTreeResolver(session: session, transaction: transaction)
    let leaves = transaction.leaves(zone: zone)
    let names = DuplicateNames(session: session, transaction: transaction, places: places, leaves: leaves)
    return try names.release(row) > 0
  }
}
