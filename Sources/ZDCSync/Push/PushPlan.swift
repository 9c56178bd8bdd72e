package import ZDCClientStore
package import ZDCProtocol
internal import ZDCSupport

/// The operations of a zone's queue that may go into the next commit, and the reasons why the others wait. Pure.
///
/// Dependencies are binding, priorities are hints: higher priority first, then queue order. A dependency on an
/// operation of the same plan is satisfied if that operation comes earlier, because a commit applies its operations in
/// order.
package struct PushPlan: Equatable {
  /// One node's part of the commit.
  package struct Step: Equatable {
    /// The node's row, or nil for a delete.
    package var node: Int64?
    /// The operations in queue order. A delete has its own step.
    package var operations: [OperationRow]

    var dataOperations: [OperationRow] { operations.filter { $0.kind == .putData } }
    var recordOperations: [OperationRow] { operations.filter { $0.kind != .putData } }
    var isDelete: Bool { operations.first?.kind == .delete }
  }

  package struct Waiting: Equatable {
    package var operation: Int64
    package var reason: OperationRow.Reason
    package var detail: String?
  }

  package private(set) var steps: [Step] = []
  package private(set) var waiting: [Waiting] = []
  /// Changes of the access list that may be sent. They go out as one commit, without steps.
  package private(set) var listChanges: [OperationRow] = []
  /// Deliveries of messages, and changes of the profile, that may be sent. They are in no commit of the queue, so what
  /// they wait for is done before.
  package private(set) var deliveries: [OperationRow] = []
  /// The operations that each operation waits for, when the plan was made.
  package let dependencies: [Int64: [Int64]]
  /// The earliest time at which a pause ends.
  package private(set) var nextMs: UInt64?
  /// The number of steps that take up room in the commit or in requests to the app. The others only wait for their
  /// content.
  package private(set) var taken = 0
  private let underWay: Set<Int64>
  private let unreadable: ZDCSecurityError.Code?
  private let mayWrite: Bool
  private var isTaken: [Bool] = []

  /// - Parameters:
  ///   - unread: Nodes that cannot be put before the next pull.
  ///   - unreadable: The reason why the tree's key is missing; if set, all operations wait.
  ///   - mayWrite: Whether the access list in force lets the user write.
  ///   - foreign: The UUIDs of operations in other queues that these wait for.
  ///   - underWay: Operations whose content is being uploaded. They never hold up others, regardless of their number.
  package init(
    operations: [OperationRow], dependencies: [Int64: [Int64]], foreign: [Int64: String] = [:],
    unread: Set<Int64> = [], unreadable: ZDCSecurityError.Code? = nil, mayWrite: Bool = true, underWay: Set<Int64> = [],
    nowMs: UInt64,
    limit: Int = Limits.commitOperations
  ) {
    self.dependencies = dependencies
    self.underWay = underWay
    (self.unreadable, self.mayWrite) = (unreadable, mayWrite)
    let uuids = foreign.merging(operations.map { ($0.id, $0.uuid) }) { $1 }
    var stepByNode: [Int64: Int] = [:]
    var chosen: Set<Int64> = []
    for operation in Self.ordered(operations, dependencies) {
      // Once the plan is full, an operation waits only for its turn.
      let isBeyond = taken >= limit && operation.node.map { stepByNode[$0] == nil } ?? true
      let isInCommit = operation.isInCommit
      let open = isBeyond ? nil : dependencies[operation.id]?.first { !isInCommit || !chosen.contains($0) }
      let isUnread = operation.node.map(unread.contains) ?? false
      if let wait = wait(operation, isUnread: isUnread, open: open, uuids: uuids, nowMs: nowMs) {
        waiting.append(wait)
        continue
      }
      guard operation.kind != .changeList else {
        listChanges.append(operation)
        continue
      }
      guard isInCommit else {
        deliveries.append(operation)
        continue
      }
      guard place(operation, &stepByNode, limit: limit) else { continue }
      chosen.insert(operation.id)
    }
  }

  private mutating func wait(
    _ operation: OperationRow, isUnread: Bool, open: Int64?, uuids: [Int64: String], nowMs: UInt64
  ) -> Waiting? {
    if operation.state != .pending { return Waiting(operation: operation.id, reason: operation.reason) }
    if let unreadable { return Waiting(operation: operation.id, reason: .unreadable, detail: unreadable.rawValue) }
    if !mayWrite, operation.kind != .changeList { return Waiting(operation: operation.id, reason: .notAllowed) }
    if operation.isParked {
      return Waiting(operation: operation.id, reason: operation.reason, detail: operation.reasonDetail)
    }
    // A pause longer than the maximum was set before the clock was moved back.
    if operation.notBeforeMs > nowMs, operation.notBeforeMs - nowMs <= Backoff.longestPauseMs {
      nextMs = min(nextMs ?? .max, operation.notBeforeMs)
      return Waiting(operation: operation.id, reason: operation.reason, detail: operation.reasonDetail)
    }
    if isUnread { return Waiting(operation: operation.id, reason: .notPulledYet) }
    return open.map { Waiting(operation: operation.id, reason: .waitingForOperation, detail: uuids[$0]) }
  }

  /// Adds the operation to its node's step. Returns false when the plan is full.
  private mutating func place(_ operation: OperationRow, _ stepByNode: inout [Int64: Int], limit: Int) -> Bool {
    let index = operation.node.flatMap { stepByNode[$0] }
    let takesRoom = !underWay.contains(operation.id) && !(index.map { isTaken[$0] } ?? false)
    guard !takesRoom || taken < limit else { return false }
    if takesRoom { taken += 1 }
    if let index {
      steps[index].operations.append(operation)
      isTaken[index] = isTaken[index] || takesRoom
      return true
    }
    if let node = operation.node { stepByNode[node] = steps.count }
    steps.append(Step(node: operation.node, operations: [operation]))
    isTaken.append(takesRoom)
    return true
  }

  /// Orders operations by priority, then queue order, but never before their dependencies. A dependency inherits the
  /// priority of the operations that wait for it.
  private static func ordered(
    _ operations: [OperationRow], _ dependencies: [Int64: [Int64]]
  ) -> [OperationRow] {
    let queue = byPriority(operations, dependencies)
    let hasLaterDependency = dependencies.contains { id, others in others.contains { $0 > id } }
    return hasLaterDependency ? dependenciesFirst(queue, dependencies) : queue
  }

  /// Moves dependencies before the operations that wait for them. A deletion may depend on a move that a pull queued
  /// later. A node queued between the two may take the deleted node's name; the server refuses it unless the deletion
  /// comes first.
  private static func dependenciesFirst(
    _ queue: [OperationRow], _ dependencies: [Int64: [Int64]]
  ) -> [OperationRow] {
    let byID = Dictionary(uniqueKeysWithValues: queue.map { ($0.id, $0) })
    var entered: Set<Int64> = []
    var result: [OperationRow] = []
    // Use an explicit stack, because a chain of dependencies may be as long as the queue.
    for operation in queue {
      var path: [(operation: OperationRow, dependencies: ArraySlice<Int64>)] = []
      func enter(_ operation: OperationRow) {
        if entered.insert(operation.id).inserted { path.append((operation, (dependencies[operation.id] ?? [])[...])) }
      }
      enter(operation)
      while let last = path.indices.last {
        if let dependency = path[last].dependencies.popFirst() {
          if let other = byID[dependency] { enter(other) }
        } else {
          result.append(path.removeLast().operation)
        }
      }
    }
    return result
  }

  private static func byPriority(
    _ operations: [OperationRow], _ dependencies: [Int64: [Int64]]
  ) -> [OperationRow] {
    guard operations.contains(where: { $0.priority != 0 }) else { return operations }
    var priority = Dictionary(uniqueKeysWithValues: operations.map { ($0.id, $0.priority) })
    for operation in operations.reversed() {
      for dependency in dependencies[operation.id] ?? [] {
        guard let own = priority[operation.id], let other = priority[dependency] else { continue }
        priority[dependency] = max(own, other)
      }
    }
    return operations.sorted { a, b in
      let (left, right) = (priority[a.id] ?? 0, priority[b.id] ?? 0)
      return left == right ? a.id < b.id : left > right
    }
  }
}
