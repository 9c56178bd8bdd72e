public import Foundation
public import ZDCClientStore
internal import ZDCProtocol
internal import ZDCTreesystem

/// A queued operation, why it waits, and what would unblock it.
///
/// ```swift
/// let queue = try await tree.read { _, cloud in cloud.explainQueue() }
/// for operation in queue where operation.attempts > 0 {
///   print(operation.reason, operation.detail ?? "", "next attempt:", operation.notBefore ?? .now)
/// }
/// ```
public struct ZDCOperationExplanation: Sendable, Hashable, Codable, Identifiable {
  /// Identifies the operation on this device.
  public var uuid: String
  /// create, move, modify, putData or delete.
  public var kind: String
  /// ``ZDCNode/uuid`` of the operation's node.
  public var nodeID: String
  /// ``ZDCNode/cloudID`` of the operation's node.
  public var cloudID: String
  /// The reason that the operation waits.
  public var reason: ZDCWaitReason
  /// A code, never a name, such as the server's error code or the UUID of another operation.
  public var detail: String?
  /// The operations that it directly waits for, by UUID.
  public var waitsFor: [String]
  /// The operations at the end of all its dependency chains, by UUID.
  public var rootCauses: [String]
  /// The number of failed attempts.
  public var attempts: Int
  /// The outcomes of its last attempts, oldest first, at most 20. Kept across launches, and deleted with the operation.
  public var history: [ZDCAttempt]
  /// The time of the next attempt after a failure.
  public var notBefore: Date?
  /// The time at which the change was queued.
  public var createdAt: Date
  /// The priority that the app gave it; higher is sent earlier.
  public var priority: Int32

  /// The same as ``uuid``.
  public var id: String { uuid }
  /// The event that lets the operation continue; see ``ZDCWaitReason/unblockedBy``.
  public var unblockedBy: String { reason.unblockedBy }
}

/// The known state of a node, and the operations queued for it.
public struct ZDCNodeExplanation: Sendable, Hashable, Codable {
  /// ``ZDCNode/uuid``.
  public var nodeID: String
  /// ``ZDCNode/cloudID``.
  public var cloudID: String
  /// Whether the server has the node.
  public var isUploaded: Bool
  /// Whether the server has content for the node.
  public var hasContentInCloud: Bool
  /// The reason why the newest version in the cloud could not be opened.
  public var quarantine: String?
  /// The reason why the node's tree is neither pulled nor pushed.
  public var zoneFrozen: String?
  /// The reason why the server's answers about the node's tree cannot be followed. The server is asked again after
  /// pauses.
  public var zoneStalled: String?
  /// Whether the verified log has a version of the node that was not read yet, or that the app has not accepted: see
  /// ``delegateFailures``.
  public var isAwaitingPull: Bool
  /// The errors that the app threw in callbacks about the node. Empty once it has accepted all of them.
  public var delegateFailures: [ZDCDelegateFailure]
  /// The last security error of the node and its date. It may have been resolved since.
  public var lastSecurityError: String?
  /// The time of ``lastSecurityError``.
  public var lastSecurityErrorAt: Date?
  /// The node's queued operations, oldest first. Empty if the cloud has all changes.
  public var operations: [ZDCOperationExplanation]

  /// Whether the cloud has everything that this device knows about the node, and this device has read everything in the
  /// cloud.
  public var isInSync: Bool {
    operations.isEmpty && isUploaded && !isAwaitingPull && quarantine == nil && zoneFrozen == nil && zoneStalled == nil
  }
}

extension ZDCCloudReadTransaction {
  /// Explains why a node is not in sync. Returns nil for an unknown node.
  ///
  /// To follow the explanation, see ``ZDCSyncManager/explanations(forNodeID:)``.
  ///
  /// ```swift
  /// guard let explanation = cloud.explain(nodeID: node.uuid), !explanation.isInSync else { return }
  /// for operation in explanation.operations {
  ///   print(operation.kind, "waits for", operation.unblockedBy)
  /// }
  /// ```
  public final func explain(nodeID: String) -> ZDCNodeExplanation? {
    transaction.poisoning { try row(nodeID).map { try Explainer.explain($0, transaction) } } ?? nil
  }

  /// Explains why an operation waits. Returns nil once it is done.
  ///
  /// ```swift
  /// let upload = cloud.queueDataUpload(forNodeID: node.uuid, withChangeset: nil)
  /// let explanation = upload.flatMap { cloud.explain(operationUUID: $0.uuid) }
  /// ```
  public final func explain(operationUUID: String) -> ZDCOperationExplanation? {
    transaction.poisoning { try operationRow(operationUUID).flatMap { try Explainer.explain($0, transaction) } } ?? nil
  }

  /// Explains the whole queue of the tree, in queue order.
  ///
  /// ```swift
  /// let byReason = Dictionary(grouping: cloud.explainQueue(), by: \.reason)
  /// for (reason, operations) in byReason { print(operations.count, reason) }
  /// ```
  public final func explainQueue() -> [ZDCOperationExplanation] {
    transaction.poisoning {
      let zones = try transaction.zones.zones(localUser: localUser).filter { $0.appTreeID == treeID }
      return try zones.flatMap { zone in
        let queued = try transaction.operations.operations(zone: zone.id, limit: .max)
        return queued.isEmpty ? [] : try Explainer(transaction, zone: zone).explain(queued)
      }
    } ?? []
  }
}

/// Explains waiting operations with the plan that the push engine would make now.
struct Explainer {
  private let transaction: ZDCReadTransaction
  private let zone: ZoneRow
  private let dependencies: [Int64: [Int64]]
  /// Contains the operations of other zones that this zone's operations wait for.
  private let graph: OperationGraph
  private let uuids: [Int64: String]
  private let waiting: [Int64: PushPlan.Waiting]
  private let engine: EngineState
  private let isPaused: Bool

  package init(_ transaction: ZDCReadTransaction, zone: ZoneRow) throws {
    self.transaction = transaction
    self.zone = zone
    let localUserID = try transaction.cloudState.facts(ofZone: zone.id).localUserID
    engine = transaction.context.engines.state(localUserID, localUser: zone.localUser)
    isPaused = try transaction.pushPause(localUser: zone.localUser) != nil
    dependencies = try transaction.operations.dependencies(zone: zone.id)
    let operations = try transaction.operations.operations(zone: zone.id, limit: .max)
    let foreign = try transaction.operations.foreignDependencies(zone: zone.id)
    graph = OperationGraph(dependencies.merging(foreign.dependencies) { own, _ in own })
    uuids = foreign.uuids.merging(operations.map { ($0.id, $0.uuid) }) { $1 }
    let plan = PushPlan(
      operations: operations, dependencies: dependencies, foreign: foreign.uuids,
      unread: try transaction.unreadNodes(of: operations, zone: zone.id), unreadable: zone.unreadableReason?.code,
      mayWrite: try transaction.cloudState.facts(ofZone: zone.id).mayWrite,
      nowMs: transaction.context.clock(), limit: .max)
    waiting = Dictionary(plan.waiting.map { ($0.operation, $0) }) { first, _ in first }
  }

  package static func explain(_ row: NodeRow, _ transaction: ZDCReadTransaction) throws -> ZDCNodeExplanation {
    let zone = try transaction.cloudState.facts(ofZone: row.zone).row
    let queued = try transaction.operations.operations(node: row.id)
    let event = try transaction.lastSecurityEvent(localUser: zone.localUser, node: row.nodeID)
    let failures = try failures(row, transaction)
    return ZDCNodeExplanation(
      nodeID: row.uuid, cloudID: row.nodeID.text, isUploaded: row.isUploaded,
      hasContentInCloud: row.content != nil,
      quarantine: try row.quarantine ?? transaction.unreadable.code(zone: row.zone, node: row.nodeID),
      zoneFrozen: zone.frozen?.rawValue, zoneStalled: zone.doubt?.rawValue,
      isAwaitingPull: try transaction.isUnread(row), delegateFailures: failures,
      lastSecurityError: event?.code, lastSecurityErrorAt: event.map { Date(ms: $0.timeMs) },
      operations: queued.isEmpty ? [] : try Explainer(transaction, zone: zone).explain(queued))
  }

  package static func explain(
    _ operation: OperationRow, _ transaction: ZDCReadTransaction
  ) throws -> ZDCOperationExplanation? {
    guard let zone = try transaction.zones.zone(id: operation.zone) else { return nil }
    return try Explainer(transaction, zone: zone).explain([operation]).first
  }

  package func explain(_ operations: [OperationRow]) throws -> [ZDCOperationExplanation] {
    try operations.map { operation in
      let (reason, detail) = underEngine(try cause(of: operation))
      let history = try transaction.attempts.attempts(of: operation.id)
      return ZDCOperationExplanation(
        uuid: operation.uuid, kind: "\(operation.kind)", nodeID: operation.nodeUUID, cloudID: operation.nodeID.text,
        reason: reason, detail: detail, waitsFor: (dependencies[operation.id] ?? []).compactMap { uuids[$0] },
        rootCauses: graph.roots(of: operation.id).sorted().compactMap { uuids[$0] },
        attempts: max(operation.attempts, history.reduce(0) { $0 + $1.times }), history: history,
        notBefore: notBefore(operation, reason),
        createdAt: Date(ms: operation.createdMs), priority: operation.priority)
    }
  }

  /// Returns the cause, which is looked up first in the state of the whole tree, then in the plan, then in the result
  /// of the last attempt.
  private func cause(of operation: OperationRow) throws -> (ZDCWaitReason, String?) {
    if let frozen = zone.frozen { return (.zoneFrozen, frozen.rawValue) }
    if zone.head == nil { return (.notPulledYet, nil) }
    if let waiting = waiting[operation.id] { return (ZDCWaitReason(waiting.reason), waiting.detail) }
    if isPaused { return (.paused, nil) }
    if try isAwaitingPull(operation) { return (.notPulledYet, nil) }
    if let reason = try moveWaits(operation) { return (ZDCWaitReason(reason), nil) }
    switch operation.reason {
    case .uploading, .promisePending: return (ZDCWaitReason(operation.reason), operation.reasonDetail)
    // The pause is over, but only the next attempt shows whether there is space now.
    case .overQuota: return (.overQuota, operation.reasonDetail)
    // The operation may run now; reasons stored by earlier attempts are history.
    default: return (.ready, nil)
    }
  }

  /// Returns why a move to another branch cannot begin yet.
  private func moveWaits(_ operation: OperationRow) throws -> OperationRow.Reason? {
    guard let node = operation.node, try transaction.moves.crossings(from: zone.id).contains(node),
      let user = UserID(text: try transaction.cloudState.facts(ofZone: zone.id).localUserID),
      case .waits(let reason) = try CrossingPlan(user: user, zone: zone, transaction: transaction).verdict(node)
    else { return nil }
    return reason
  }

  /// Returns whether the node's next record would have to follow one that this device has not read. A delete follows no
  /// record, but waits for those of nodes that are to be taken out first. The end of a zone takes all nodes along.
  private func isAwaitingPull(_ operation: OperationRow) throws -> Bool {
    guard operation.kind != .delete else {
      let isEnd = operation.nodeID == zone.zone.root
      return try !isEnd && transaction.hasUnreadArrival(atOrBelow: operation.nodeID, zone: operation.zone)
    }
    return try operation.node.flatMap { try transaction.nodes.node(id: $0) }.map(transaction.isUnread) ?? false
  }

  /// Replaces the cause of a ready operation if this process's engine cannot send it now.
  private func underEngine(_ cause: (ZDCWaitReason, String?)) -> (ZDCWaitReason, String?) {
    guard cause.0 == .ready else { return cause }
    if let doubt = zone.doubt { return (.serverSaid, doubt.rawValue) }
    if let offline = engine.offline { return (.offline, offline) }
    return engine.pauses[zone.id].map { (.backoff, $0.code) } ?? cause
  }

  private func notBefore(_ operation: OperationRow, _ reason: ZDCWaitReason) -> Date? {
    if operation.notBeforeMs > 0 { return Date(ms: operation.notBeforeMs) }
    return reason == .backoff ? engine.pauses[zone.id]?.date : nil
  }
}
