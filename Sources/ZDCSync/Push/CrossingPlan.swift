internal import ZDCClientStore
internal import ZDCProtocol

/// Decides which branches of a zone can move to other ones now.
struct CrossingPlan {
  let user: UserID
  let zone: ZoneRow
  let transaction: ZDCReadTransaction

  enum Verdict: Equatable {
    case waits(OperationRow.Reason)
    case begins(below: Int64)
    /// The new parent is in the old zone: no copies are needed.
    case ends
    /// Nodes are being moved into the branch, whose top is not in the cloud and can no longer be created in the old zone.
    case holdsInner
    /// It cannot move there any more.
    case isImpossible
  }

  /// Whether a branch can begin to move, or a move can be given up.
  var hasWork: Bool {
    get throws {
      guard try !transaction.moves.isEmpty else { return false }
      let tops = try transaction.moves.crossings(from: zone.id)
      if tops.isEmpty { return try transaction.moves.hasHeld(from: zone.id) }
      return try tops.contains { if case .waits = try verdict($0) { false } else { true } }
    }
  }

  func verdict(_ id: Int64) throws -> Verdict {
    guard let top = try transaction.nodes.node(id: id),
      let parent = try top.parent.flatMap({ try transaction.nodes.node(id: $0) })
    else { return .waits(.notPulledYet) }
    guard parent.zone != zone.id else { return .ends }
    if let pause = try pause(of: top) { return .waits(pause) }
    guard let destination = try transaction.zones.zone(id: parent.zone), destination.head != nil, !parent.isPlaceholder
    else { return .waits(.notPulledYet) }
    if destination.frozen != nil { return .waits(.zoneFrozen) }
    if destination.unreadableReason != nil || zone.unreadableReason != nil { return .waits(.unreadable) }
    let branch = BranchToMove(transaction, top: top, sharesLater: destination.owner == nil || !top.isUploaded)
    let obstacle = try branch.obstacle
    if obstacle == .moving, !top.isUploaded { return .holdsInner }
    if obstacle == .sharing || obstacle == .moving { return .waits(.waitingForOperation) }
    if try branch.isUnread { return .waits(.notPulledYet) }
    if try branch.isUnreadable { return .waits(.unreadable) }
    let mayMove = writesFreely(zone) && writesFreely(destination) && !destination.isClosed && parent.pointer == nil
    guard mayMove, obstacle == nil else { return .isImpossible }
    if try branch.isInConflict { return .waits(.conflictHeld) }
    return try branch.namesOldContent ? .waits(.waitingForOperation) : .begins(below: parent.id)
  }

  /// Returns why the queued move waits, after the app threw when it was notified.
  private func pause(of top: NodeRow) throws -> OperationRow.Reason? {
    let queued = try transaction.operations.operations(node: top.id).first(where: \.kind.isRecord)
    guard let queued, queued.isParked || queued.notBeforeMs > transaction.context.clock() else { return nil }
    return queued.reason
  }

  private func writesFreely(_ zone: ZoneRow) -> Bool {
    zone.permissions(of: user).writesFreely
  }
}
