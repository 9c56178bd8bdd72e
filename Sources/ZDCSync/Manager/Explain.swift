public import Foundation
public import ZDCClientStore
internal import ZDCProtocol
internal import ZDCTreesystem

/// A queued operation, why it waits, and what would let it go on.
public struct ZDCOperationExplanation: Sendable, Hashable, Codable, Identifiable {
  public var uuid: String
  /// create, move, modify, putData or delete.
  public var kind: String
  public var nodeID: String
  public var cloudID: String
  public var reason: ZDCWaitReason
  /// A code, never a name: what the server said, the uuid of another operation.
  public var detail: String?
  /// The operations that it waits for directly, by uuid.
  public var waitsFor: [String]
  /// The operations at the end of all that it waits for.
  public var rootCauses: [String]
  /// How often it was tried and failed.
  public var attempts: Int
  /// What became of its last tries, oldest first; at most ``historyLimit``. Kept over launches, gone with the operation.
  public var history: [ZDCAttempt]
  /// When it is tried again, after a failure.
  public var notBefore: Date?
  public var createdAt: Date
  public var priority: Int32

  /// How many different outcomes in a row ``history`` goes back.
  public static var historyLimit: Int { AttemptStore.limit }

  public var id: String { uuid }
  public var unblockedBy: String { reason.unblockedBy }
}

/// What is known of a node, and what is queued for it.
public struct ZDCNodeExplanation: Sendable, Hashable, Codable {
  public var nodeID: String
  public var cloudID: String
  public var isUploaded: Bool
  public var hasContentInCloud: Bool
  /// Why the newest version in the cloud could not be opened.
  public var quarantine: String?
  /// Why nothing is pulled or pushed for the node's tree.
  public var zoneFrozen: String?
  /// Why the server's answers about the node's tree cannot be followed; it is asked again after pauses.
  public var zoneStalled: String?
  /// The verified log has a version of the node that was not read yet, or that the app has not taken: see
  /// ``delegateFailures``.
  public var isAwaitingPull: Bool
  /// The app's errors when it was told of the node; empty once it has taken all.
  public var delegateFailures: [ZDCDelegateFailure]
  /// What was last found out about the node that cannot be, and when: it may be over.
  public var lastSecurityError: String?
  public var lastSecurityErrorAt: Date?
  /// Oldest first; empty if the cloud has it all.
  public var operations: [ZDCOperationExplanation]

  /// Whether the cloud has all that this device knows, and this device has read all that the cloud has.
  public var isInSync: Bool {
    operations.isEmpty && isUploaded && !isAwaitingPull && quarantine == nil && zoneFrozen == nil && zoneStalled == nil
  }
}

extension ZDCCloudReadTransaction {
  /// Why a node is not in sync; nil for an unknown node.
  ///
  /// To follow it, see ``ZDCSyncManager/explanations(forNodeID:)``.
  public final func explain(nodeID: String) -> ZDCNodeExplanation? {
    transaction.poisoning { try row(nodeID).map { try Explainer.explain($0, transaction) } } ?? nil
  }

  /// Why an operation waits; nil once it is done.
  public final func explain(operationUUID: String) -> ZDCOperationExplanation? {
    transaction.poisoning { try operationRow(operationUUID).flatMap { try Explainer.explain($0, transaction) } } ?? nil
  }

  /// The whole queue of the tree, in its order, with the reasons.
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

/// Gives reasons by asking the plan that the push engine would make now.
struct Explainer {
  private let transaction: ZDCReadTransaction
  private let zone: ZoneRow
  private let dependencies: [Int64: [Int64]]
  private let waiting: [Int64: PushPlan.Waiting]
  private let engine: EngineState
  private let isPaused: Bool

  package init(_ transaction: ZDCReadTransaction, zone: ZoneRow) throws {
    self.transaction = transaction
    self.zone = zone
    engine = transaction.context.engines.state(try transaction.cloudState.facts(ofZone: zone.id).localUserID)
    isPaused = try transaction.pushPause(localUser: zone.localUser) != nil
    dependencies = try transaction.operations.dependencies(zone: zone.id)
    let operations = try transaction.operations.operations(zone: zone.id, limit: .max)
    let plan = PushPlan(
      operations: operations, dependencies: dependencies,
      unread: try transaction.unreadNodes(of: operations, zone: zone.id), unreadable: zone.unreadableReason?.code,
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
    let graph = OperationGraph(dependencies)
    return try operations.map { operation in
      let (reason, detail) = underEngine(try cause(of: operation))
      let history = try transaction.attempts.attempts(of: operation.id)
      return ZDCOperationExplanation(
        uuid: operation.uuid, kind: "\(operation.kind)", nodeID: operation.nodeUUID, cloudID: operation.nodeID.text,
        reason: reason, detail: detail, waitsFor: try uuids(dependencies[operation.id] ?? []),
        rootCauses: try uuids(graph.roots(of: operation.id).sorted()),
        attempts: max(operation.attempts, history.reduce(0) { $0 + $1.times }), history: history,
        notBefore: notBefore(operation, reason),
        createdAt: Date(ms: operation.createdMs), priority: operation.priority)
    }
  }

  /// What holds the whole tree comes first, then what the plan says, then what was stored when it was last tried.
  private func cause(of operation: OperationRow) throws -> (ZDCWaitReason, String?) {
    if let frozen = zone.frozen { return (.zoneFrozen, frozen.rawValue) }
    if zone.head == nil { return (.notPulledYet, nil) }
    if let waiting = waiting[operation.id] { return (ZDCWaitReason(waiting.reason), waiting.detail) }
    if isPaused { return (.paused, nil) }
    if try isAwaitingPull(operation) { return (.notPulledYet, nil) }
    switch operation.reason {
    case .uploading, .promisePending: return (ZDCWaitReason(operation.reason), operation.reasonDetail)
    // Its pause is over, and whether there is room now only the next try tells.
    case .overQuota: return (.overQuota, operation.reasonDetail)
    // It may run now: reasons of other earlier tries are history.
    default: return (.ready, nil)
    }
  }

  /// The node's next record would have to follow one that this device has not read; a delete follows no record.
  private func isAwaitingPull(_ operation: OperationRow) throws -> Bool {
    guard operation.kind != .delete else { return false }
    return try operation.node.flatMap { try transaction.nodes.node(id: $0) }.map(transaction.isUnread) ?? false
  }

  /// What may go does not, as long as the engine of this process cannot reach the server.
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

  private func uuids(_ ids: [Int64]) throws -> [String] {
    try ids.compactMap { try transaction.operations.operation(id: $0)?.uuid }
  }
}
