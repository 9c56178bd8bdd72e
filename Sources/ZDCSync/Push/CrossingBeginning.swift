internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport

/// Begins the moves out of a zone that can begin now, in one transaction. It sends nothing: the copies are queued in the new
/// zones, and their deletion in this one.
struct CrossingBeginning {
  let session: SyncSession
  let zone: Int64
  let transaction: ZDCReadWriteTransaction

  private var crossing: ZoneCrossing { ZoneCrossing(session: session, transaction: transaction) }

  /// - Returns: The first error that the app threw. That move stays as it is, and waits.
  func run() throws -> DelegateError? {
    let inFlight = InFlightStore(transaction: transaction)
    guard let row = try transaction.zones.zone(id: zone), try inFlight.commitHash(zone: zone) == nil else { return nil }
    let plan = CrossingPlan(user: session.user, zone: row, transaction: transaction)
    var refusal: DelegateError?
    for id in try transaction.moves.crossings(from: zone) {
      guard let top = try transaction.nodes.node(id: id) else { continue }
      do {
        try transaction.undoable { try settle(top, try plan.verdict(id)) }
      } catch let error as DelegateError {
        refusal = refusal ?? error
        try pause(top, error)
      }
    }
    if try transaction.moves.crossings(from: zone).isEmpty { try removeLeftCopies() }
    return refusal
  }

  private func pause(_ top: NodeRow, _ error: DelegateError) throws {
    let queued = try transaction.operations.operations(node: top.id).first(where: \.kind.isRecord)
    guard var operation = queued else { throw error }
    operation.attempts += 1
    operation.reason = .backoff
    operation.reasonDetail = ContentFailure.detail(error.underlying)
    operation.notBeforeMs = session.now() + Backoff.pause(attempts: operation.attempts, random: session.time.random())
    try transaction.record(error, orElse: .appFailed, of: [operation.id])
    try transaction.operations.update(operation)
    transaction.afterCommit { [events = session.events] in events.report(error) }
  }

  private func settle(_ top: NodeRow, _ verdict: CrossingPlan.Verdict) throws {
    switch verdict {
    case .waits: break
    case .ends: try crossing.end(top)
    case .holdsInner: try crossing.holdInner(of: top)
    case .isImpossible: try crossing.drop(top)
    case .begins(let parent):
      let isUnknown = try transaction.nodes.subtree(of: top.id).contains { $0.unused?.unknownExtras.isEmpty == false }
      if isUnknown { return try crossing.drop(top) }
      guard let parent = try transaction.nodes.node(id: parent) else { return }
      try crossing.begin(top, below: parent)
    }
  }

  /// Removes copies of nodes that another device has moved out of their branch in the meantime.
  private func removeLeftCopies() throws {
    for copy in try transaction.moves.copies(from: zone) where copy.isHeld {
      let uuid = try copy.row.flatMap { try transaction.nodes.node(id: $0) }?.uuid
      try CopyRemoval(transaction).remove(copy, uuid: uuid ?? UUIDv7.make(atMs: session.now()))
    }
  }
}
