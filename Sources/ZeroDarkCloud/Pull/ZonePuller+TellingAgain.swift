internal import ZDCProtocol

// The delegate's calls that threw, made again.

extension ZonePuller {
  /// How many calls one pull makes again at most; the others have their turn with the next one.
  private static let limit = 1_000

  /// Calls that belong to a record need nothing here: it is still pending.
  func tellAgain(_ summary: inout PullSummary, _ left: inout LeftOut) async throws {
    let isEmpty = try await session.database.asyncRead { [zone] in try $0.delegateFailures.isEmpty(zone: zone) }
    if isEmpty { return }
    let (told, refusal) = try await session.database.asyncReadWrite { [session, zone] transaction in
      transaction.appCalls.isolates = true
      let told = try TellingAgain(session: session, zone: zone, transaction: transaction).run(limit: Self.limit)
      return (told, transaction.appCalls.failure)
    }
    summary.announced += told
    left.note(refusal)
  }
}

/// One pass over a zone's calls that threw, inside a transaction.
private struct TellingAgain {
  let session: SyncSession
  let zone: Int64
  let transaction: ZDCReadWriteTransaction

  /// - Returns: how many the app has taken.
  func run(limit: Int) throws -> Int {
    var told = 0
    for failure in try transaction.delegateFailures.failures(zone: zone, limit: limit) where try tell(failure) {
      told += 1
    }
    return told
  }

  private func tell(_ failure: DelegateFailureStore.Failure) throws -> Bool {
    guard let row = try transaction.nodes.node(zone: zone, nodeID: failure.node) else {
      // New to this device and still to come, or gone since.
      if try !isPending(failure) { try forget(failure) }
      return false
    }
    switch failure.call {
    case .didPushNodeData: return try tellPushed(row)
    case .didDiscoverDeletedNode, .didDiscoverDeletedDirtyNode: return try tellDeleted(row, failure)
    default:
      if try isPending(failure) { return false }
      return try releaseName(failure)
    }
  }

  private func isPending(_ failure: DelegateFailureStore.Failure) throws -> Bool {
    guard failure.call != .didPushNodeData else { return false }
    return try transaction.leaves(zone: zone).pendingLeaf(failure.node) != nil
  }

  private func forget(_ failure: DelegateFailureStore.Failure) throws {
    let isPulled = failure.call != .didPushNodeData
    try transaction.delegateFailures.forget(zone: zone, node: failure.node, isPulled: isPulled)
  }

  private func tellPushed(_ row: NodeRow) throws -> Bool {
    let completion = InFlightCompletion(session: session, zone: zone, transaction: transaction)
    return try session.part(of: zone, row.nodeID, in: transaction) { try completion.tellPushed(row) }
  }

  private func tellDeleted(_ row: NodeRow, _ failure: DelegateFailureStore.Failure) throws -> Bool {
    guard try transaction.leaves(zone: zone).leaf(row.nodeID) == nil else {
      // A server that was restored has it again.
      try forget(failure)
      return false
    }
    let removal = RemoteRemoval(
      session: session, zone: zone, transaction: transaction, receivedMs: failure.receivedMs)
    return try removal.retry(row)
  }

  /// A name that became free: no record waits for that.
  private func releaseName(_ failure: DelegateFailureStore.Failure) throws -> Bool {
    try forget(failure)
    let places = LocalPlaces(session: session, transaction: transaction)
    let leaves = transaction.leaves(zone: zone)
    let names = DuplicateNames(session: session, transaction: transaction, places: places, leaves: leaves)
    return try names.release() > 0
  }
}
