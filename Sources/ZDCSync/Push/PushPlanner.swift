internal import GRDB
internal import ZDCAccounts
internal import ZDCClientStore
internal import ZDCProtocol

/// Chooses the operations that may be sent, inside one read transaction.
struct PushPlanner: Sendable {
  /// The number of queued operations that a commit considers: enough for a thousand nodes with several operations each.
  package static let window = 4_000
  /// The number of deliveries that a request considers: enough for priorities to matter.
  static let deliveryWindow = 4 * Limits.envelopesPerRequest
  /// The largest window, used when every operation in smaller windows waits. It bounds the rows in memory.
  static let widestWindow = 16 * window
  /// The number of pending uploads above which they hold up the rest of the queue, because each runs in its own task.
  static let mostUnderWay = 8_000

  package let session: SyncSession
  package let zone: Int64
  /// Content that is ready or being uploaded, so that the app need not be asked for it.
  package let known: [Int64: ContentClaim]
  /// The operations whose known content is still being uploaded.
  package let underWay: Set<Int64>
  /// The reduced maximum number of nodes in the commit, or nil for the default.
  package let limit: Int?

  /// The next thing to send.
  package enum Due: Sendable {
    case nothing
    /// The outcome of the last request is unknown.
    case request(InFlightStore.Request)
    /// The user's old sign keys were compromised.
    case retirement
    case choice(Choice)
    case lists(ListChoice)
    case split(SplitChoice)
    /// Branches that the app has moved to other zones, whose rows are still in this one.
    case moves
    /// Messages of another device of the user, which this device takes over.
    case takeOver
    /// Messages to deliver; empty if the outcome of the last delivery is unknown.
    case deliveries([OperationRow])
    /// A change of the user's profile.
    case profile(OperationRow)
  }

  package func due(_ transaction: ZDCReadTransaction) throws -> Due {
    guard let row = try transaction.zones.zone(id: zone), row.frozen == nil, !row.isClosed else { return .nothing }
    // Read the pause in the same snapshot as the queue, so that no operation queued after the pause is sent.
    guard try transaction.pushPause(localUser: session.localUser) == nil else { return .nothing }
    if let request = try InFlightStore(transaction: transaction).request(zone: zone) { return .request(request) }
    guard row.ownerAccount == .open, let head = row.head else { return .nothing }
    if session.keys.retirement(in: head) != nil { return .retirement }
    if try CrossingPlan(user: session.user, zone: row, transaction: transaction).hasWork { return .moves }
    if let due = try planZoneChange(row, head, transaction) { return due }
    if try hasMessagesToTakeOver(row, transaction) { return .takeOver }
    if let deliveries = try planDeliveries(row, transaction) { return .deliveries(deliveries) }
    if let profile = try planProfile(row, transaction) { return .profile(profile) }
    guard var choice = try plan(row, head, transaction) else { return .nothing }
    try ask(&choice, transaction)
    return .choice(choice)
  }

  /// Returns the change of the zone as a whole that may be sent.
  private func planZoneChange(_ row: ZoneRow, _ head: ZoneHead, _ transaction: ZDCReadTransaction) throws -> Due? {
    let queued = try ListChangeStore(transaction).zoneChanges(of: row)
    guard !queued.isEmpty else { return nil }
    if let end = try planEnd(row, head, queued, transaction) { return .choice(end) }
    if let lists = try planLists(row, head, queued, transaction) { return .lists(lists) }
    return try planSplit(row, head, queued, transaction).map(Due.split)
  }

  /// Returns the delete of the zone's root, which ends the zone, if it may be sent. It is the only operation of its commit,
  /// and needs no key. All other operations of the queue end with the zone, so they are not sent before it.
  private func planEnd(
    _ row: ZoneRow, _ head: ZoneHead, _ queued: [OperationRow], _ transaction: ZDCReadTransaction
  ) throws -> Choice? {
    let ends = queued.filter { $0.kind == .delete }
    guard !ends.isEmpty else { return nil }
    let plan = PushPlan(
      operations: ends, dependencies: try transaction.operations.dependencies(zone: row.id), nowMs: session.now())
    return plan.taken > 0 ? Choice(zone: row, head: head, plan: plan, unread: []) : nil
  }

  /// Returns the changes of the access list that may be sent. They precede everything else in the queue, so that what is
  /// written after a removal is sealed under the new key.
  private func planLists(
    _ row: ZoneRow, _ head: ZoneHead, _ queued: [OperationRow], _ transaction: ZDCReadTransaction
  ) throws -> ListChoice? {
    let store = ListChangeStore(transaction)
    let changes = queued.filter { $0.kind == .changeList && $0.nodeID == row.zone.root }
    guard !changes.isEmpty else { return nil }
    let plan = PushPlan(
      operations: changes, dependencies: try store.dependencies(zone: row.id), unreadable: row.unreadableReason?.code,
      nowMs: session.now(), limit: .max)
    guard !plan.listChanges.isEmpty else { return nil }
    return ListChoice(zone: row, head: head, changes: plan.listChanges, nextMs: plan.nextMs)
  }

  /// Returns the first node that is to get a list of its own, with all changes of that list that may be sent. The node's
  /// newest version must be here, because it begins the new zone. Only an owner who has pulled the zone can split off
  /// a branch.
  private func planSplit(
    _ row: ZoneRow, _ head: ZoneHead, _ queued: [OperationRow], _ transaction: ZDCReadTransaction
  ) throws -> SplitChoice? {
    guard head.acl.fields.owner == session.user, row.unreadableReason == nil else { return nil }
    let store = ListChangeStore(transaction)
    let changes = queued.filter { $0.kind == .changeList && $0.nodeID != row.zone.root }
    guard !changes.isEmpty else { return nil }
    let dependencies = try store.dependencies(zone: row.id)
    let leaves = transaction.leaves(zone: row.id)
    var seen: Set<NodeID> = []
    for node in changes.map(\.nodeID) where seen.insert(node).inserted {
      let plan = PushPlan(
        operations: changes.filter { $0.nodeID == node }, dependencies: dependencies, nowMs: session.now(), limit: .max)
      guard !plan.listChanges.isEmpty, let top = try transaction.nodes.node(zone: row.id, nodeID: node),
        let leaf = try leaves.leaf(node),
        try top.isUploaded && !transaction.isUnread(top) && !isSharedLater(top, transaction),
        try !sendsRestoredFirst(below: top, plan.listChanges, transaction)
      else { continue }
      return SplitChoice(
        zone: row, head: head, top: top, leaf: leaf, used: try leaves.parentKeyGens(below: node),
        changes: plan.listChanges)
    }
    return nil
  }

  /// Whether a node is about to move to another zone of the user's own, or has moved and is not deleted at its old place yet. If
  /// it is to be shared, that happens at the new place, once the move has ended: the root of a zone could not return to the old
  /// place (``ZoneCrossing/hold(from:)``).
  private func isSharedLater(_ node: NodeRow, _ transaction: ZDCReadTransaction) throws -> Bool {
    if let copy = try transaction.moves.copy(row: node.id), !copy.isHeld { return true }
    guard let zone = try transaction.destination(of: node) else { return false }
    return try transaction.zones.zone(id: zone)?.owner == nil
  }

  /// Whether content that the user has restored in the branch is sent before the split, because the server has it only
  /// for the zone that its node is in now. A removal does not wait for that.
  private func sendsRestoredFirst(
    below top: NodeRow, _ changes: [OperationRow], _ transaction: ZDCReadTransaction
  ) throws -> Bool {
    let isRemoval = changes.contains { $0.listChange?.replacesKey ?? false }
    return try !isRemoval && BranchToMove(transaction, top: top).sendsOldContent
  }

  private func hasMessagesToTakeOver(_ row: ZoneRow, _ transaction: ZDCReadTransaction) throws -> Bool {
    guard OutgoingMessages.concern(row), row.unreadableReason == nil else { return false }
    return try !OutgoingMessageStore(transaction).due(zone: row.id, nowMs: session.now(), limit: 1).isEmpty
  }

  /// Returns the deliveries of an outbox that may be sent.
  private func planDeliveries(_ row: ZoneRow, _ transaction: ZDCReadTransaction) throws -> [OperationRow]? {
    guard row.trunk == .outbox, row.owner == nil else { return nil }
    let messages = transaction.messages
    let now = session.now()
    let due = try messages.due(zone: row.id, nowMs: now, limit: Self.deliveryWindow)
    let plan = PushPlan(operations: due, dependencies: [:], nowMs: now, limit: .max)
    return try plan.deliveries.isEmpty && !messages.hasUnanswered(zone: row.id) ? nil : plan.deliveries
  }

  /// Returns the change of the profile that is queued in an inbox, if it may be sent.
  private func planProfile(_ row: ZoneRow, _ transaction: ZDCReadTransaction) throws -> OperationRow? {
    guard row.trunk == .inbox, row.owner == nil, row.isTrunk,
      let queued = try transaction.profiles.queued(inbox: row.id)
    else { return nil }
    return PushPlan(
      operations: [queued], dependencies: [:], unreadable: row.unreadableReason?.code, nowMs: session.now()
    ).deliveries.first
  }

  /// Widens the window while every operation in it waits.
  private func plan(
    _ row: ZoneRow, _ head: ZoneHead, _ transaction: ZDCReadTransaction
  ) throws -> Choice? {
    var window = Self.window
    while true {
      let operations = try transaction.operations.operations(zone: row.id, limit: window)
      guard !operations.isEmpty else { return nil }
      let unread = try transaction.unreadNodes(of: operations, zone: row.id)
      let plan = PushPlan(
        operations: operations,
        dependencies: try transaction.operations.dependencies(zone: row.id, upTo: operations.last?.id ?? 0),
        unread: unread, unreadable: row.unreadableReason?.code, mayWrite: row.mayWrite(session.user),
        underWay: underWay,
        nowMs: session.now(),
        limit: limit ?? Limits.commitOperations)
      let isAllSeen = operations.count < window || window >= Self.widestWindow
      if plan.taken > 0 || isAllSeen { return Choice(zone: row, head: head, plan: plan, unread: unread) }
      window *= 4
    }
  }

  private func ask(_ choice: inout Choice, _ transaction: ZDCReadTransaction) throws {
    let request = ContentRequest(session: session, transaction: transaction)
    for step in choice.plan.steps {
      guard let node = step.node, let first = step.dataOperations.first else { continue }
      if known[node]?.holds(for: first) == true {
        if try request.isInConflict(first) { choice.conflicts.append(first) }
        continue
      }
      switch try request.ask(step.dataOperations) {
      case .answer(let answer): choice.answers.append(answer)
      case .conflict(let operation): choice.conflicts.append(operation)
      case .refused(let operation, let error): choice.refusals.append((operation, error))
      case nil: break
      }
    }
  }
}
