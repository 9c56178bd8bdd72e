import Testing
import ZDCProtocol

@testable import ZDCClientStore
@testable import ZDCSync
@testable import ZeroDarkCloud

@Suite struct OperationGraphTests {
  @Test func circlesAreSeen_howeverLong() {
    let graph = OperationGraph([2: [1], 3: [2], 4: [3, 1]])
    #expect(graph.closesCircle(1, waitingFor: 4))
    #expect(graph.closesCircle(1, waitingFor: 1))
    #expect(graph.closesCircle(2, waitingFor: 3))
    #expect(!graph.closesCircle(4, waitingFor: 1))
    #expect(!graph.closesCircle(5, waitingFor: 4))
  }

  @Test func rootsAreWhatWaitsForNothing() {
    let graph = OperationGraph([2: [1], 3: [2, 5], 4: [3], 6: []])
    #expect(graph.roots(of: 4) == [1, 5])
    #expect(graph.roots(of: 1) == [])
    #expect(graph.roots(of: 6) == [])
  }

  @Test func ringInTheTable_endsTheSearch() {
    let graph = OperationGraph([1: [2], 2: [3], 3: [1]])
    #expect(graph.roots(of: 1) == [])
    #expect(!graph.closesCircle(9, waitingFor: 1))
  }
}

/// Invariants of the plan for any queue.
@Suite struct PushPlanPropertyTests {
  struct Queue {
    var operations: [OperationRow] = []
    var dependencies: [Int64: [Int64]] = [:]
  }

  private static let nowMs: UInt64 = 1_000

  /// Returns a random queue whose dependencies point both ways in its order, but never form a cycle.
  private static func random(_ generator: inout some RandomNumberGenerator) -> Queue {
    var queue = Queue()
    let count = Int64.random(in: 1...40, using: &generator)
    let rank = Array(1...count).shuffled(using: &generator)
    for id in 1...count {
      var operation = OperationRow(
        id: id, uuid: "\(id)", zone: 1, kind: .create, node: Int64.random(in: 1...12, using: &generator),
        nodeUUID: "n", nodeID: .zero, createdMs: 0)
      if Int.random(in: 0..<4, using: &generator) == 0 { operation.kind = .putData }
      if Int.random(in: 0..<8, using: &generator) == 0 { operation.reason = .conflictHeld }
      if Int.random(in: 0..<10, using: &generator) == 0 { operation.state = .inFlight }
      if Int.random(in: 0..<6, using: &generator) == 0 { operation.notBeforeMs = nowMs + UInt64(id) }
      if Int.random(in: 0..<3, using: &generator) == 0 { operation.priority = .random(in: -2...2, using: &generator) }
      queue.operations.append(operation)
      let earlier = (1...count).filter { rank[Int($0) - 1] < rank[Int(id) - 1] }
      let wanted = Int.random(in: 0...2, using: &generator)
      queue.dependencies[id] = Array(earlier.shuffled(using: &generator).prefix(wanted))
    }
    return queue
  }

  private func plan(
    _ queue: Queue, unread: Set<Int64> = [], underWay: Set<Int64> = [], limit: Int = 1_000
  ) -> PushPlan {
    PushPlan(
      operations: queue.operations, dependencies: queue.dependencies, unread: unread, underWay: underWay,
      nowMs: Self.nowMs, limit: limit)
  }

  /// => uploads in flight stay in the plan and take no room from the other operations
  @Test func runningOperations_fillNoPlan() {
    var generator = SeededGenerator(seed: 11)
    for _ in 0..<500 {
      let queue = Self.random(&generator)
      let underWay = Set(queue.operations.map(\.id).filter { _ in Bool.random(using: &generator) })
      let whole = plan(queue, underWay: underWay)
      #expect(whole.steps == plan(queue).steps)
      #expect(whole.taken == whole.steps.count { step in step.operations.contains { !underWay.contains($0.id) } })
      #expect(plan(queue, underWay: underWay, limit: 1).taken == min(1, whole.taken))
    }
  }

  /// => operations of unread nodes take no room in the plan, and the plan gives the reason why they wait
  @Test func unreadNodes_areSkipped_andDelayNoOtherOperation() {
    var generator = SeededGenerator(seed: 10)
    for _ in 0..<500 {
      let queue = Self.random(&generator)
      let unread = Set(queue.operations.compactMap(\.node).filter { _ in Bool.random(using: &generator) })
      let plan = plan(queue, unread: unread)
      #expect(plan.steps.allSatisfy { $0.node.map { !unread.contains($0) } ?? true })
      let told = Set(plan.waiting.filter { $0.reason == .notPulledYet }.map(\.operation))
      for operation in queue.operations where operation.node.map(unread.contains) ?? false {
        let mayRun = operation.state == .pending && !operation.isParked && operation.notBeforeMs <= Self.nowMs
        #expect(told.contains(operation.id) == mayRun)
      }
      let first = self.plan(queue, unread: unread, limit: 1)
      #expect(first.steps.count == min(1, plan.steps.count), "they fill no plan either")
    }
  }

  @Test func plannedOperations_haveAllTheirDependencies() {
    var generator = SeededGenerator(seed: 7)
    for _ in 0..<500 {
      let queue = Self.random(&generator)
      let chosen = Set(plan(queue).steps.flatMap { $0.operations.map(\.id) })
      for operation in queue.operations where chosen.contains(operation.id) {
        #expect(operation.state == .pending && !operation.isParked && operation.notBeforeMs <= Self.nowMs)
        #expect(Set(queue.dependencies[operation.id] ?? []).isSubset(of: chosen))
      }
    }
  }

  @Test func everyOperation_runsOrHasAReason_andOnlyOne() {
    var generator = SeededGenerator(seed: 8)
    for _ in 0..<500 {
      let queue = Self.random(&generator)
      let plan = plan(queue)
      let ids = plan.steps.flatMap { $0.operations.map(\.id) } + plan.waiting.map(\.operation)
      #expect(ids.sorted() == queue.operations.map(\.id))
    }
  }

  @Test func withoutPauses_theQueueRunsEmptyInAFewPlans() {
    var generator = SeededGenerator(seed: 9)
    for _ in 0..<300 {
      var queue = Self.random(&generator)
      for index in queue.operations.indices {
        queue.operations[index].state = .pending
        queue.operations[index].reason = .ready
        queue.operations[index].notBeforeMs = 0
      }
      var rounds = 0
      while !queue.operations.isEmpty, rounds <= 40 {
        let done = Set(plan(queue, limit: 5).steps.flatMap { $0.operations.map(\.id) })
        queue.operations.removeAll { done.contains($0.id) }
        for id in queue.dependencies.keys { queue.dependencies[id]?.removeAll(where: done.contains) }
        rounds += 1
      }
      #expect(queue.operations.isEmpty)
    }
  }

  @Test func equalPriorities_keepTheQueuesOrder() {
    var generator = SeededGenerator(seed: 10)
    for _ in 0..<300 {
      var queue = Self.random(&generator)
      for index in queue.operations.indices { queue.operations[index].priority = 0 }
      for id in queue.dependencies.keys { queue.dependencies[id]?.removeAll { $0 > id } }
      let firsts = plan(queue).steps.compactMap { $0.operations.first?.id }
      #expect(firsts == firsts.sorted())
    }
  }

  @Test("M18: a dependency that was queued later goes before what was queued in between")
  func aLaterDependency_goesFirst() {
    let operations = (1...3).map { id in
      OperationRow(
        id: id, uuid: "\(id)", zone: 1, kind: id == 1 ? .delete : .create, node: id, nodeUUID: "n", nodeID: .zero,
        createdMs: 0)
    }
    let steps = plan(Queue(operations: operations, dependencies: [1: [3]])).steps
    #expect(steps.flatMap { $0.operations.map(\.id) } == [3, 1, 2])
  }
}

/// The SplitMix64 generator: a seed gives the same numbers in every run.
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
}
