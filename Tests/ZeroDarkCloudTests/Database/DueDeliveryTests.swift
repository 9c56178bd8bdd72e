import GRDB
import Testing
import ZDCCrypto
import ZDCProtocol
import ZDCSupport

@testable import ZDCClientStore
@testable import ZeroDarkCloud

/// The deliveries that the push engine reads for a request. It does not read blocked and paused ones.
@Suite struct DueDeliveryTests {
  private let device: CloudFixture
  private let recipient: UserID

  init() async throws {
    device = try await CloudFixture()
    recipient = try await device.write { cloud in
      let birth = try NewAccount(accessKey: .random(), appTreeID: CloudFixture.treeID, timeMs: 1)
      var chain = ZDCProtocol.Bundle.Writer()
      chain.append(link: birth.genesis.bytes)
      try cloud.transaction.users.pin(chain.bytes, handle: nil, of: birth.userID, atMs: 1)
      return birth.userID
    }
  }

  /// Queues messages, and returns the deliveries and the operations that each of them depends on.
  private func queue(_ count: Int) async throws -> [(delivery: Int64, before: [Int64])] {
    try await device.write { [recipient] cloud in
      let user = ZDCUser(uuid: recipient.text, isLocal: false)
      return try (0..<count).map { _ in
        let message = try cloud.sendMessage(toRecipients: [user], withDependencies: nil)
        let row = try #require(try cloud.transaction.nodes.node(uuid: message.uuid))
        let queued = try cloud.operations.operations(node: row.id)
        let delivery = try #require(queued.last { $0.kind == .deliver })
        return (delivery.id, queued.filter { $0.kind != .deliver }.map(\.id))
      }
    }
  }

  private func finish(_ operations: [Int64]) async throws {
    try await device.write { cloud in for id in operations { try cloud.operations.delete(id: id) } }
  }

  private func due(limit: Int = 100, nowMs: UInt64 = 1_000) async throws -> [Int64] {
    try await device.read { cloud in
      let outbox = try #require(
        try cloud.transaction.zones.zones(localUser: cloud.localUser).first { $0.trunk == .outbox })
      return try cloud.transaction.messages.due(zone: outbox.id, nowMs: nowMs, limit: limit).map(\.id)
    }
  }

  @Test func aDeliveryIsDue_whenAllThatItDependsOnIsDone() async throws {
    let queued = try await queue(3)
    #expect(try await due().isEmpty)
    try await finish([queued[1].before[0]])
    #expect(try await due().isEmpty)
    try await finish([queued[1].before[1]] + queued[0].before)
    #expect(try await due() == [queued[0].delivery, queued[1].delivery])
    let first = queued[0].delivery
    try await device.write { [later = queued[2].before[0]] cloud in
      try cloud.operations.addDependency(of: first, on: later)
    }
    #expect(try await due() == [queued[1].delivery])
    // An operation also goes with its node.
    try await device.write { [later = queued[2].delivery] cloud in
      let node = try #require(try cloud.operations.operation(id: later)?.node)
      try cloud.transaction.nodes.deleteSubtree(of: node)
    }
    #expect(try await due() == [queued[0].delivery, queued[1].delivery])
  }

  @Test func aPausedOrParkedDeliveryIsNotDue() async throws {
    let queued = try await queue(4)
    try await finish(queued.flatMap(\.before))
    let deliveries = queued.map(\.delivery)
    try await device.write { cloud in
      try cloud.operations.setState(.pending, reason: .noDataFromApp, id: deliveries[0])
      try cloud.operations.setState(.inFlight, reason: .inFlight, id: deliveries[1])
      var paused = try #require(try cloud.operations.operation(id: deliveries[2]))
      (paused.reason, paused.notBeforeMs) = (.serverSaid, 2_000)
      try cloud.operations.update(paused)
    }
    #expect(try await due() == [deliveries[3]])
    #expect(try await due(nowMs: 2_000) == deliveries[2...].map(\.self))
    // The clock was moved back by more than the longest pause.
    try await device.write { cloud in
      var paused = try #require(try cloud.operations.operation(id: deliveries[2]))
      paused.notBeforeMs = 3_000 + Backoff.longestPauseMs
      try cloud.operations.update(paused)
    }
    #expect(try await due() == deliveries[2...].map(\.self))
  }

  /// The index's condition is fixed text in the schema, so it does not change when a reason is added.
  @Test func theIndexLeavesOutAllReasonsThatParkAnOperation() {
    var operation = OperationRow(
      uuid: "", zone: 1, kind: .deliver, node: nil, nodeUUID: "", nodeID: .random(), createdMs: 1)
    let parked = OperationRow.Reason.allCases.filter { reason in
      operation.reason = reason
      return operation.isParked
    }
    let list = parked.map { "\($0.rawValue)" }.joined(separator: ", ")
    #expect(FrameworkSchema.dueDelivery.hasSuffix("reason NOT IN (\(list))"))
  }

  /// Damaged rows show what is decoded.
  @Test func messagesThatWaitAreNotDecoded() async throws {
    let queued = try await queue(50)
    let ready = [queued[10], queued[20], queued[30]]
    try await finish(ready.flatMap(\.before))
    try await device.write { cloud in
      try cloud.transaction.database.execute(
        sql: "UPDATE zdc_operation SET nodeID = x'00' WHERE id NOT IN (?, ?)",
        arguments: [ready[0].delivery, ready[1].delivery])
    }
    #expect(try await due(limit: 2) == ready[..<2].map(\.delivery))
    await #expect(throws: ZDCError.self) { try await due() }
  }
}
